// SPDX-License-Identifier: Apache-2.0
// The steps of a block: threads run until they wait, warps and barriers are released when all have come.
#include "tests/runtime/ptx/block.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "tests/runtime/ptx/module.h"

namespace parallax::ptx {
namespace {

constexpr uint64_t kMostSteps = 4'000'000'000;  // of a launch: more is taken for an endless loop
constexpr uint64_t kFreshRegister = 0xCDCDCDCDCDCDCDCD;
constexpr size_t kMostThreads = 1024;
constexpr uint32_t kMostBlocksAside = 65535;  // in y and z
constexpr size_t kMostSharedBytes = 232448;   // of which cudart.cpp allows a launch what it was asked for

uint32_t next_launch() {
  static std::atomic<uint32_t> launches{0};
  return ++launches;
}

std::string problem_with(const Function& kernel, const Launch& launch) {
  const uint64_t threads = launch.block.count();
  const Dimensions& grid = launch.grid;
  if (threads < 1 || threads > kMostThreads)
    return "a block has " + std::to_string(threads) + " threads; it must have 1 to " + std::to_string(kMostThreads);
  if (grid.count() == 0 || grid.x > INT32_MAX || grid.y > kMostBlocksAside || grid.z > kMostBlocksAside)
    return "the grid is " + std::to_string(grid.x) + " x " + std::to_string(grid.y) + " x " + std::to_string(grid.z) +
           "; it must be 1 to 2147483647 x 65535 x 65535";
  const size_t shared = static_cast<size_t>(kernel.shared_bytes) + launch.shared_bytes;
  if (shared > kMostSharedBytes)
    return "a block has " + std::to_string(shared) + " bytes of shared memory; it must have " +
           std::to_string(kMostSharedBytes) + " at most";
  return "";
}

}  // namespace

std::string run_kernel(Function& kernel, const Launch& launch, const std::vector<std::byte>& arguments,
                       bool checks_races, LaunchWork& work) {
  try {
    if (!kernel.is_parsed) parse(kernel);
    const std::string problem = problem_with(kernel, launch);
    if (!problem.empty()) return "kernel " + kernel.name + ": " + problem;
    Block block(kernel, launch, arguments, checks_races);
    for (uint64_t number = 0; number < launch.grid.count(); ++number) block.run(number);
    work = block.work();
  } catch (const Problem& problem) {
    return problem.what();
  }
  return "";
}

Block::Block(Function& kernel, const Launch& launch, const std::vector<std::byte>& arguments, bool checks_races)
    : kernel_(kernel),
      launch_(launch),
      arguments_(arguments),
      checks_races_(checks_races),
      launch_number_(next_launch()),
      threads_(launch.block.count()),
      warp_times_((threads_.size() + kWarp - 1) / kWarp) {}

void Block::refuse(const Thread& thread, const std::string& what) const {
  const Instruction& at = thread.function->code[static_cast<size_t>(thread.position)];
  throw Problem("kernel " + kernel_.name + ", line " + std::to_string(at.line) + " of " +
                thread.function->module->file + ", thread " + std::to_string(thread.number) + " of block " +
                std::to_string(number_) + ": " + what + " ('" + at.text + "')");
}

void Block::start(uint64_t number) {
  number_ = number;
  ++block_time_;
  shared_.assign(
      launch_.shared_bytes > 0 ? kDynamicBase + launch_.shared_bytes : static_cast<size_t>(kernel_.shared_bytes),
      static_cast<std::byte>(kFreshByte));
  if (checks_races_) shared_accesses_.assign(shared_.size(), {});
  for (size_t i = 0; i < threads_.size(); ++i) {
    Thread& thread = threads_[i];
    thread.number = static_cast<uint32_t>(i);
    thread.state = ThreadState::running;
    thread.function = &kernel_;
    thread.position = 0;
    thread.registers.assign(static_cast<size_t>(kernel_.registers), kFreshRegister);
    thread.local.assign(static_cast<size_t>(kernel_.local_bytes), static_cast<std::byte>(kFreshByte));
    thread.parameters = arguments_;
    thread.parameters.resize(static_cast<size_t>(kernel_.parameter_bytes));
    thread.callers.clear();
  }
}

void Block::run(uint64_t number) {
  start(number);
  while (true) {
    run_to_waits();
    const bool have_all_ended = std::all_of(threads_.begin(), threads_.end(),
                                            [](const Thread& thread) { return thread.state == ThreadState::ended; });
    if (have_all_ended) return;
    if (!release_warps() && !release_barrier()) refuse_deadlock();
  }
}

void Block::run_to_waits() {
  for (Thread& thread : threads_) {
    while (thread.state == ThreadState::running) step(thread);
  }
}

void Block::step(Thread& thread) {
  const Instruction& instruction = thread.function->code[static_cast<size_t>(thread.position)];
  if (++steps_ > kMostSteps) refuse(thread, "the launch has run " + std::to_string(kMostSteps) + " instructions");
  if (instruction.predicate >= 0) {
    const bool is_true = (thread.registers[static_cast<size_t>(instruction.predicate)] & 1) != 0;
    if (is_true == instruction.predicate_is_negated) {
      ++thread.position;
      return;
    }
  }
  switch (instruction.flow) {
    case Flow::next:
      instruction.handler(*this, thread, instruction);
      ++thread.position;
      break;
    case Flow::jump:
      instruction.handler(*this, thread, instruction);
      break;
    case Flow::barrier:
      thread.state = ThreadState::at_barrier;
      break;
    case Flow::warp:
      thread.state = ThreadState::at_warp;
      break;
  }
}

uint32_t Block::lanes_at(const Thread& first) const {
  const size_t begin = first.number / kWarp * kWarp;
  uint32_t lanes = 0;
  for (size_t i = begin; i < std::min(threads_.size(), begin + kWarp); ++i) {
    const Thread& thread = threads_[i];
    const bool waits = thread.state == ThreadState::at_warp;
    if (waits && thread.position == first.position && thread.function == first.function) lanes |= 1U << (i - begin);
  }
  return lanes;
}

// True where all lanes that the thread's mask names have come, or have ended.
bool Block::is_complete(const Thread& thread) const {
  const Instruction& instruction = thread.function->code[static_cast<size_t>(thread.position)];
  uint32_t mask = ~0U;
  if (instruction.mask_operand >= 0) {
    const Operand& named = instruction.operands[static_cast<size_t>(instruction.mask_operand)];
    mask = static_cast<uint32_t>(value(thread, named));
  }
  const uint32_t come = lanes_at(thread);
  const size_t begin = thread.number / kWarp * kWarp;
  for (size_t i = begin; i < std::min(threads_.size(), begin + kWarp); ++i) {
    const uint32_t lane = 1U << (i - begin);
    if ((mask & lane) != 0 && (come & lane) == 0 && threads_[i].state != ThreadState::ended) return false;
  }
  return true;
}

bool Block::release_warps() {
  bool has_released = false;
  for (size_t begin = 0; begin < threads_.size(); begin += kWarp) {
    const auto end = threads_.begin() + static_cast<std::ptrdiff_t>(std::min(threads_.size(), begin + kWarp));
    const auto first =
        std::find_if(threads_.begin() + static_cast<std::ptrdiff_t>(begin), end,
                     [&](const Thread& thread) { return thread.state == ThreadState::at_warp && is_complete(thread); });
    if (first == end) continue;
    const Instruction& instruction = first->function->code[static_cast<size_t>(first->position)];
    const uint32_t lanes = lanes_at(*first);
    instruction.handler(*this, *first, instruction);
    for (uint32_t i = 0; i < kWarp; ++i) {
      if ((lanes >> i & 1) == 0) continue;
      lane(*first, i).state = ThreadState::running;
      ++lane(*first, i).position;
    }
    has_released = true;
  }
  return has_released;
}

// The barrier is passed when every thread of the block waits at one; those that have ended do not count (PTX ISA,
// "bar").
bool Block::release_barrier() {
  uint32_t yes = 0, waiting = 0;
  for (const Thread& thread : threads_) {
    if (thread.state == ThreadState::ended) continue;
    if (thread.state != ThreadState::at_barrier) return false;
    ++waiting;
    const Instruction& instruction = thread.function->code[static_cast<size_t>(thread.position)];
    if (!instruction.is_reduction) continue;
    const size_t given = instruction.operands[3].kind == Operand::Kind::none ? 2 : 3;
    yes += (value(thread, instruction.operands[given]) & 1) != 0 ? 1 : 0;
  }
  ++block_time_;
  for (Thread& thread : threads_) {
    if (thread.state != ThreadState::at_barrier) continue;
    const Instruction& instruction = thread.function->code[static_cast<size_t>(thread.position)];
    if (instruction.is_reduction) {
      const uint64_t result = instruction.mode == Mode::popc   ? yes
                              : instruction.mode == Mode::and_ ? yes == waiting
                                                               : yes > 0;
      set(thread, instruction.operands[0], result);
    }
    thread.state = ThreadState::running;
    ++thread.position;
  }
  return true;
}

void Block::refuse_deadlock() const {
  const auto count = [&](ThreadState state) {
    return std::to_string(
        std::count_if(threads_.begin(), threads_.end(), [&](const Thread& thread) { return thread.state == state; }));
  };
  for (const Thread& thread : threads_) {
    if (thread.state == ThreadState::ended || thread.state == ThreadState::at_barrier) continue;
    refuse(thread, "the block waits for ever: " + count(ThreadState::at_barrier) + " threads at a barrier, " +
                       count(ThreadState::at_warp) + " for their warp, " + count(ThreadState::ended) + " have ended");
  }
}

uint64_t Block::other_value(const Thread& thread, const Operand& operand) const {
  if (operand.kind == Operand::Kind::special) return special(thread, static_cast<Special>(operand.index));
  refuse(thread, "the operand " + operand.text + " has no value");
}

uint64_t Block::special(const Thread& thread, Special which) const {
  const Dimensions &block = launch_.block, &grid = launch_.grid;
  const uint32_t number = thread.number, lane = number % kWarp, own = 1U << lane;
  switch (which) {
    case Special::tid_x:
      return number % block.x;
    case Special::tid_y:
      return number / block.x % block.y;
    case Special::tid_z:
      return number / block.x / block.y;
    case Special::ntid_x:
      return block.x;
    case Special::ntid_y:
      return block.y;
    case Special::ntid_z:
      return block.z;
    case Special::ctaid_x:
      return number_ % grid.x;
    case Special::ctaid_y:
      return number_ / grid.x % grid.y;
    case Special::ctaid_z:
      return number_ / grid.x / grid.y;
    case Special::nctaid_x:
      return grid.x;
    case Special::nctaid_y:
      return grid.y;
    case Special::nctaid_z:
      return grid.z;
    case Special::laneid:
      return lane;
    case Special::warpid:
      return number / kWarp;
    case Special::lanes_below:
      return own - 1;
    case Special::lanes_up_to:
      return (own - 1) | own;
    case Special::lanes_above:
      return ~((own - 1) | own) & 0xFFFFFFFFU;
    case Special::lanes_from:
      return ~(own - 1) & 0xFFFFFFFFU;
    case Special::own_lane:
      return own;
    case Special::clock:
      return steps_;
    case Special::dynamic_shared_bytes:
      return launch_.shared_bytes;
  }
  return 0;
}

}  // namespace parallax::ptx
