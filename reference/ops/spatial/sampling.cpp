// SPDX-License-Identifier: Apache-2.0
// GridSample and AffineGrid: feature maps read at the positions of a grid.
#include <algorithm>
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/linear_map.h"
#include "reference/ops/map.h"
#include "reference/ops/move.h"

namespace parallax::reference {
namespace {

struct GridOptions {
  std::string mode;
  std::string padding;
  bool align_corners;
};

// -1 and 1 are the centers of the corner elements (align_corners) or their outer edges.
double to_pixels(double x, int64_t length, bool align_corners) {
  const auto size = static_cast<double>(length);
  return align_corners ? (x + 1) / 2 * (size - 1) : ((x + 1) * size - 1) / 2;
}

// Folded back at the borders until it is inside.
double reflect(double x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return low;
  if (x < low) {
    const double distance = low - x;
    const double turns = std::floor(distance / range);
    const double rest = distance - turns * range;
    return std::fmod(turns, 2.0) == 0.0 ? low + rest : high - rest;
  }
  if (x > high) {
    const double distance = x - high;
    const double turns = std::floor(distance / range);
    const double rest = distance - turns * range;
    return std::fmod(turns, 2.0) == 0.0 ? high - rest : low + rest;
  }
  return x;
}

// An element position after padding_mode: -1 where zeros stand.
int64_t padded_position(int64_t position, int64_t length, const GridOptions& options) {
  if (position >= 0 && position < length) return position;
  if (options.padding == "zeros") return -1;
  if (options.padding == "border") return std::clamp<int64_t>(position, 0, length - 1);
  const double low = options.align_corners ? 0.0 : -0.5;
  const double high = static_cast<double>(length) - (options.align_corners ? 1.0 : 0.5);
  const auto inside = static_cast<int64_t>(std::llround(reflect(static_cast<double>(position), low, high)));
  return std::clamp<int64_t>(inside, 0, length - 1);
}

double grid_cubic_weight(double distance) {
  constexpr double kA = -0.75;  // the specification's cubic_coeff_a
  const double d = std::fabs(distance);
  if (d <= 1) return ((kA + 2) * d - (kA + 3)) * d * d + 1;
  if (d < 2) return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA;
  return 0;
}

// Positions along one axis and their weights for the coordinate x, in elements.
std::vector<std::pair<int64_t, double>> grid_taps(double x, int64_t length, const GridOptions& options) {
  std::vector<std::pair<int64_t, double>> taps;
  const double floor = std::floor(x);
  if (options.mode == "nearest") {
    taps.emplace_back(static_cast<int64_t>(std::nearbyint(x)), 1.0);
  } else if (options.mode == "cubic") {
    for (int step = -1; step <= 2; ++step)
      taps.emplace_back(static_cast<int64_t>(floor) + step, grid_cubic_weight(floor + step - x));
  } else {
    taps.emplace_back(static_cast<int64_t>(floor), floor + 1 - x);
    taps.emplace_back(static_cast<int64_t>(floor) + 1, x - floor);
  }
  for (auto& [position, weight] : taps) position = padded_position(position, length, options);
  return taps;
}

// border and reflection move the coordinate itself first, but for cubic, which looks up each of its elements.
double padded_index(double x, int64_t length, const GridOptions& options) {
  if (!std::isfinite(x)) return -2;  // outside, whatever the padding
  const auto size = static_cast<double>(length);
  if (options.mode == "cubic" || options.padding == "zeros") return std::clamp(x, -1e9, 1e9);
  if (options.padding == "border") return std::clamp(x, 0.0, size - 1);
  const double low = options.align_corners ? 0.0 : -0.5;
  return std::clamp(reflect(x, low, options.align_corners ? size - 1 : size - 0.5), 0.0, size - 1);
}

Result<GridOptions> grid_options(const OpContext& op) {
  GridOptions options{op.string_attribute("mode"), op.string_attribute("padding_mode"),
                      op.int_attribute("align_corners") != 0};
  if (options.mode == "bilinear") options.mode = "linear";  // names of version 16
  if (options.mode == "bicubic") options.mode = "cubic";
  if (options.mode != "linear" && options.mode != "nearest" && options.mode != "cubic")
    return wrong_attribute("mode", options.mode, "be nearest, linear or cubic (bilinear, bicubic in version 16)");
  if (options.padding != "zeros" && options.padding != "border" && options.padding != "reflection")
    return wrong_attribute("padding_mode", options.padding, "be zeros, border or reflection");
  return options;
}

// The samples of one call: the taps of each output position of each sample.
class GridPositions {
 public:
  GridPositions(const OpContext& op, const GridOptions& options)
      : shape_(op.input(0).shape()),
        options_(options),
        spatial_(static_cast<int64_t>(shape_.rank()) - 2),
        grid_(op.input(1)) {}

  // (offset within a plane, weight) for output position `index` of all samples. The grid's last axis counts from the
  // innermost axis of X outward.
  std::vector<std::pair<int64_t, double>> taps_at(int64_t index) const {
    std::vector<std::pair<int64_t, double>> taps{{0, 1.0}};
    for (int64_t axis = 0; axis < spatial_; ++axis) {
      const int64_t length = shape_[static_cast<size_t>(2 + axis)];
      const double given = grid_[index * spatial_ + spatial_ - 1 - axis];
      const double location = padded_index(to_pixels(given, length, options_.align_corners), length, options_);
      std::vector<std::pair<int64_t, double>> joined;
      for (const auto& [offset, weight] : taps) {
        for (const auto& [position, factor] : grid_taps(location, length, options_)) {
          if (position >= 0) joined.emplace_back(offset * length + position, weight * factor);
        }
      }
      taps = std::move(joined);
    }
    return taps;
  }

 private:
  const Shape& shape_;
  const GridOptions& options_;
  int64_t spatial_;
  Numbers<double> grid_;
};

// Mode nearest moves elements: any type will do. Elements outside are zero, or the empty string.
Status take_nearest(OpContext& op, const GridPositions& where, const Shape& result) {
  const Tensor& x = op.input(0);
  const int64_t channels = x.shape()[1];
  const int64_t inner = count_of(x.shape(), 2, x.shape().rank());
  const int64_t locations = count_of(result, 2, result.rank());
  const Tensor zero = PX_TRY(Tensor::zeros(x.dtype(), Shape{}));
  const TensorView fill = zero.view();
  Tensor output = PX_TRY(op.allocate(x.dtype(), result));
  gather_elements(
      x, output,
      [&](int64_t index) {
        const int64_t plane = index / locations;
        const auto taps = where.taps_at(plane / channels * locations + index % locations);
        return taps.empty() ? kFill : plane * inner + taps[0].first;
      },
      &fill);
  return op.set_output(0, std::move(output));
}

// Y[n, c, position] = X[n, c] at the coordinates grid[n, position].
Status op_grid_sample(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const Shape& grid_shape = op.input(1).shape();
  const GridOptions options = PX_TRY(grid_options(op));
  const size_t spatial = shape.rank() < 3 ? 0 : shape.rank() - 2;
  if (spatial == 0 || grid_shape.rank() != shape.rank() || grid_shape[0] != shape[0] ||
      grid_shape[shape.rank() - 1] != static_cast<int64_t>(spatial))
    return wrong_input(op, 1, "be [N,...,{}] with the rank and batch of X {}, of rank 3 or more", spatial,
                       shape.to_string());
  const int64_t inner = count_of(shape, 2, shape.rank());
  if (inner == 0) return wrong_input(op, 0, "have one element or more along each spatial axis");
  std::vector<int64_t> dims{shape[0], shape[1]};
  dims.insert(dims.end(), grid_shape.begin() + 1, grid_shape.end() - 1);
  const Shape result = PX_TRY(Shape::create(dims));
  const int64_t locations = count_of(result, 2, result.rank());
  const GridPositions where(op, options);
  if (options.mode == "nearest") return take_nearest(op, where, result);
  return map_linear(op, op.input(0), result, [&](const std::vector<double>& x) {
    std::vector<double> values(static_cast<size_t>(result.element_count()));
    parallel_for(shape[0] * locations, shape[1] * 30, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) {
        const auto taps = where.taps_at(index);
        for (int64_t channel = 0; channel < shape[1]; ++channel) {
          const int64_t plane = index / locations * shape[1] + channel;
          double sum = 0;
          for (const auto& [offset, weight] : taps) sum += weight * x[static_cast<size_t>(plane * inner + offset)];
          values[static_cast<size_t>(plane * locations + index % locations)] = sum;
        }
      }
    });
    return values;
  });
}

// grid[n, position] = theta[n] * (the position's coordinates in [-1, 1], 1).
Status op_affine_grid(OpContext& op) {
  const std::vector<int64_t> size = PX_TRY(op.int64s_of_input(1));
  const size_t spatial = size.size() < 3 ? 0 : size.size() - 2;
  const auto width = static_cast<int64_t>(spatial);
  if ((spatial != 2 && spatial != 3) || !has_dims(op.input(0).shape(), {size[0], width, width + 1})) {
    return wrong_input(op, 0, "be [N,2,3] or [N,3,4] for size {}", dims_text(size));
  }
  const bool align = op.int_attribute("align_corners") != 0;
  std::vector<int64_t> dims{size[0]};
  dims.insert(dims.end(), size.begin() + 2, size.end());
  const Shape positions_shape = PX_TRY(Shape::create(dims));
  dims.push_back(width);
  const Shape shape = PX_TRY(Shape::create(dims));
  const Numbers<double> theta(op.input(0));
  std::vector<double> values(static_cast<size_t>(shape.element_count()));
  const std::vector<int64_t> strides = strides_of(positions_shape);
  for (int64_t location = 0; location < positions_shape.element_count(); ++location) {
    const int64_t sample = location / strides[0];
    for (int64_t row = 0; row < width; ++row) {
      const int64_t base = (sample * width + row) * (width + 1);
      double sum = theta[base + width];
      for (int64_t column = 0; column < width; ++column) {
        const auto axis = static_cast<size_t>(width - column);  // x is the innermost axis
        const auto length = static_cast<double>(positions_shape[axis]);
        const auto at = static_cast<double>(location / strides[axis] % positions_shape[axis]);
        const double coordinate = align ? (length == 1 ? 0.0 : 2 * at / (length - 1) - 1) : (2 * at + 1) / length - 1;
        sum += theta[base + column] * coordinate;
      }
      values[static_cast<size_t>(location * width + row)] = sum;
    }
  }
  return op.set_output(0, op.input(0).dtype(), shape, std::span<const double>(values));
}

constexpr OpRow kSamplingRows[] = {
    {"AffineGrid", kOnnx, 20, 20, op_affine_grid},
    {"GridSample", kOnnx, 16, 22, op_grid_sample},
};

}  // namespace

OpRows sampling_rows() { return kSamplingRows; }

}  // namespace parallax::reference
