// SPDX-License-Identifier: Apache-2.0
// Pools: MaxPool, AveragePool, LpPool, their global forms, MaxRoiPool, MaxUnpool.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"
#include "reference/ops/nn/conv_input.h"
#include "reference/ops/quantized.h"
#include "reference/ops/window.h"

namespace parallax::reference {
namespace {

Result<Window> pool_window(const OpContext& op) {
  const bool ceil_mode = op.find_int("ceil_mode").value_or(0) != 0;
  return plan_window(op, op.input(0).shape(), op.find_ints("kernel_shape").value_or(std::vector<int64_t>{}), ceil_mode);
}

Result<Shape> pooled_shape(const OpContext& op, const Window& window) {
  std::vector<int64_t> dims{op.input(0).shape()[0], op.input(0).shape()[1]};
  dims.insert(dims.end(), window.output.begin(), window.output.end());
  return Shape::create(dims);
}

// Calls each(result index, plane, output position, positions) for every window of every plane (sample and channel),
// with the positions of its elements that are in the input, not in the padding. A plane is walked over many windows at
// a time.
template <class Each>
void for_windows(const Window& window, int64_t planes, const Each& each) {
  if (planes == 0) return;
  constexpr int64_t kPositions = 64;
  const int64_t locations = window.output_count();
  parallel_for((locations + kPositions - 1) / kPositions, kPositions * planes * window.kernel_count() * 2,
               [&](int64_t first, int64_t last) {
                 std::vector<int64_t> positions(static_cast<size_t>(window.kernel_count()));
                 std::vector<std::vector<int64_t>> inside(static_cast<size_t>(kPositions));
                 for (int64_t begin = first * kPositions; begin < std::min(locations, last * kPositions);
                      begin += kPositions) {
                   const int64_t end = std::min(locations, begin + kPositions);
                   for (int64_t location = begin; location < end; ++location) {
                     window.sources(location, positions);
                     auto& list = inside[static_cast<size_t>(location - begin)];
                     list.clear();
                     std::copy_if(positions.begin(), positions.end(), std::back_inserter(list),
                                  [](int64_t position) { return position >= 0; });
                   }
                   for (int64_t plane = 0; plane < planes; ++plane) {
                     for (int64_t location = begin; location < end; ++location)
                       each(static_cast<size_t>(plane * locations + location), plane, location,
                            inside[static_cast<size_t>(location - begin)]);
                   }
                 }
               });
}

int64_t planes_of(const OpContext& op) { return op.input(0).shape()[0] * op.input(0).shape()[1]; }

// The position within a plane in column-major order (storage_order = 1).
int64_t column_major(const Window& window, int64_t position) {
  int64_t result = 0;
  int64_t stride = window.input_count();
  for (size_t axis = window.rank(); axis-- > 0;) {
    stride /= window.input[axis];
    result += position % window.input[axis] * stride;
    position /= window.input[axis];
  }
  return result;
}

// Every plane as a whole is one window.
template <class Finish>
Status pool_planes(OpContext& op, const Finish& finish) {
  const Tensor& x = op.input(0);
  const Shape& shape = x.shape();
  if (shape.rank() < 2) return wrong_input(op, 0, "have rank 2 or more: [N,C,...]");
  std::vector<int64_t> dims(shape.rank(), 1);
  dims[0] = shape[0];
  dims[1] = shape[1];
  const Shape pooled = PX_TRY(Shape::create(dims));
  const int64_t inner = count_of(shape, 2, shape.rank());
  std::vector<double> results(static_cast<size_t>(pooled.element_count()));
  parallel_for(pooled.element_count(), 2 * inner, [&](int64_t begin, int64_t end) {
    std::vector<double> numbers(static_cast<size_t>(inner));
    for (int64_t plane = begin; plane < end; ++plane) {
      load<double>(x, plane * inner, numbers);
      results[static_cast<size_t>(plane)] = finish(std::span<const double>(numbers));
    }
  });
  return op.set_output(0, x.dtype(), pooled, std::span<const double>(results));
}

// MaxPool of floats where the indices are not asked for: a stretch of windows at a time.
Status max_values(OpContext& op, const PaddedLayout& layout, const Shape& shape) {
  constexpr double kLeast = -std::numeric_limits<double>::infinity();
  constexpr int64_t kStretch = 512;
  const Tensor& x = op.input(0);
  const int64_t inner = count_of(x.shape(), 2, x.shape().rank());
  const int64_t locations = count_of(shape, 2, shape.rank());
  Tensor output = PX_TRY(op.allocate(x.dtype(), shape));
  const auto work = locations * static_cast<int64_t>(layout.offsets().size()) + inner;
  parallel_for(planes_of(op), work, [&](int64_t begin, int64_t end) {
    std::array<double, kStretch> best;
    std::vector<double> numbers;
    for (int64_t plane = begin; plane < end; ++plane) {
      layout.load_planes<double>(x, plane * inner, numbers, kLeast);
      for (int64_t first = 0; first < locations; first += kStretch) {
        const int64_t width = std::min(kStretch, locations - first);
        best.fill(kLeast);
        raise_to_windows(numbers.data(), layout.offsets(), layout.runs_of(first, width), best.data());
        store<double>(output, plane * locations + first,
                      std::span<const double>(best).first(static_cast<size_t>(width)));
      }
    }
  });
  return op.set_output(0, std::move(output));
}

double power_mean_root(double sum, double p) { return std::pow(sum, 1.0 / p); }

// The attribute p: a whole number since version 2, a float in version 1.
double power_of(const OpContext& op) {
  return op.since_version() == 1 ? op.float_attribute("p") : static_cast<double>(op.int_attribute("p"));
}

// Padding never wins. Indices count in the whole of X, row-major, or column-major within a plane with storage_order
// = 1.
Status op_max_pool(OpContext& op) {
  const Tensor& x = op.input(0);
  const Window window = PX_TRY(pool_window(op));
  const Shape shape = PX_TRY(pooled_shape(op, window));
  const PaddedLayout layout(window, 1);
  if (!op.wants_output(1) && is_floating(x.dtype()) && layout.is_compact()) return max_values(op, layout, shape);
  const bool by_column = op.find_int("storage_order").value_or(0) != 0;
  const int64_t inner = window.input_count();
  Tensor locations = PX_TRY(op.allocate(DType::int64, shape));
  const std::span<int64_t> indices = locations.mutable_as<int64_t>();
  PX_TRY(with_number_type(x.dtype(), [&](auto number) -> Status {
    using T = decltype(number);
    const Numbers<T> numbers(x);
    std::vector<T> results(indices.size());
    for_windows(window, planes_of(op),
                [&](size_t result, int64_t plane, int64_t, const std::vector<int64_t>& positions) {
                  // A window that is in the padding alone has no element: it gives the least value.
                  if (positions.empty()) {
                    if constexpr (std::is_same_v<T, double>)
                      results[result] = -std::numeric_limits<T>::infinity();
                    else
                      results[result] = static_cast<T>(integer_limits(x.dtype()).first);
                    return;
                  }
                  const T* elements = numbers.data() + plane * inner;
                  int64_t best = positions[0];
                  T highest = elements[best];
                  for (int64_t position : positions) {
                    const T value = elements[position];
                    if (value > highest || (is_nan(value) && !is_nan(highest))) {
                      highest = value;
                      best = position;
                    }
                  }
                  results[result] = highest;
                  indices[result] = plane * inner + (by_column ? column_major(window, best) : best);
                });
    return op.set_output(0, x.dtype(), shape, std::span<const T>(results));
  }));
  return op.set_output(1, std::move(locations));
}

// With count_include_pad the padding counts as zeros, but not what ceil_mode adds after it (stated since version 19).
Status op_average_pool(OpContext& op) {
  const Window window = PX_TRY(pool_window(op));
  const Shape shape = PX_TRY(pooled_shape(op, window));
  const bool count_padding = op.find_int("count_include_pad").value_or(0) != 0;
  const int64_t inner = window.input_count();
  const Numbers<double> numbers(op.input(0));
  Tensor output = PX_TRY(op.allocate(op.input(0).dtype(), shape));
  std::vector<double> results(static_cast<size_t>(shape.element_count()));
  const std::vector<int64_t> none(window.rank(), 0);
  for_windows(window, planes_of(op),
              [&](size_t result, int64_t plane, int64_t location, const std::vector<int64_t>& positions) {
                double sum = 0;
                for (int64_t position : positions) sum += numbers[plane * inner + position];
                auto inside = static_cast<int64_t>(positions.size());
                if (count_padding) {
                  inside = 1;
                  const Walk<1> at(window.output, {none}, location);
                  for (size_t axis = 0; axis < window.rank(); ++axis) {
                    const int64_t room = window.input[axis] + window.pads_begin[axis] + window.pads_end[axis] -
                                         at.index(axis) * window.strides[axis];
                    inside *=
                        std::min(window.kernel[axis], (room + window.dilations[axis] - 1) / window.dilations[axis]);
                  }
                }
                results[result] = sum / static_cast<double>(inside);
              });
  store<double>(output, 0, std::span<const double>(results));
  return op.set_output(0, std::move(output));
}

Status op_lp_pool(OpContext& op) {
  const Window window = PX_TRY(pool_window(op));
  const Shape shape = PX_TRY(pooled_shape(op, window));
  const auto p = power_of(op);
  const int64_t inner = window.input_count();
  const Numbers<double> numbers(op.input(0));
  Tensor output = PX_TRY(op.allocate(op.input(0).dtype(), shape));
  std::vector<double> results(static_cast<size_t>(shape.element_count()));
  for_windows(window, planes_of(op), [&](size_t result, int64_t plane, int64_t, const std::vector<int64_t>& positions) {
    double sum = 0;
    for (int64_t position : positions) {
      sum += std::pow(std::fabs(numbers[plane * inner + position]), p);
    }
    results[result] = power_mean_root(sum, p);
  });
  store<double>(output, 0, std::span<const double>(results));
  return op.set_output(0, std::move(output));
}

Status op_global_max_pool(OpContext& op) {
  return pool_planes(op, [](std::span<const double> plane) {
    double best = -std::numeric_limits<double>::infinity();
    for (double value : plane) best = is_nan(best) || best >= value ? best : value;
    return best;
  });
}

Status op_global_average_pool(OpContext& op) {
  return pool_planes(op, [](std::span<const double> plane) {
    double sum = 0;
    for (double value : plane) sum += value;
    return sum / static_cast<double>(plane.size());
  });
}

Status op_global_lp_pool(OpContext& op) {
  const auto p = power_of(op);
  return pool_planes(op, [=](std::span<const double> plane) {
    double sum = 0;
    for (double value : plane) sum += std::pow(std::fabs(value), p);
    return power_mean_root(sum, p);
  });
}

// Every element of X goes to its index in the unpooled tensor, zeros elsewhere. Indices count in the shape that kernel,
// strides and pads imply; a larger output_shape has that in its front corner.
Status op_max_unpool(OpContext& op) {
  const Tensor& x = op.input(0);
  const std::vector<int64_t> kernel = op.find_ints("kernel_shape").value_or(std::vector<int64_t>{});
  const Window window = PX_TRY(plan_transposed_window(op, x.shape(), kernel));
  const Shape implied = PX_TRY(pooled_shape(op, window));
  Shape shape = implied;
  if (op.has_input(2)) {
    const std::vector<int64_t> wanted = PX_TRY(op.int64s_of_input(2));
    shape = PX_TRY(Shape::create(wanted));
    if (shape.rank() != implied.rank() ||
        !std::equal(implied.begin(), implied.end(), shape.begin(), std::less_equal<>()))
      return wrong_shape("output_shape", shape, "be {} or larger along each axis", implied.to_string());
  }
  const std::vector<int64_t> indices = to_int64s(op.input(1));
  const Numbers<double> numbers(x);
  if (static_cast<int64_t>(indices.size()) != numbers.size())
    return wrong_input(op, 1, "have the shape of X, {}", x.shape().to_string());
  Tensor output = PX_TRY(op.allocate(x.dtype(), shape));
  std::vector<double> results(static_cast<size_t>(shape.element_count()), 0.0);
  const std::vector<int64_t> strides = strides_of(shape);
  for (size_t index = 0; index < indices.size(); ++index) {
    if (indices[index] < 0 || indices[index] >= implied.element_count())
      return wrong_value(fmt::format("element {} of I", index), indices[index], "be in [0, {}), the elements of {}",
                         implied.element_count(), implied.to_string());
    const Walk<1> at(implied.dims(), {strides}, indices[index]);
    results[static_cast<size_t>(at.offset())] = numbers[static_cast<int64_t>(index)];
  }
  store<double>(output, 0, std::span<const double>(results));
  return op.set_output(0, std::move(output));
}

// The elements of one bin along one axis: [begin, end), possibly none.
struct Bin {
  int64_t begin, end;
};

// Bin `index` of `count` over the region from `first` to `last`, both included.
Bin bin_of(double first, double last, int64_t index, int64_t count, int64_t length) {
  const double size = std::max(last - first + 1, 1.0) / static_cast<double>(count);
  const double begin = first + std::floor(static_cast<double>(index) * size);
  const double end = first + std::ceil(static_cast<double>(index + 1) * size);
  const auto limit = static_cast<double>(length);
  return {static_cast<int64_t>(std::clamp(begin, 0.0, limit)), static_cast<int64_t>(std::clamp(end, 0.0, limit))};
}

// The greatest element of each bin of each region [batch, x1, y1, x2, y2]. The specification leaves the bins open; they
// are those of the paper that names the operator (Fast R-CNN, 2015) and of its first implementation: corners rounded,
// away from zero at a half, regions of one element at least, bins from floor to ceil, an empty bin 0.
Status op_max_roi_pool(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const Shape& roi_shape = op.input(1).shape();
  const std::vector<int64_t> pooled = op.find_ints("pooled_shape").value_or(std::vector<int64_t>{});
  if (shape.rank() != 4 || roi_shape.rank() != 2 || roi_shape[1] != 5)
    return wrong_input(op, 0, "be [N,C,H,W], and rois, {}, be [n,5]", roi_shape.to_string());
  if (pooled.size() != 2 || pooled[0] < 1 || pooled[1] < 1)
    return wrong_attribute("pooled_shape", pooled, "be two sizes of 1 or more");
  const double scale = op.float_attribute("spatial_scale");
  const std::array<int64_t, 4> dims{roi_shape[0], shape[1], pooled[0], pooled[1]};
  const Shape result = PX_TRY(Shape::create(dims));
  const Numbers<double> x(op.input(0));
  const Numbers<double> rois(op.input(1));
  Tensor output = PX_TRY(op.allocate(op.input(0).dtype(), result));
  std::vector<double> values(static_cast<size_t>(result.element_count()));
  for (int64_t index = 0; index < result.element_count(); ++index) {
    const int64_t roi = index / (shape[1] * pooled[0] * pooled[1]);
    const auto corner = [&](int64_t which) { return std::round(rois[roi * 5 + which] * scale); };
    const double batch = rois[roi * 5];
    if (!(batch >= 0 && batch < static_cast<double>(shape[0])))
      return wrong_value(fmt::format("the batch entry of region {}", roi), batch, "be in [0, {})", shape[0]);
    constexpr double kFarthest = 4611686018427387904.0;  // 2^62
    for (int64_t which = 1; which < 5; ++which) {
      if (!(std::fabs(corner(which)) < kFarthest))
        return wrong_value(fmt::format("a corner of region {}", roi), corner(which),
                           "be below 2^62 after 'spatial_scale' ({})", scale);
    }
    const Bin rows = bin_of(corner(2), corner(4), index / pooled[1] % pooled[0], pooled[0], shape[2]);
    const Bin columns = bin_of(corner(1), corner(3), index % pooled[1], pooled[1], shape[3]);
    const int64_t plane = static_cast<int64_t>(batch) * shape[1] + index / (pooled[0] * pooled[1]) % shape[1];
    const bool empty = rows.begin >= rows.end || columns.begin >= columns.end;
    double best = empty ? 0.0 : -std::numeric_limits<double>::infinity();
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      for (int64_t column = columns.begin; column < columns.end; ++column) {
        const double value = x[(plane * shape[2] + row) * shape[3] + column];
        best = is_nan(best) || best >= value ? best : value;
      }
    }
    values[static_cast<size_t>(index)] = best;
  }
  store<double>(output, 0, std::span<const double>(values));
  return op.set_output(0, std::move(output));
}

constexpr OpRow kPoolRows[] = {
    {"AveragePool", kOnnx, 1, 22, op_average_pool},
    {"GlobalAveragePool", kOnnx, 1, 22, op_global_average_pool},
    {"GlobalLpPool", kOnnx, 1, 22, op_global_lp_pool},
    {"GlobalMaxPool", kOnnx, 1, 22, op_global_max_pool},
    {"LpPool", kOnnx, 1, 22, op_lp_pool},
    {"MaxPool", kOnnx, 1, 22, op_max_pool},
    {"MaxRoiPool", kOnnx, 1, 22, op_max_roi_pool},
    {"MaxUnpool", kOnnx, 9, 22, op_max_unpool},
};

}  // namespace

OpRows pool_rows() { return kPoolRows; }

}  // namespace parallax::reference
