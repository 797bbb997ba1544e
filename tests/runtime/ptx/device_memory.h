// SPDX-License-Identifier: Apache-2.0
// The memory of the device: which bytes of the process are its, and which of those hold a value now. An access is
// compared with the exact range of one value; fresh memory, the guard zones around it and freed memory hold patterns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <string>

namespace parallax::ptx {

constexpr unsigned char kFreshByte = 0xFF;  // NaN in every float format, -1 in every integer
constexpr unsigned char kGuardByte = 0xFD;
constexpr unsigned char kFreedByte = 0xFE;
constexpr size_t kGuardBytes = 512;  // before and after each allocation; also the alignment of allocations

// The threads that last wrote and read a byte; `race.cpp` compares them.
struct ByteAccess {
  uint32_t launch = 0;  // the counts below are of this one
  uint32_t writer = 0;  // 1 + 1024 * block + thread; 0: none
  uint32_t reader = 0;
  uint32_t other_reader = 0;
  uint64_t written = 0;  // the time of the writer's block and warp
  uint64_t read = 0;
};

class DeviceMemory {
 public:
  // Memory for `bytes` between two guard zones; null where there is none.
  std::byte* allocate(size_t bytes);
  // Poisons what allocate() gave and keeps it from being allocated again for a while. Returns a problem, or "".
  std::string free(void* memory);

  // Variables of modules, and other memory that is the device's for good.
  void add(const void* memory, size_t bytes);

  // From now on only the values in [memory, memory + bytes) may be reached, and everything else there is a guard zone.
  void begin_values(void* memory, size_t bytes);
  void end_values(void* memory);
  void add_value(void* memory, size_t bytes);
  void remove_value(void* memory);

  // True where all of it is in one allocation or value.
  bool holds(uint64_t address, size_t bytes);
  // Why an access is refused: what the address is near to.
  std::string explain(uint64_t address, size_t bytes) const;
  // True where the range is the device's, whatever is in it.
  bool owns(const void* memory) const;
  const void* allocation_of(const void* memory) const;  // its first byte; null where it is in none

  // The address of the first byte of a guard zone that was written over, as a sentence; "" where there is none.
  // Accesses of kernels are compared before they are made; libraries' are not.
  std::string check_guards() const;

  ByteAccess* accesses(uint64_t address);  // of the bytes from there on

 private:
  struct Allocation {
    size_t bytes = 0;
    bool is_own = false;  // has guard zones
    bool has_values = false;
    std::unique_ptr<ByteAccess[], decltype(&std::free)> accesses{nullptr, &std::free};  // made when first asked for
  };
  Allocation* around(uint64_t address);
  const Allocation* around(uint64_t address, uint64_t& begin) const;

  std::map<uint64_t, Allocation> allocations_;
  std::map<uint64_t, uint64_t> reachable_;  // begin and end of each range
  uint64_t last_begin_ = 1, last_end_ = 0;  // of the range that was last found
  uint64_t last_allocation_ = 0;
  Allocation* last_ = nullptr;
  std::deque<std::pair<std::byte*, size_t>> freed_;
  size_t freed_bytes_ = 0;
};

DeviceMemory& device_memory();
std::string hex(uint64_t address);  // "0x7f00"

}  // namespace parallax::ptx
