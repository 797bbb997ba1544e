// SPDX-License-Identifier: Apache-2.0
// Accesses to memory: whose it is, whether it may be reached, and whether another thread's access is ordered with it.
#include "tests/runtime/ptx/block.h"

namespace parallax::ptx {
namespace {

constexpr uint32_t kThreadsOfBlock = 1024;  // numbers of threads in ByteAccess

std::string bounds(const char* what, uint64_t address, size_t bytes, size_t size) {
  return std::to_string(bytes) + " bytes at " + hex(address) + " are outside of " + what + ", which has " +
         std::to_string(size);
}

bool is_inside(const std::vector<std::byte>& memory, uint64_t address, size_t bytes) {
  const auto begin = reinterpret_cast<uint64_t>(memory.data());
  return address >= begin && address + bytes <= begin + memory.size();
}

}  // namespace

std::byte* Block::memory(Thread& thread, const Instruction& instruction, const Operand& operand, size_t bytes,
                         Access access) {
  const bool is_register = operand.kind == Operand::Kind::reg;
  const uint64_t address = operand.immediate + (is_register ? thread.registers[static_cast<size_t>(operand.index)] : 0);
  const bool is_variable = !is_register && instruction.space == Space::generic;
  const Space space = is_variable ? operand.space : instruction.space;
  if (address % bytes != 0) {
    refuse(thread, std::to_string(bytes) + " bytes at " + hex(address) + " are misaligned");
  }
  if (space == Space::param) {
    // The address of a parameter may be taken, and is then one of the process.
    if (is_inside(thread.parameters, address, bytes)) return reinterpret_cast<std::byte*>(address);
    if (address + bytes > thread.parameters.size())
      refuse(thread, bounds("the parameters", address, bytes, thread.parameters.size()));
    return thread.parameters.data() + address;
  }
  if (space == Space::shared) return shared_memory(thread, address, bytes, access);
  if (space == Space::local) {
    if (address + bytes > thread.local.size())
      refuse(thread, bounds("local memory", address, bytes, thread.local.size()));
    return thread.local.data() + address;
  }
  if (space_of(thread, address) == Space::shared) {
    return shared_memory(thread, address - reinterpret_cast<uint64_t>(shared_.data()), bytes, access);
  }
  if (is_inside(thread.local, address, bytes)) return reinterpret_cast<std::byte*>(address);
  if (is_inside(thread.parameters, address, bytes)) {
    if (access != Access::read) refuse(thread, "a parameter is written");
    return reinterpret_cast<std::byte*>(address);
  }
  for (const Frame& frame : thread.callers) {
    if (is_inside(frame.local, address, bytes)) return reinterpret_cast<std::byte*>(address);
  }
  DeviceMemory& device = device_memory();
  if (!device.holds(address, bytes)) refuse(thread, "illegal address: " + device.explain(address, bytes));
  if (checks_races_) {
    ByteAccess* accesses = device.accesses(address);
    count_bytes(accesses, bytes, access);
    note_access(thread, accesses, bytes, access, {"device memory", address});
  }
  return reinterpret_cast<std::byte*>(address);
}

std::byte* Block::shared_memory(const Thread& thread, uint64_t address, size_t bytes, Access access) {
  const bool is_static = address + bytes <= static_cast<uint64_t>(kernel_.shared_bytes);
  const bool is_dynamic = address >= kDynamicBase && address + bytes <= kDynamicBase + launch_.shared_bytes;
  if (!is_static && !is_dynamic) {
    refuse(thread, address >= kDynamicBase
                       ? bounds("the launch's shared memory", address - kDynamicBase, bytes, launch_.shared_bytes)
                       : bounds("shared memory", address, bytes, static_cast<size_t>(kernel_.shared_bytes)));
  }
  if (checks_races_) note_access(thread, shared_accesses_.data() + address, bytes, access, {"shared memory", address});
  return shared_.data() + address;
}

uint64_t Block::base_of(const Thread& thread, Space space) const {
  if (space == Space::shared) return reinterpret_cast<uint64_t>(shared_.data());
  if (space == Space::local) return reinterpret_cast<uint64_t>(thread.local.data());
  if (space == Space::param) return reinterpret_cast<uint64_t>(thread.parameters.data());
  return 0;
}

Space Block::space_of(const Thread& thread, uint64_t address) const {
  if (is_inside(shared_, address, 1)) return Space::shared;
  return is_inside(thread.local, address, 1) ? Space::local : Space::global;
}

// ---- Races: accesses of two threads, one of them a write, between which neither a barrier nor their warp's orders
// them. Atomic and strong ones
// (ld.volatile, st.relaxed) are left out: they are how threads wait for each other. ----

// Bytes that the launch has neither read nor written before.
void Block::count_bytes(ByteAccess* accesses, size_t bytes, Access access) {
  for (size_t i = 0; i < bytes && accesses != nullptr; ++i) {
    const ByteAccess& byte = accesses[i];
    const bool is_fresh = byte.launch != launch_number_;
    if (access == Access::write) {
      bytes_written_ += is_fresh || byte.writer == 0 ? 1 : 0;
    } else {
      bytes_read_ += is_fresh || (byte.writer == 0 && byte.reader == 0) ? 1 : 0;
    }
  }
}

void Block::note_access(const Thread& thread, ByteAccess* accesses, size_t bytes, Access access, Location location) {
  if (access == Access::atomic || accesses == nullptr) return;
  for (size_t i = 0; i < bytes; ++i) {
    ByteAccess& byte = accesses[i];
    if (byte.launch != launch_number_) {
      byte = {};
      byte.launch = launch_number_;
    }
    note_byte(thread, byte, access == Access::write, {location.memory, location.address + i});
  }
}

void Block::note_byte(const Thread& thread, ByteAccess& byte, bool is_write, Location location) {
  constexpr uint64_t kWarpTimes = uint64_t{1} << 24;
  const auto own = static_cast<uint32_t>(1 + number_ * kThreadsOfBlock + thread.number);
  const uint64_t now = block_time_ * kWarpTimes + warp_times_[thread.number / kWarp];
  const auto is_ordered = [&](uint32_t other, uint64_t then) {
    if (other == own) return true;
    const uint32_t others_block = (other - 1) / kThreadsOfBlock, others_thread = (other - 1) % kThreadsOfBlock;
    if (others_block != number_) return false;
    return others_thread / kWarp == thread.number / kWarp ? then < now : then / kWarpTimes < block_time_;
  };
  const auto race = [&](uint32_t other, const char* done) {
    refuse(thread, std::string("race in ") + location.memory + " at " + hex(location.address) + ": " +
                       (is_write ? "written" : "read") + " here and " + done + " by thread " +
                       std::to_string((other - 1) % kThreadsOfBlock) + " of block " +
                       std::to_string((other - 1) / kThreadsOfBlock) + " with no barrier between");
  };
  if (byte.writer != 0 && !is_ordered(byte.writer, byte.written)) race(byte.writer, "written");
  if (is_write) {
    for (const uint32_t reader : {byte.reader, byte.other_reader}) {
      if (reader != 0 && !is_ordered(reader, byte.read)) race(reader, "read");
    }
    byte.writer = own;
    byte.written = now;
    byte.reader = byte.other_reader = 0;
  } else if (byte.reader == own) {
    if (byte.read / kWarpTimes < block_time_) byte.other_reader = 0;
    if (byte.read / kWarpTimes < block_time_) byte.read = now;
  } else if (byte.reader == 0 || is_ordered(byte.reader, byte.read)) {
    byte.reader = own;
    byte.read = now;
    byte.other_reader = 0;
  } else if (byte.other_reader == 0) {
    byte.other_reader = own;
  }
}

}  // namespace parallax::ptx
