// SPDX-License-Identifier: Apache-2.0
// Convolutions: Conv, ConvTranspose, ConvInteger, QLinearConv, as sums of products over the elements of a window.
#include <algorithm>
#include <array>
#include <functional>

#include "inspector/model/rule_errors.h"
#include "reference/kernels/products_kernel.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"
#include "reference/ops/matrix.h"
#include "reference/ops/nn/conv_input.h"
#include "reference/ops/quantized.h"

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

  // True where each window of a channel is one element, in their order.
  bool is_pointwise() const {
    const auto is = [](int64_t wanted) { return [=](int64_t value) { return value == wanted; }; };
    return !transposed && window.kernel_count() == 1 && window.input == window.output &&
           std::ranges::all_of(window.strides, is(1)) && std::ranges::all_of(window.pads_begin, is(0));
  }
};

Result<ConvPlan> plan_conv(const OpContext& op, const Shape& x, const Shape& w, bool transposed) {
  ConvPlan plan;
  plan.transposed = transposed;
  plan.groups = op.int_attribute("group");
  if (x.rank() < 3 || w.rank() != x.rank())
    return wrong_shape("X", x, "have rank 3 or more and the rank of W, {}", w.to_string());
  constexpr int64_t kLargest = int64_t{1} << 31;  // keeps the products below in range
  if (plan.groups < 1 || plan.groups > kLargest)
    return wrong_attribute("group", plan.groups, "be in [1, {}]", kLargest);
  if (w[0] > kLargest || w[1] > kLargest) return wrong_shape("W", w, "have dimensions of at most {}", kLargest);
  std::vector<int64_t> kernel(w.begin() + 2, w.end());
  const auto given = op.find_ints("kernel_shape");
  if (given.has_value() && !given->empty() && *given != kernel)
    return wrong_attribute("kernel_shape", *given, "be the spatial shape of W, {}", dims_text(kernel));
  const int64_t channels = transposed ? w[0] : w[1] * plan.groups;
  if (channels != x[1] || w[0] % plan.groups != 0)
    return wrong_shape("X", x, "fit W {} in {} groups: {} channels, and a first axis of W that splits into the groups",
                       w.to_string(), plan.groups, channels);
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

// Which input element is under each kernel element of windows `first` and following, -1 where padding does:
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

// The source indices of all windows, when the list is short enough to keep for all groups; else empty.
std::vector<int64_t> kept_sources(const ConvPlan& plan) {
  constexpr int64_t kMostKept = int64_t{1} << 23;
  const int64_t locations = plan.window.output_count();
  if (locations > kMostKept / std::max<int64_t>(1, plan.window.kernel_count())) return {};
  return window_sources(plan, 0, locations);
}

// The input elements under the windows [first, first + width), as the columns of a matrix with a row for each channel
// and kernel element. Padding is 0.
template <class Number>
void gather_windows(const ConvPlan& plan, std::span<const int64_t> kept, std::span<const Number> x, int64_t first,
                    int64_t width, std::span<Number> panel) {
  const int64_t count = plan.window.kernel_count();
  const int64_t inner = plan.window.input_count();
  const std::vector<int64_t> made = kept.empty() ? window_sources(plan, first, width) : std::vector<int64_t>{};
  const int64_t stride = kept.empty() ? width : plan.window.output_count();
  const int64_t* sources = kept.empty() ? made.data() : kept.data() + first;
  Number* target = panel.data();
  for (int64_t channel = 0; channel < plan.in; ++channel) {
    const Number* from = x.data() + channel * inner;
    for (int64_t element = 0; element < count; ++element, target += width) {
      const int64_t* positions = sources + element * stride;
      for (int64_t column = 0; column < width; ++column)
        target[column] = positions[column] < 0 ? Number{0} : from[positions[column]];
    }
  }
}

// One convolution: X and W in tensors, and a function that takes stretches of an output channel's sums.
template <class Number>
struct Convolution {
  const ConvPlan& plan;
  TensorView x, w;
  bool has_exact_products = false;
  // Takes blocks of sums, from several threads. Their rows are channels, counted through all samples.
  std::function<void(const SumsBlock<Number>& sums)> store = {};

  void load_weights(int64_t group, int64_t row, std::span<Number> values) const {
    const int64_t elements = plan.window.kernel_count();
    const int64_t begin = plan.weight_index(group, row, 0, 0);
    if (!plan.transposed) return load<Number>(w, begin, values);
    load_lines<Number>(w, {.begin = begin, .stride = plan.out * elements, .lines = plan.in, .width = elements}, values);
  }

  // The sums of one sample and group as products of matrices, given how the windows are laid in a panel.
  template <class LoadColumns>
  void multiply(int64_t index, const LoadColumns& load_columns) const {
    ProductSpec<Number> spec;
    spec.has_exact_products = has_exact_products;
    spec.rows = plan.out;
    spec.columns = plan.window.output_count();
    spec.depth = plan.in * plan.window.kernel_count();
    spec.load_row = [&](int64_t row, std::span<Number> values) { load_weights(index % plan.groups, row, values); };
    spec.load_columns = load_columns;
    spec.store = [&](SumsBlock<Number> sums) {
      sums.row += index * plan.out;
      store(sums);
    };
    sum_products(spec);
  }

  // Adds the products without a panel, one output channel after the other: for groups that have few.
  void add(int64_t index, const PaddedLayout& layout, std::span<const Number> planes,
           std::span<const std::vector<WindowRun>> runs) const {
    const WindowKernel<Number> sum_windows = window_kernel();
    std::vector<Number> weights(layout.offsets().size());
    std::array<Number, kStretch + kPanelWidth> sums;
    for (int64_t row = 0; row < plan.out; ++row) {
      load_weights(index % plan.groups, row, weights);
      for (size_t stretch = 0; stretch < runs.size(); ++stretch) {
        int64_t width = 0;
        for (const WindowRun& run : runs[stretch]) {
          sum_windows(weights.data(), planes.data() + run.from, layout.offsets().data(), std::ssize(weights), run.count,
                      sums.data() + width);
          width += run.count;
        }
        store({.row = index * plan.out + row,
               .rows = 1,
               .column = static_cast<int64_t>(stretch) * kStretch,
               .columns = width,
               .stride = width,
               .numbers = sums.data()});
      }
    }
  }

  // Sums of one sample and group, with the windows gathered element by element: for a transposed convolution, and where
  // padding would take too much room.
  void run_gathered(int64_t index, std::span<const int64_t> kept) const {
    const int64_t inner = plan.in * plan.window.input_count();
    std::vector<Number> numbers(static_cast<size_t>(inner));
    load<Number>(x, index * inner, std::span(numbers));
    multiply(index, [&](int64_t first, int64_t width, std::span<Number> panel) {
      gather_windows<Number>(plan, kept, numbers, first, width, panel);
    });
  }

  void run() const {
    constexpr int64_t kFewRows = 4;
    const bool is_narrow = plan.out < kFewRows;
    if (plan.is_pointwise() && !is_narrow) return run_pointwise();
    const PaddedLayout layout(plan.window, plan.in);
    const int64_t locations = plan.window.output_count();
    if (plan.transposed || !layout.is_compact()) {
      const std::vector<int64_t> kept = kept_sources(plan);
      return for_groups([&](int64_t begin, int64_t end) {
        for (int64_t index = begin; index < end; ++index) run_gathered(index, kept);
      });
    }
    std::vector<std::vector<WindowRun>> runs;
    for (int64_t first = 0; is_narrow && first < locations; first += kStretch)
      runs.push_back(layout.runs_of(first, std::min(kStretch, locations - first)));
    for_groups([&](int64_t begin, int64_t end) {
      std::vector<Number> planes;
      for (int64_t index = begin; index < end; ++index) {
        layout.load_planes(x, index * plan.in * plan.window.input_count(), planes);
        if (is_narrow) {
          add(index, layout, planes, runs);
          continue;
        }
        multiply(index, [&](int64_t first, int64_t width, std::span<Number> panel) {
          copy_windows(planes.data(), layout.offsets(), layout.runs_of(first, width), panel.data());
        });
      }
    });
  }

 private:
  static constexpr int64_t kStretch = 512;

  // With windows of one element the input itself is the matrix of the windows.
  void run_pointwise() const {
    const int64_t locations = plan.window.output_count();
    for_groups([&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const StoredMatrix<Number> columns{x, index * plan.in * locations, plan.in, locations};
        multiply(index, [&](int64_t first, int64_t width, std::span<Number> panel) {
          columns.load_columns(first, width, panel, width);
        });
      }
    });
  }

  WindowKernel<Number> window_kernel() const {
    if constexpr (std::is_same_v<Number, uint64_t>)
      return integer_windows_kernel();
    else
      return has_exact_products ? exact_windows_kernel() : rounded_windows_kernel();
  }

  // Many small groups take a thread each; few large ones share the threads inside.
  void for_groups(const std::function<void(int64_t begin, int64_t end)>& body) const {
    const int64_t count = plan.batch * plan.groups;
    if (count < 4 * thread_count()) return body(0, count);
    parallel_for(count, plan.out * plan.window.output_count() * plan.in * plan.window.kernel_count() / 8, body);
  }
};

Status convolve_floats(OpContext& op, bool transposed) {
  const ConvPlan plan = PX_TRY(plan_conv(op, op.input(0).shape(), op.input(1).shape(), transposed));
  const int64_t channels = plan.groups * plan.out;
  std::vector<double> bias(static_cast<size_t>(channels), 0.0);
  if (op.has_input(2)) {
    if (op.input(2).element_count() != channels)
      return wrong_input(op, 2, "have {} elements, one for each output channel", channels);
    load<double>(op.input(2), 0, bias);
  }
  Tensor output = PX_TRY(op.allocate(op.input(0).dtype(), plan.result));
  Convolution<double> convolution{plan, op.input(0), op.input(1)};
  convolution.has_exact_products = have_exact_products(op.input(0).dtype(), op.input(1).dtype());
  convolution.store = [&, locations = plan.window.output_count()](const SumsBlock<double>& sums) {
    const Lines lines{.begin = sums.row * locations + sums.column,
                      .stride = locations,
                      .lines = sums.rows,
                      .width = sums.columns,
                      .spacing = sums.stride};
    store_sums(output, lines, sums.numbers, bias.data() + sums.row % channels);
  };
  convolution.run();
  return op.set_output(0, std::move(output));
}

// The sums of integers modulo 2^64, in the order of the result.
std::vector<uint64_t> convolve_integers(const ConvPlan& plan, const Shape& x_shape, const std::vector<uint64_t>& x,
                                        const Shape& w_shape, const std::vector<uint64_t>& w) {
  const auto view = [](const Shape& shape, const std::vector<uint64_t>& numbers) {
    return TensorView{DType::uint64, shape, reinterpret_cast<const std::byte*>(numbers.data()), Device{}};
  };
  std::vector<uint64_t> sums(static_cast<size_t>(plan.result.element_count()));
  Convolution<uint64_t> convolution{plan, view(x_shape, x), view(w_shape, w)};
  convolution.store = [&](const SumsBlock<uint64_t>& block) {
    for (int64_t row = 0; row < block.rows; ++row) {
      const int64_t target = (block.row + row) * plan.window.output_count() + block.column;
      std::ranges::copy(block.line(row), sums.begin() + target);
    }
  };
  convolution.run();
  return sums;
}

// Integers less a zero point that is one number, or one for each slice of axis 0.
Result<std::vector<uint64_t>> less_zero_point(const Tensor& tensor, const Tensor* zero_point) {
  const Numbers<uint64_t> numbers(tensor);
  std::vector<uint64_t> values(numbers.span().begin(), numbers.span().end());
  if (zero_point == nullptr || values.empty()) return values;
  const std::vector<int64_t> zeros = to_int64s(*zero_point);
  const auto slices = static_cast<int64_t>(zeros.size());
  if (slices != 1 && slices != tensor.shape()[0])
    return wrong_value("the number of zero points", slices, "be 1 or {}, one for each slice of {}", tensor.shape()[0],
                       tensor.shape().to_string());
  const auto slice = values.size() / static_cast<size_t>(slices);
  for (size_t index = 0; index < values.size(); ++index) values[index] -= static_cast<uint64_t>(zeros[index / slice]);
  return values;
}

Status op_conv(OpContext& op) { return convolve_floats(op, false); }
Status op_conv_transpose(OpContext& op) { return convolve_floats(op, true); }

// Padding counts as the zero point, so that it is 0 once that is taken away.
Status op_conv_integer(OpContext& op) {
  const ConvPlan plan = PX_TRY(plan_conv(op, op.input(0).shape(), op.input(1).shape(), false));
  const auto x = PX_TRY(less_zero_point(op.input(0), op.has_input(2) ? &op.input(2) : nullptr));
  const auto w = PX_TRY(less_zero_point(op.input(1), op.has_input(3) ? &op.input(3) : nullptr));
  const auto sums = convolve_integers(plan, op.input(0).shape(), x, op.input(1).shape(), w);
  return op.set_output(0, DType::int32, plan.result, std::span<const uint64_t>(sums));
}

// The bias is quantized with scale x_scale * w_scale and zero point 0.
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
    return wrong_input(op, 4, "have 1 or {} elements, one for each output channel", channels);
  const std::vector<int64_t> bias =
      op.has_input(8) ? to_int64s(op.input(8)) : std::vector<int64_t>(static_cast<size_t>(channels), 0);
  if (static_cast<int64_t>(bias.size()) != channels)
    return wrong_input(op, 8, "have {} elements, one for each output channel", channels);
  const auto sums = convolve_integers(plan, op.input(0).shape(), x, op.input(3).shape(), w);
  const DType dtype = op.input(7).dtype();
  std::vector<int64_t> results;
  for (size_t index = 0; index < sums.size(); ++index) {
    const int64_t channel = static_cast<int64_t>(index) / plan.window.output_count() % channels;
    const auto sum =
        static_cast<double>(wrapping_add(static_cast<int64_t>(sums[index]), bias[static_cast<size_t>(channel)]));
    const double scale = x_scale * w_scale[w_scale.size() == 1 ? 0 : channel] / y_scale;
    results.push_back(quantize_number(sum * scale, y_zero, dtype));
  }
  return op.set_output(0, dtype, plan.result, std::span<const int64_t>(results));
}

constexpr OpRow kConvRows[] = {
    {"Conv", kOnnx, 1, 22, op_conv},
    {"ConvInteger", kOnnx, 10, 10, op_conv_integer},
    {"ConvTranspose", kOnnx, 1, 22, op_conv_transpose},
    {"QLinearConv", kOnnx, 10, 10, op_qlinear_conv},
};

}  // namespace

OpRows conv_rows() { return kConvRows; }

}  // namespace parallax::reference
