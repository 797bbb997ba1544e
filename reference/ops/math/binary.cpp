// SPDX-License-Identifier: Apache-2.0
// Elementwise functions of two inputs: arithmetic, comparison, logic, bits.
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"

namespace parallax::reference {
namespace {

// Before version 7 there was no broadcasting but on demand: attribute broadcast = 1 aligns B's axes with A's from
// `axis` on. Gives B under a shape that today's rules broadcast to the same.
Result<Tensor> aligned_second(const OpContext& op) {
  const Tensor& a = op.input(0);
  const Tensor& b = op.input(1);
  if (op.since_version() >= 7) return b;
  if (op.int_attribute("broadcast") == 0) {
    if (a.shape() == b.shape()) return b;
    return wrong_input(op, 1, "have the shape of A, {}, as attribute 'broadcast' is 0", a.shape().to_string());
  }
  const auto axis = op.find_int("axis");
  if (!axis.has_value()) return b;
  const size_t first = PX_TRY(normalize_axis(*axis, a.shape().rank()));
  if (first + b.shape().rank() > a.shape().rank())
    return wrong_input(op, 1, "fit into A {} from axis {} on", a.shape().to_string(), first);
  std::vector<int64_t> dims(b.shape().begin(), b.shape().end());
  dims.resize(a.shape().rank() - first, 1);
  return b.reshaped(Shape(dims));
}

template <class F>
Status arithmetic(OpContext& op, F f) {
  const Tensor b = PX_TRY(aligned_second(op));
  const DType dtype = op.input(0).dtype();
  return with_number_type(dtype, [&](auto number) { return map_two<decltype(number)>(op, op.input(0), b, dtype, f); });
}

template <class F>
Status comparison(OpContext& op, F f) {
  const Tensor b = PX_TRY(aligned_second(op));
  return with_number_type(op.input(0).dtype(),
                          [&](auto number) { return map_two<decltype(number)>(op, op.input(0), b, DType::bool_, f); });
}

template <class F>
Status logic(OpContext& op, F f) {
  const Tensor b = PX_TRY(aligned_second(op));
  return map_two<int64_t>(op, op.input(0), b, DType::bool_, f);
}

template <class F>
Status bits(OpContext& op, F f) {
  if (!is_integer(op.input(0).dtype()))
    return unsupported(
        fmt::format("the element type is {}; only integers have bits here", name_of(op.input(0).dtype())));
  return map_two<uint64_t>(op, op.input(0), op.input(1), op.input(0).dtype(), f);
}

Status refuse_zeros(const Tensor& divisor) {
  if (is_floating(divisor.dtype())) return {};
  for (int64_t value : to_int64s(divisor)) {
    if (value == 0) return broken_rule("the divisor has an element 0", "have none for a division of integers");
  }
  return {};
}

template <class T>
T truncated_quotient(T a, T b) {
  if constexpr (std::is_same_v<T, int64_t>) {
    if (b == -1) return wrapping_subtract(T{0}, a);  // the least integer has no positive twin
  }
  return a / b;
}

template <class T>
T truncated_remainder(T a, T b) {
  if constexpr (std::is_same_v<T, double>)
    return std::fmod(a, b);
  else if constexpr (std::is_same_v<T, int64_t>)
    return b == -1 ? 0 : a % b;
  else
    return a % b;
}

// The remainder with the sign of the divisor, as Python's % has it; a zero has that sign too.
template <class T>
T floored_remainder(T a, T b) {
  const T remainder = truncated_remainder(a, b);
  if constexpr (std::is_same_v<T, uint64_t>)
    return remainder;
  else if constexpr (std::is_same_v<T, double>)
    return remainder == 0 ? std::copysign(0.0, b) : (remainder < 0) != (b < 0) ? remainder + b : remainder;
  else
    return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

// base^exponent modulo 2^64. A negative exponent gives the truncated quotient 1 / base^-exponent.
template <class T>
T integer_power(T base, int64_t exponent) {
  if (exponent < 0) {
    if (base == T{1}) return base;
    if (std::is_signed_v<T> && base == static_cast<T>(-1)) return exponent % 2 == 0 ? T{1} : base;
    return T{0};
  }
  T result{1};
  for (auto left = static_cast<uint64_t>(exponent); left > 0; left >>= 1U) {
    if ((left & 1U) != 0) result = wrapping_multiply(result, base);
    base = wrapping_multiply(base, base);
  }
  return result;
}

Status compare_strings(OpContext& op) {
  const Tensor& a = op.input(0);
  const Tensor& b = op.input(1);
  const Shape shape = PX_TRY(broadcast_shapes(a.shape(), b.shape()));
  Tensor output = PX_TRY(op.allocate(DType::bool_, shape));
  const auto strides_a = broadcast_strides(a.shape(), shape);
  const auto strides_b = broadcast_strides(b.shape(), shape);
  Walk<2> walk(shape.dims(), {strides_a, strides_b});
  const auto strings_a = a.as<std::string>();
  const auto strings_b = b.as<std::string>();
  for (bool& equal : output.mutable_as<bool>()) {
    equal = strings_a[static_cast<size_t>(walk.offset(0))] == strings_b[static_cast<size_t>(walk.offset(1))];
    walk.next();
  }
  return op.set_output(0, std::move(output));
}

Status op_add(OpContext& op) {
  return arithmetic(op, [](auto a, auto b) { return wrapping_add(a, b); });
}

Status op_sub(OpContext& op) {
  return arithmetic(op, [](auto a, auto b) { return wrapping_subtract(a, b); });
}

Status op_mul(OpContext& op) {
  return arithmetic(op, [](auto a, auto b) { return wrapping_multiply(a, b); });
}

// Integers: truncated toward zero.
Status op_div(OpContext& op) {
  PX_TRY(refuse_zeros(op.input(1)));
  return arithmetic(op, [](auto a, auto b) { return truncated_quotient(a, b); });
}

// fmod = 1: A - trunc(A / B) * B with the sign of A; fmod = 0: A - floor(A / B) * B with the sign of B. The remainder
// of two doubles is exact, so that the result is rounded once.
Status op_mod(OpContext& op) {
  PX_TRY(refuse_zeros(op.input(1)));
  if (op.int_attribute("fmod") != 0) {
    return map_two_numbers(op, [](auto a, auto b) { return truncated_remainder(a, b); });
  }
  return map_two_numbers(op, [](auto a, auto b) { return floored_remainder(a, b); });
}

// Until version 13 floats must have fmod = 1.
Status op_mod_13(OpContext& op) {
  if (is_floating(op.input(0).dtype()) && op.int_attribute("fmod") == 0)
    return wrong_attribute("fmod", 0, "be 1 for floats before operator set 28");
  return op_mod(op);
}

// The result has the type of the base. Integers to an integer power are exact modulo their width; otherwise both are
// taken as double, and the power of an integer base is truncated as Cast does it.
Status op_pow(OpContext& op) {
  const Tensor& base = op.input(0);
  const Tensor exponent = PX_TRY(aligned_second(op));
  const Shape shape = PX_TRY(broadcast_shapes(base.shape(), exponent.shape()));
  Tensor output = PX_TRY(op.allocate(base.dtype(), shape));
  const BroadcastInput bases(base, shape);
  const BroadcastInput exponents(exponent, shape);
  const bool exact = !is_floating(base.dtype()) && !is_floating(exponent.dtype());
  for_blocks(shape.element_count(), 20, [&](int64_t begin, int64_t end) {
    const auto count = static_cast<size_t>(end - begin);
    if (exact) {
      std::vector<int64_t> b(count);
      std::vector<int64_t> e(count);
      bases.read<int64_t>(begin, b);
      exponents.read<int64_t>(begin, e);
      for (size_t index = 0; index < count; ++index) b[index] = integer_power(b[index], e[index]);
      store<int64_t>(output, begin, b);
      return;
    }
    std::vector<double> b(count);
    std::vector<double> e(count);
    bases.read<double>(begin, b);
    exponents.read<double>(begin, e);
    // A square is a product: what pow would round is the same, and models are full of squares.
    for (size_t index = 0; index < count; ++index)
      b[index] = e[index] == 2 ? b[index] * b[index] : std::pow(b[index], e[index]);
    if (is_floating(base.dtype())) return store<double>(output, begin, b);
    std::vector<int64_t> truncated(count);
    for (size_t index = 0; index < count; ++index) truncated[index] = truncate_to_integer(b[index], base.dtype());
    store<int64_t>(output, begin, truncated);
  });
  return op.set_output(0, std::move(output));
}

Status op_equal(OpContext& op) {
  if (op.input(0).dtype() == DType::string) return compare_strings(op);
  return comparison(op, [](auto a, auto b) { return a == b; });
}

Status op_less(OpContext& op) {
  return comparison(op, [](auto a, auto b) { return a < b; });
}
Status op_less_or_equal(OpContext& op) {
  return comparison(op, [](auto a, auto b) { return a <= b; });
}
Status op_greater(OpContext& op) {
  return comparison(op, [](auto a, auto b) { return a > b; });
}
Status op_greater_or_equal(OpContext& op) {
  return comparison(op, [](auto a, auto b) { return a >= b; });
}

Status op_and(OpContext& op) {
  return logic(op, [](int64_t a, int64_t b) { return a != 0 && b != 0; });
}
Status op_or(OpContext& op) {
  return logic(op, [](int64_t a, int64_t b) { return a != 0 || b != 0; });
}
Status op_xor(OpContext& op) {
  return logic(op, [](int64_t a, int64_t b) { return (a != 0) != (b != 0); });
}

Status op_bitwise_and(OpContext& op) {
  return bits(op, [](uint64_t a, uint64_t b) { return a & b; });
}
Status op_bitwise_or(OpContext& op) {
  return bits(op, [](uint64_t a, uint64_t b) { return a | b; });
}
Status op_bitwise_xor(OpContext& op) {
  return bits(op, [](uint64_t a, uint64_t b) { return a ^ b; });
}

// BitShift-28: a shift by the type's width or more, or by a negative amount, leaves what the sign fills in: -1 to the
// right of a negative number, else 0. A negative amount is huge when taken without sign.
Status op_bit_shift(OpContext& op) {
  const DType dtype = op.input(0).dtype();
  const std::string direction = op.string_attribute("direction");
  if (direction != "LEFT" && direction != "RIGHT") return wrong_attribute("direction", direction, "be LEFT or RIGHT");
  const auto width = static_cast<uint64_t>(bits_of(dtype));
  if (direction == "LEFT") return bits(op, [=](uint64_t a, uint64_t b) { return b >= width ? 0 : a << b; });
  if (info_of(dtype).kind != DTypeKind::signed_integer)
    return bits(op, [=](uint64_t a, uint64_t b) { return b >= width ? 0 : a >> b; });
  return map_two<int64_t>(op, op.input(0), op.input(1), dtype, [=](int64_t a, int64_t b) {
    const int64_t sign_fill = a < 0 ? -1 : 0;
    return static_cast<uint64_t>(b) >= width ? sign_fill : a >> b;
  });
}

constexpr OpRow kBinaryRows[] = {
    {"Add", kOnnx, 1, 14, op_add},
    {"And", kOnnx, 1, 7, op_and},
    {"BitShift", kOnnx, 11, 28, op_bit_shift},
    {"BitwiseAnd", kOnnx, 18, 18, op_bitwise_and},
    {"BitwiseOr", kOnnx, 18, 18, op_bitwise_or},
    {"BitwiseXor", kOnnx, 18, 18, op_bitwise_xor},
    {"Div", kOnnx, 1, 14, op_div},
    {"Equal", kOnnx, 1, 19, op_equal},
    {"Greater", kOnnx, 1, 13, op_greater},
    {"GreaterOrEqual", kOnnx, 12, 16, op_greater_or_equal},
    {"Less", kOnnx, 1, 13, op_less},
    {"LessOrEqual", kOnnx, 12, 16, op_less_or_equal},
    {"Mod", kOnnx, 10, 13, op_mod_13},
    {"Mod", kOnnx, 28, 28, op_mod},
    {"Mul", kOnnx, 1, 14, op_mul},
    {"Or", kOnnx, 1, 7, op_or},
    {"Pow", kOnnx, 1, 15, op_pow},
    {"Sub", kOnnx, 1, 14, op_sub},
    {"Xor", kOnnx, 1, 7, op_xor},
};

}  // namespace

OpRows binary_rows() { return kBinaryRows; }

}  // namespace parallax::reference
