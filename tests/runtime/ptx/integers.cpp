// SPDX-License-Identifier: Apache-2.0
// Arithmetic of integers: sums with carry, products in full, high and low parts, quotients.
#include <algorithm>

#include "tests/runtime/ptx/block.h"

namespace parallax::ptx {
namespace {

__extension__ using Wide = unsigned __int128;
__extension__ using WideSigned = __int128;

// The operand's bits, as wide as the type.
uint64_t bits_at(const Block& block, const Thread& thread, const Instruction& instruction, size_t index) {
  return cut(instruction.type, block.value(thread, instruction.operands[index]));
}
int64_t signed_at(const Block& block, const Thread& thread, const Instruction& instruction, size_t index) {
  return as_signed(instruction.type, block.value(thread, instruction.operands[index]));
}
void set_cut(Block& block, Thread& thread, const Instruction& instruction, uint64_t bits) {
  block.set(thread, instruction.operands[0], cut(instruction.type, bits));
}

// A sum in 128 bits; bit 8 * bytes of it is the carry.
void set_sum(Block& block, Thread& thread, const Instruction& instruction, Type type, Wide sum) {
  if (instruction.has_carry) thread.carry = ((sum >> (8 * bytes_of(type))) & 1) != 0;
  block.set(thread, instruction.operands[0], cut(type, static_cast<uint64_t>(sum)));
}

template <bool kTakesCarry>
void add(Block& block, Thread& thread, const Instruction& instruction) {
  const Wide carry = kTakesCarry && thread.carry ? 1 : 0;
  set_sum(block, thread, instruction, instruction.type,
          Wide{bits_at(block, thread, instruction, 1)} + bits_at(block, thread, instruction, 2) + carry);
}
template <bool kTakesCarry>
void subtract(Block& block, Thread& thread, const Instruction& instruction) {
  const Wide borrow = kTakesCarry && thread.carry ? 1 : 0;
  set_sum(block, thread, instruction, instruction.type,
          Wide{bits_at(block, thread, instruction, 1)} - bits_at(block, thread, instruction, 2) - borrow);
}

struct Product {
  Type type = Type::none;  // of the result
  uint64_t bits = 0;
};
// The part of the product that the instruction names: all of it (.wide), the upper or the lower half of the bits.
Product product(const Block& block, const Thread& thread, const Instruction& instruction) {
  const Type type = instruction.type;
  const bool has_sign = is_signed(type);
  Wide whole;
  if (has_sign) {
    whole = static_cast<Wide>(WideSigned{signed_at(block, thread, instruction, 1)} *
                              signed_at(block, thread, instruction, 2));
  } else {
    whole = Wide{bits_at(block, thread, instruction, 1)} * bits_at(block, thread, instruction, 2);
  }
  if (instruction.is_wide) {
    const Type wide = bytes_of(type) == 2 ? (has_sign ? Type::s32 : Type::u32) : (has_sign ? Type::s64 : Type::u64);
    return {wide, cut(wide, static_cast<uint64_t>(whole))};
  }
  const Wide part = instruction.is_high ? whole >> (8 * bytes_of(type)) : whole;
  return {type, cut(type, static_cast<uint64_t>(part))};
}

void multiply(Block& block, Thread& thread, const Instruction& instruction) {
  block.set(thread, instruction.operands[0], product(block, thread, instruction).bits);
}
template <bool kTakesCarry>
void multiply_add(Block& block, Thread& thread, const Instruction& instruction) {
  const Product made = product(block, thread, instruction);
  const uint64_t added = cut(made.type, block.value(thread, instruction.operands[3]));
  set_sum(block, thread, instruction, made.type, Wide{made.bits} + added + (kTakesCarry && thread.carry ? 1 : 0));
}

// Division by zero gives what no kernel may rely on (PTX ISA: "machine-specific"): it is refused.
template <bool kIsRemainder>
void divide(Block& block, Thread& thread, const Instruction& instruction) {
  const uint64_t divisor = bits_at(block, thread, instruction, 2);
  if (divisor == 0) block.refuse(thread, "an integer is divided by zero");
  if (!is_signed(instruction.type)) {
    const uint64_t dividend = bits_at(block, thread, instruction, 1);
    set_cut(block, thread, instruction, kIsRemainder ? dividend % divisor : dividend / divisor);
    return;
  }
  const int64_t dividend = signed_at(block, thread, instruction, 1);
  const int64_t by = as_signed(instruction.type, divisor);
  if (by == -1) {
    set_cut(block, thread, instruction, kIsRemainder ? 0 : 0 - static_cast<uint64_t>(dividend));
  } else {
    set_cut(block, thread, instruction, static_cast<uint64_t>(kIsRemainder ? dividend % by : dividend / by));
  }
}

void negate(Block& block, Thread& thread, const Instruction& instruction) {
  set_cut(block, thread, instruction, 0 - bits_at(block, thread, instruction, 1));
}
void absolute(Block& block, Thread& thread, const Instruction& instruction) {
  const int64_t value = signed_at(block, thread, instruction, 1);
  set_cut(block, thread, instruction, value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
}
template <bool kIsMaximum>
void extremum(Block& block, Thread& thread, const Instruction& instruction) {
  const uint64_t a = bits_at(block, thread, instruction, 1), b = bits_at(block, thread, instruction, 2);
  const bool is_less =
      is_signed(instruction.type) ? as_signed(instruction.type, a) < as_signed(instruction.type, b) : a < b;
  set_cut(block, thread, instruction, is_less == kIsMaximum ? b : a);
}

constexpr Family kInteger = Family::integer;
constexpr OpcodeRow kRows[] = {
    {"add", kInteger, add<false>},
    {"addc", kInteger, add<true>},
    {"sub", kInteger, subtract<false>},
    {"subc", kInteger, subtract<true>},
    {"mul", kInteger, multiply},
    {"mad", kInteger, multiply_add<false>},
    {"madc", kInteger, multiply_add<true>},
    {"div", kInteger, divide<false>},
    {"rem", kInteger, divide<true>},
    {"neg", kInteger, negate},
    {"abs", kInteger, absolute},
    {"min", kInteger, extremum<false>},
    {"max", kInteger, extremum<true>},
};

}  // namespace

std::span<const OpcodeRow> integer_rows() { return kRows; }

}  // namespace parallax::ptx
