// Thin calls into libxxhash and OpenSSL's libcrypto.
#include "inspector/base/hash.h"

#include <array>

#include <openssl/evp.h>
#include <xxhash.h>

#include "inspector/base/check.h"

namespace parallax {

Hash128 hash128(const void* data, size_t size) {
  const XXH128_hash_t hash = XXH3_128bits(data, size);
  return {hash.low64, hash.high64};
}

std::string sha256_hex(const void* data, size_t size) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int digest_size = 0;
  PX_CHECK(EVP_Digest(data, size, digest.data(), &digest_size, EVP_sha256(), nullptr) == 1);
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (unsigned int index = 0; index < digest_size; ++index) {
    text += kHex[digest[index] >> 4];
    text += kHex[digest[index] & 0xFU];
  }
  return text;
}

}  // namespace parallax
