// SPDX-License-Identifier: Apache-2.0
// A launch: its blocks one after the other, the threads of each one after the other from barrier to barrier.
#pragma once

#include <bit>
#include <string>
#include <vector>

#include "tests/runtime/ptx/device_memory.h"
#include "tests/runtime/ptx/instruction.h"

namespace parallax::ptx {

struct Dimensions {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; }
};
struct Launch {
  Dimensions grid, block;
  size_t shared_bytes = 0;
};

// The work of a launch. A byte of device memory is counted once as read and once as written: caches hold the rest.
struct LaunchWork {
  int64_t instructions = 0;  // of threads
  int64_t bytes_read = 0, bytes_written = 0;
};

// Runs the kernel on arguments that are laid out as its parameters. Returns one sentence that names the kernel, the
// line of its PTX, the thread and the address; "" where all went well. `checks_races`: an access that is not ordered
// with another thread's by a barrier is a problem, too, and bytes are counted.
std::string run_kernel(Function& kernel, const Launch& launch, const std::vector<std::byte>& arguments,
                       bool checks_races, LaunchWork& work);

enum class ThreadState : uint8_t { running, at_barrier, at_warp, ended };

// The state of a caller while its callee runs.
struct Frame {
  Function* function = nullptr;
  int position = 0;
  std::vector<uint64_t> registers;
  std::vector<std::byte> parameters;
  std::vector<std::byte> local;
};

struct Thread {
  uint32_t number = 0;  // in its block
  ThreadState state = ThreadState::running;
  bool carry = false;
  Function* function = nullptr;
  int position = 0;
  std::vector<uint64_t> registers;
  std::vector<std::byte> parameters;
  std::vector<std::byte> local;
  std::vector<Frame> callers;
};

class Block {
 public:
  static constexpr uint32_t kWarp = 32;

  Block(Function& kernel, const Launch& launch, const std::vector<std::byte>& arguments, bool checks_races);

  void run(uint64_t number);
  LaunchWork work() const { return {static_cast<int64_t>(steps_), bytes_read_, bytes_written_}; }

  // ---- For handlers ----
  [[noreturn]] void refuse(const Thread& thread, const std::string& what) const;
  uint64_t value(const Thread& thread, const Operand& operand) const {
    if (operand.kind == Operand::Kind::reg) {
      const uint64_t held = thread.registers[static_cast<size_t>(operand.index)];
      return operand.is_negated ? held ^ 1 : held;
    }
    if (operand.kind == Operand::Kind::immediate) return operand.immediate;
    return other_value(thread, operand);
  }
  void set(Thread& thread, const Operand& operand, uint64_t value) const {
    if (operand.kind != Operand::Kind::reg) refuse(thread, "a destination is no register");
    thread.registers[static_cast<size_t>(operand.index)] = value;
  }
  void set_second(Thread& thread, const Operand& operand, bool value) const {
    if (operand.second >= 0) thread.registers[static_cast<size_t>(operand.second)] = value ? 1 : 0;
  }

  // The memory at an address, which is refused where it is misaligned or outside of everything that may be reached.
  enum class Access : uint8_t { read, write, atomic };
  std::byte* memory(Thread& thread, const Instruction& instruction, const Operand& operand, size_t bytes,
                    Access access);
  // The first address of this space among generic ones, which cvta adds.
  uint64_t base_of(const Thread& thread, Space space) const;
  // The space that a generic address is in.
  Space space_of(const Thread& thread, uint64_t address) const;

  // Lanes of the first lane's warp that wait at the same instruction, by their bits, and a thread of them.
  uint32_t lanes_at(const Thread& first) const;
  Thread& lane(const Thread& first, uint32_t lane) { return threads_[first.number / kWarp * kWarp + lane]; }
  void note_warp_barrier(const Thread& first) { ++warp_times_[first.number / kWarp]; }

 private:
  struct Location {
    const char* memory;  // "shared memory"
    uint64_t address;
  };

  void start(uint64_t number);
  void run_to_waits();
  void step(Thread& thread);
  bool release_warps();
  bool is_complete(const Thread& thread) const;
  bool release_barrier();
  void refuse_deadlock() const;
  uint64_t other_value(const Thread& thread, const Operand& operand) const;
  uint64_t special(const Thread& thread, Special which) const;
  std::byte* shared_memory(const Thread& thread, uint64_t address, size_t bytes, Access access);
  void note_access(const Thread& thread, ByteAccess* accesses, size_t bytes, Access access, Location location);
  void count_bytes(ByteAccess* accesses, size_t bytes, Access access);
  void note_byte(const Thread& thread, ByteAccess& byte, bool is_write, Location location);

  Function& kernel_;
  const Launch& launch_;
  const std::vector<std::byte>& arguments_;
  const bool checks_races_;
  const uint32_t launch_number_;
  std::vector<std::byte> shared_;
  std::vector<ByteAccess> shared_accesses_;
  std::vector<Thread> threads_;
  std::vector<uint64_t> warp_times_;
  uint64_t number_ = 0;
  uint64_t block_time_ = 0;  // barriers that were passed, in all blocks so far
  uint64_t steps_ = 0;
  int64_t bytes_read_ = 0, bytes_written_ = 0;
};

// ---- Bits of registers ----
inline float as_float(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
inline double as_double(uint64_t bits) { return std::bit_cast<double>(bits); }
inline uint64_t bits_of(float value) { return std::bit_cast<uint32_t>(value); }
inline uint64_t bits_of(double value) { return std::bit_cast<uint64_t>(value); }
inline bool is_signed(Type type) { return info_of(type).is_signed; }
inline uint64_t cut(Type type, uint64_t bits) {
  const int bytes = bytes_of(type);
  return bytes >= 8 ? bits : bits & ((uint64_t{1} << (8 * bytes)) - 1);
}
// With the sign of a signed type.
inline int64_t as_signed(Type type, uint64_t bits) {
  if (!is_signed(type)) return static_cast<int64_t>(cut(type, bits));
  const int shift = 64 - 8 * bytes_of(type);
  return static_cast<int64_t>(bits << shift) >> shift;
}
// A register after a load or a conversion: the sign fills it.
inline uint64_t extended(Type type, uint64_t bits) { return static_cast<uint64_t>(as_signed(type, bits)); }

}  // namespace parallax::ptx
