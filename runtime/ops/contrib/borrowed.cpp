// SPDX-License-Identifier: Apache-2.0
// com.microsoft's older forms of operators that ai.onnx has, run as those: ExpandDims, GatherND, GridSample, Pad,
// Range, ReduceSumInteger, Rfft, SampleOp, TorchEmbedding, Trilu, Unique; and IsAllFinite by its parts.
#include "inspector/model/rule_errors.h"
#include "runtime/ops/contrib_families.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/inner_op.h"

namespace parallax::runtime {
namespace {

using Context = ChainContext;

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
    return wrong_input(op, 1, "have rank 1, or be [1,length]");
  std::vector<Value> inputs{op.value(0), pads.reshaped(Shape{pads.element_count()})};
  if (op.has_input(2)) {
    if (op.input(2).element_count() != 1) return wrong_input(op, 2, "be one number");
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
    if (number.element_count() != 1) return wrong_input(op, index, "be one number");
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

// [..., n] to [..., n / 2 + 1, 2].
Status rfft(Context& op) {
  if (op.integer("normalized") != 0 || op.integer("onesided") != 1 || op.integer("signal_ndim") != 1)
    return unsupported("normalized, onesided or signal_ndim is another than 0, 1 and 1; only these have a kernel here");
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  if (dims.empty()) return wrong_input(op, 0, "have rank 1 or more");
  const int64_t n = dims.back();
  const Tensor wide = PX_TRY(inner_cast(op, x, DType::float64));
  const Tensor rows = wide.reshaped(Shape{product(dims, 0, dims.size() - 1), n, 1});
  const InnerOp dft{"DFT", 17, {int_attribute("axis", 1), int_attribute("onesided", 1)}};
  const Tensor spectrum = PX_TRY(run_inner(op, dft, {rows}));
  Ints out(std::span<const int64_t>(dims.data(), static_cast<size_t>(dims.size() - 1)));
  out.push_back(n / 2 + 1);
  out.push_back(2);
  const Shape shape = PX_TRY(shape_of(out));
  Tensor y = PX_TRY(inner_cast(op, spectrum.reshaped(shape), x.dtype()));
  op.set_output(0, std::move(y));
  return {};
}

Status expand_dims(Context& op) {
  const int64_t given = PX_TRY(op.integer_of_input(1));
  Ints dims(op.input(0).shape());
  dims.insert(PX_TRY(OpCall::resolve_axis(given, dims.size() + 1)), 1);
  const Shape shape = PX_TRY(shape_of(dims));
  op.alias_output(0, 0, shape);
  return {};
}

Status embedding(Context& op) {
  if (op.input(0).shape().rank() != 2) return wrong_input(op, 0, "have rank 2");
  Tensor rows = PX_TRY(run_inner(op, {"Gather", 13, {int_attribute("axis", 0)}}, {op.value(0), op.value(1)}));
  op.set_output(0, std::move(rows));
  return {};
}

Status gather_nd(Context& op) {
  Tensor y = PX_TRY(run_inner(op, {"GatherND", 13}, {op.value(0), op.value(1)}));
  op.set_output(0, std::move(y));
  return {};
}

Status trilu(Context& op) {
  std::vector<Value> inputs{op.value(0)};
  if (op.has_input(1)) inputs.push_back(op.value(1));
  Tensor y = PX_TRY(run_inner(op, {"Trilu", 14, passed_on(op, {"upper"})}, inputs));
  op.set_output(0, std::move(y));
  return {};
}

// The values in the order in which they first occur, where each element's value is, and counts.
Status unique(Context& op) {
  if (op.input(0).shape().rank() != 1) return wrong_input(op, 0, "have rank 1");
  InnerOp inner{"Unique", 11, {int_attribute("sorted", 0)}};
  inner.output_count = 4;
  const Value x = op.value(0);
  std::vector<Value> found = PX_TRY(run_inner_all(op, inner, std::span<const Value>(&x, 1)));
  op.set_output(0, std::move(found[0]));
  op.set_output(1, std::move(found[2]));
  op.set_output(2, std::move(found[3]));
  return {};
}

// The output is true where no element of any input is infinite or NaN, or of the one kind asked for.
Status is_all_finite(Context& op) {
  const bool infinities = op.integer("isnan_only") == 0, nans = op.integer("isinf_only") == 0;
  if (!infinities && !nans)
    return execution_error("attributes 'isinf_only' and 'isnan_only' are both set; at most one must be");
  Tensor found = Tensor::scalar<int32_t>(0);
  for (int64_t input = 0; input < op.input_count(); ++input) {
    if (op.input(input).element_count() == 0) continue;
    for (const std::string_view kind : {"IsInf", "IsNaN"}) {
      if (kind == "IsInf" ? !infinities : !nans) continue;
      const Tensor flags = PX_TRY(run_inner(op, {kind, 20}, {op.value(input)}));
      const Tensor numbers = PX_TRY(inner_cast(op, flags, DType::int32));
      const Tensor any = PX_TRY(run_inner(op, {"ReduceMax", 13, {int_attribute("keepdims", 0)}}, {numbers}));
      found = PX_TRY(inner_binary(op, "Add", found, any));
    }
  }
  const Tensor is_found = PX_TRY(inner_cast(op, found, DType::bool_));
  op.set_output(0, PX_TRY(run_inner(op, {"Not", 1}, {is_found})));
  return {};
}

constexpr KernelRow<CompiledDevice> kContribBorrowedRows[] = {
    reads_on_host({1}, contributed_row("ExpandDims", kMovable, expand_dims)),
    contributed_row("GatherND", kMovable, gather_nd),
    contributed_row("GridSample", kMovable, grid_sample),
    contributed_row("IsAllFinite", kFloats, is_all_finite),
    reads_on_host({1}, contributed_row("Pad", kMovable, pad)),
    reads_on_host({0, 1, 2}, contributed_row("Range", kReals, range)),
    contributed_row("ReduceSumInteger", kBytes, reduce_sum_integer),
    contributed_row("Rfft", kFloats, rfft),
    contributed_row("SampleOp", kMovable, sample),
    contributed_row("TorchEmbedding", kReals, embedding),
    reads_on_host({1}, contributed_row("Trilu", kMovable, trilu)),
    contributed_row("Unique", kReals | kBool, unique),
};

}  // namespace

template <>
Rows<CompiledDevice> contrib_borrowed_rows() {
  return kContribBorrowedRows;
}

}  // namespace parallax::runtime
