// SPDX-License-Identifier: Apache-2.0
// com.microsoft's DynamicQuantizeLSTM: an LSTM of one step after the other, whose H is quantized before each.
#include "inspector/model/rule_errors.h"
#include "runtime/ops/contrib_families.h"
#include "runtime/ops/contributed.h"
#include "runtime/ops/inner_op.h"

namespace parallax::runtime {
namespace {

using Context = ChainContext;

Tensor single(int64_t value) { return Tensor::vector<int64_t>(std::span<const int64_t>(&value, 1)); }

// Part [1, ...] of the first axis, from index `location` on.
Result<Tensor> part_at(Context& op, const Tensor& whole, int64_t location) {
  if (whole.shape()[0] == 1) return whole;
  return run_inner(op, {"Slice", 13}, {whole, single(location), single(location + 1), single(0)});
}
Result<Value> part_or_none(Context& op, int64_t index, int64_t location) {
  if (!op.has_input(index)) return Value();
  return Value(PX_TRY(part_at(op, op.input(index), location)));
}

// The values after a round trip through dynamic quantization.
Result<Tensor> requantized(Context& op, const Tensor& values) {
  InnerOp quantize{"DynamicQuantizeLinear", 11};
  quantize.output_count = 3;
  const Value given(values);
  const std::vector<Value> parts = PX_TRY(run_inner_all(op, quantize, std::span<const Value>(&given, 1)));
  return run_inner(op, {"DequantizeLinear", 13}, {parts[0], parts[1], parts[2]});
}

// Quantized values [directions, rows, columns] of one direction as numbers [1, columns, rows]. Scales and zero points
// are one number a direction, or one for each of its columns.
Result<Tensor> weights_of(Context& op, int64_t weight, int64_t scale, int64_t zero_point, int64_t direction) {
  const Tensor own = PX_TRY(part_at(op, op.input(weight), direction));
  Value parameters[2];
  for (const int64_t index : {scale, zero_point}) {
    const int64_t count = op.input(index).element_count() / op.input(weight).shape()[0];
    if (op.input(index).shape().rank() == 0 || op.input(index).shape()[0] != op.input(weight).shape()[0] ||
        (count != 1 && count != own.shape()[2]))
      return wrong_input(op, index, "have one element for each direction, or for each of its {} columns",
                         own.shape()[2]);
    const Tensor part = PX_TRY(part_at(op, op.input(index), direction));
    parameters[index == scale ? 0 : 1] = Value(part.reshaped(count == 1 ? Shape{} : Shape{count}));
  }
  const Tensor numbers =
      PX_TRY(run_inner(op, {"DequantizeLinear", 13, {int_attribute("axis", 2)}}, {own, parameters[0], parameters[1]}));
  return inner_transpose(op, numbers, {0, 2, 1});
}

struct LstmSizes {
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, directions = 1;
  bool reverse_only = false;
  Ints lengths = {};         // of each sample
  bool ends_differ = false;  // some are shorter than all steps
};

Result<LstmSizes> lstm_sizes(Context& op) {
  const Shape& x = op.input(0).shape();
  const Shape& r = op.input(2).shape();
  if (x.rank() != 3 || r.rank() != 3) return wrong_input(op, x.rank() != 3 ? 0 : 2, "have rank 3");
  LstmSizes sizes{.steps = x[0], .batch = x[1], .inputs = x[2], .hidden = r[1], .lengths = Ints(x[1], x[0])};
  const std::string direction = op.text("direction");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return wrong_attribute("direction", direction, "be forward, reverse or bidirectional");
  sizes.directions = direction == "bidirectional" ? 2 : 1;
  sizes.reverse_only = direction == "reverse";
  const int64_t width = 4 * sizes.hidden;
  const Shape state{sizes.directions, sizes.batch, sizes.hidden};
  const std::pair<int64_t, Shape> wanted[] = {{1, Shape{sizes.directions, sizes.inputs, width}},
                                              {2, Shape{sizes.directions, sizes.hidden, width}},
                                              {3, Shape{sizes.directions, 2 * width}},
                                              {5, state},
                                              {6, state},
                                              {7, Shape{sizes.directions, 3 * sizes.hidden}}};
  for (const auto& [index, shape] : wanted) {
    if (op.has_input(index) && op.input(index).shape() != shape)
      return wrong_input(op, index, "have shape {}", shape.to_string());
  }
  if (op.has_input(4)) sizes.lengths = PX_TRY(op.integers_of_input(4));
  if (sizes.lengths.size() != sizes.batch)
    return wrong_input(op, 4, "have {} elements, one length for each batch entry", sizes.batch);
  for (const int64_t length : sizes.lengths) {
    if (length < 0 || length > sizes.steps)
      return wrong_value("a length in sequence_lens", length, "be in [0, {}], the number of steps", sizes.steps);
    sizes.ends_differ = sizes.ends_differ || length < sizes.steps;
  }
  return sizes;
}

// Those of the LSTM of one step of a direction: three activations are its own.
Result<std::vector<Attribute>> step_attributes(const Context& op, const LstmSizes& sizes, int64_t direction) {
  std::vector<Attribute> attributes = passed_on(op, {"clip", "input_forget", "activation_alpha", "activation_beta"});
  const bool has_parameters = find_attribute(op.node(), "activation_alpha") != nullptr ||
                              find_attribute(op.node(), "activation_beta") != nullptr;
  if (has_parameters && sizes.directions == 2)
    return unsupported(
        "activation_alpha or activation_beta is given for two directions; only one direction has a kernel here");
  attributes.push_back(int_attribute("hidden_size", sizes.hidden));
  const Attribute* given = find_attribute(op.node(), "activations");
  const auto* names = given == nullptr ? nullptr : std::get_if<std::vector<std::string>>(&given->value);
  if (names == nullptr || names->empty()) return attributes;
  const auto own = static_cast<size_t>(3 * direction);
  if (names->size() < own + 3)
    return wrong_length("attribute 'activations'", names->size(), "have {} or more, three for each direction", own + 3);
  const auto first = names->begin() + static_cast<ptrdiff_t>(own);
  attributes.push_back(strings_attribute("activations", {first, first + 3}));
  return attributes;
}

// Each sample's own part of the first axis the other way round.
Result<Tensor> permuted(Context& op, const LstmSizes& sizes, const Tensor& x) {
  const std::vector<int64_t> lengths(sizes.lengths.begin(), sizes.lengths.end());
  const InnerOp reverse{"ReverseSequence", 10, {int_attribute("time_axis", 0), int_attribute("batch_axis", 1)}};
  return run_inner(op, reverse, {x, Tensor::from<int64_t>(Shape{sizes.batch}, lengths)});
}

// [1, batch, 1]: whose sequence has this step.
Tensor who_goes_on(const LstmSizes& sizes, int64_t step) {
  Tensor mask = Tensor::zeros(DType::bool_, Shape{1, sizes.batch, 1}).take();
  for (int64_t sample = 0; sample < sizes.batch; ++sample)
    mask.mutable_as<bool>()[static_cast<size_t>(sample)] = step < sizes.lengths[sample];
  return mask;
}

struct LstmCourse {
  Tensor h, c;           // [1, batch, hidden]
  std::vector<Value> y;  // of each step, in the direction's order
};

Status run_steps(Context& op, const LstmSizes& sizes, const Tensor& x, int64_t direction, LstmCourse& course) {
  const Tensor w = PX_TRY(weights_of(op, 1, 8, 9, direction)), r = PX_TRY(weights_of(op, 2, 10, 11, direction));
  const Value b = PX_TRY(part_or_none(op, 3, direction)), p = PX_TRY(part_or_none(op, 7, direction));
  InnerOp lstm{"LSTM", 14, PX_TRY(step_attributes(op, sizes, direction))};
  lstm.output_count = 3;
  for (int64_t step = 0; step < sizes.steps; ++step) {
    const Tensor now = PX_TRY(part_at(op, x, step)), before = PX_TRY(requantized(op, course.h));
    const std::vector<Value> operands{now, w, r, b, Value(), before, course.c, p};
    const std::vector<Value> next = PX_TRY(run_inner_all(op, lstm, operands));
    Tensor h = next[1].tensor(), c = next[2].tensor(), y = h;
    if (sizes.ends_differ) {
      const Tensor mask = who_goes_on(sizes, step);
      h = PX_TRY(run_inner(op, {"Where", 16}, {mask, h, course.h}));
      c = PX_TRY(run_inner(op, {"Where", 16}, {mask, c, course.c}));
      y = PX_TRY(run_inner(op, {"Where", 16}, {mask, y, Tensor::scalar<float>(0)}));
    }
    course.h = std::move(h);
    course.c = std::move(c);
    course.y.emplace_back(std::move(y));
  }
  return {};
}

Result<Tensor> joined(Context& op, const std::vector<Value>& parts, int64_t axis) {
  if (parts.size() == 1) return parts[0].tensor();
  return run_inner(op, {"Concat", 13, {int_attribute("axis", axis)}}, std::span<const Value>(parts));
}

Status dynamic_quantize_lstm(Context& op) {
  const LstmSizes sizes = PX_TRY(lstm_sizes(op));
  const Tensor x = sizes.steps == 0 ? op.input(0) : PX_TRY(requantized(op, op.input(0)));
  const Tensor zeros = PX_TRY(Tensor::zeros(DType::float32, Shape{1, sizes.batch, sizes.hidden}));
  std::vector<Value> y, last_h, last_c;
  for (int64_t direction = 0; direction < sizes.directions; ++direction) {
    const bool is_reversed = sizes.reverse_only || direction == 1;
    const Value h = PX_TRY(part_or_none(op, 5, direction)), c = PX_TRY(part_or_none(op, 6, direction));
    LstmCourse course{h.is_absent() ? zeros : h.tensor(), c.is_absent() ? zeros : c.tensor(), {}};
    const Tensor given = is_reversed ? PX_TRY(permuted(op, sizes, x)) : x;
    PX_TRY(run_steps(op, sizes, given, direction, course));
    last_h.emplace_back(std::move(course.h));
    last_c.emplace_back(std::move(course.c));
    if (!op.wants_output(0) || sizes.steps == 0) continue;
    Tensor own = PX_TRY(joined(op, course.y, 0));
    if (is_reversed) own = PX_TRY(permuted(op, sizes, own));
    y.emplace_back(own.reshaped(Shape{sizes.steps, 1, sizes.batch, sizes.hidden}));
  }
  if (op.wants_output(0)) {
    const Shape none{0, sizes.directions, sizes.batch, sizes.hidden};
    op.set_output(0, y.empty() ? PX_TRY(Tensor::zeros(DType::float32, none)) : PX_TRY(joined(op, y, 1)));
  }
  if (op.wants_output(1)) op.set_output(1, PX_TRY(joined(op, last_h, 0)));
  if (op.wants_output(2)) op.set_output(2, PX_TRY(joined(op, last_c, 0)));
  return {};
}

constexpr KernelRow<CompiledDevice> kContribDynamicLstmRows[] = {
    reads_on_host({4}, contributed_row("DynamicQuantizeLSTM", dtype_bit(DType::float32), dynamic_quantize_lstm)),
};

}  // namespace

template <>
Rows<CompiledDevice> contrib_dynamic_lstm_rows() {
  return kContribDynamicLstmRows;
}

}  // namespace parallax::runtime
