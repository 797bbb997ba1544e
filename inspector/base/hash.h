// Hashes of content: SHA-256 for models (what a person may compare with sha256sum), XXH3-128 for tensors (equal
// payloads).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace parallax {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Hash128&) const = default;
};

Hash128 hash128(const void* data, size_t size);         // XXH3, not cryptographic
std::string sha256_hex(const void* data, size_t size);  // 64 lower-case hex digits

}  // namespace parallax
