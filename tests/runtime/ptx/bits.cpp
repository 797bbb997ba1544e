// SPDX-License-Identifier: Apache-2.0
// Instructions on bits: logic, shifts, fields, counts.
#include <algorithm>
#include <bit>

#include "tests/runtime/ptx/block.h"

namespace parallax::ptx {
namespace {

class Operands {
 public:
  Operands(Block& block, Thread& thread, const Instruction& instruction)
      : block_(block), thread_(thread), instruction_(instruction) {}
  uint64_t operator[](size_t index) const { return block_.value(thread_, instruction_.operands[index]); }
  uint32_t word(size_t index) const { return static_cast<uint32_t>((*this)[index]); }
  uint32_t width() const { return static_cast<uint32_t>(8 * bytes_of(instruction_.type)); }
  void set(uint64_t bits) const {
    block_.set(thread_, instruction_.operands[0],
               instruction_.type == Type::pred ? bits & 1 : cut(instruction_.type, bits));
  }

 private:
  Block& block_;
  Thread& thread_;
  const Instruction& instruction_;
};

void and_bits(Block& block, Thread& thread, const Instruction& instruction) {
  const Operands operands(block, thread, instruction);
  operands.set(operands[1] & operands[2]);
}
void or_bits(Block& block, Thread& thread, const Instruction& instruction) {
  const Operands operands(block, thread, instruction);
  operands.set(operands[1] | operands[2]);
}
void xor_bits(Block& block, Thread& thread, const Instruction& instruction) {
  const Operands operands(block, thread, instruction);
  operands.set(operands[1] ^ operands[2]);
}
void not_bits(Block& block, Thread& thread, const Instruction& instruction) {
  const Operands operands(block, thread, instruction);
  operands.set(~operands[1]);
}
void is_zero(Block& block, Thread& thread, const Instruction& instruction) {
  const Operands operands(block, thread, instruction);
  operands.set(cut(instruction.type, operands[1]) == 0 ? 1 : 0);
}

void shift_left(Block& block, Thread& thread, const Instruction& instruction) {
  const Operands operands(block, thread, instruction);
  const uint32_t count = operands.word(2);
  operands.set(count >= operands.width() ? 0 : operands[1] << count);
}
void shift_right(Block& block, Thread& thread, const Instruction& instruction) {
  const Operands operands(block, thread, instruction);
  const uint32_t count = operands.word(2);
  if (is_signed(instruction.type)) {
    operands.set(
        static_cast<uint64_t>(as_signed(instruction.type, operands[1]) >> std::min(count, operands.width() - 1)));
  } else {
    operands.set(count >= operands.width() ? 0 : cut(instruction.type, operands[1]) >> count);
  }
}
// The two words are shifted as one of 64 bits.
void funnel_shift(Block& block, Thread& thread, const Instruction& instruction) {
  const Operands operands(block, thread, instruction);
  const uint64_t both = uint64_t{operands.word(2)} << 32 | operands.word(1);
  const uint32_t count = instruction.clamps ? std::min(operands.word(3), 32U) : operands.word(3) & 31;
  operands.set(instruction.is_left ? both << count >> 32 : both >> count);
}

// Bit 4a + 2b + c of the table is the result for bits a, b and c.
void lookup(Block& block, Thread& thread, const Instruction& instruction) {
  const Operands operands(block, thread, instruction);
  const uint32_t a = operands.word(1), b = operands.word(2), c = operands.word(3), table = operands.word(4);
  uint32_t result = 0;
  for (uint32_t entry = 0; entry < 8; ++entry) {
    if ((table >> entry & 1) == 0) continue;
    result |= ((entry & 4) != 0 ? a : ~a) & ((entry & 2) != 0 ? b : ~b) & ((entry & 1) != 0 ? c : ~c);
  }
  operands.set(result);
}

// Each byte of the result is one of eight, or its sign.
void permute_bytes(Block& block, Thread& thread, const Instruction& instruction) {
  const Operands operands(block, thread, instruction);
  if (instruction.mode != Mode::none) block.refuse(thread, "prmt is known in its default mode alone");
  const uint64_t both = uint64_t{operands.word(2)} << 32 | operands.word(1);
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t selector = operands.word(3) >> (4 * i) & 15;
    uint32_t byte = static_cast<uint32_t>(both >> (8 * (selector & 7))) & 0xFF;
    if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0;
    result |= byte << (8 * i);
  }
  operands.set(result);
}

void extract_field(Block& block, Thread& thread, const Instruction& instruction) {
  const Operands operands(block, thread, instruction);
  const uint64_t value = cut(instruction.type, operands[1]);
  const uint32_t position = operands.word(2) & 0xFF, length = operands.word(3) & 0xFF, width = operands.width();
  const uint32_t last = std::min(position + length - 1, width - 1);
  const bool sign = is_signed(instruction.type) && length != 0 && (value >> last & 1) != 0;
  uint64_t result = 0;
  for (uint32_t i = 0; i < width; ++i) {
    const bool bit = i < length && position + i < width ? (value >> (position + i) & 1) != 0 : sign;
    if (bit) result |= uint64_t{1} << i;
  }
  operands.set(result);
}
void insert_field(Block& block, Thread& thread, const Instruction& instruction) {
  const Operands operands(block, thread, instruction);
  uint64_t result = operands[2];
  const uint32_t position = operands.word(3) & 0xFF, length = operands.word(4) & 0xFF;
  for (uint32_t i = 0; i < length && position + i < operands.width(); ++i) {
    const uint64_t bit = uint64_t{1} << (position + i);
    result = (operands[1] >> i & 1) != 0 ? result | bit : result & ~bit;
  }
  operands.set(result);
}

// The highest bit that differs from the sign; -1 where there is none.
void find_highest(Block& block, Thread& thread, const Instruction& instruction) {
  const Operands operands(block, thread, instruction);
  uint64_t value = cut(instruction.type, operands[1]);
  const uint32_t width = operands.width();
  if (is_signed(instruction.type) && (value >> (width - 1) & 1) != 0) value = cut(instruction.type, ~value);
  uint32_t found = UINT32_MAX;
  if (value != 0) found = static_cast<uint32_t>(63 - std::countl_zero(value));
  if (value != 0 && instruction.is_high) found = width - 1 - found;  // .shiftamt
  block.set(thread, instruction.operands[0], found);
}
void reverse(Block& block, Thread& thread, const Instruction& instruction) {
  const Operands operands(block, thread, instruction);
  uint64_t result = 0;
  for (uint32_t i = 0; i < operands.width(); ++i) {
    if ((operands[1] >> i & 1) != 0) result |= uint64_t{1} << (operands.width() - 1 - i);
  }
  operands.set(result);
}
void leading_zeros(Block& block, Thread& thread, const Instruction& instruction) {
  const Operands operands(block, thread, instruction);
  const auto zeros = static_cast<uint32_t>(std::countl_zero(cut(instruction.type, operands[1])));
  block.set(thread, instruction.operands[0], zeros - (64 - operands.width()));
}
void count_ones(Block& block, Thread& thread, const Instruction& instruction) {
  const Operands operands(block, thread, instruction);
  block.set(thread, instruction.operands[0], static_cast<uint64_t>(std::popcount(cut(instruction.type, operands[1]))));
}
void make_mask(Block& block, Thread& thread, const Instruction& instruction) {
  const Operands operands(block, thread, instruction);
  const bool clamps = instruction.clamps;
  const uint32_t begin = clamps ? std::min(operands.word(1), 32U) : operands.word(1) & 31;
  const uint32_t count = clamps ? std::min(operands.word(2), 32U) : operands.word(2) & 31;
  uint32_t result = 0;
  for (uint32_t i = begin; i < begin + count && i < 32; ++i) result |= 1U << i;
  operands.set(result);
}

constexpr Family kAny = Family::any;
constexpr OpcodeRow kRows[] = {
    {"and", kAny, and_bits},       {"or", kAny, or_bits},        {"xor", kAny, xor_bits},
    {"not", kAny, not_bits},       {"cnot", kAny, is_zero},      {"shl", kAny, shift_left},
    {"shr", kAny, shift_right},    {"shf", kAny, funnel_shift},  {"lop3", kAny, lookup},
    {"prmt", kAny, permute_bytes}, {"bfe", kAny, extract_field}, {"bfi", kAny, insert_field},
    {"bfind", kAny, find_highest}, {"brev", kAny, reverse},      {"clz", kAny, leading_zeros},
    {"popc", kAny, count_ones},    {"bmsk", kAny, make_mask},
};

}  // namespace

std::span<const OpcodeRow> bit_rows() { return kRows; }

}  // namespace parallax::ptx
