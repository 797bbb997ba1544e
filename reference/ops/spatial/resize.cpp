// SPDX-License-Identifier: Apache-2.0
// Resize (operator set 10 to 19) and its forerunner Upsample: interpolation axis by axis.
#include <algorithm>
#include <cmath>
#include <optional>

#include "inspector/model/rule_errors.h"
#include "reference/ops/axes.h"
#include "reference/ops/families.h"
#include "reference/ops/linear_map.h"
#include "reference/ops/map.h"
#include "reference/ops/move.h"

namespace parallax::reference {
namespace {

struct ResizeOptions {
  std::string mode = "nearest";
  std::string coordinates = "half_pixel";
  std::string nearest = "round_prefer_floor";
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
  double extrapolation = 0;
};

// One axis of the task: its lengths, the scale as given, and the part of the input that tf_crop_and_resize looks at.
struct ResizeAxis {
  int64_t input = 1, output = 1;
  double scale = 1;
  double roi_begin = 0, roi_end = 1;
};

// Elements of the input axis and their weights that make one element of the output axis; nothing where it is outside
// and has the extrapolation value.
struct Taps {
  std::vector<std::pair<int64_t, double>> weighted;
  bool outside = false;
};

// coordinate_transformation_mode: the coordinate in the input that output position `x` stands for.
Result<double> original_position(const ResizeOptions& options, const ResizeAxis& axis, double x) {
  const auto input = static_cast<double>(axis.input);
  const auto output = static_cast<double>(axis.output);
  // The output's length before it was cut to a whole number. Where the specification says length_resized, its examples
  // have this.
  const double wanted = input * axis.scale;
  if (options.coordinates == "half_pixel") return (x + 0.5) / axis.scale - 0.5;
  if (options.coordinates == "half_pixel_symmetric") {
    const double offset = input / 2 * (1 - output / wanted);
    return offset + (x + 0.5) / axis.scale - 0.5;
  }
  if (options.coordinates == "pytorch_half_pixel") return axis.output > 1 ? (x + 0.5) / axis.scale - 0.5 : 0.0;
  if (options.coordinates == "align_corners") return axis.output == 1 ? 0.0 : x * (input - 1) / (wanted - 1);
  if (options.coordinates == "asymmetric") return x / axis.scale;
  if (options.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (options.coordinates == "tf_crop_and_resize") {
    if (axis.output == 1) return 0.5 * (axis.roi_begin + axis.roi_end) * (input - 1);
    return axis.roi_begin * (input - 1) + x * (axis.roi_end - axis.roi_begin) * (input - 1) / (wanted - 1);
  }
  return wrong_attribute("coordinate_transformation_mode", options.coordinates,
                         "be half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric, "
                         "tf_half_pixel_for_nn or tf_crop_and_resize");
}

Result<int64_t> nearest_position(const ResizeOptions& options, double x) {
  const double floor = std::floor(x);
  if (options.nearest == "floor") return static_cast<int64_t>(floor);
  if (options.nearest == "ceil") return static_cast<int64_t>(std::ceil(x));
  const bool half = x - floor == 0.5;
  if (options.nearest == "round_prefer_floor") return static_cast<int64_t>(half ? floor : std::floor(x + 0.5));
  if (options.nearest == "round_prefer_ceil") return static_cast<int64_t>(half ? floor + 1 : std::floor(x + 0.5));
  return wrong_attribute("nearest_mode", options.nearest, "be round_prefer_floor, round_prefer_ceil, floor or ceil");
}

double cubic_weight(double distance, double a) {
  const double d = std::fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

double linear_weight(double distance) { return std::max(0.0, 1.0 - std::fabs(distance)); }

// Weights of the elements around position x. With antialias a scale below 1 widens the filter to cover what it skips;
// such weights, and those from which the outside is excluded, are normalized to sum 1. Elements outside repeat the
// border unless they are excluded.
Taps interpolate(const ResizeOptions& options, const ResizeAxis& axis, double x) {
  const bool cubic = options.mode == "cubic";
  const double shrink = options.antialias ? std::min(1.0, axis.scale) : 1.0;
  const double support = (cubic ? 2.0 : 1.0) / shrink;
  const auto first = static_cast<int64_t>(std::floor(x - support)) + 1;
  const auto last = static_cast<int64_t>(std::ceil(x + support)) - 1;
  Taps taps;
  double sum = 0;
  for (int64_t position = first; position <= std::max(first, last); ++position) {
    const double distance = (static_cast<double>(position) - x) * shrink;
    const double weight = cubic ? cubic_weight(distance, options.cubic_a) : linear_weight(distance);
    const bool inside = position >= 0 && position < axis.input;
    if (weight == 0.0 || (!inside && options.exclude_outside)) continue;
    taps.weighted.emplace_back(std::clamp<int64_t>(position, 0, axis.input - 1), weight);
    sum += weight;
  }
  for (auto& [position, weight] : taps.weighted) {
    if (options.exclude_outside || options.antialias) weight /= sum;
  }
  return taps;
}

// The coordinate in the input of each output position.
Result<std::vector<double>> positions_of(const ResizeOptions& options, const ResizeAxis& axis) {
  std::vector<double> positions;
  for (int64_t location = 0; location < axis.output; ++location) {
    positions.push_back(PX_TRY(original_position(options, axis, static_cast<double>(location))));
    if (!(std::fabs(positions.back()) < 1e15))
      return wrong_value(fmt::format("the position that output position {} stands for", location), positions.back(),
                         "be below 1e15; check scales and roi");
  }
  return positions;
}

bool is_outside(const ResizeOptions& options, const ResizeAxis& axis, double x) {
  return options.coordinates == "tf_crop_and_resize" && (x < 0 || x > static_cast<double>(axis.input - 1));
}

bool is_untouched(const ResizeOptions& options, const ResizeAxis& axis) {
  return axis.output == axis.input && axis.scale == 1.0 && options.coordinates != "tf_crop_and_resize";
}

// Applies the taps of one axis: [outer, input, inner] -> [outer, output, inner].
std::vector<double> resize_axis(const std::vector<double>& from, const std::vector<Taps>& taps, int64_t outer,
                                int64_t input, int64_t inner, double extrapolation) {
  const auto output = static_cast<int64_t>(taps.size());
  std::vector<double> to(static_cast<size_t>(outer * output * inner));
  parallel_for(outer * output, 4 * inner, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const Taps& tap = taps[static_cast<size_t>(row % output)];
      for (int64_t k = 0; k < inner; ++k) {
        double sum = 0;
        for (const auto& [position, weight] : tap.weighted)
          sum += weight * from[static_cast<size_t>((row / output * input + position) * inner + k)];
        to[static_cast<size_t>(row * inner + k)] = tap.outside ? extrapolation : sum;
      }
    }
  });
  return to;
}

Status interpolate_axes(OpContext& op, const ResizeOptions& options, const std::vector<ResizeAxis>& axes,
                        const Shape& shape) {
  const Tensor& x = op.input(0);
  std::vector<std::vector<Taps>> taps(axes.size());  // by axis; empty where it stays as it is
  std::vector<int64_t> dims(x.shape().begin(), x.shape().end());
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    if (is_untouched(options, axes[axis])) continue;
    for (double position : PX_TRY(positions_of(options, axes[axis]))) {
      taps[axis].push_back(interpolate(options, axes[axis], position));
      taps[axis].back().outside = is_outside(options, axes[axis], position);
    }
    dims[axis] = axes[axis].output;
    const Shape between = PX_TRY(Shape::create(dims));
    PX_TRY(op.allocate(x.dtype(), between));  // asks for the memory
  }
  return map_linear(op, x, shape, [&](std::vector<double> values) {
    std::vector<int64_t> now(x.shape().begin(), x.shape().end());
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (taps[axis].empty()) continue;
      const Shape from(now);
      values = resize_axis(values, taps[axis], count_of(from, 0, axis), now[axis],
                           count_of(from, axis + 1, from.rank()), options.extrapolation);
      now[axis] = axes[axis].output;
    }
    return values;
  });
}

// Mode nearest moves elements and computes nothing: any type will do.
Status take_nearest(OpContext& op, const ResizeOptions& options, const std::vector<ResizeAxis>& axes,
                    const Shape& shape) {
  const Tensor& x = op.input(0);
  std::vector<std::vector<int64_t>> sources(axes.size());  // by axis, kFill outside
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    for (double position : PX_TRY(positions_of(options, axes[axis]))) {
      const auto location = static_cast<int64_t>(sources[axis].size());
      const int64_t nearest =
          is_untouched(options, axes[axis]) ? location : PX_TRY(nearest_position(options, position));
      const bool outside = is_outside(options, axes[axis], position);
      sources[axis].push_back(outside ? kFill : std::clamp<int64_t>(nearest, 0, axes[axis].input - 1));
    }
  }
  Tensor fill = PX_TRY(Tensor::zeros(x.dtype(), Shape{}));
  if (is_floating(x.dtype())) store<double>(fill, 0, std::span<const double>(&options.extrapolation, 1));
  if (is_integer(x.dtype())) {
    const auto whole = static_cast<int64_t>(std::clamp(options.extrapolation, -9e18, 9e18));
    store<int64_t>(fill, 0, std::span<const int64_t>(&whole, 1));
  }
  Tensor output = PX_TRY(op.allocate(x.dtype(), shape));
  const std::vector<int64_t> own = strides_of(x.shape());
  const std::vector<int64_t> outs = strides_of(shape);
  const TensorView fill_view = fill.view();
  gather_elements(
      x, output,
      [&](int64_t index) {
        int64_t from = 0;
        for (size_t axis = 0; axis < axes.size(); ++axis) {
          const int64_t source = sources[axis][static_cast<size_t>(index / outs[axis] % shape[axis])];
          if (source == kFill) return kFill;
          from += source * own[axis];
        }
        return from;
      },
      &fill_view);
  return op.set_output(0, std::move(output));
}

Status resize(OpContext& op, const ResizeOptions& options, const std::vector<ResizeAxis>& axes) {
  constexpr int64_t kLongest = int64_t{1} << 26;  // the weights of an axis are all held at once
  std::vector<int64_t> dims;
  for (const ResizeAxis& axis : axes) {
    dims.push_back(axis.output);
    if (axis.output > kLongest && !is_untouched(options, axis))
      return out_of_memory(fmt::format(
          "a resized axis has {} elements; it must have at most {}, as the weights of an axis are held at once",
          axis.output, kLongest));
  }
  const Shape shape = PX_TRY(Shape::create(dims));
  if (shape.element_count() == 0) return op.set_output(0, PX_TRY(op.allocate(op.input(0).dtype(), shape)));
  if (op.input(0).element_count() == 0) return wrong_input(op, 0, "have one element or more, as the output has some");
  return options.mode == "nearest" ? take_nearest(op, options, axes, shape)
                                   : interpolate_axes(op, options, axes, shape);
}

Result<std::vector<double>> doubles_of_input(const OpContext& op, size_t index) {
  if (!op.has_input(index)) return std::vector<double>{};
  const Tensor declared = PX_TRY(op.as_declared(index, DType::float32));
  const Numbers<double> numbers(declared);
  return std::vector<double>(numbers.span().begin(), numbers.span().end());
}

ResizeAxis axis_from_scale(int64_t input, double scale) {
  return {input, static_cast<int64_t>(std::floor(static_cast<double>(input) * scale)), scale, 0, 1};
}

constexpr double kLargestSize = 4611686018427387904.0;  // 2^62

// keep_aspect_ratio_policy (since 18): one scale for all given axes, the least or greatest that the sizes allow.
Status keep_aspect(const OpContext& op, std::vector<ResizeAxis>& axes, const std::vector<size_t>& chosen) {
  const std::string policy = op.find_string("keep_aspect_ratio_policy").value_or("stretch");
  if (policy == "stretch") return {};
  if (policy != "not_larger" && policy != "not_smaller")
    return wrong_attribute("keep_aspect_ratio_policy", policy, "be stretch, not_larger or not_smaller");
  std::optional<double> scale;  // an axis without elements has none
  for (size_t axis : chosen) {
    const double own = axes[axis].scale;
    if (axes[axis].input == 0) continue;
    scale = policy == "not_larger" ? std::min(scale.value_or(own), own) : std::max(scale.value_or(own), own);
  }
  for (size_t axis : chosen) {
    if (axes[axis].input == 0) continue;
    const double size = std::floor(*scale * static_cast<double>(axes[axis].input) + 0.5);
    if (size >= kLargestSize)
      return wrong_value(fmt::format("the size of axis {} at one scale for all", axis), size, "be below 2^62");
    axes[axis].scale = *scale;
    axes[axis].output = static_cast<int64_t>(size);
  }
  return {};
}

// Version 11 on: inputs X, roi, scales, sizes; attribute axes since 18 says which axes they speak of.
Result<std::vector<ResizeAxis>> plan_axes(const OpContext& op) {
  const Shape& shape = op.input(0).shape();
  std::vector<ResizeAxis> axes;
  for (int64_t dim : shape) axes.push_back({dim, dim, 1.0, 0, 1});
  std::vector<size_t> chosen(shape.rank());
  for (size_t axis = 0; axis < chosen.size(); ++axis) chosen[axis] = axis;
  if (const auto given = op.find_ints("axes")) chosen = PX_TRY(normalize_axes(*given, shape.rank()));
  const std::vector<double> roi = PX_TRY(doubles_of_input(op, 1));
  const std::vector<double> scales = PX_TRY(doubles_of_input(op, 2));
  std::vector<int64_t> sizes;
  if (op.has_input(3)) sizes = PX_TRY(op.int64s_of_input(3));
  if (scales.empty() == sizes.empty())
    return execution_error(fmt::format("scales has {} entries and sizes {}; exactly one of them must have some",
                                       scales.size(), sizes.size()));
  if (std::max(scales.size(), sizes.size()) != chosen.size())
    return wrong_length(scales.empty() ? "input 'sizes'" : "input 'scales'", std::max(scales.size(), sizes.size()),
                        "have {}, one for each axis", chosen.size());
  for (size_t index = 0; index < chosen.size(); ++index) {
    ResizeAxis& axis = axes[chosen[index]];
    if (!scales.empty()) {
      if (!(scales[index] > 0 && scales[index] < 1e9))
        return wrong_value(fmt::format("the scale of axis {}", chosen[index]), scales[index],
                           "be positive and below 1e9");
      axis = axis_from_scale(axis.input, scales[index]);
    } else {
      if (sizes[index] < 0)
        return wrong_value(fmt::format("the size asked for axis {}", chosen[index]), sizes[index], "be 0 or more");
      axis.output = sizes[index];
      axis.scale = static_cast<double>(sizes[index]) / static_cast<double>(axis.input);
    }
    if (roi.size() == 2 * chosen.size()) {
      axis.roi_begin = roi[index];
      axis.roi_end = roi[index + chosen.size()];
    }
  }
  if (!sizes.empty()) PX_TRY(keep_aspect(op, axes, chosen));
  return axes;
}

Status op_resize(OpContext& op) {
  ResizeOptions options;
  options.mode = op.string_attribute("mode");
  options.coordinates = op.string_attribute("coordinate_transformation_mode");
  options.nearest = op.string_attribute("nearest_mode");
  options.cubic_a = op.float_attribute("cubic_coeff_a");
  options.exclude_outside = op.int_attribute("exclude_outside") != 0;
  options.extrapolation = op.float_attribute("extrapolation_value");
  options.antialias = op.find_int("antialias").value_or(0) != 0 && options.mode != "nearest";
  if (options.mode != "nearest" && options.mode != "linear" && options.mode != "cubic")
    return wrong_attribute("mode", options.mode, "be nearest, linear or cubic");
  const std::vector<ResizeAxis> axes = PX_TRY(plan_axes(op));
  return resize(op, options, axes);
}

// Positions x / scale, the nearest below.
Status upsample(OpContext& op, const std::vector<double>& scales) {
  ResizeOptions options;
  options.mode = op.string_attribute("mode");
  options.coordinates = "asymmetric";
  options.nearest = "floor";
  if (options.mode == "bilinear") options.mode = "linear";
  if (options.mode != "nearest" && options.mode != "linear")
    return wrong_attribute("mode", options.mode, "be nearest or linear");
  const Shape& shape = op.input(0).shape();
  if (scales.size() != shape.rank())
    return wrong_length("the list of scales", scales.size(), "have {}, one for each axis", shape.rank());
  std::vector<ResizeAxis> axes;
  for (size_t axis = 0; axis < scales.size(); ++axis) {
    if (!(scales[axis] > 0 && scales[axis] < 1e9))
      return wrong_value(fmt::format("the scale of axis {}", axis), scales[axis], "be positive and below 1e9");
    axes.push_back(axis_from_scale(shape[axis], scales[axis]));
  }
  return resize(op, options, axes);
}

// Upsample-9 and Resize-10: scales are an input.
Status op_upsample(OpContext& op) { return upsample(op, PX_TRY(doubles_of_input(op, 1))); }

// Upsample-7: scales are an attribute.
Status op_upsample_7(OpContext& op) { return upsample(op, op.find_floats("scales").value_or(std::vector<double>{})); }

// Upsample-1: scales of the last two of four axes.
Status op_upsample_1(OpContext& op) {
  return upsample(op, {1, 1, op.float_attribute("height_scale"), op.float_attribute("width_scale")});
}

constexpr OpRow kResizeRows[] = {
    {"Resize", kOnnx, 10, 10, op_upsample},   {"Resize", kOnnx, 11, 19, op_resize},
    {"Upsample", kOnnx, 1, 1, op_upsample_1}, {"Upsample", kOnnx, 7, 7, op_upsample_7},
    {"Upsample", kOnnx, 9, 10, op_upsample},
};

}  // namespace

OpRows resize_rows() { return kResizeRows; }

}  // namespace parallax::reference
