// SPDX-License-Identifier: Apache-2.0
// Ordinary elements told from masks, by a sample.
#include "inspector/diff/tolerance/magnitude.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

// Magnitudes of up to 1024 elements, in runs spread over the tensor; without zeros, special values and numbers next to
// the end of the type's range, which are masks. `peaks`: the largest of each run.
struct Sampled {
  std::vector<double> magnitudes, peaks;
};

Sampled sampled_magnitudes(const TensorView& view) {
  constexpr int64_t kRuns = 64, kRunLength = thresholds::kSampledRun;
  const bool is_pair = is_complex(view.dtype);
  const double masked = is_pair ? std::numeric_limits<double>::max() : 0x1p-16 * float_limits(view.dtype).max_finite;
  const double limit =
      view.dtype == DType::float16 ? 32768 : masked;  // a half's range is too short to give up 16 bits of it
  const int64_t count = view.element_count();
  Sampled sampled;
  std::vector<double>& magnitudes = sampled.magnitudes;
  const auto add = [&](int64_t index) {
    const double magnitude =
        is_pair ? std::abs(element_as_complex(view, index)) : std::abs(element_as_double(view, index));
    if (magnitude > 0 && magnitude < limit) magnitudes.push_back(magnitude);
  };
  const int64_t runs = std::min(kRuns, (count + kRunLength - 1) / kRunLength);
  for (int64_t run = 0; run < runs; ++run) {
    const int64_t begin = run * (count / runs), end = std::min(begin + kRunLength, count);
    const size_t first = magnitudes.size();
    for (int64_t index = begin; index < end; ++index) add(index);
    const auto in_run = magnitudes.begin() + static_cast<std::ptrdiff_t>(first);
    if (in_run != magnitudes.end()) sampled.peaks.push_back(*std::max_element(in_run, magnitudes.end()));
  }
  for (int64_t index = 0; magnitudes.empty() && index < count; ++index) add(index);  // sparse: the first speaks for all
  return sampled;
}

// Sizes of a tensor's ordinary elements. Masks hold numbers like -10000 that are no magnitude of anything: what
// exceeds a low quantile of the others 16384 times, and is large by itself, is left out. (Where a mask was applied, a
// Softmax gives nearly nothing compared with its ordinary elements.)
void measure_ordinary(const TensorView& view, Magnitude& magnitude) {
  auto [magnitudes, peaks] = sampled_magnitudes(view);
  if (magnitudes.empty()) return;
  const auto low = magnitudes.begin() + static_cast<std::ptrdiff_t>(magnitudes.size() / 16);
  std::nth_element(magnitudes.begin(), low, magnitudes.end());
  const double outlier = std::max(thresholds::kMaskRatio * *low, thresholds::kSmallestMask);
  const auto rms_of = [outlier](const std::vector<double>& sizes) {
    double sum = 0, ordinary = 0;
    for (const double size : sizes) {
      if (size > outlier) continue;
      sum += (size / outlier) * (size / outlier);  // scaled: squares of large numbers overflow
      ++ordinary;
    }
    return ordinary > 0 ? outlier * std::sqrt(sum / ordinary) : 0;
  };
  magnitude.rms = rms_of(magnitudes);
  magnitude.peak_rms = rms_of(peaks);
}

// Type and outer dimensions.
Magnitude typed_magnitude(const TypeInfo& type) {
  Magnitude magnitude;
  magnitude.dtype = type.dtype;
  if (!type.dims.has_value() || type.dims->empty()) return magnitude;
  magnitude.first_dim = static_cast<double>(type.dims->front().value);
  magnitude.last_dim = static_cast<double>(type.dims->back().value);
  for (const Dim& dim : *type.dims) magnitude.dims.push_back(dim.value);
  return magnitude;
}

}  // namespace

Magnitude magnitude_of(const TensorView& view) {
  Magnitude magnitude;
  magnitude.dtype = view.dtype;
  if (!is_counted(view.dtype)) return magnitude;
  measure_ordinary(view, magnitude);
  magnitude.count = static_cast<double>(view.element_count());
  if (view.shape.rank() > 0) {
    magnitude.first_dim = static_cast<double>(view.shape[0]);
    magnitude.last_dim = static_cast<double>(view.shape[view.shape.rank() - 1]);
    for (size_t axis = 0; axis < view.shape.rank(); ++axis) magnitude.dims.push_back(view.shape[axis]);
  }
  return magnitude;
}

Magnitude magnitude_of(const TypeInfo& type, const TensorStatistics& statistics) {
  Magnitude magnitude = typed_magnitude(innermost(type));
  magnitude.count = static_cast<double>(statistics.count);
  magnitude.rms = statistics.count == 0 ? 0 : statistics.l2 / std::sqrt(magnitude.count);
  return magnitude;
}

Magnitude magnitude_of_sample(const TypeInfo& type, const TensorView& sample, DType declared) {
  Magnitude magnitude = unseen_magnitude(type);
  magnitude.dtype = is_floating(sample.dtype) ? declared : sample.dtype;
  if (is_counted(sample.dtype)) measure_ordinary(sample, magnitude);
  return magnitude;
}

const TypeInfo& innermost(const TypeInfo& type) {
  const TypeInfo* held = &type;
  while (!held->inner.empty()) held = &held->inner.front();
  return *held;
}

Magnitude unseen_magnitude(const TypeInfo& type) {
  Magnitude magnitude = typed_magnitude(type);
  if (!type.dims.has_value() || type.dims->empty()) return magnitude;
  magnitude.first_dim = std::max(1.0, magnitude.first_dim);  // unknown dimensions are -1
  magnitude.last_dim = std::max(1.0, magnitude.last_dim);
  magnitude.count = 1;
  for (const Dim& dim : *type.dims) magnitude.count *= static_cast<double>(std::max<int64_t>(0, dim.value));
  return magnitude;
}

}  // namespace parallax::diff
