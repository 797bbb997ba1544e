// SPDX-License-Identifier: Apache-2.0
// Coordinates and coefficients. Source: the specification of Resize-19; the cubic kernel is Keys', 1981.
#include "runtime/ops/spatial/resize_axis.h"

#include <cmath>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"

namespace parallax::runtime {
namespace {

Result<double> source_coordinate(const ResizeAxis& axis, const std::string& transform, int64_t position) {
  const double x = static_cast<double>(position);
  const double in = static_cast<double>(axis.in);
  const double out = static_cast<double>(axis.out);
  const double exact_out =
      axis.scale * in;  // before it was cut to a whole number: what the formulas call length_resized
  const bool is_single = axis.out == 1;
  if (transform == "half_pixel") return (x + 0.5) / axis.scale - 0.5;
  if (transform == "half_pixel_symmetric") {
    const double adjustment = out / exact_out;
    return in / 2 * (1 - adjustment) + (x + 0.5) / axis.scale - 0.5;
  }
  if (transform == "pytorch_half_pixel") return !is_single ? (x + 0.5) / axis.scale - 0.5 : 0.0;
  if (transform == "align_corners") return !is_single ? x * (in - 1) / (exact_out - 1) : 0.0;
  if (transform == "asymmetric") return x / axis.scale;
  if (transform == "tf_half_pixel_for_nn") return (x + 0.5) / axis.scale;
  if (transform == "tf_crop_and_resize") {
    if (is_single) return 0.5 * (axis.roi_start + axis.roi_end) * (in - 1);
    return axis.roi_start * (in - 1) + x * (axis.roi_end - axis.roi_start) * (in - 1) / (exact_out - 1);
  }
  return wrong_attribute("coordinate_transformation_mode", transform,
                         "be half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric, "
                         "tf_half_pixel_for_nn or tf_crop_and_resize");
}

Result<int64_t> nearest_index(double x, const std::string& mode) {
  if (mode == "round_prefer_floor") return static_cast<int64_t>(std::ceil(x - 0.5));
  if (mode == "round_prefer_ceil") return static_cast<int64_t>(std::floor(x + 0.5));
  if (mode == "floor") return static_cast<int64_t>(std::floor(x));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(x));
  return wrong_attribute("nearest_mode", mode, "be round_prefer_floor, round_prefer_ceil, floor or ceil");
}

double triangle(double distance) { return std::max(0.0, 1.0 - std::fabs(distance)); }

double cubic(double distance, double a) {
  const double x = std::fabs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// The taps around x: the kernel's support, wider by 1/scale when shrinking with antialias. Taps off the axis take the
// edge's value, or nothing when they are excluded.
void add_taps(const ResizeAxis& axis, const ResizeSettings& settings, double x, ResizeTable& table) {
  const bool is_cubic = settings.mode == "cubic";
  const double narrowing = settings.antialias ? std::min(axis.scale, 1.0) : 1.0;
  const double reach = (is_cubic ? 2.0 : 1.0) / narrowing;
  const auto first = static_cast<int64_t>(std::floor(x - reach)) + 1;
  const auto last = static_cast<int64_t>(std::floor(x + reach));
  std::vector<int64_t> indices;
  std::vector<double> weights;
  double sum = 0;
  for (int64_t tap = first; tap <= last; ++tap) {
    const double distance = (static_cast<double>(tap) - x) * narrowing;
    double weight = is_cubic ? cubic(distance, settings.cubic_a) : triangle(distance);
    if (settings.exclude_outside && (tap < 0 || tap >= axis.in)) weight = 0;
    indices.push_back(std::clamp<int64_t>(tap, 0, axis.in - 1));
    weights.push_back(weight);
    sum += weight;
  }
  if ((settings.exclude_outside || settings.antialias) && sum != 0) {
    for (double& weight : weights) weight /= sum;
  }
  table.indices.push_back(std::move(indices));
  table.weights.push_back(std::move(weights));
}

}  // namespace

Result<ResizeTable> resize_table(const ResizeAxis& axis, const ResizeSettings& settings) {
  if (settings.mode != "nearest" && settings.mode != "linear" && settings.mode != "cubic")
    return wrong_attribute("mode", settings.mode, "be nearest, linear or cubic");
  ResizeTable table;
  for (int64_t position = 0; position < axis.out; ++position) {
    const double x = PX_TRY(source_coordinate(axis, settings.transform, position));
    if (!(std::fabs(x) < 1e15))
      return wrong_value(fmt::format("the position that output position {} stands for", position), x,
                         "be below 1e15; check scales and roi");
    table.outside.push_back(x < 0 || x > static_cast<double>(axis.in - 1));
    if (settings.mode == "nearest") {
      // An axis that is not resized stays as it is, wherever the formula of the transform puts its positions.
      const bool stays = axis.is_plain() && settings.transform != "tf_crop_and_resize";
      const int64_t index = stays ? position : PX_TRY(nearest_index(x, settings.nearest_mode));
      table.indices.push_back({std::clamp<int64_t>(index, 0, axis.in - 1)});
      table.weights.push_back({1.0});
    } else {
      add_taps(axis, settings, x, table);
    }
  }
  return table;
}

}  // namespace parallax::runtime
