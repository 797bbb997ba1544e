// com.microsoft's older forms of operators that ai.onnx has, run as those: GridSample, Pad, Range, ReduceSumInteger,
// SampleOp, ScaledSiLU; and GatedAdd, QGemm by their parts.
#include <fmt/format.h>

#include "runtime/ops/contributed.h"
#include "runtime/ops/inner_op.h"
#include "runtime/ops/microsoft_families.h"
#include "runtime/ops/quantised_values.h"

namespace parallax::runtime {
namespace {

using Context = OpContext<Cpu>;

Status run_as(Context& op, const InnerOp& inner, const std::vector<Value>& inputs) {
  Tensor y = PX_TRY(run_inner(op, inner, inputs));
  op.set_output(0, std::move(y));
  return {};
}

Status grid_sample(Context& op) {
  const InnerOp inner{"GridSample", 16, passed_on(op, {"mode", "padding_mode", "align_corners"})};
  return run_as(op, inner, {op.value(0), op.value(1)});
}

// pads may also be [1, 2 * rank].
Status pad(Context& op) {
  const Tensor& pads = op.input(1);
  if (pads.shape().rank() > 2 || (pads.shape().rank() == 2 && pads.shape()[0] != 1))
    return execution_error("pads has shape " + pads.shape().to_string());
  std::vector<Value> inputs{op.value(0), pads.reshaped(Shape{pads.element_count()})};
  if (op.has_input(2)) {
    if (op.input(2).element_count() != 1) return execution_error("value must be one number");
    inputs.emplace_back(op.input(2).reshaped(Shape{}));
  }
  return run_as(op, {"Pad", 13, passed_on(op, {"mode"})}, inputs);
}

// delta is 1 where it is absent; each input may be [1].
Status range(Context& op) {
  std::vector<Value> inputs;
  for (int64_t index = 0; index < 3; ++index) {
    Tensor number = Tensor::scalar<int64_t>(1);
    if (op.has_input(index)) number = op.input(index);
    if (number.element_count() != 1) return execution_error("start, limit and delta are one number each");
    number = PX_TRY(inner_cast(op, number.reshaped(Shape{}), op.input(0).dtype()));
    inputs.emplace_back(std::move(number));
  }
  return run_as(op, {"Range", 11}, inputs);
}

// The sum as 32 bits, signed or not as the input is.
Status reduce_sum_integer(Context& op) {
  const Tensor wide = PX_TRY(inner_cast(op, op.input(0), DType::int64));
  Tensor sum = PX_TRY(run_inner(op, {"ReduceSum", 11, passed_on(op, {"axes", "keepdims"})}, {wide}));
  sum = PX_TRY(inner_cast(op, sum, op.input(0).dtype() == DType::uint8 ? DType::uint32 : DType::int32));
  op.set_output(0, std::move(sum));
  return {};
}

Status sample(Context& op) {
  op.alias_output(0, 0, op.input(0).shape());
  return {};
}

// X + Y * gate, the gate one number a row.
Status gated_add(Context& op) {
  const Tensor gated = PX_TRY(inner_binary(op, "Mul", op.input(1), op.input(2)));
  Tensor y = PX_TRY(inner_binary(op, "Add", op.input(0), gated));
  if (!(y.shape() == op.input(0).shape())) return execution_error("Y or the gate do not fit X");
  op.set_output(0, std::move(y));
  return {};
}

// z * sigmoid(z), z = scale * x.
Status scaled_silu(Context& op) {
  const double scale = op.has_input(1) ? PX_TRY(op.real_of_input(1)) : op.real("alpha");
  const Tensor factor = PX_TRY(inner_cast(op, Tensor::scalar<double>(scale), op.input(0).dtype()));
  const Tensor z = PX_TRY(inner_binary(op, "Mul", op.input(0), factor));
  const Tensor gate = PX_TRY(run_inner(op, {"Sigmoid", 13}, {z}));
  Tensor y = PX_TRY(inner_binary(op, "Mul", z, gate));
  op.set_output(0, std::move(y));
  return {};
}

// alpha * a_scale * b_scale * (A' * B' + C): C has the scale of the product. Scales and zero points of B belong to the
// columns of the product, which are rows of B where transB is set. Quantised where y_scale is given.
Status quantised_gemm(Context& op) {
  const auto centred = [&](int64_t values, int64_t zero, bool transposed) -> Result<Tensor> {
    if (op.input(values).shape().rank() != 2) return execution_error("A and B must be matrices");
    Tensor wide = PX_TRY(inner_cast(op, op.input(values), DType::float64));
    if (transposed) wide = PX_TRY(inner_transpose(op, wide, {1, 0}));
    const Tensor zeros = PX_TRY(inner_cast(op, op.input(zero), DType::float64));
    return inner_binary(op, "Sub", wide, zeros);
  };
  const Tensor a = PX_TRY(centred(0, 2, op.integer("transA") != 0));
  const Tensor b = PX_TRY(centred(3, 5, op.integer("transB") != 0));
  Tensor y = PX_TRY(run_inner(op, {"MatMul", 13}, {a, b}));
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
    y = PX_TRY(quantised_values(op, y, 7, 8, dtype));
  } else {
    y = PX_TRY(inner_cast(op, y, DType::float32));
  }
  op.set_output(0, std::move(y));
  return {};
}

constexpr KernelRow<Cpu> kMsBorrowedRows[] = {
    contributed_row("GatedAdd", kFloats, gated_add), contributed_row("GridSample", kFloats, grid_sample),
    contributed_row("Pad", kMovable, pad),           contributed_row("QGemm", kBytes, quantised_gemm),
    contributed_row("Range", kReals, range),         contributed_row("ReduceSumInteger", kBytes, reduce_sum_integer),
    contributed_row("SampleOp", kMovable, sample),   contributed_row("ScaledSiLU", kFloats, scaled_silu),
};

}  // namespace

template <>
Rows<Cpu> ms_borrowed_rows() {
  return kMsBorrowedRows;
}

}  // namespace parallax::runtime
