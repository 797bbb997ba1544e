// SPDX-License-Identifier: Apache-2.0
// com.microsoft.DynamicQuantizeLSTM: an LSTM whose weights are quantized and whose X, as a whole, and H, before each
// step, are quantized as DynamicQuantizeLinear does it.
#include <algorithm>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "inspector/tensor/elements.h"
#include "reference/kernels/numbers.h"
#include "reference/ops/contrib/shared.h"
#include "reference/ops/families.h"
#include "reference/ops/inner_op.h"

namespace parallax::reference {
namespace {

// The values after a round trip through dynamic quantization.
Result<Tensor> requantized(const OpContext& op, const Tensor& values) {
  const std::vector<Value> parts = PX_TRY(run_inner(op, {"DynamicQuantizeLinear", 11}, {values}, 3));
  const double scale = element_as_double(parts[1].tensor(), 0), zero = element_as_double(parts[2].tensor(), 0);
  Tensor real = PX_TRY(Tensor::allocate(DType::float64, values.shape()));
  load_doubles(parts[0].tensor(), 0, real.mutable_as<double>());
  for (double& value : real.mutable_as<double>()) value = (value - zero) * scale;
  return real;
}

struct Sizes {
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, directions = 1;
  bool reverse_only = false;
  std::vector<int64_t> lengths = {};  // of each sample

  bool is_reversed(int64_t direction) const { return reverse_only || direction == 1; }
  // The index in X and Y of a sample's step; -1 after its end.
  int64_t time_of(int64_t direction, int64_t step, int64_t sample) const {
    const int64_t length = lengths[static_cast<size_t>(sample)];
    if (step >= length) return -1;
    return is_reversed(direction) ? length - 1 - step : step;
  }
};

Result<Sizes> read_sizes(const OpContext& op) {
  const Shape& x = op.input(0).shape();
  const Shape& r = op.input(2).shape();
  if (x.rank() != 3 || r.rank() != 3) return wrong_input(op, x.rank() != 3 ? 0 : 2, "have rank 3");
  Sizes sizes{.steps = x[0], .batch = x[1], .inputs = x[2], .hidden = r[1]};
  const std::string direction = op.string_attribute("direction");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return wrong_attribute("direction", direction, "be forward, reverse or bidirectional");
  sizes.directions = direction == "bidirectional" ? 2 : 1;
  sizes.reverse_only = direction == "reverse";
  const int64_t width = 4 * sizes.hidden;
  PX_TRY(expect_shape(op, 1, Shape{sizes.directions, sizes.inputs, width}));
  PX_TRY(expect_shape(op, 2, Shape{sizes.directions, sizes.hidden, width}));
  if (op.has_input(3)) PX_TRY(expect_shape(op, 3, Shape{sizes.directions, 2 * width}));
  for (const size_t state : {size_t{5}, size_t{6}}) {
    if (op.has_input(state)) PX_TRY(expect_shape(op, state, Shape{sizes.directions, sizes.batch, sizes.hidden}));
  }
  if (op.has_input(7)) PX_TRY(expect_shape(op, 7, Shape{sizes.directions, 3 * sizes.hidden}));
  sizes.lengths.assign(static_cast<size_t>(sizes.batch), sizes.steps);
  if (op.has_input(4)) sizes.lengths = PX_TRY(op.int64s_of_input(4));
  if (static_cast<int64_t>(sizes.lengths.size()) != sizes.batch)
    return wrong_input(op, 4, "have {} elements, one length for each batch entry", sizes.batch);
  for (const int64_t length : sizes.lengths) {
    if (length < 0 || length > sizes.steps)
      return wrong_value("a length in sequence_lens", length, "be in [0, {}], the number of steps", sizes.steps);
  }
  return sizes;
}

// A direction's part of input `index`, [1, ...]; absent where the input is.
Result<Value> part_of(const OpContext& op, size_t index, int64_t direction) {
  if (!op.has_input(index)) return Value();
  const Tensor& whole = op.input(index);
  std::vector<int64_t> dims(whole.shape().begin(), whole.shape().end());
  dims[0] = 1;
  const Shape shape = PX_TRY(Shape::create(dims));
  Tensor part = PX_TRY(Tensor::allocate(DType::float64, shape));
  load_doubles(whole, direction * shape.element_count(), part.mutable_as<double>());
  return Value(std::move(part));
}

// Quantized values [directions, rows, 4 * hidden] of one direction as real numbers [1, 4 * hidden, rows]. Scales and
// zero points are one number a direction, or one for each of its columns.
Result<Tensor> weights_of(const OpContext& op, size_t weight, size_t scale, size_t zero_point, int64_t direction) {
  const Tensor& all = op.input(weight);
  const int64_t rows = all.shape()[1], columns = all.shape()[2];
  std::vector<double> parameters[2];
  for (const size_t which : {scale, zero_point}) {
    const int64_t count = op.input(which).element_count() / all.shape()[0];
    if (op.input(which).element_count() != count * all.shape()[0] || (count != 1 && count != columns))
      return wrong_input(op, which,
                         "have one element for each direction, or for each column of one: {} directions of {} columns",
                         all.shape()[0], columns);
    std::vector<double>& numbers = parameters[which == scale ? 0 : 1];
    numbers.resize(static_cast<size_t>(count));
    load_doubles(op.input(which), direction * count, numbers);
  }
  std::vector<double> numbers(static_cast<size_t>(rows * columns));
  load_doubles(all, direction * rows * columns, numbers);
  Tensor weights = PX_TRY(Tensor::allocate(DType::float64, Shape{1, columns, rows}));
  const auto of_column = [](const std::vector<double>& list, int64_t column) {
    return list[list.size() == 1 ? 0 : static_cast<size_t>(column)];
  };
  const auto target = weights.mutable_as<double>();
  for (int64_t column = 0; column < columns; ++column) {
    const double factor = of_column(parameters[0], column), zero = of_column(parameters[1], column);
    for (int64_t row = 0; row < rows; ++row)
      target[static_cast<size_t>(column * rows + row)] =
          (numbers[static_cast<size_t>(row * columns + column)] - zero) * factor;
  }
  return weights;
}

// The attributes of the LSTM of one step of a direction: three activations are its own.
Result<std::vector<Attribute>> attributes_of(const OpContext& op, const Sizes& sizes, int64_t direction) {
  std::vector<Attribute> attributes{int_attribute("hidden_size", sizes.hidden),
                                    int_attribute("input_forget", op.find_int("input_forget").value_or(0))};
  if (const auto clip = op.find_float("clip")) attributes.push_back(float_attribute("clip", *clip));
  const auto names = op.find_strings("activations").value_or(std::vector<std::string>{});
  const auto own = static_cast<size_t>(3 * direction);
  if (names.size() >= own + 3) {
    const auto first = names.begin() + static_cast<ptrdiff_t>(own);
    attributes.push_back(strings_attribute("activations", {first, first + 3}));
  } else if (!names.empty())
    return wrong_length("attribute 'activations'", names.size(), "have {} or more, three for each direction", own + 3);
  for (const char* parameter : {"activation_alpha", "activation_beta"}) {
    const auto values = op.find_floats(parameter).value_or(std::vector<double>{});
    if (values.empty()) continue;
    if (sizes.directions == 2)
      return unsupported(
          fmt::format("attribute '{}' is given for two directions; only one direction has a function here", parameter));
    attributes.push_back(floats_attribute(parameter, {values.begin(), values.end()}));
  }
  return attributes;
}

// The states of one direction and its part of Y.
struct Course {
  std::vector<double> h, c;  // [batch, hidden]
  std::vector<double>& y;    // [steps, directions, batch, hidden]
};

Status run_direction(OpContext& op, const Sizes& sizes, const Tensor& x, int64_t direction, Course& course) {
  const Tensor w = PX_TRY(weights_of(op, 1, 8, 9, direction)), r = PX_TRY(weights_of(op, 2, 10, 11, direction));
  const Value b = PX_TRY(part_of(op, 3, direction)), p = PX_TRY(part_of(op, 7, direction));
  const InnerOp lstm{"LSTM", 14, PX_TRY(attributes_of(op, sizes, direction))};
  const Shape state{1, sizes.batch, sizes.hidden};
  const auto hidden = static_cast<size_t>(sizes.hidden), inputs = static_cast<size_t>(sizes.inputs);
  const auto given = x.as<double>();
  for (int64_t step = 0; step < sizes.steps; ++step) {
    Tensor now = PX_TRY(Tensor::zeros(DType::float64, Shape{1, sizes.batch, sizes.inputs}));
    for (int64_t sample = 0; sample < sizes.batch; ++sample) {
      const int64_t time = sizes.time_of(direction, step, sample);
      if (time < 0) continue;
      const auto from = given.subspan(static_cast<size_t>(time * sizes.batch + sample) * inputs, inputs);
      std::ranges::copy(from, now.mutable_as<double>().subspan(static_cast<size_t>(sample) * inputs, inputs).begin());
    }
    const Tensor h = PX_TRY(requantized(op, Tensor::from<double>(state, course.h)));
    const std::vector<Value> next =
        PX_TRY(run_inner(op, lstm, {now, w, r, b, Value(), h, Tensor::from<double>(state, course.c), p}, 3));
    for (int64_t sample = 0; sample < sizes.batch; ++sample) {
      const int64_t time = sizes.time_of(direction, step, sample);
      if (time < 0) continue;
      const auto at = static_cast<ptrdiff_t>(static_cast<size_t>(sample) * hidden);
      const auto location = ((time * sizes.directions + direction) * sizes.batch + sample) * sizes.hidden;
      const auto new_h = next[1].tensor().as<double>().begin() + at, new_c = next[2].tensor().as<double>().begin() + at;
      std::copy_n(new_h, hidden, course.h.begin() + at);
      std::copy_n(new_h, hidden, course.y.begin() + location);
      std::copy_n(new_c, hidden, course.c.begin() + at);
    }
  }
  return {};
}

Status op_contrib_dynamic_quantize_lstm(OpContext& op) {
  const Sizes sizes = PX_TRY(read_sizes(op));
  const Tensor x = sizes.steps == 0 ? PX_TRY(Tensor::zeros(DType::float64, op.input(0).shape()))
                                    : PX_TRY(requantized(op, op.input(0)));
  const DType dtype = op.input(0).dtype();
  const Shape of_y{sizes.steps, sizes.directions, sizes.batch, sizes.hidden};
  const Shape of_state{sizes.directions, sizes.batch, sizes.hidden};
  std::vector<double> y(static_cast<size_t>(of_y.element_count())), last[2];
  for (int64_t direction = 0; direction < sizes.directions; ++direction) {
    const auto count = static_cast<size_t>(sizes.batch * sizes.hidden);
    Course course{std::vector<double>(count), std::vector<double>(count), y};
    for (const size_t state : {size_t{5}, size_t{6}}) {
      const Value initial = PX_TRY(part_of(op, state, direction));
      if (initial.is_absent()) continue;
      const Numbers<double> numbers(initial.tensor());
      if (numbers.span().size() != count) return wrong_input(op, state, "be {}", of_state.to_string());
      std::ranges::copy(numbers.span(), (state == 5 ? course.h : course.c).begin());
    }
    PX_TRY(run_direction(op, sizes, x, direction, course));
    last[0].insert(last[0].end(), course.h.begin(), course.h.end());
    last[1].insert(last[1].end(), course.c.begin(), course.c.end());
  }
  if (op.wants_output(0)) PX_TRY(op.set_output(0, dtype, of_y, y));
  if (op.wants_output(1)) PX_TRY(op.set_output(1, dtype, of_state, last[0]));
  return op.wants_output(2) ? op.set_output(2, dtype, of_state, last[1]) : Status();
}

constexpr OpRow kContribDynamicLstmRows[] = {
    {"DynamicQuantizeLSTM", kMicrosoft, 1, 1, op_contrib_dynamic_quantize_lstm},
};

}  // namespace

OpRows contrib_dynamic_lstm_rows() { return kContribDynamicLstmRows; }

}  // namespace parallax::reference
