// SPDX-License-Identifier: Apache-2.0
// Pictures of a slice: ranges, colors, heat maps.
#include <algorithm>
#include <cmath>

#include "gui/viewmodel/view_tensor_internal.h"

namespace parallax {
namespace {

uint32_t packed(Color color) {
  return static_cast<uint32_t>(color.r) | static_cast<uint32_t>(color.g) << 8 | static_cast<uint32_t>(color.b) << 16 |
         static_cast<uint32_t>(color.a) << 24;
}

// The gray of an element that a filter leaves out: it keeps the element's lightness, within the background's range in
// both themes.
Color grayed(Color color) {
  const auto gray = static_cast<uint8_t>(60 + luminance(color) * 120);
  return {gray, gray, gray};
}

}  // namespace

ValueRange TensorModel::autofit(TensorMode mode) const {
  double low = kInfinity, high = -kInfinity;
  const auto add = [&](double number) {
    if (!std::isfinite(number)) return;
    low = std::min(low, number);
    high = std::max(high, number);
  };
  for_each([&](int64_t, int64_t, int64_t element) {
    add(number(mode, element));
    // A and B share a range, so that equal colors mean equal values.
    if (has_b() && mode == TensorMode::a) add(number(TensorMode::b, element));
    if (has_b() && mode == TensorMode::b) add(number(TensorMode::a, element));
  });
  if (low > high) return {0, 1};
  if (mode == TensorMode::difference) {
    const double most = std::max({std::abs(low), std::abs(high), 1e-300});
    return {-most, most};
  }
  if (is_difference(mode)) low = 0;
  return high > low ? ValueRange{low, high} : ValueRange{low - (is_difference(mode) ? 0 : 0.5), low + 0.5};
}

Color TensorModel::color_of(TensorMode mode, double number, ValueRange range, bool is_dark) {
  if (std::isnan(number)) return kNanColor;
  if (std::isinf(number)) return number > 0 ? kPositiveInfColor : kNegativeInfColor;
  const double t = range.high > range.low ? (number - range.low) / (range.high - range.low) : 0;
  if (mode == TensorMode::difference) return signed_color(2 * t - 1);
  if (is_difference(mode) && number == 0) return is_dark ? Color{0x30, 0x34, 0x3A} : Color{0xF7, 0xF7, 0xF7};
  if (is_difference(mode)) return magnitude_color(t, is_dark);
  return value_color(t);
}

bool TensorModel::passes(const ElementFilter& filter, TensorMode mode, int64_t element) const {
  const double measured = number(mode, element);
  const auto is_special = [&](TensorMode measure) { return !std::isfinite(number(measure, element)); };
  const auto has_special = [&] {
    return !std::isfinite(measured) ||
           (has_b() && !is_difference(mode) && (is_special(TensorMode::a) || is_special(TensorMode::b)));
  };
  if (filter.specials_only && !has_special()) return false;
  if (!filter.brush.has_value()) return true;
  const auto within = [&](double value) { return value >= filter.brush->low && value <= filter.brush->high; };
  if (is_difference(mode) || !has_b()) return within(measured);
  return within(number(TensorMode::a, element)) || within(number(TensorMode::b, element));
}

HeatImage TensorModel::image(TensorMode mode, ValueRange range, const ElementFilter& filter, int32_t greatest_side,
                             bool is_dark) const {
  HeatImage image;
  const int64_t row_count = rows(), column_count = columns();
  image.block_rows = std::max<int64_t>(1, (row_count + greatest_side - 1) / greatest_side);
  image.block_columns = std::max<int64_t>(1, (column_count + greatest_side - 1) / greatest_side);
  image.height = static_cast<int32_t>((row_count + image.block_rows - 1) / image.block_rows);
  image.width = static_cast<int32_t>((column_count + image.block_columns - 1) / image.block_columns);
  const size_t count = static_cast<size_t>(image.width) * static_cast<size_t>(image.height);
  image.pixels.assign(count, 0);
  const bool is_pooled = image.block_rows * image.block_columns > 1;
  // Units and severities of every element of a large slice are dear: the block's largest difference stands for it.
  const bool by_difference = is_pooled && has_b() && mode >= TensorMode::ulp && !filter.is_set();
  const TensorMode chooser = by_difference ? TensorMode::absolute : mode;
  std::vector<double> best(is_pooled ? count : 0, -1);
  std::vector<int64_t> chosen(is_pooled ? count : 0, -1);
  const auto color_at = [&](double value, int64_t element) {
    const Color color = color_of(mode, value, range, is_dark);
    return packed(!filter.is_set() || passes(filter, mode, element) ? color : grayed(color));
  };
  for_each([&](int64_t row, int64_t column, int64_t element) {
    const auto pixel = static_cast<size_t>(row / image.block_rows) * static_cast<size_t>(image.width) +
                       static_cast<size_t>(column / image.block_columns);
    const double value = number(chooser, element);
    if (!is_pooled) {
      image.pixels[pixel] = color_at(value, element);
      return;
    }
    // Elements that pass the filter come before those that it grays.
    const bool stands_out = filter.is_set() && passes(filter, mode, element);
    const double weight = stands_out ? kInfinity : weight_of(value);
    if (weight <= best[pixel]) return;
    best[pixel] = weight;
    chosen[pixel] = element;
  });
  for (size_t pixel = 0; pixel < chosen.size(); ++pixel) {
    if (chosen[pixel] >= 0) image.pixels[pixel] = color_at(number(mode, chosen[pixel]), chosen[pixel]);
  }
  return image;
}

}  // namespace parallax
