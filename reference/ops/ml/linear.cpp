// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml's linear models: LinearClassifier, LinearRegressor.
#include <fmt/format.h>

#include "reference/ops/families.h"
#include "reference/ops/matrix.h"
#include "reference/ops/ml/shared.h"

namespace parallax::reference {
namespace {

// scores[n, e] = sum over c of x[n, c] * coefficients[e, c] + intercepts[e]
Result<std::vector<double>> linear_scores(const Features& x, const std::vector<double>& coefficients,
                                          const std::vector<double>& intercepts, int64_t targets) {
  PX_TRY(expect_count("coefficients", coefficients.size(), targets, x.columns));
  const std::vector<int64_t> dims{x.rows, targets};
  const Shape shape = PX_TRY(Shape::create(dims));
  if (!intercepts.empty()) PX_TRY(expect_count("intercepts", intercepts.size(), targets));
  std::vector<double> scores(static_cast<size_t>(shape.element_count()));
  const Matrix<double> left{x.numbers, x.rows, x.columns, x.columns, 1};
  const Matrix<double> right{coefficients, targets, x.columns, x.columns, 1};
  multiply(left, right.transposed(), std::span(scores));
  for (size_t at = 0; !intercepts.empty() && at < scores.size(); ++at) scores[at] += intercepts[at % intercepts.size()];
  return scores;
}

// ai.onnx.ml LinearClassifier-1. One set of coefficients for two labels gives the second class's score s: (-s, s) where
// a logistic or a softmax follows, else (1 - s, s); the second label where s > 0. The page is silent here; onnxruntime
// does the same but skips the softmax, ReferenceEvaluator always writes -s. `multi_class` changes nothing in inference.
Status op_ml_linear_classifier(OpContext& op) {
  const Features x = PX_TRY(read_features(op, 0));
  const ClassLabels labels = PX_TRY(ClassLabels::create(op, "classlabels_ints"));
  const PostTransform transform = PX_TRY(post_transform_of(op));
  const auto coefficients = op.find_floats("coefficients").value_or(std::vector<double>{});
  const auto intercepts = op.find_floats("intercepts").value_or(std::vector<double>{});
  const int64_t targets = x.columns == 0 ? 0 : static_cast<int64_t>(coefficients.size()) / x.columns;
  const std::vector<double> scores = PX_TRY(linear_scores(x, coefficients, intercepts, targets));
  if (targets != labels.size() && targets != 1)
    return invalid_model(fmt::format("there are {} sets of coefficients; there must be 1 or {}, one for each label",
                                     targets, labels.size()));
  if (labels.size() > 2 && targets == 1)
    return invalid_model(fmt::format(
        "there is one set of coefficients for {} labels; there must be one for each of more than two", labels.size()));
  const bool is_probability = transform == PostTransform::none || transform == PostTransform::probit;
  std::vector<int64_t> chosen;
  std::vector<double> results;
  for (int64_t row = 0; row < x.rows; ++row) {
    const auto own = std::span(scores).subspan(static_cast<size_t>(row * targets), static_cast<size_t>(targets));
    std::vector<double> classes(own.begin(), own.end());
    if (targets > 1) {
      chosen.push_back(index_of_greatest(own));
    } else if (labels.size() == 2) {
      chosen.push_back(own[0] > 0 ? 1 : 0);
      classes = two_scores(own[0], is_probability);
    } else {
      chosen.push_back(own[0] > 0 ? 0 : kNoClass);
    }
    apply_post_transform(transform, classes);
    results.insert(results.end(), classes.begin(), classes.end());
  }
  return set_classes(op, labels, chosen, results);
}

// ai.onnx.ml LinearRegressor-1. The transform is applied to the targets of a row also where there is but one
// (onnxruntime then leaves out all but PROBIT).
Status op_ml_linear_regressor(OpContext& op) {
  const Features x = PX_TRY(read_features(op, 0));
  const PostTransform transform = PX_TRY(post_transform_of(op));
  const int64_t targets = op.int_attribute("targets");
  std::vector<double> scores =
      PX_TRY(linear_scores(x, op.find_floats("coefficients").value_or(std::vector<double>{}),
                           op.find_floats("intercepts").value_or(std::vector<double>{}), targets));
  for (int64_t row = 0; row < x.rows; ++row) {
    apply_post_transform(transform,
                         std::span(scores).subspan(static_cast<size_t>(row * targets), static_cast<size_t>(targets)));
  }
  return op.set_output(0, DType::float32, Shape{x.rows, targets}, std::span<const double>(scores));
}

constexpr OpRow kMlLinearRows[] = {
    {"LinearClassifier", kMl, 1, 1, op_ml_linear_classifier},
    {"LinearRegressor", kMl, 1, 1, op_ml_linear_regressor},
};

}  // namespace

OpRows ml_linear_rows() { return kMlLinearRows; }

}  // namespace parallax::reference
