// SPDX-License-Identifier: Apache-2.0
// com.microsoft's products of integers: DynamicQuantizeMatMul, MatMulIntegerToFloat, MatMulInteger16,
// QGemm.
#include "inspector/model/rule_errors.h"
#include "runtime/ops/contrib_families.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/inner_op.h"
#include "runtime/ops/pointwise/quantized_values.h"

namespace parallax::runtime {
namespace {

using Context = ChainContext;

// The exact sums of (a - its zero point) * (b - its zero points), as float64.
Result<Tensor> exact_product(Context& op, Value a, Value b, Value a_zero, Value b_zero) {
  const Tensor sums =
      PX_TRY(run_inner(op, {"MatMulInteger", 10}, {std::move(a), std::move(b), std::move(a_zero), std::move(b_zero)}));
  return inner_cast(op, sums, DType::float64);
}

// y times the scales of A, one number, and of B, input `b_scale`, plus the bias where there is one.
Status finish_integer_product(Context& op, Tensor y, const Tensor& a_scale, int64_t b_scale, int64_t bias,
                              DType dtype) {
  const Tensor of_b = PX_TRY(inner_cast(op, op.input(b_scale), DType::float64));
  const Tensor of_a = PX_TRY(inner_cast(op, a_scale, DType::float64));
  const Tensor scales = PX_TRY(inner_binary(op, "Mul", of_a, of_b));
  y = PX_TRY(inner_binary(op, "Mul", y, scales));
  if (op.has_input(bias)) {
    const Ints dims(y.shape());
    if (dims.empty() || op.input(bias).element_count() != dims.back())
      return wrong_input(op, bias, "have one element for each column of the product {}", y.shape().to_string());
    const Tensor added = PX_TRY(inner_cast(op, op.input(bias), DType::float64));
    y = PX_TRY(inner_binary(op, "Add", y, added));
  }
  y = PX_TRY(inner_cast(op, y, dtype));
  op.set_output(0, std::move(y));
  return {};
}

// A quantized as DynamicQuantizeLinear does it, then the product of the two as real numbers.
Status dynamic_quantize_matmul(Context& op) {
  InnerOp quantize{"DynamicQuantizeLinear", 11};
  quantize.output_count = 3;
  const Value given = op.value(0);
  const std::vector<Value> parts = PX_TRY(run_inner_all(op, quantize, std::span<const Value>(&given, 1)));
  Tensor y = PX_TRY(exact_product(op, parts[0], op.value(1), parts[2], value_or_none(op, 3)));
  return finish_integer_product(op, std::move(y), parts[1].tensor(), 2, 4, op.input(0).dtype());
}

Status matmul_integer_to_float(Context& op) {
  if (op.input(2).element_count() != 1) return wrong_input(op, 2, "be one number");
  if (op.has_input(4) && op.input(4).element_count() != 1) return wrong_input(op, 4, "be one number");
  Tensor y = PX_TRY(exact_product(op, op.value(0), op.value(1), value_or_none(op, 4), value_or_none(op, 5)));
  return finish_integer_product(op, std::move(y), op.input(2), 3, 6, op.input(3).dtype());
}

// Unsigned where both factors are.
Status matmul_integer16(Context& op) {
  const Tensor a = PX_TRY(inner_cast(op, op.input(0), DType::int64));
  const Tensor b = PX_TRY(inner_cast(op, op.input(1), DType::int64));
  const bool is_unsigned = op.input(0).dtype() == DType::uint16 && op.input(1).dtype() == DType::uint16;
  Tensor y = PX_TRY(run_inner(op, {"MatMul", 13}, {a, b}));
  y = PX_TRY(inner_cast(op, y, is_unsigned ? DType::uint32 : DType::int32));
  op.set_output(0, std::move(y));
  return {};
}

// alpha * a_scale * b_scale * (A' * B' + C): C has the scale of the product. Scales and zero points of B belong to the
// columns of the product, which are rows of B where transB is set. Quantized where y_scale is given.
Status quantized_gemm(Context& op) {
  const auto matrix = [&](int64_t index, bool transposed) -> Result<Value> {
    if (op.input(index).shape().rank() != 2) return wrong_input(op, index, "have rank 2");
    if (!transposed) return op.value(index);
    return Value(PX_TRY(inner_transpose(op, op.input(index), {1, 0})));
  };
  const Value a = PX_TRY(matrix(0, op.integer("transA") != 0));
  const Value b = PX_TRY(matrix(3, op.integer("transB") != 0));
  Tensor y = PX_TRY(exact_product(op, a, b, value_or_none(op, 2), value_or_none(op, 5)));
  if (op.has_input(6)) {
    const Tensor c = PX_TRY(inner_cast(op, op.input(6), DType::float64));
    y = PX_TRY(inner_binary(op, "Add", y, c));
  }
  const double scale = op.real("alpha") * PX_TRY(op.real_of_input(1));
  Tensor scales = PX_TRY(inner_cast(op, op.input(4), DType::float64));
  scales = PX_TRY(inner_binary(op, "Mul", scales, Tensor::scalar<double>(scale)));
  y = PX_TRY(inner_binary(op, "Mul", y, scales));
  if (op.has_input(7)) {
    const DType dtype = op.has_input(8) ? op.input(8).dtype() : op.input(0).dtype();
    y = PX_TRY(quantized_values(op, y, 7, 8, dtype));
  } else {
    y = PX_TRY(inner_cast(op, y, DType::float32));
  }
  op.set_output(0, std::move(y));
  return {};
}

constexpr KernelRow<CompiledDevice> kContribIntegerProductRows[] = {
    contributed_row("DynamicQuantizeMatMul", kFloats, dynamic_quantize_matmul),
    contributed_row("MatMulInteger16", dtype_bits({DType::int16, DType::uint16}), matmul_integer16),
    contributed_row("MatMulIntegerToFloat", kBytes, matmul_integer_to_float),
    reads_on_host({1, 7, 8}, contributed_row("QGemm", kBytes, quantized_gemm)),
};

}  // namespace

template <>
Rows<CompiledDevice> contrib_integer_product_rows() {
  return kContribIntegerProductRows;
}

}  // namespace parallax::runtime
