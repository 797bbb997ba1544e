// SPDX-License-Identifier: Apache-2.0
// Instructions that the lanes of a warp run together. The block calls a handler once, on the first lane, when all lanes
// that the instruction's mask names wait there.
#include <algorithm>
#include <array>

#include "tests/runtime/ptx/block.h"
#include "tests/runtime/ptx/narrow_floats.h"

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

// d = a b + c of a 16 x 8 matrix (PTX ISA, "Matrix Fragments for mma.m16n8k16" and ".m16n8k8"). The hardware does not
// say in which order it adds the products: here they are added in double, and rounded once.
void multiply_matrices(Block& block, Thread& first, const Instruction& instruction) {
  if (block.lanes_at(first) != ~0U) block.refuse(first, "not all lanes of the warp multiply the matrices");
  const auto& operands = instruction.operands;
  const bool is_wide = instruction.mode == Mode::m16n8k8 && instruction.second == Type::tf32;
  const bool is_half =
      instruction.mode == Mode::m16n8k16 && (instruction.second == Type::f16 || instruction.second == Type::bf16);
  if ((!is_wide && !is_half) || instruction.type != Type::f32 || operands[1].list.size() != 4)
    block.refuse(first, "matrices of this shape and type are not known");
  const FloatFormat& format = instruction.second == Type::bf16 ? kBFloat16 : kFloat16;
  const uint32_t in_word = is_wide ? 1 : 2, step = 4 * in_word;  // numbers of a word, and of the words of four lanes
  // The number k of row or column `line` of an operand: neighbors are in one word.
  const auto number = [&](const Operand& operand, uint32_t line, uint32_t word, uint32_t k) {
    const uint64_t bits = block.value(block.lane(first, line * 4 + k % step / in_word), operand.list[word]);
    if (is_wide) return static_cast<double>(as_float(bits & ~uint64_t{0x1FFF}));
    return narrow_value(format, static_cast<uint32_t>(bits >> k % 2 * 16 & 0xFFFF));
  };
  std::array<std::array<double, 16>, 16> rows{};
  std::array<std::array<double, 16>, 8> columns{};
  for (uint32_t k = 0; k < 2 * step; ++k) {
    for (uint32_t i = 0; i < 16; ++i) rows[i][k] = number(operands[1], i % 8, i / 8 + k / step * 2, k);
    for (uint32_t i = 0; i < 8; ++i) columns[i][k] = number(operands[2], i, k / step, k);
  }
  for_each_lane(~0U, [&](uint32_t lane) {
    Thread& thread = block.lane(first, lane);
    std::array<uint64_t, 4> results{};
    for (uint32_t i = 0; i < 4; ++i) {
      const auto& row = rows[lane / 4 + i / 2 * 8];
      const auto& column = columns[lane % 4 * 2 + i % 2];
      auto sum = static_cast<double>(as_float(block.value(thread, operands[3].list[i])));
      for (uint32_t k = 0; k < 2 * step; ++k) sum += row[k] * column[k];
      results[i] = bits_of(static_cast<float>(sum));
    }
    for (uint32_t i = 0; i < 4; ++i) block.set(thread, operands[0].list[i], results[i]);
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
    {"activemask", Family::any, active_mask},      {"mma", Family::any, multiply_matrices, Flow::warp},
};

}  // namespace

std::span<const OpcodeRow> warp_rows() { return kRows; }

}  // namespace parallax::ptx
