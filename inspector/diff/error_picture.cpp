// Maps and histograms, from elements read as double.
#include "inspector/diff/error_picture.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

void take_range(const std::vector<double>& values, ErrorPicture& picture) {
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    picture.low = std::min(picture.low, value);
    picture.high = std::max(picture.high, value);
  }
}

void count(const std::vector<double>& values, const ErrorPicture& picture, std::vector<int64_t>& histogram) {
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
  picture.matrix_columns = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  picture.matrix_rows = elements / picture.matrix_columns;
  picture.rows = std::min(picture.matrix_rows, ErrorPicture::kMaxRows);
  picture.columns = std::min(picture.matrix_columns, ErrorPicture::kMaxColumns);
  picture.errors.assign(static_cast<size_t>(picture.rows * picture.columns), 0.0);
  picture.histogram_a.assign(ErrorPicture::kBins, 0);
  picture.histogram_b.assign(ErrorPicture::kBins, 0);

  std::vector<double> values_a(static_cast<size_t>(elements)), values_b(static_cast<size_t>(elements));
  load_doubles(a.tensor().view(), 0, values_a);
  load_doubles(b.tensor().view(), 0, values_b);
  for (int64_t row = 0; row < picture.matrix_rows; ++row) {
    const int64_t cell_row = row * picture.rows / picture.matrix_rows;
    for (int64_t column = 0; column < picture.matrix_columns; ++column) {
      const auto index = static_cast<size_t>(row * picture.matrix_columns + column);
      const int64_t cell_column = column * picture.columns / picture.matrix_columns;
      double& cell = picture.errors[static_cast<size_t>(cell_row * picture.columns + cell_column)];
      cell = std::max(cell, error_between(values_a[index], values_b[index]));
    }
  }
  picture.low = std::numeric_limits<double>::infinity();
  picture.high = -picture.low;
  take_range(values_a, picture);
  take_range(values_b, picture);
  if (picture.low > picture.high) picture.low = picture.high = 0;
  count(values_a, picture, picture.histogram_a);
  count(values_b, picture, picture.histogram_b);
  return picture;
}

void PictureGallery::consider(const Value& a, const Value& b, ValueComparison& result) {
  if (result.verdict != Verdict::diverged) return;
  {
    const std::lock_guard lock(mutex_);
    if (made_ >= kMost || (made_ >= kFirst && !(result.severity > worst_))) return;
    worst_ = std::max(worst_, result.severity);
    ++made_;
  }
  if (auto picture = make_error_picture(a, b)) result.picture = std::make_shared<ErrorPicture>(*std::move(picture));
}

}  // namespace parallax
