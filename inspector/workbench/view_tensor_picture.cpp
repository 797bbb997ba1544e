// Pictures and figures of a slice: ranges, heat maps, histograms, worst elements, channels.
#include <algorithm>
#include <cmath>
#include <limits>

#include "inspector/tensor/elements.h"
#include "inspector/workbench/view_tensor.h"

namespace parallax {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

uint32_t packed(Colour colour) {
  return static_cast<uint32_t>(colour.r) | static_cast<uint32_t>(colour.g) << 8 |
         static_cast<uint32_t>(colour.b) << 16 | static_cast<uint32_t>(colour.a) << 24;
}

bool is_difference(TensorMode mode) { return mode >= TensorMode::difference; }

// How much an element deserves the pixel of its block: NaN before infinities before large numbers.
double weight_of(double number) {
  return std::isnan(number) ? kInfinity : std::isinf(number) ? 1e308 : std::abs(number);
}

}  // namespace

template <class Visit>
void TensorModel::for_each(Visit visit) const {
  const int64_t row_count = rows(), column_count = columns();
  for (int64_t row = 0; row < row_count; ++row) {
    for (int64_t column = 0; column < column_count; ++column) {
      const int64_t element = element_at(row, column);
      if (element >= 0) visit(row, column, element);
    }
  }
}

ValueRange TensorModel::autofit(TensorMode mode) const {
  double low = kInfinity, high = -kInfinity;
  const auto add = [&](double number) {
    if (!std::isfinite(number)) return;
    low = std::min(low, number);
    high = std::max(high, number);
  };
  for_each([&](int64_t, int64_t, int64_t element) {
    add(number(mode, element));
    // A and B share a range, so that equal colours mean equal values.
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

Colour TensorModel::colour_of(TensorMode mode, double number, ValueRange range) {
  if (std::isnan(number)) return kNanColour;
  if (std::isinf(number)) return number > 0 ? kPositiveInfColour : kNegativeInfColour;
  const double t = range.high > range.low ? (number - range.low) / (range.high - range.low) : 0;
  if (mode == TensorMode::difference) return signed_colour(2 * t - 1);
  if (is_difference(mode)) return number == 0 ? Colour{0xF7, 0xF7, 0xF7} : magnitude_colour(t);
  return value_colour(t);
}

HeatImage TensorModel::image(TensorMode mode, ValueRange range, int32_t greatest_side) const {
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
  const bool by_difference = is_pooled && has_b() && mode >= TensorMode::ulp;
  const TensorMode chooser = by_difference ? TensorMode::absolute : mode;
  std::vector<double> best(is_pooled ? count : 0, -1);
  std::vector<int64_t> chosen(is_pooled ? count : 0, -1);
  for_each([&](int64_t row, int64_t column, int64_t element) {
    const auto pixel = static_cast<size_t>(row / image.block_rows) * static_cast<size_t>(image.width) +
                       static_cast<size_t>(column / image.block_columns);
    const double value = number(chooser, element);
    if (!is_pooled) {
      image.pixels[pixel] = packed(colour_of(mode, value, range));
      return;
    }
    const double weight = weight_of(value);
    if (weight <= best[pixel]) return;
    best[pixel] = weight;
    chosen[pixel] = element;
  });
  for (size_t pixel = 0; pixel < chosen.size(); ++pixel) {
    if (chosen[pixel] >= 0) image.pixels[pixel] = packed(colour_of(mode, number(mode, chosen[pixel]), range));
  }
  return image;
}

SliceHistogram TensorModel::histogram(size_t bins) const {
  SliceHistogram histogram;
  const ValueRange range = autofit(TensorMode::a);
  histogram.low = range.low;
  histogram.high = range.high;
  histogram.a.assign(bins, 0);
  histogram.b.assign(has_b() ? bins : 0, 0);
  const double scale = static_cast<double>(bins) / (range.high - range.low);
  const auto count = [&](double value, std::vector<int64_t>& counts, int64_t& nan, int64_t& inf) {
    if (std::isnan(value)) {
      ++nan;
    } else if (std::isinf(value)) {
      ++inf;
    } else {
      ++counts[std::min(bins - 1, static_cast<size_t>(std::max(0.0, (value - range.low) * scale)))];
    }
  };
  for_each([&](int64_t, int64_t, int64_t element) {
    count(element_as_double(a_, element), histogram.a, histogram.nan_a, histogram.inf_a);
    if (has_b()) count(element_as_double(b_, element), histogram.b, histogram.nan_b, histogram.inf_b);
  });
  return histogram;
}

std::vector<int64_t> TensorModel::worst(TensorMode mode, size_t count) const {
  std::vector<std::pair<double, int64_t>> found;
  const auto less_bad = [](const auto& x, const auto& y) {
    return x.first != y.first ? x.first > y.first : x.second < y.second;
  };
  const TensorMode chooser = has_b() && mode < TensorMode::difference ? TensorMode::absolute : mode;
  for_each([&](int64_t, int64_t, int64_t element) {
    const double weight = weight_of(number(chooser, element));
    if (weight == 0 && has_b()) return;
    if (found.size() == count && weight <= found.front().first) return;
    found.emplace_back(weight, element);
    std::push_heap(found.begin(), found.end(), less_bad);
    if (found.size() <= count) return;
    std::pop_heap(found.begin(), found.end(), less_bad);
    found.pop_back();
  });
  std::sort_heap(found.begin(), found.end(), less_bad);
  std::vector<int64_t> elements;
  for (const auto& [weight, element] : found) elements.push_back(element);
  return elements;
}

std::vector<ChannelRow> TensorModel::channels(int axis) const {
  const auto at = static_cast<size_t>(axis);
  if (axis < 0 || at >= shape().rank()) return {};
  std::vector<ChannelRow> rows(static_cast<size_t>(shape()[at]));
  std::vector<int64_t> finite(rows.size(), 0);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = {static_cast<int64_t>(i), kInfinity, -kInfinity, 0, 0, 0};
  for (int64_t element = 0; element < a_.element_count(); ++element) {
    const auto i = static_cast<size_t>(element / strides_[at] % shape()[at]);
    const double a = element_as_double(a_, element);
    ChannelRow& row = rows[i];
    if (std::isnan(a)) ++row.nan;
    if (has_b()) {
      const double apart = number(TensorMode::absolute, element);
      if (!(apart <= row.max_abs)) row.max_abs = apart;
    }
    if (!std::isfinite(a)) continue;
    row.min = std::min(row.min, a);
    row.max = std::max(row.max, a);
    row.mean += a;
    ++finite[i];
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (finite[i] > 0) rows[i].mean /= static_cast<double>(finite[i]);
  }
  return rows;
}

}  // namespace parallax
