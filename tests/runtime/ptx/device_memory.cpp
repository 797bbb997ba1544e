// SPDX-License-Identifier: Apache-2.0
// Ranges by their first address. Memory of the device is memory of the process.
#include "tests/runtime/ptx/device_memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace parallax::ptx {
namespace {

constexpr size_t kMostFreedBytes = size_t{256} << 20;  // kept poisoned before they are the process's again

uint64_t number_of(const void* memory) { return reinterpret_cast<uint64_t>(memory); }
std::byte* pointer_to(uint64_t address) { return reinterpret_cast<std::byte*>(address); }

// The first byte of [begin, end) that is not `byte`; `end` where all are.
uint64_t first_other(uint64_t begin, uint64_t end, unsigned char byte) {
  const std::byte* found = std::find_if(pointer_to(begin), pointer_to(end),
                                        [&](std::byte each) { return static_cast<unsigned char>(each) != byte; });
  return number_of(found);
}

}  // namespace

std::string hex(uint64_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
  return text;
}

DeviceMemory& device_memory() {
  static auto* memory = new DeviceMemory;  // as long as the process, whose exit still frees
  return *memory;
}

std::byte* DeviceMemory::allocate(size_t bytes) {
  const size_t rounded = (bytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes;
  void* made = nullptr;
  if (posix_memalign(&made, kGuardBytes, rounded + 2 * kGuardBytes) != 0) return nullptr;
  auto* memory = static_cast<std::byte*>(made) + kGuardBytes;
  std::memset(made, kGuardByte, rounded + 2 * kGuardBytes);
  std::memset(memory, kFreshByte, bytes);
  add(memory, bytes);
  allocations_[number_of(memory)].is_own = true;
  return memory;
}

std::string DeviceMemory::free(void* memory) {
  const auto found = allocations_.find(number_of(memory));
  if (found == allocations_.end() || !found->second.is_own)
    return hex(number_of(memory)) + " is freed and is no allocation; it may have been freed before";
  const size_t bytes = found->second.bytes;
  const uint64_t begin = number_of(memory);
  reachable_.erase(reachable_.lower_bound(begin), reachable_.lower_bound(begin + std::max<size_t>(1, bytes)));
  allocations_.erase(found);
  last_end_ = 0;
  last_ = nullptr;
  std::memset(memory, kFreedByte, bytes);
  freed_.emplace_back(static_cast<std::byte*>(memory), bytes);
  freed_bytes_ += bytes;
  while (freed_bytes_ > kMostFreedBytes) {
    freed_bytes_ -= freed_.front().second;
    std::free(freed_.front().first - kGuardBytes);
    freed_.pop_front();
  }
  return "";
}

void DeviceMemory::add(const void* memory, size_t bytes) {
  allocations_[number_of(memory)].bytes = bytes;
  reachable_[number_of(memory)] = number_of(memory) + bytes;
}

void DeviceMemory::begin_values(void* memory, size_t bytes) {
  if (Allocation* allocation = around(number_of(memory))) allocation->has_values = true;
  reachable_.erase(number_of(memory));
  last_end_ = 0;
  std::memset(memory, kFreedByte, bytes);
}

void DeviceMemory::end_values(void* memory) {
  Allocation* allocation = around(number_of(memory));
  if (allocation == nullptr) return;
  allocation->has_values = false;
  const uint64_t begin = number_of(memory);
  reachable_.erase(reachable_.lower_bound(begin), reachable_.lower_bound(begin + allocation->bytes));
  reachable_[begin] = begin + allocation->bytes;
  last_end_ = 0;
}

void DeviceMemory::add_value(void* memory, size_t bytes) {
  const uint64_t begin = number_of(memory), end = begin + bytes;
  // A recording's values are removed after its end, and come again in each replay: a new one replaces what it overlaps.
  auto next = reachable_.lower_bound(begin);
  if (next != reachable_.begin() && std::prev(next)->second > begin) --next;
  while (next != reachable_.end() && next->first < end) {
    std::memset(pointer_to(next->first), kFreedByte, next->second - next->first);
    next = reachable_.erase(next);
  }
  reachable_[begin] = end;
  last_end_ = 0;
  std::memset(memory, kFreshByte, bytes);
}

void DeviceMemory::remove_value(void* memory) {
  const auto found = reachable_.find(number_of(memory));
  if (found == reachable_.end()) return;
  std::memset(memory, kFreedByte, found->second - found->first);
  reachable_.erase(found);
  last_end_ = 0;
}

bool DeviceMemory::holds(uint64_t address, size_t bytes) {
  if (address >= last_begin_ && address + bytes <= last_end_) return true;
  const auto after = reachable_.upper_bound(address);
  if (after == reachable_.begin() || address + bytes > std::prev(after)->second) return false;
  last_begin_ = std::prev(after)->first;
  last_end_ = std::prev(after)->second;
  return true;
}

std::string DeviceMemory::explain(uint64_t address, size_t bytes) const {
  const std::string accessed = std::to_string(bytes) + " bytes at " + hex(address);
  for (const auto& [memory, size] : freed_) {
    const uint64_t begin = number_of(memory);
    if (address >= begin && address < begin + size) return accessed + " are in memory that was freed";
  }
  const auto after = reachable_.upper_bound(address);
  const auto distance = [](uint64_t from, uint64_t to) { return std::to_string(to - from); };
  uint64_t begin = 0;
  const Allocation* allocation = around(address, begin);
  const bool is_between = allocation != nullptr && allocation->has_values;
  const bool has_before = after != reachable_.begin() && (!is_between || std::prev(after)->first >= begin);
  if (has_before) {
    const auto& [first, end] = *std::prev(after);
    if (is_between || address < end + kGuardBytes)
      return accessed + " are " + (address < end ? "partly" : distance(end, address) + " bytes") + " past the end of " +
             (is_between ? "a value" : "an allocation") + " of " + distance(first, end) + " bytes at " + hex(first);
  }
  if (is_between) return accessed + " are in planned memory, before every value that it holds now";
  if (after != reachable_.end() && address + kGuardBytes > after->first)
    return accessed + " are " + distance(address, after->first) + " bytes before an allocation at " + hex(after->first);
  return accessed + " are in no memory of the device";
}

bool DeviceMemory::owns(const void* memory) const {
  uint64_t begin = 0;
  return around(number_of(memory), begin) != nullptr;
}

const void* DeviceMemory::allocation_of(const void* memory) const {
  uint64_t begin = 0;
  return around(number_of(memory), begin) == nullptr ? nullptr : pointer_to(begin);
}

std::string DeviceMemory::check_guards() const {
  const auto problem = [](uint64_t at, const char* where) { return hex(at) + " was written over, which is " + where; };
  for (const auto& [begin, allocation] : allocations_) {
    if (!allocation.is_own) continue;
    const uint64_t end = begin + allocation.bytes;
    if (const uint64_t at = first_other(begin - kGuardBytes, begin, kGuardByte); at != begin)
      return problem(at, "before an allocation");
    if (const uint64_t at = first_other(end, end + kGuardBytes, kGuardByte); at != end + kGuardBytes)
      return problem(at, "after an allocation");
    if (!allocation.has_values) continue;
    uint64_t from = begin;
    for (auto value = reachable_.lower_bound(begin); from < end; ++value) {
      const bool is_inside = value != reachable_.end() && value->first < end;
      const uint64_t to = is_inside ? value->first : end;
      if (const uint64_t at = first_other(from, to, kFreedByte); at != to) return problem(at, "between two values");
      from = is_inside ? value->second : end;
    }
  }
  return "";
}

ByteAccess* DeviceMemory::accesses(uint64_t address) {
  Allocation* allocation = around(address);
  if (allocation == nullptr) return nullptr;
  // Zeros that take no memory before they are written.
  if (allocation->accesses == nullptr)
    allocation->accesses.reset(static_cast<ByteAccess*>(std::calloc(allocation->bytes, sizeof(ByteAccess))));
  if (allocation->accesses == nullptr) return nullptr;
  return allocation->accesses.get() + (address - last_allocation_);
}

DeviceMemory::Allocation* DeviceMemory::around(uint64_t address) {
  if (last_ != nullptr && address >= last_allocation_ && address < last_allocation_ + last_->bytes) return last_;
  uint64_t begin = 0;
  if (around(address, begin) == nullptr) return nullptr;
  last_allocation_ = begin;
  last_ = &allocations_.at(begin);
  return last_;
}

const DeviceMemory::Allocation* DeviceMemory::around(uint64_t address, uint64_t& begin) const {
  const auto after = allocations_.upper_bound(address);
  if (after == allocations_.begin()) return nullptr;
  begin = std::prev(after)->first;
  const Allocation& allocation = std::prev(after)->second;
  return address < begin + allocation.bytes ? &allocation : nullptr;
}

}  // namespace parallax::ptx
