// Convolutions: Conv, ConvTranspose, ConvInteger, QLinearConv, as sums of products over the elements of a window.
#include <algorithm>

#include "reference/ops/map.h"
#include "reference/ops/ops.h"
#include "reference/ops/products.h"
#include "reference/ops/quantized.h"
#include "reference/ops/widest.h"
#include "reference/ops/window.h"

namespace parallax::reference {
namespace {

// X [batch, groups * in, ...] and W give Y [batch, groups * out, ...].
struct ConvPlan {
  Window window;
  bool transposed = false;
  int64_t batch = 0, groups = 1;
  int64_t in = 0, out = 0;  // channels of a group
  Shape result;

  // W is [groups * out, in, kernel...], transposed [groups * in, out, kernel...].
  int64_t weight_index(int64_t group, int64_t to, int64_t from, int64_t element) const {
    const int64_t channel = transposed ? (group * in + from) * out + to : (group * out + to) * in + from;
    return channel * window.kernel_count() + element;
  }
};

Result<ConvPlan> plan_conv(const OpContext& op, const Shape& x, const Shape& w, bool transposed) {
  ConvPlan plan;
  plan.transposed = transposed;
  plan.groups = op.int_attribute("group");
  if (x.rank() < 3 || w.rank() != x.rank()) {
    return execution_error(fmt::format("X {} and W {} must both be [., ., D1, ...]", x.to_string(), w.to_string()));
  }
  std::vector<int64_t> kernel(w.begin() + 2, w.end());
  const auto given = op.find_ints("kernel_shape");
  if (given.has_value() && !given->empty() && *given != kernel)
    return execution_error("kernel_shape differs from the shape of W");
  const int64_t channels = transposed ? w[0] : w[1] * plan.groups;
  if (plan.groups < 1 || channels != x[1] || w[0] % plan.groups != 0) {
    return execution_error(
        fmt::format("X {} and W {} do not fit in {} groups", x.to_string(), w.to_string(), plan.groups));
  }
  plan.window = transposed ? PX_TRY(plan_transposed_window(op, x, std::move(kernel)))
                           : PX_TRY(plan_window(op, x, std::move(kernel), false));
  plan.batch = x[0];
  plan.in = x[1] / plan.groups;
  plan.out = transposed ? w[1] : w[0] / plan.groups;
  std::vector<int64_t> dims{plan.batch, plan.groups * plan.out};
  dims.insert(dims.end(), plan.window.output.begin(), plan.window.output.end());
  plan.result = PX_TRY(Shape::create(dims));
  return plan;
}

// Which input element lies under each kernel element of windows `first` and following, -1 where padding does:
// sources[element * width + column]. The same for all channels.
std::vector<int64_t> window_sources(const ConvPlan& plan, int64_t first, int64_t width) {
  const int64_t count = plan.window.kernel_count();
  std::vector<int64_t> sources(static_cast<size_t>(count * width));
  std::vector<int64_t> positions(static_cast<size_t>(count));
  for (int64_t column = 0; column < width; ++column) {
    plan.transposed ? plan.window.transposed_sources(first + column, positions)
                    : plan.window.sources(first + column, positions);
    for (int64_t element = 0; element < count; ++element)
      sources[static_cast<size_t>(element * width + column)] = positions[static_cast<size_t>(element)];
  }
  return sources;
}

// Of all windows, when the list is short enough to keep for all groups; else empty.
std::vector<int64_t> kept_sources(const ConvPlan& plan) {
  constexpr int64_t kMostKept = int64_t{1} << 23;
  const int64_t places = plan.window.output_count();
  if (places > kMostKept / std::max<int64_t>(1, plan.window.kernel_count())) return {};
  return window_sources(plan, 0, places);
}

PX_WIDEST void gather(const double* from, const int64_t* positions, int64_t width, double* target) {
  for (int64_t column = 0; column < width; ++column)
    target[column] = positions[column] < 0 ? 0 : from[positions[column]];
}

PX_WIDEST void gather(const uint64_t* from, const int64_t* positions, int64_t width, uint64_t* target) {
  for (int64_t column = 0; column < width; ++column)
    target[column] = positions[column] < 0 ? 0 : from[positions[column]];
}

// The input elements under the windows [first, first + width), as the columns of a matrix with a row for each channel
// and kernel element. Padding is 0.
template <class Number>
void load_windows(const ConvPlan& plan, std::span<const int64_t> kept, std::span<const Number> x, int64_t first,
                  int64_t width, std::span<Number> panel) {
  const int64_t count = plan.window.kernel_count();
  const int64_t inner = plan.window.input_count();
  const std::vector<int64_t> made = kept.empty() ? window_sources(plan, first, width) : std::vector<int64_t>{};
  const int64_t stride = kept.empty() ? width : plan.window.output_count();
  const int64_t* sources = kept.empty() ? made.data() : kept.data() + first;
  for (int64_t channel = 0; channel < plan.in; ++channel) {
    const Number* from = x.data() + channel * inner;
    for (int64_t element = 0; element < count; ++element) {
      gather(from, sources + element * stride, width, panel.data() + (channel * count + element) * width);
    }
  }
}

template <class Number>
std::vector<Number> convolve(const ConvPlan& plan, std::span<const Number> x, std::span<const Number> w,
                             bool has_exact_products = false) {
  std::vector<Number> results(static_cast<size_t>(plan.result.element_count()));
  const int64_t inner = plan.window.input_count();
  const int64_t places = plan.window.output_count();
  const int64_t elements = plan.window.kernel_count();
  const std::vector<int64_t> kept = kept_sources(plan);
  const auto convolve_group = [&](int64_t index) {
    const int64_t group = index % plan.groups;
    const auto input = x.subspan(static_cast<size_t>(index * plan.in * inner));
    ProductSpec<Number> spec;
    spec.has_exact_products = has_exact_products;
    spec.rows = plan.out;
    spec.columns = places;
    spec.depth = plan.in * elements;
    spec.load_row = [&](int64_t row, std::span<Number> values) {
      for (size_t k = 0; k < values.size(); ++k) {
        const auto from = static_cast<int64_t>(k) / elements;
        values[k] = w[static_cast<size_t>(plan.weight_index(group, row, from, static_cast<int64_t>(k) % elements))];
      }
    };
    spec.load_columns = [&](int64_t first, int64_t width, std::span<Number> panel) {
      load_windows(plan, std::span(kept), input, first, width, panel);
    };
    spec.store = [&](int64_t row, int64_t first, std::span<const Number> values) {
      std::copy(values.begin(), values.end(), results.begin() + (index * plan.out + row) * places + first);
    };
    sum_products(spec);
  };
  // Many small groups take a thread each; few large ones share the threads inside.
  const int64_t count = plan.batch * plan.groups;
  const int64_t work = count < 4 * thread_count() ? 0 : plan.out * places * plan.in * elements / 4;
  if (work == 0) {
    for (int64_t index = 0; index < count; ++index) convolve_group(index);
  } else {
    parallel_for(count, work, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) convolve_group(index);
    });
  }
  return results;
}

// The channel that element `index` of the result belongs to.
int64_t channel_of(const ConvPlan& plan, size_t index) {
  return static_cast<int64_t>(index) / plan.window.output_count() % (plan.groups * plan.out);
}

Status convolve_floats(OpContext& op, bool transposed) {
  const ConvPlan plan = PX_TRY(plan_conv(op, op.input(0).shape(), op.input(1).shape(), transposed));
  const Numbers<double> x(op.input(0));
  const Numbers<double> w(op.input(1));
  std::vector<double> results =
      convolve<double>(plan, x.span(), w.span(), have_exact_products(op.input(0).dtype(), op.input(1).dtype()));
  if (op.has_input(2)) {
    const Numbers<double> bias(op.input(2));
    if (bias.size() != plan.groups * plan.out) return execution_error("B must hold one number for each output channel");
    for (size_t index = 0; index < results.size(); ++index) results[index] += bias[channel_of(plan, index)];
  }
  return op.set_output(0, op.input(0).dtype(), plan.result, std::span<const double>(results));
}

// Integers less a zero point that is one number, or one for each slice of axis 0.
Result<std::vector<uint64_t>> less_zero_point(const Tensor& tensor, const Tensor* zero_point) {
  const Numbers<uint64_t> numbers(tensor);
  std::vector<uint64_t> values(numbers.span().begin(), numbers.span().end());
  if (zero_point == nullptr || values.empty()) return values;
  const std::vector<int64_t> zeros = to_int64s(*zero_point);
  const auto slices = static_cast<int64_t>(zeros.size());
  if (slices != 1 && slices != tensor.shape()[0]) return execution_error("a zero point of the wrong length");
  const auto slice = values.size() / static_cast<size_t>(slices);
  for (size_t index = 0; index < values.size(); ++index) values[index] -= static_cast<uint64_t>(zeros[index / slice]);
  return values;
}

}  // namespace

Status op_conv(OpContext& op) { return convolve_floats(op, false); }
Status op_conv_transpose(OpContext& op) { return convolve_floats(op, true); }

// Padding counts as the zero point, so that it is 0 once that is taken away.
Status op_conv_integer(OpContext& op) {
  const ConvPlan plan = PX_TRY(plan_conv(op, op.input(0).shape(), op.input(1).shape(), false));
  const auto x = PX_TRY(less_zero_point(op.input(0), op.has_input(2) ? &op.input(2) : nullptr));
  const auto w = PX_TRY(less_zero_point(op.input(1), op.has_input(3) ? &op.input(3) : nullptr));
  return op.set_output(0, DType::int32, plan.result, std::span<const uint64_t>(convolve<uint64_t>(plan, x, w)));
}

// The bias is quantised with scale x_scale * w_scale and zero point 0.
Status op_qlinear_conv(OpContext& op) {
  const ConvPlan plan = PX_TRY(plan_conv(op, op.input(0).shape(), op.input(3).shape(), false));
  const auto x = PX_TRY(less_zero_point(op.input(0), &op.input(2)));
  const auto w = PX_TRY(less_zero_point(op.input(3), &op.input(5)));
  const double x_scale = PX_TRY(op.double_of_input(1));
  const double y_scale = PX_TRY(op.double_of_input(6));
  const int64_t y_zero = PX_TRY(op.int64_of_input(7));
  const Numbers<double> w_scale(op.input(4));
  const int64_t channels = plan.groups * plan.out;
  if (w_scale.size() != 1 && w_scale.size() != channels)
    return execution_error("w_scale must hold one number, or one for each channel");
  const std::vector<int64_t> bias =
      op.has_input(8) ? to_int64s(op.input(8)) : std::vector<int64_t>(static_cast<size_t>(channels), 0);
  if (static_cast<int64_t>(bias.size()) != channels) return execution_error("B must hold one number for each channel");
  const std::vector<uint64_t> sums = convolve<uint64_t>(plan, x, w);
  const DType dtype = op.input(7).dtype();
  std::vector<int64_t> results;
  for (size_t index = 0; index < sums.size(); ++index) {
    const int64_t channel = channel_of(plan, index);
    const auto sum =
        static_cast<double>(wrapping_add(static_cast<int64_t>(sums[index]), bias[static_cast<size_t>(channel)]));
    const double scale = x_scale * w_scale[w_scale.size() == 1 ? 0 : channel] / y_scale;
    results.push_back(quantize_number(sum * scale, y_zero, dtype));
  }
  return op.set_output(0, dtype, plan.result, std::span<const int64_t>(results));
}

}  // namespace parallax::reference
