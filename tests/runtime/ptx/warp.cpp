// SPDX-License-Identifier: Apache-2.0
// Instructions that the lanes of a warp run together. The block calls a handler once, on the first lane, when all lanes
// that the instruction's mask names wait there.
#include <algorithm>
#include <array>

#include "tests/runtime/ptx/block.h"

namespace parallax::ptx {
namespace {

template <class F>
void for_each_lane(uint32_t lanes, const F& f) {
  for (uint32_t lane = 0; lane < Block::kWarp; ++lane) {
    if ((lanes >> lane & 1) != 0) f(lane);
  }
}

// Operand 1 of every lane.
std::array<uint64_t, Block::kWarp> values_of(Block& block, const Thread& first, const Instruction& instruction,
                                             uint32_t lanes) {
  std::array<uint64_t, Block::kWarp> values{};
  for_each_lane(lanes, [&](uint32_t lane) {
    values[lane] = cut(instruction.type, block.value(block.lane(first, lane), instruction.operands[1]));
  });
  return values;
}

struct Source {
  int64_t lane;
  bool is_inside;
};
// The lane that one reads (PTX ISA, "shfl"): `c` holds the clamp and the mask of segments.
Source source_of(Mode mode, uint32_t lane, uint32_t b, uint32_t c) {
  const uint32_t segments = c >> 8 & 31, clamp = c & 31;
  const uint32_t last = (lane & segments) | (clamp & ~segments);
  const auto upper = static_cast<int64_t>(last);
  int64_t source = 0;
  switch (mode) {
    case Mode::down:
      source = static_cast<int64_t>(lane) + b;
      break;
    case Mode::up:
      source = static_cast<int64_t>(lane) - b;
      return {source, source >= upper};
    case Mode::bfly:
      source = static_cast<int64_t>(lane ^ b);
      break;
    default:
      source = static_cast<int64_t>((lane & segments) | (b & ~segments));
      break;
  }
  return {source, source <= upper};
}

void shuffle(Block& block, Thread& first, const Instruction& instruction) {
  const uint32_t lanes = block.lanes_at(first);
  const auto values = values_of(block, first, instruction, lanes);
  const auto& operands = instruction.operands;
  for_each_lane(lanes, [&](uint32_t lane) {
    Thread& thread = block.lane(first, lane);
    const auto b = static_cast<uint32_t>(block.value(thread, operands[2])) & 31;
    Source source = source_of(instruction.mode, lane, b, static_cast<uint32_t>(block.value(thread, operands[3])));
    if (!source.is_inside) source.lane = lane;
    if ((lanes >> source.lane & 1) == 0)
      block.refuse(thread, "lane " + std::to_string(source.lane) + " is read, which is not at this instruction");
    block.set(thread, operands[0], values[static_cast<size_t>(source.lane)]);
    block.set_second(thread, operands[0], source.is_inside);
  });
}

void vote(Block& block, Thread& first, const Instruction& instruction) {
  const uint32_t lanes = block.lanes_at(first);
  uint32_t yes = 0;
  for_each_lane(lanes, [&](uint32_t lane) {
    if ((block.value(block.lane(first, lane), instruction.operands[1]) & 1) != 0) yes |= 1U << lane;
  });
  uint64_t result = yes;
  if (instruction.mode == Mode::any) result = yes != 0 ? 1 : 0;
  if (instruction.mode == Mode::all) result = yes == lanes ? 1 : 0;
  if (instruction.mode == Mode::uni) result = yes == lanes || yes == 0 ? 1 : 0;
  for_each_lane(lanes, [&](uint32_t lane) { block.set(block.lane(first, lane), instruction.operands[0], result); });
}

void match(Block& block, Thread& first, const Instruction& instruction) {
  const uint32_t lanes = block.lanes_at(first);
  const auto values = values_of(block, first, instruction, lanes);
  if (instruction.mode != Mode::any) block.refuse(first, "match is known as match.any alone");
  for_each_lane(lanes, [&](uint32_t lane) {
    uint32_t same = 0;
    for_each_lane(lanes, [&](uint32_t other) {
      if (values[other] == values[lane]) same |= 1U << other;
    });
    block.set(block.lane(first, lane), instruction.operands[0], same);
  });
}

int64_t joined(Mode mode, int64_t a, int64_t b) {
  switch (mode) {
    case Mode::add:
      return a + b;
    case Mode::min:
      return std::min(a, b);
    case Mode::max:
      return std::max(a, b);
    case Mode::and_:
      return a & b;
    case Mode::or_:
      return a | b;
    default:
      return a ^ b;
  }
}
void reduce(Block& block, Thread& first, const Instruction& instruction) {
  const uint32_t lanes = block.lanes_at(first);
  const auto values = values_of(block, first, instruction, lanes);
  int64_t result = 0;
  bool is_first = true;
  for_each_lane(lanes, [&](uint32_t lane) {
    const int64_t value = as_signed(instruction.type, values[lane]);
    result = is_first ? value : joined(instruction.mode, result, value);
    is_first = false;
  });
  const uint64_t bits = cut(Type::b32, static_cast<uint64_t>(result));
  for_each_lane(lanes, [&](uint32_t lane) { block.set(block.lane(first, lane), instruction.operands[0], bits); });
}

void elect(Block& block, Thread& first, const Instruction& instruction) {
  const uint32_t leader = first.number % Block::kWarp;
  for_each_lane(block.lanes_at(first), [&](uint32_t lane) {
    Thread& thread = block.lane(first, lane);
    block.set(thread, instruction.operands[0], leader);
    block.set_second(thread, instruction.operands[0], lane == leader);
  });
}

void barrier(Block& block, Thread& first, const Instruction&) { block.note_warp_barrier(first); }

// Threads of a warp need not be together: the mask of all is one of the possible answers.
void active_mask(Block& block, Thread& thread, const Instruction& instruction) {
  block.set(thread, instruction.operands[0], 0xFFFFFFFFU);
}

constexpr OpcodeRow kRows[] = {
    {"shfl", Family::any, shuffle, Flow::warp, 4}, {"vote", Family::any, vote, Flow::warp, 2},
    {"match", Family::any, match, Flow::warp, 2},  {"redux", Family::any, reduce, Flow::warp, 2},
    {"elect", Family::any, elect, Flow::warp, 1},  {"bar.warp", Family::any, barrier, Flow::warp, 0},
    {"activemask", Family::any, active_mask},
};

}  // namespace

std::span<const OpcodeRow> warp_rows() { return kRows; }

}  // namespace parallax::ptx
