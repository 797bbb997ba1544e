// SPDX-License-Identifier: Apache-2.0
// Rules that look at the right and the captured values alone.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "inspector/diff/localize/accumulated_rounding.h"
#include "inspector/diff/localize/explanation.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

constexpr size_t kEnough = 8;  // elements that may speak for a pattern

bool is_wrong(double expected, double actual, const Limit& limit) {
  if (std::isnan(expected) && std::isnan(actual)) return false;
  if (expected == actual) return false;
  return !(std::abs(expected - actual) <= limit.atol + limit.rtol * std::abs(expected));
}

std::vector<size_t> wrong_elements(const ExplanationEvidence& evidence) {
  std::vector<size_t> wrong;
  const auto& expected = evidence.expected_doubles();
  const auto& actual = evidence.actual_doubles();
  for (size_t index = 0; index < expected.size(); ++index) {
    if (is_wrong(expected[index], actual[index], evidence.judgement().limit)) wrong.push_back(index);
  }
  return wrong;
}

bool all_inputs_finite(const ExplanationEvidence& evidence) {
  for (const FoundValue& input : evidence.inputs()) {
    if (!input.value.is_tensor() || !is_floating(input.value.tensor().dtype())) continue;
    const Tensor& tensor = input.value.tensor();
    for (int64_t index = 0; index < tensor.element_count(); ++index) {
      if (!std::isfinite(element_as_double(tensor, index))) return false;
    }
  }
  return true;
}

std::string text_of(const Shape& shape) {
  std::vector<int64_t> dims(shape.begin(), shape.end());
  return fmt::format("[{}]", fmt::join(dims, ","));
}

}  // namespace

std::optional<std::string> explain_handed_on(const ExplanationEvidence& evidence) {
  if (evidence.judgement().carried_values.empty()) return std::nullopt;
  return evidence.judgement().carried_values;
}

std::optional<std::string> explain_shape(const ExplanationEvidence& evidence) {
  if (!evidence.expected().is_tensor() || !evidence.actual().is_tensor()) return std::nullopt;
  const Tensor& expected = evidence.expected().tensor();
  const Tensor& actual = evidence.actual().tensor();
  if (!(expected.shape() == actual.shape())) {
    return fmt::format("its result has shape {} instead of {}", text_of(actual.shape()), text_of(expected.shape()));
  }
  if (expected.dtype() == actual.dtype() || (is_floating(expected.dtype()) && is_floating(actual.dtype()))) {
    return std::nullopt;
  }
  return fmt::format("its result is {} instead of {}", name_of(actual.dtype()), name_of(expected.dtype()));
}

std::optional<std::string> explain_overflow(const ExplanationEvidence& evidence) {
  const auto& expected = evidence.expected_doubles();
  const auto& actual = evidence.actual_doubles();
  const double largest = float_limits(DType::float16).max_finite;
  for (size_t index = 0; index < expected.size(); ++index) {
    const bool is_beyond = std::isfinite(expected[index]) && std::abs(expected[index]) > largest;
    const bool is_lost = !std::isfinite(actual[index]) || std::abs(actual[index]) == largest;
    if (!is_beyond || !is_lost) continue;
    return fmt::format("half precision overflow: {:.6g} is beyond 65504, the largest float16, and became {:.6g}",
                       expected[index], actual[index]);
  }
  return std::nullopt;
}

std::optional<std::string> explain_not_finite(const ExplanationEvidence& evidence) {
  const auto& expected = evidence.expected_doubles();
  const auto& actual = evidence.actual_doubles();
  int64_t nan = 0, infinite = 0;
  size_t first = expected.size();
  for (size_t index = 0; index < expected.size(); ++index) {
    if (!std::isfinite(expected[index]) || std::isfinite(actual[index])) continue;
    (std::isnan(actual[index]) ? nan : infinite) += 1;
    first = std::min(first, index);
  }
  if (first == expected.size()) return std::nullopt;
  std::string what = nan > 0 && infinite > 0 ? "NaN and infinities" : nan > 0 ? "NaN" : "infinities";
  const auto location = evidence.actual().tensor().shape().index_of(static_cast<int64_t>(first));
  return fmt::format("{} first appear here: {} of {} elements, the first at [{}], where {:.6g} is right{}", what,
                     nan + infinite, expected.size(), fmt::join(location, ","), expected[first],
                     all_inputs_finite(evidence) ? "; all its inputs are finite" : "");
}

// Arithmetic without subnormal numbers, as some processors and compilers have it.
std::optional<std::string> explain_flushed(const ExplanationEvidence& evidence) {
  const std::vector<size_t> wrong = wrong_elements(evidence);
  if (wrong.empty() || !is_floating(evidence.actual().tensor().dtype())) return std::nullopt;
  const double least = float_limits(evidence.actual().tensor().dtype()).min_normal;
  double largest = 0;
  for (const size_t index : wrong) {
    const double expected = std::abs(evidence.expected_doubles()[index]);
    if (evidence.actual_doubles()[index] != 0 || !(expected < least)) return std::nullopt;
    largest = std::max(largest, expected);
  }
  return fmt::format(
      "flushed to zero: {} of {} elements are 0 where subnormal numbers are right, up to {:.3g} (first at [{}])",
      wrong.size(), evidence.actual_doubles().size(), largest,
      fmt::join(evidence.actual().tensor().shape().index_of(static_cast<int64_t>(wrong.front())), ","));
}

std::optional<std::string> explain_unwritten(const ExplanationEvidence& evidence) {
  const std::vector<size_t> wrong = wrong_elements(evidence);
  const auto& actual = evidence.actual_doubles();
  if (wrong.size() < kEnough && wrong.size() != actual.size()) return std::nullopt;
  if (wrong.empty()) return std::nullopt;
  const double value = actual[wrong.front()];
  if (!std::ranges::all_of(wrong, [&](size_t index) { return actual[index] == value; })) return std::nullopt;
  if (wrong.size() == 1) return std::nullopt;
  return fmt::format("{} of {} elements are {:.6g}, as if they had never been written (first at [{}])", wrong.size(),
                     actual.size(), value,
                     fmt::join(evidence.actual().tensor().shape().index_of(static_cast<int64_t>(wrong.front())), ","));
}

std::optional<std::string> explain_is_an_input(const ExplanationEvidence& evidence) {
  for (size_t index = 0; index < evidence.inputs().size(); ++index) {
    const Value& input = evidence.inputs()[index].value;
    if (!input.is_tensor() || !evidence.actual().is_tensor()) continue;
    if (!(input.tensor().shape() == evidence.actual().tensor().shape())) continue;
    if (input.tensor().dtype() != evidence.actual().tensor().dtype()) continue;
    if (!evidence.is_reproduced_by(input)) continue;
    return fmt::format("its result is its input '{}' unchanged: the operation had no effect",
                       evidence.input_name(index));
  }
  return std::nullopt;
}

std::optional<std::string> explain_stale_output(const ExplanationEvidence& evidence) {
  constexpr size_t kLookedBack = 64;
  if (!evidence.actual().is_tensor() || evidence.actual_doubles().size() < 2) return std::nullopt;
  const Tensor& actual = evidence.actual().tensor();
  for (size_t back = 1; back <= std::min(kLookedBack, evidence.earlier().size()); ++back) {
    const std::string& path = evidence.earlier()[evidence.earlier().size() - back];
    const Value value = evidence.captured(path);
    if (!value.is_tensor() || value.tensor().dtype() != actual.dtype()) continue;
    if (value.tensor().element_count() != actual.element_count()) continue;
    if (!evidence.is_reproduced_by(value.tensor().reshaped(actual.shape()))) continue;
    return fmt::format("its result is the earlier value '{}': a stale buffer, or one that was never written", path);
  }
  return std::nullopt;
}

std::optional<std::string> explain_scaled(const ExplanationEvidence& evidence) {
  const auto& expected = evidence.expected_doubles();
  const auto& actual = evidence.actual_doubles();
  if (expected.size() < 2) return std::nullopt;
  double product = 0, square = 0;
  for (size_t index = 0; index < expected.size(); ++index) {
    if (!std::isfinite(expected[index]) || !std::isfinite(actual[index])) continue;
    product += expected[index] * actual[index];
    square += expected[index] * expected[index];
  }
  if (!(square > 0) || product == 0) return std::nullopt;
  const double factor = product / square;
  std::vector<double> scaled = expected;
  for (double& element : scaled) element *= factor;
  if (!evidence.is_reproduced_by(scaled)) return std::nullopt;
  return fmt::format("its result is the right one times {:.6g}: a scale is missing or wrong", factor);
}

std::optional<std::string> explain_offset(const ExplanationEvidence& evidence) {
  const auto& expected = evidence.expected_doubles();
  const auto& actual = evidence.actual_doubles();
  if (expected.size() < 2) return std::nullopt;
  double offset = 0;
  for (size_t index = 0; index < expected.size(); ++index) offset += actual[index] - expected[index];
  offset /= static_cast<double>(expected.size());
  if (!std::isfinite(offset) || offset == 0) return std::nullopt;
  std::vector<double> moved = expected;
  for (double& element : moved) element += offset;
  if (!evidence.is_reproduced_by(moved)) return std::nullopt;
  return fmt::format("every element is off by the same {:.6g}: a bias, a zero point or an offset is wrong", offset);
}

std::optional<std::string> explain_moved(const ExplanationEvidence& evidence) {
  if (evidence.expected_doubles().size() < kEnough) return std::nullopt;
  const Tensor& expected = evidence.expected().tensor();
  const auto rank = expected.shape().rank();
  for (size_t axis = 0; axis < rank; ++axis) {
    if (expected.shape()[axis] < 2) continue;
    for (const int64_t by : {1, -1}) {
      const auto candidate = rolled(expected, axis, by);
      if (candidate.has_value() && evidence.is_reproduced_by(*candidate))
        return fmt::format("its elements are shifted by one along axis {}: off by one slice", axis);
    }
  }
  if (rank < 2 || rank > 4) return std::nullopt;
  std::vector<int64_t> permutation(rank);
  std::iota(permutation.begin(), permutation.end(), 0);
  while (std::next_permutation(permutation.begin(), permutation.end())) {
    const auto candidate = transposed(expected, permutation);
    if (candidate.has_value() && evidence.is_reproduced_by(candidate->reshaped(expected.shape())))
      return fmt::format(
          "its elements are stored as if the axes were in the order [{}]: transposed, or written in another "
          "layout",
          fmt::join(permutation, ","));
  }
  return std::nullopt;
}

std::optional<std::string> explain_order_among_equals(const ExplanationEvidence& evidence) {
  const bool are_indices = evidence.actual().is_tensor() && is_integer(evidence.actual().tensor().dtype());
  if (!are_indices || !is_chooser(evidence.node()) || evidence.inputs().empty()) return std::nullopt;
  const Value& scores = evidence.inputs().front().value;
  const std::vector<size_t> wrong = wrong_elements(evidence);
  if (wrong.empty() || !scores.is_tensor()) return std::nullopt;
  const Tensor &expected = evidence.expected().tensor(), &actual = evidence.actual().tensor();
  if (score_gap(evidence.node(), scores.tensor(), expected, actual) != 0) return std::nullopt;
  const auto first = static_cast<int64_t>(wrong.front());
  return fmt::format(
      "it takes equal elements in another order than the specification does: at [{}] it chose index {} instead of {}",
      fmt::join(actual.shape().index_of(first), ","), element_as_int64(actual, first),
      element_as_int64(expected, first));
}

std::optional<std::string> explain_region(const ExplanationEvidence& evidence) {
  const std::vector<size_t> wrong = wrong_elements(evidence);
  const size_t count = evidence.expected_doubles().size();
  if (wrong.empty() || wrong.size() == count) return std::nullopt;
  const Shape& shape = evidence.actual().tensor().shape();
  const auto index_text = [&](size_t linear) {
    return fmt::format("[{}]", fmt::join(shape.index_of(static_cast<int64_t>(linear)), ","));
  };
  if (wrong.size() == 1) {
    return fmt::format("a single element is wrong, at {}: {:.9g} instead of {:.9g}", index_text(wrong[0]),
                       evidence.actual_doubles()[wrong[0]], evidence.expected_doubles()[wrong[0]]);
  }
  if (wrong.back() == count - 1 && wrong.back() - wrong.front() + 1 == wrong.size() && wrong.size() * 2 < count)
    return fmt::format(
        "only the last {} of {} elements are wrong, from {} on: the end of the buffer was missed or "
        "overwritten",
        wrong.size(), count, index_text(wrong.front()));
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    int64_t low = shape[axis], high = -1;
    for (const size_t linear : wrong) {
      const int64_t at = shape.index_of(static_cast<int64_t>(linear))[axis];
      low = std::min(low, at);
      high = std::max(high, at);
    }
    if (2 * (high - low + 1) > shape[axis]) continue;
    return fmt::format("only elements with index {} along axis {} are wrong ({} of {})",
                       low == high ? fmt::format("{}", low) : fmt::format("{} to {}", low, high), axis, wrong.size(),
                       count);
  }
  return std::nullopt;
}

std::optional<Tensor> transposed(const Tensor& tensor, std::span<const int64_t> permutation) {
  const auto rank = tensor.shape().rank();
  if (permutation.size() != rank || tensor.dtype() == DType::string) return std::nullopt;
  std::vector<int64_t> dims(rank), strides(rank, 1);
  for (size_t axis = rank; axis-- > 1;) strides[axis - 1] = strides[axis] * tensor.shape()[axis];
  for (size_t axis = 0; axis < rank; ++axis) dims[axis] = tensor.shape()[static_cast<size_t>(permutation[axis])];
  const auto shape = Shape::create(dims);
  if (!shape.ok()) return std::nullopt;
  auto result = Tensor::allocate(DType::float64, *shape);
  if (!result.ok()) return std::nullopt;
  const std::span<double> elements = result->mutable_as<double>();
  for (size_t linear = 0; linear < elements.size(); ++linear) {
    const auto index = shape->index_of(static_cast<int64_t>(linear));
    int64_t source = 0;
    for (size_t axis = 0; axis < rank; ++axis) source += index[axis] * strides[static_cast<size_t>(permutation[axis])];
    elements[linear] = element_as_double(tensor, source);
  }
  return result.take();
}

std::optional<Tensor> rolled(const Tensor& tensor, size_t axis, int64_t by) {
  auto result = Tensor::allocate(DType::float64, tensor.shape());
  if (!result.ok() || tensor.dtype() == DType::string) return std::nullopt;
  const Shape& shape = tensor.shape();
  int64_t inner = 1;
  for (size_t later = axis + 1; later < shape.rank(); ++later) inner *= shape[later];
  const int64_t size = shape[axis];
  const std::span<double> elements = result->mutable_as<double>();
  for (size_t linear = 0; linear < elements.size(); ++linear) {
    const auto position = static_cast<int64_t>(linear);
    const int64_t at = position / inner % size, from = ((at - by) % size + size) % size;
    elements[linear] = element_as_double(tensor, position + (from - at) * inner);
  }
  return result.take();
}

}  // namespace parallax::diff
