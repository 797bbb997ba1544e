// SPDX-License-Identifier: Apache-2.0
// Reading features and labels, and the transforms of scores, as the pages of ai.onnx.ml name them.
#include "reference/ops/ml/shared.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "inspector/base/checked_math.h"
#include "inspector/model/rule_errors.h"
#include "reference/kernels/numbers.h"

namespace parallax::reference {

Result<Features> read_features(const OpContext& op, size_t index) {
  const Shape& shape = op.input(index).shape();
  if (shape.rank() < 1 || shape.rank() > 2) return wrong_input(op, index, "have rank 1 or 2: [C] or [N,C]");
  Features features;
  features.rows = shape.rank() == 2 ? shape[0] : 1;
  features.columns = shape[shape.rank() - 1];
  const Numbers<double> numbers(op.input(index));
  features.numbers.assign(numbers.span().begin(), numbers.span().end());
  return features;
}

Result<std::vector<double>> numbers_attribute(const OpContext& op, const std::string& name) {
  const Tensor* tensor = op.find_tensor(name + "_as_tensor");
  if (tensor == nullptr) return op.find_floats(name).value_or(std::vector<double>{});
  if (op.has_attribute(name))
    return invalid_model(fmt::format("attributes '{0}' and '{0}_as_tensor' are both given; at most one must be", name));
  if (!is_floating(tensor->dtype()))
    return invalid_model(
        fmt::format("attribute '{}_as_tensor' is {}; it must be floating", name, name_of(tensor->dtype())));
  const Numbers<double> numbers(*tensor);
  return std::vector<double>(numbers.span().begin(), numbers.span().end());
}

std::vector<int64_t> ints_or_empty(const OpContext& op, std::string_view name) {
  return op.find_ints(name).value_or(std::vector<int64_t>{});
}

std::vector<std::string> strings_or_empty(const OpContext& op, std::string_view name) {
  return op.find_strings(name).value_or(std::vector<std::string>{});
}

Result<ClassLabels> ClassLabels::create(const OpContext& op, std::string_view integers_name) {
  ClassLabels labels{ints_or_empty(op, integers_name), strings_or_empty(op, "classlabels_strings")};
  if (labels.integers.empty() == labels.strings.empty())
    return invalid_model(
        fmt::format("{} of the attributes '{}' and 'classlabels_strings' are given; exactly one must be",
                    labels.strings.empty() ? 0 : 2, integers_name));
  return labels;
}

Result<PostTransform> post_transform_of(const OpContext& op) {
  const std::string name = op.string_attribute("post_transform");
  if (name == "NONE") return PostTransform::none;
  if (name == "SOFTMAX") return PostTransform::softmax;
  if (name == "LOGISTIC") return PostTransform::logistic;
  if (name == "SOFTMAX_ZERO") return PostTransform::softmax_zero;
  if (name == "PROBIT") return PostTransform::probit;
  return as_invalid_model(
      wrong_attribute("post_transform", name, "be NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT"));
}

namespace {

double logistic(double value) { return 1.0 / (1.0 + std::exp(-value)); }

// The inverse of the standard normal distribution's cumulative function, by bisection of erfc: exact to double. (Both
// peers use an approximation that is off by up to 2e-3.) NaN outside [0, 1].
double probit(double probability) {
  if (!(probability >= 0 && probability <= 1)) return std::numeric_limits<double>::quiet_NaN();
  if (probability == 0 || probability == 1) {
    return std::copysign(std::numeric_limits<double>::infinity(), probability - 0.5);
  }
  if (probability > 0.5) return -probit(1 - probability);
  double low = -40;  // the least positive double is the probability of -38.5
  double high = 0;
  constexpr int kHalvings = 100;  // of an interval of 40: more than a double's digits
  for (int step = 0; step < kHalvings; ++step) {
    const double middle = 0.5 * (low + high);
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < probability ? low : high) = middle;
  }
  return high;
}

// exp(score) / sum. With `skip_zeros`, scores that are 0 stay 0 and are no part of the sum; a row of zeros stays one.
void softmax(std::span<double> scores, bool skip_zeros) {
  constexpr double kZero = 1e-7;  // what both peers hold to be 0
  if (scores.empty()) return;
  const auto skipped = [&](double score) { return skip_zeros && std::fabs(score) <= kZero; };
  const double highest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) {
    score = skipped(score) ? 0 : std::exp(score - highest);
    sum += score;
  }
  for (double& score : scores) score = sum == 0.0 ? 0 : score / sum;
}

}  // namespace

void apply_post_transform(PostTransform transform, std::span<double> scores) {
  switch (transform) {
    case PostTransform::none:
      return;
    case PostTransform::softmax:
      return softmax(scores, false);
    case PostTransform::softmax_zero:
      return softmax(scores, true);
    case PostTransform::logistic:
      for (double& score : scores) score = logistic(score);
      return;
    case PostTransform::probit:
      for (double& score : scores) score = probit(score);
      return;
  }
}

std::vector<double> two_scores(double score, bool is_probability) {
  return {is_probability ? 1 - score : -score, score};
}

Status set_classes(OpContext& op, const ClassLabels& labels, const std::vector<int64_t>& chosen,
                   const std::vector<double>& scores) {
  const auto rows = static_cast<int64_t>(chosen.size());
  const auto pick = [&]<class Label>(const std::vector<Label>& list) {
    std::vector<Label> picked;
    for (int64_t index : chosen) picked.push_back(index == kNoClass ? Label{} : list.at(static_cast<size_t>(index)));
    return Tensor::from<Label>(Shape{rows}, picked);
  };
  PX_TRY(op.set_output(0, labels.strings.empty() ? pick(labels.integers) : pick(labels.strings)));
  const int64_t columns = rows == 0 ? labels.size() : static_cast<int64_t>(scores.size()) / rows;
  return op.set_output(1, DType::float32, Shape{rows, columns}, std::span<const double>(scores));
}

int64_t index_of_greatest(std::span<const double> values) {
  return std::max_element(values.begin(), values.end()) - values.begin();
}

Status expect_count(std::string_view name, size_t count, int64_t rows, int64_t columns) {
  const std::array<int64_t, 2> factors{rows, columns};
  const auto expected = checked_product(factors);
  if (rows >= 0 && expected.has_value() && static_cast<int64_t>(count) == *expected) return {};
  return invalid_model(fmt::format("attribute '{}' has {} entries; it must have {} x {}", name, count, rows, columns));
}

}  // namespace parallax::reference
