// SPDX-License-Identifier: Apache-2.0
// Comparisons, selections, and conversions between types, with the results that PTX gives where a value does not fit.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/runtime/ptx/block.h"
#include "tests/runtime/ptx/narrow_floats.h"

namespace parallax::ptx {
namespace {

bool is_float(Type type) { return type == Type::f32 || type == Type::f64; }

double as_number(const Instruction& instruction, Type type, uint64_t bits) {
  if (type == Type::f64) return as_double(bits);
  const float value = as_float(bits);
  return instruction.flushes && std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0, static_cast<double>(value))
                                                                       : static_cast<double>(value);
}

template <class T>
bool holds(Compare compare, T a, T b) {
  switch (compare) {
    case Compare::eq:
      return a == b;
    case Compare::ne:
      return a != b;
    case Compare::lt:
      return a < b;
    case Compare::le:
      return a <= b;
    case Compare::gt:
      return a > b;
    case Compare::ge:
      return a >= b;
    default:
      return false;
  }
}

bool holds_of_numbers(Compare compare, double a, double b) {
  const bool is_unordered = std::isnan(a) || std::isnan(b);
  switch (compare) {
    case Compare::ne:
      return !is_unordered && a != b;
    case Compare::equ:
      return is_unordered || a == b;
    case Compare::neu:
      return is_unordered || a != b;
    case Compare::ltu:
      return is_unordered || a < b;
    case Compare::leu:
      return is_unordered || a <= b;
    case Compare::gtu:
      return is_unordered || a > b;
    case Compare::geu:
      return is_unordered || a >= b;
    case Compare::num:
      return !is_unordered;
    case Compare::nan:
      return is_unordered;
    default:
      return holds(compare, a, b);
  }
}

bool compares(const Instruction& instruction, Type type, uint64_t a, uint64_t b) {
  if (is_float(type))
    return holds_of_numbers(instruction.compare, as_number(instruction, type, a), as_number(instruction, type, b));
  if (is_signed(type)) return holds(instruction.compare, as_signed(type, a), as_signed(type, b));
  return holds(instruction.compare, cut(type, a), cut(type, b));
}

bool combined(Combine combine, bool result, bool given) {
  switch (combine) {
    case Combine::and_:
      return result && given;
    case Combine::or_:
      return result || given;
    case Combine::xor_:
      return result != given;
    default:
      return result;
  }
}

void set_predicate(Block& block, Thread& thread, const Instruction& instruction) {
  const auto& operands = instruction.operands;
  const bool result =
      compares(instruction, instruction.type, block.value(thread, operands[1]), block.value(thread, operands[2]));
  const bool given = instruction.combine != Combine::none && (block.value(thread, operands[3]) & 1) != 0;
  block.set(thread, operands[0], combined(instruction.combine, result, given) ? 1 : 0);
  block.set_second(thread, operands[0], combined(instruction.combine, !result, given));
}

// All bits, or 1 where the result is a float.
void set_register(Block& block, Thread& thread, const Instruction& instruction) {
  const auto& operands = instruction.operands;
  const bool result =
      compares(instruction, instruction.second, block.value(thread, operands[1]), block.value(thread, operands[2]));
  const uint64_t yes = instruction.type == Type::f32 ? bits_of(1.0F) : cut(instruction.type, ~uint64_t{0});
  block.set(thread, operands[0], result ? yes : 0);
}

void select(Block& block, Thread& thread, const Instruction& instruction) {
  const auto& operands = instruction.operands;
  const bool is_first = (block.value(thread, operands[3]) & 1) != 0;
  block.set(thread, operands[0], cut(instruction.type, block.value(thread, operands[is_first ? 1 : 2])));
}
void select_by_sign(Block& block, Thread& thread, const Instruction& instruction) {
  const auto& operands = instruction.operands;
  const uint64_t sign = block.value(thread, operands[3]);
  const bool is_first = instruction.second == Type::f32 ? as_float(sign) >= 0 : as_signed(Type::s32, sign) >= 0;
  block.set(thread, operands[0], cut(instruction.type, block.value(thread, operands[is_first ? 1 : 2])));
}

// ---- cvt ----

double rounded_to_integer(Rounding rounding, double value) {
  switch (rounding) {
    case Rounding::nearest_integer:
      return std::nearbyint(value);
    case Rounding::down_integer:
      return std::floor(value);
    case Rounding::up_integer:
      return std::ceil(value);
    case Rounding::zero_integer:
      return std::trunc(value);
    default:
      return value;
  }
}

// NaN becomes 0 for 32 bits and less, and the sign bit alone for 64 (what sm_90 does); what is too large is clamped.
uint64_t integer_of(Type type, double value) {
  const int width = 8 * bytes_of(type);
  if (std::isnan(value)) return width == 64 ? uint64_t{1} << 63 : 0;
  const double limit = std::ldexp(1.0, is_signed(type) ? width - 1 : width);
  const double least = is_signed(type) ? -limit : 0;
  if (value >= limit) {
    const uint64_t all = cut(type, ~uint64_t{0});
    return is_signed(type) ? all >> 1 : all;
  }
  const double fitting = std::max(value, least);
  return cut(type,
             is_signed(type) ? static_cast<uint64_t>(static_cast<int64_t>(fitting)) : static_cast<uint64_t>(fitting));
}

float narrowed(Rounding rounding, double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (rounding == Rounding::zero && std::fabs(back) > std::fabs(value)) return std::nextafter(nearest, 0.0F);
  if (rounding == Rounding::down && back > value) return std::nextafter(nearest, -kInfinity);
  if (rounding == Rounding::up && back < value) return std::nextafter(nearest, kInfinity);
  return nearest;
}

uint64_t from_float(const Instruction& instruction, uint64_t bits) {
  constexpr uint64_t kCanonicalNan = 0x7FFFFFFF;
  const Type to = instruction.type, from = instruction.second;
  double value = rounded_to_integer(instruction.rounding, as_number(instruction, from, bits));
  if (!is_float(to)) return extended(to, integer_of(to, std::trunc(value)));
  if (instruction.saturates) value = value > 0 ? std::min(value, 1.0) : 0;
  if (to == Type::f64) return bits_of(value);
  return std::isnan(value) ? kCanonicalNan : bits_of(narrowed(instruction.rounding, value));
}

uint64_t from_integer(const Instruction& instruction, uint64_t bits) {
  const Type to = instruction.type, from = instruction.second;
  const int64_t value = as_signed(from, bits);
  const bool is_negative = is_signed(from) && value < 0;
  if (to == Type::f32)
    return bits_of(is_signed(from) ? static_cast<float>(value) : static_cast<float>(static_cast<uint64_t>(value)));
  if (to == Type::f64)
    return bits_of(is_signed(from) ? static_cast<double>(value) : static_cast<double>(static_cast<uint64_t>(value)));
  if (!instruction.saturates) return extended(to, static_cast<uint64_t>(value));
  const uint64_t most = is_signed(to) ? cut(to, ~uint64_t{0}) >> 1 : cut(to, ~uint64_t{0});
  if (!is_negative) return extended(to, std::min(static_cast<uint64_t>(value), most));
  if (!is_signed(to)) return 0;
  return extended(to, static_cast<uint64_t>(std::max(value, -static_cast<int64_t>(most) - 1)));
}

void convert(Block& block, Thread& thread, const Instruction& instruction) {
  const Type to = instruction.type, from = instruction.second;
  const uint64_t bits = block.value(thread, instruction.operands[1]);
  if (to == Type::tf32) {  // in the bits of a float32
    const auto word = narrow_bits(kTf32, as_float(bits)) << 13;
    block.set(thread, instruction.operands[0], std::isnan(as_float(bits)) ? 0x7FFFFFFFU : word);
    return;
  }
  if (to == Type::f16x2 || to == Type::bf16x2) {  // the first one is the upper word
    const FloatFormat& format = to == Type::f16x2 ? kFloat16 : kBFloat16;
    const uint64_t low = block.value(thread, instruction.operands[2]);
    block.set(thread, instruction.operands[0],
              uint64_t{narrow_bits(format, as_float(bits))} << 16 | narrow_bits(format, as_float(low)));
    return;
  }
  const auto is_half = [](Type type) { return type == Type::f16 || type == Type::bf16; };
  if (is_half(to) || is_half(from)) block.refuse(thread, "conversions of half precision are not known");
  block.set(thread, instruction.operands[0],
            is_float(from) ? from_float(instruction, bits) : from_integer(instruction, bits));
}

constexpr OpcodeRow kRows[] = {
    {"setp", Family::any, set_predicate},  {"set", Family::any, set_register}, {"selp", Family::any, select},
    {"slct", Family::any, select_by_sign}, {"cvt", Family::any, convert},
};

}  // namespace

std::span<const OpcodeRow> conversion_rows() { return kRows; }

}  // namespace parallax::ptx
