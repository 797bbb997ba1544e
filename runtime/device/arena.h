// SPDX-License-Identifier: Apache-2.0
// Arena: one block of memory that holds the buffers of a planned run, and its free ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace parallax::runtime {

// Not thread-safe: its BufferPool guards it. A plan is only a forecast, so every claim is checked: what an observer
// still holds, or a run that takes another course, can never be overwritten.
class Arena {
 public:
  explicit Arena(std::shared_ptr<std::byte> memory, int64_t bytes) : memory_(std::move(memory)), bytes_(bytes) {}

  int64_t bytes() const { return bytes_; }
  const std::shared_ptr<std::byte>& memory() const { return memory_; }

  // Null when some of [offset, offset + bytes) is in use.
  std::byte* claim(int64_t offset, int64_t bytes);
  void release(const std::byte* claimed);
  bool is_idle() const { return claims_.empty(); }
  bool contains(const std::byte* address) const { return address >= memory_.get() && address < memory_.get() + bytes_; }

 private:
  struct Claim {
    int64_t begin;
    int64_t end;
  };
  std::shared_ptr<std::byte> memory_;
  int64_t bytes_;
  std::vector<Claim> claims_;  // by offset
};

}  // namespace parallax::runtime
