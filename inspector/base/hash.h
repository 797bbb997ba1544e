// SPDX-License-Identifier: Apache-2.0
// Hashes of content: SHA-256 for models (what a person may compare with sha256sum), XXH3-128 for tensors (equal
// payloads).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace parallax {

struct Hash128 {
  uint64_t low = 0;
  uint64_t high = 0;
  bool operator==(const Hash128&) const = default;
};

Hash128 hash128(const void* data, size_t size);         // XXH3, not cryptographic
std::string sha256_hex(const void* data, size_t size);  // 64 lower-case hex digits

// SHA-256 of what comes piece by piece.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(const void* data, size_t size);
  std::string hex();  // 64 lower-case hex digits; ends the hash

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace parallax
