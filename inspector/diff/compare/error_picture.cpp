// SPDX-License-Identifier: Apache-2.0
// Maps and histograms, from elements read as double.
#include "inspector/diff/compare/error_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

bool is_of_numbers(const Value& value) {
  return value.is_tensor() && value.tensor().device().is_host() && value.tensor().dtype() != DType::string &&
         !is_complex(value.tensor().dtype());
}

// 0 for what comparison holds for equal: the same number, NaN against NaN.
double error_between(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double difference = std::abs(a - b);
  return std::isfinite(difference) ? difference : std::numeric_limits<double>::infinity();
}

// Both tensors' elements as double, a stretch at a time, so that large tensors need no second copy.
template <class Take>  // void(int64_t first element, span of A's, span of B's)
void each_stretch(const Tensor& a, const Tensor& b, Take&& take) {
  constexpr int64_t kStretch = 4096;
  std::array<double, kStretch> of_a, of_b;
  const int64_t elements = a.shape().element_count();
  for (int64_t first = 0; first < elements; first += kStretch) {
    const auto count = static_cast<size_t>(std::min(kStretch, elements - first));
    const std::span<double> values_a(of_a.data(), count), values_b(of_b.data(), count);
    load_doubles(a.view(), first, values_a);
    load_doubles(b.view(), first, values_b);
    take(first, std::span<const double>(values_a), std::span<const double>(values_b));
  }
}

void take_range(std::span<const double> values, ErrorPicture& picture) {
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    picture.low = std::min(picture.low, value);
    picture.high = std::max(picture.high, value);
  }
}

void take_errors(int64_t first, std::span<const double> a, std::span<const double> b, ErrorPicture& picture) {
  for (size_t index = 0; index < a.size(); ++index) {
    const int64_t element = first + static_cast<int64_t>(index);
    const int64_t row = element / picture.matrix_columns * picture.rows / picture.matrix_rows;
    const int64_t column = element % picture.matrix_columns * picture.columns / picture.matrix_columns;
    double& cell = picture.errors[static_cast<size_t>(row * picture.columns + column)];
    cell = std::max(cell, error_between(a[index], b[index]));
  }
}

void count(std::span<const double> values, const ErrorPicture& picture, std::vector<int64_t>& histogram) {
  const double width = picture.high - picture.low;
  const double scale = width > 0 ? static_cast<double>(ErrorPicture::kBins) / width : 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    const auto bin = static_cast<int64_t>(std::max(0.0, (value - picture.low) * scale));
    ++histogram[static_cast<size_t>(std::min(ErrorPicture::kBins - 1, bin))];
  }
}

}  // namespace

std::optional<ErrorPicture> make_error_picture(const Value& a, const Value& b) {
  if (!is_of_numbers(a) || !is_of_numbers(b) || !(a.tensor().shape() == b.tensor().shape())) return std::nullopt;
  const Shape& shape = a.tensor().shape();
  const int64_t elements = shape.element_count();
  if (elements == 0) return std::nullopt;
  ErrorPicture picture;
  size_t across = shape.rank();
  while (across > 1 && shape[across - 1] == 1) --across;
  picture.matrix_columns = across == 0 ? 1 : shape[across - 1];
  picture.matrix_rows = elements / picture.matrix_columns;
  picture.rows = std::min(picture.matrix_rows, ErrorPicture::kMaxRows);
  picture.columns = std::min(picture.matrix_columns, ErrorPicture::kMaxColumns);
  picture.errors.assign(static_cast<size_t>(picture.rows * picture.columns), 0.0);
  picture.histogram_a.assign(ErrorPicture::kBins, 0);
  picture.histogram_b.assign(ErrorPicture::kBins, 0);

  picture.low = std::numeric_limits<double>::infinity();
  picture.high = -picture.low;
  each_stretch(a.tensor(), b.tensor(), [&](int64_t first, std::span<const double> of_a, std::span<const double> of_b) {
    take_errors(first, of_a, of_b, picture);
    take_range(of_a, picture);
    take_range(of_b, picture);
  });
  if (picture.low > picture.high) picture.low = picture.high = 0;
  each_stretch(a.tensor(), b.tensor(), [&](int64_t, std::span<const double> of_a, std::span<const double> of_b) {
    count(of_a, picture, picture.histogram_a);
    count(of_b, picture, picture.histogram_b);
  });
  return picture;
}

void PictureGallery::consider(const Value& a, const Value& b, ValueComparison& result) {
  if (!is_wanted_ || result.verdict != Verdict::diverged) return;
  {
    const std::lock_guard lock(mutex_);
    if (made_ >= kMost || (made_ >= kFirst && !(result.severity > worst_))) return;
    worst_ = std::max(worst_, result.severity);
    ++made_;
  }
  if (auto picture = make_error_picture(a, b)) result.picture = std::make_shared<ErrorPicture>(*std::move(picture));
}

}  // namespace parallax
