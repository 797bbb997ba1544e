// SPDX-License-Identifier: Apache-2.0
// Arithmetic of float32 and float64. Sums, products, quotients and roots are IEEE's; what the hardware approximates
// (sin.approx, ex2.approx, ...) is computed in double and rounded once, so it is never less accurate than there.
#include <cfenv>
#include <cmath>
#include <limits>

#include "tests/runtime/ptx/block.h"

namespace parallax::ptx {
namespace {

float flushed(float value, bool flushes) {
  return flushes && std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0F, value) : value;
}
double flushed(double value, bool) { return value; }

template <class T>
T operand_of(const Block& block, const Thread& thread, const Instruction& instruction, size_t index) {
  const uint64_t bits = block.value(thread, instruction.operands[index]);
  if constexpr (std::is_same_v<T, float>) return flushed(as_float(bits), instruction.flushes);
  if constexpr (std::is_same_v<T, double>) return as_double(bits);
}

template <class T>
void set_result(Block& block, Thread& thread, const Instruction& instruction, T value) {
  T result = flushed(value, instruction.flushes);
  if (instruction.saturates) result = result > T(0) ? (result < T(1) ? result : T(1)) : T(0);
  block.set(thread, instruction.operands[0], bits_of(result));
}

// The result of `compute` in the direction that the instruction names. Its operands are read in there: not before.
template <class T, class F>
T rounded(Rounding rounding, const F& compute) {
  if (rounding == Rounding::none || rounding == Rounding::nearest) return compute();
  std::fesetround(rounding == Rounding::zero ? FE_TOWARDZERO : rounding == Rounding::down ? FE_DOWNWARD : FE_UPWARD);
  const volatile T result = compute();
  std::fesetround(FE_TONEAREST);
  return result;
}

template <class T, class F>
void unary(Block& block, Thread& thread, const Instruction& instruction) {
  const auto compute = [&] { return F()(operand_of<T>(block, thread, instruction, 1)); };
  set_result(block, thread, instruction, rounded<T>(instruction.rounding, compute));
}
template <class T, class F>
void binary(Block& block, Thread& thread, const Instruction& instruction) {
  const auto compute = [&] {
    return F()(operand_of<T>(block, thread, instruction, 1), operand_of<T>(block, thread, instruction, 2));
  };
  set_result(block, thread, instruction, rounded<T>(instruction.rounding, compute));
}
template <class T>
void fma(Block& block, Thread& thread, const Instruction& instruction) {
  const auto compute = [&] {
    return std::fma(operand_of<T>(block, thread, instruction, 1), operand_of<T>(block, thread, instruction, 2),
                    operand_of<T>(block, thread, instruction, 3));
  };
  set_result(block, thread, instruction, rounded<T>(instruction.rounding, compute));
}

struct Plus {
  template <class T>
  T operator()(T a, T b) const {
    return a + b;
  }
};
struct Minus {
  template <class T>
  T operator()(T a, T b) const {
    return a - b;
  }
};
struct Times {
  template <class T>
  T operator()(T a, T b) const {
    return a * b;
  }
};
struct Over {
  template <class T>
  T operator()(T a, T b) const {
    return a / b;
  }
};
// PTX has the sign of the first operand, and the magnitude of the second.
struct CopySign {
  template <class T>
  T operator()(T sign, T magnitude) const {
    return std::copysign(magnitude, sign);
  }
};
struct Root {
  template <class T>
  T operator()(T a) const {
    return std::sqrt(a);
  }
};

template <double (*F)(double)>
struct Approximated {
  float operator()(float a) const { return static_cast<float>(F(static_cast<double>(a))); }
  double operator()(double a) const { return F(a); }
};
double one_over(double a) { return 1 / a; }
double one_over_root(double a) { return 1 / std::sqrt(a); }
double power_of_two(double a) { return std::exp2(a); }
double logarithm(double a) { return std::log2(a); }
double sine(double a) { return std::sin(a); }
double cosine(double a) { return std::cos(a); }
double hyperbolic_tangent(double a) { return std::tanh(a); }

void reciprocal(Block& block, Thread& thread, const Instruction& instruction) {
  set_result(block, thread, instruction, 1.0F / operand_of<float>(block, thread, instruction, 1));
}

// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 give the upper word of the result (PTX ISA); the caller refines it.
template <double (*F)(double)>
void upper_word(Block& block, Thread& thread, const Instruction& instruction) {
  const uint64_t bits = bits_of(F(operand_of<double>(block, thread, instruction, 1)));
  const bool is_cut = instruction.is_approximate && instruction.flushes;
  block.set(thread, instruction.operands[0], is_cut ? bits & ~uint64_t{0xFFFFFFFF} : bits);
}

// A NaN loses against a number, unless the instruction keeps it; -0 is below 0.
template <class T, bool kIsMaximum>
void extremum(Block& block, Thread& thread, const Instruction& instruction) {
  const T a = operand_of<T>(block, thread, instruction, 1), b = operand_of<T>(block, thread, instruction, 2);
  T result;
  if (std::isnan(a) || std::isnan(b)) {
    const bool is_nan = instruction.keeps_nan || (std::isnan(a) && std::isnan(b));
    result = is_nan ? std::numeric_limits<T>::quiet_NaN() : (std::isnan(a) ? b : a);
  } else if (a == b) {
    result = std::signbit(a) == kIsMaximum ? b : a;
  } else {
    result = (a > b) == kIsMaximum ? a : b;
  }
  set_result(block, thread, instruction, result);
}

// The sign is changed or cleared, and nothing else: no rounding, NaN stays as it is.
template <class T>
void negate(Block& block, Thread& thread, const Instruction& instruction) {
  block.set(thread, instruction.operands[0], bits_of(-operand_of<T>(block, thread, instruction, 1)));
}
template <class T>
void absolute(Block& block, Thread& thread, const Instruction& instruction) {
  block.set(thread, instruction.operands[0], bits_of(std::fabs(operand_of<T>(block, thread, instruction, 1))));
}

template <class T>
void test_property(Block& block, Thread& thread, const Instruction& instruction) {
  const T value = operand_of<T>(block, thread, instruction, 1);
  const int kind = std::fpclassify(value);
  bool result = false;
  switch (instruction.mode) {
    case Mode::finite:
      result = std::isfinite(value);
      break;
    case Mode::infinite:
      result = std::isinf(value);
      break;
    case Mode::number:
      result = !std::isnan(value);
      break;
    case Mode::notanumber:
      result = std::isnan(value);
      break;
    case Mode::normal:
      result = kind == FP_NORMAL;
      break;
    case Mode::subnormal:
      result = kind == FP_SUBNORMAL;
      break;
    default:
      block.refuse(thread, "testp has no such property");
  }
  block.set(thread, instruction.operands[0], result ? 1 : 0);
}

constexpr Family kSingle = Family::f32;
constexpr Family kDouble = Family::f64;
constexpr OpcodeRow kRows[] = {
    {"add", kSingle, binary<float, Plus>},
    {"add", kDouble, binary<double, Plus>},
    {"sub", kSingle, binary<float, Minus>},
    {"sub", kDouble, binary<double, Minus>},
    {"mul", kSingle, binary<float, Times>},
    {"mul", kDouble, binary<double, Times>},
    {"div", kSingle, binary<float, Over>},
    {"div", kDouble, binary<double, Over>},
    {"fma", kSingle, fma<float>},
    {"fma", kDouble, fma<double>},
    {"mad", kSingle, fma<float>},
    {"mad", kDouble, fma<double>},
    {"neg", kSingle, negate<float>},
    {"neg", kDouble, negate<double>},
    {"abs", kSingle, absolute<float>},
    {"abs", kDouble, absolute<double>},
    {"min", kSingle, extremum<float, false>},
    {"min", kDouble, extremum<double, false>},
    {"max", kSingle, extremum<float, true>},
    {"max", kDouble, extremum<double, true>},
    {"copysign", kSingle, binary<float, CopySign>},
    {"copysign", kDouble, binary<double, CopySign>},
    {"testp", kSingle, test_property<float>},
    {"testp", kDouble, test_property<double>},
    {"sqrt", kSingle, unary<float, Root>},
    {"sqrt", kDouble, unary<double, Root>},
    {"rcp", kSingle, reciprocal},
    {"rcp", kDouble, upper_word<one_over>},
    {"rsqrt", kSingle, unary<float, Approximated<one_over_root>>},
    {"rsqrt", kDouble, upper_word<one_over_root>},
    {"ex2", kSingle, unary<float, Approximated<power_of_two>>},
    {"lg2", kSingle, unary<float, Approximated<logarithm>>},
    {"sin", kSingle, unary<float, Approximated<sine>>},
    {"cos", kSingle, unary<float, Approximated<cosine>>},
    {"tanh", kSingle, unary<float, Approximated<hyperbolic_tangent>>},
};

}  // namespace

std::span<const OpcodeRow> float_rows() { return kRows; }

}  // namespace parallax::ptx
