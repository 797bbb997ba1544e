// SPDX-License-Identifier: Apache-2.0
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

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  PX_CHECK(state_->context != nullptr && EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() { EVP_MD_CTX_free(state_->context); }

void Sha256::add(const void* data, size_t size) { PX_CHECK(EVP_DigestUpdate(state_->context, data, size) == 1); }

std::string Sha256::hex() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int digest_size = 0;
  PX_CHECK(EVP_DigestFinal_ex(state_->context, digest.data(), &digest_size) == 1);
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (unsigned int index = 0; index < digest_size; ++index) {
    text += kHex[digest[index] >> 4];
    text += kHex[digest[index] & 0xFU];
  }
  return text;
}

std::string sha256_hex(const void* data, size_t size) {
  Sha256 hash;
  hash.add(data, size);
  return hash.hex();
}

}  // namespace parallax
