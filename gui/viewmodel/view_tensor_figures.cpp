// SPDX-License-Identifier: Apache-2.0
// Figures of a slice: histograms, worst elements, channels.
#include <algorithm>
#include <cmath>

#include "gui/viewmodel/view_tensor_internal.h"
#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

// Sums of one channel's finite elements (Welford 1962: no cancellation in the variance).
struct Moments {
  int64_t count = 0;
  double mean = 0, squares = 0;
  void add(double value) {
    ++count;
    const double deviation = value - mean;
    mean += deviation / static_cast<double>(count);
    squares += deviation * (value - mean);
  }
};

struct Bins {
  double low, scale;
  size_t count;
  size_t of(double location) const {
    return std::min(count - 1, static_cast<size_t>(std::max(0.0, (location - low) * scale)));
  }
};

Bins bins_over(double low, double high, size_t count) {
  return {low, high > low ? static_cast<double>(count) / (high - low) : 0, count};
}

// Signed differences and values do not fit an axis of logarithms.
bool is_magnitude(TensorMode mode) { return mode >= TensorMode::absolute; }

// A logarithmic axis of numbers of both signs is about linear up to this share of the largest.
constexpr double kLinearShare = 1e-3;
double unit_over(double low, double high) {
  const double most = std::max(std::abs(low), std::abs(high));
  return most > 0 ? most * kLinearShare : 1;
}

void count_special(double value, int64_t& nan, int64_t& inf) { ++(std::isnan(value) ? nan : inf); }

}  // namespace

double SliceHistogram::location(double value) const {
  if (!is_logarithmic) return value;
  return unit > 0 ? std::asinh(value / unit) : std::log(value);
}

double SliceHistogram::at(double share) const {
  const double along = location(low) + (location(high) - location(low)) * share;
  if (!is_logarithmic) return along;
  return unit > 0 ? std::sinh(along) * unit : std::exp(along);
}

SliceHistogram TensorModel::histogram(TensorMode mode, size_t bins, bool flips_axis) const {
  SliceHistogram histogram;
  const bool is_of_magnitudes = has_b() && is_magnitude(mode);
  histogram.is_logarithmic = is_of_magnitudes != flips_axis;
  const bool leaves_out_zeros = histogram.is_logarithmic && is_of_magnitudes;
  histogram.a.assign(bins, 0);
  if (has_b() && is_difference(mode)) {
    double low = kInfinity, high = -kInfinity;
    for_each([&](int64_t, int64_t, int64_t element) {
      const double value = number(mode, element);
      if (!std::isfinite(value) || (leaves_out_zeros && value <= 0)) return;
      low = std::min(low, value);
      high = std::max(high, value);
    });
    if (low > high) low = high = 1;
    if (histogram.is_logarithmic && !leaves_out_zeros) histogram.unit = unit_over(low, high);
    const Bins axis = bins_over(histogram.location(low), histogram.location(high), bins);
    for_each([&](int64_t, int64_t, int64_t element) {
      const double value = number(mode, element);
      if (!std::isfinite(value)) {
        count_special(value, histogram.nan_a, histogram.inf_a);
      } else if (leaves_out_zeros && value <= 0) {
        ++histogram.zeros;
      } else {
        ++histogram.a[axis.of(histogram.location(value))];
      }
    });
    histogram.low = low;
    histogram.high = high;
    return histogram;
  }
  const ValueRange range = autofit(TensorMode::a);
  histogram.low = range.low;
  histogram.high = range.high;
  histogram.b.assign(has_b() ? bins : 0, 0);
  if (histogram.is_logarithmic) histogram.unit = unit_over(range.low, range.high);
  const Bins axis = bins_over(histogram.location(range.low), histogram.location(range.high), bins);
  for_each([&](int64_t, int64_t, int64_t element) {
    const double a = element_as_double(a_, element);
    if (std::isfinite(a)) {
      ++histogram.a[axis.of(histogram.location(a))];
    } else {
      count_special(a, histogram.nan_a, histogram.inf_a);
    }
    if (!has_b()) return;
    const double b = element_as_double(b_, element);
    if (std::isfinite(b)) {
      ++histogram.b[axis.of(histogram.location(b))];
    } else {
      count_special(b, histogram.nan_b, histogram.inf_b);
    }
  });
  return histogram;
}

TensorMode TensorModel::order_of_worst(TensorMode mode) const {
  return !has_b() || mode == TensorMode::relative || mode == TensorMode::ulp ? mode : TensorMode::severity;
}

std::vector<int64_t> TensorModel::worst(TensorMode mode, size_t count, const ElementFilter& filter) const {
  std::vector<std::pair<double, int64_t>> found;
  const auto less_bad = [](const auto& x, const auto& y) {
    return x.first != y.first ? x.first > y.first : x.second < y.second;
  };
  const TensorMode chooser = order_of_worst(mode);
  for_each([&](int64_t, int64_t, int64_t element) {
    if (filter.is_set() && !passes(filter, mode, element)) return;
    const double weight = weight_of(number(chooser, element));
    if (weight == 0 && has_b() && !filter.is_set()) return;
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

std::vector<int64_t> TensorModel::passing(const ElementFilter& filter, TensorMode mode, size_t count,
                                          int64_t& total) const {
  std::vector<int64_t> elements;
  total = 0;
  for (int64_t position = 0; position < slice_count(); ++position) {
    if (position % kElementsBetweenPolls == 0 && stop_.is_cancelled()) break;
    const int64_t element = element_in_slice(position);
    if (!passes(filter, mode, element)) continue;
    ++total;
    if (elements.size() < count) elements.push_back(element);
  }
  return elements;
}

int TensorModel::channel_axis() const {
  const auto rank = static_cast<int>(shape().rank());
  return rank >= 4 ? 1 : rank - 1;
}

std::vector<ChannelRow> TensorModel::channels(int axis) const {
  const auto at = static_cast<size_t>(axis);
  if (axis < 0 || at >= shape().rank()) return {};
  std::vector<ChannelRow> rows(static_cast<size_t>(shape()[at]));
  std::vector<Moments> moments(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].index = static_cast<int64_t>(i);
    rows[i].min = kInfinity;
    rows[i].max = -kInfinity;
  }
  for (int64_t element = 0; element < a_.element_count(); ++element) {
    if (element % kElementsBetweenPolls == 0 && stop_.is_cancelled()) break;
    const auto i = static_cast<size_t>(element / strides_[at] % shape()[at]);
    const double a = element_as_double(a_, element);
    ChannelRow& row = rows[i];
    if (has_b()) {
      const double distance = number(TensorMode::absolute, element);
      if (std::isnan(distance) || distance > row.max_abs) row.max_abs = distance;  // NaN stays
    }
    if (!std::isfinite(a)) {
      count_special(a, row.nan, row.inf);
      continue;
    }
    row.min = std::min(row.min, a);
    row.max = std::max(row.max, a);
    moments[i].add(a);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].mean = moments[i].mean;
    if (moments[i].count > 0) rows[i].std = std::sqrt(moments[i].squares / static_cast<double>(moments[i].count));
  }
  return rows;
}

}  // namespace parallax
