// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml's tree ensembles: TreeEnsemble, TreeEnsembleClassifier, TreeEnsembleRegressor.
#include <algorithm>
#include <mutex>

#include <fmt/format.h>

#include "inspector/base/thread_pool.h"
#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/ml/forest.h"

namespace parallax::reference {
namespace {

constexpr int64_t kMostTargets = int64_t{1} << 24;  // a bound for a count that an attribute names freely

Status check_targets(int64_t targets) {
  if (targets > 0 && targets <= kMostTargets) return {};
  return invalid_model(fmt::format("the number of targets is {}; it must be in [1, {}]", targets, kMostTargets));
}

// The scores of every sample, in the samples' order.
Result<std::vector<double>> evaluate_all(const Forest& forest, const Features& x, Aggregate aggregate) {
  const std::vector<int64_t> dims{x.rows, forest.targets};
  const Shape shape = PX_TRY(Shape::create(dims));
  std::vector<double> scores(static_cast<size_t>(shape.element_count()));
  std::mutex mutex;
  Status status;
  parallel_for(x.rows, 50 * static_cast<int64_t>(forest.roots.size()), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const auto result = forest.evaluate(x.row(row), aggregate);
      if (result.ok()) {
        std::copy(result.value().begin(), result.value().end(), scores.begin() + row * forest.targets);
        continue;
      }
      const std::lock_guard lock(mutex);
      status = result.error();
    }
  });
  PX_TRY(std::move(status));
  return scores;
}

Status add_base_values(std::span<double> scores, const std::vector<double>& base) {
  if (base.empty()) return {};
  PX_TRY(expect_count("base_values", base.size(), static_cast<int64_t>(scores.size())));
  for (size_t index = 0; index < scores.size(); ++index) scores[index] += base[index];
  return {};
}

// Base values, then the transform, for every row of scores.
Status finish_rows(std::vector<double>& scores, int64_t targets, const std::vector<double>& base,
                   PostTransform transform) {
  const auto columns = static_cast<size_t>(targets);
  for (size_t begin = 0; begin < scores.size(); begin += columns) {
    const auto row = std::span(scores).subspan(begin, columns);
    PX_TRY(add_base_values(row, base));
    apply_post_transform(transform, row);
  }
  return {};
}

// ai.onnx.ml TreeEnsembleRegressor-1, -3, -5. A target no tree voted for is 0 before its base value is added, also
// under MIN and MAX.
Status op_ml_tree_ensemble_regressor(OpContext& op) {
  const Features x = PX_TRY(read_features(op, 0));
  const PostTransform transform = PX_TRY(post_transform_of(op));
  const std::string name = op.string_attribute("aggregate_function");
  const auto names = {std::pair("AVERAGE", Aggregate::average), std::pair("SUM", Aggregate::sum),
                      std::pair("MIN", Aggregate::min), std::pair("MAX", Aggregate::max)};
  const auto* found = std::find_if(names.begin(), names.end(), [&](const auto& entry) { return name == entry.first; });
  if (found == names.end())
    return as_invalid_model(wrong_attribute("aggregate_function", name, "be AVERAGE, SUM, MIN or MAX"));
  const int64_t targets = op.find_int("n_targets").value_or(0);
  PX_TRY(check_targets(targets));
  const Forest forest = PX_TRY(Forest::from_tuples(op, "target", targets));
  std::vector<double> scores = PX_TRY(evaluate_all(forest, x, found->second));
  const auto base = PX_TRY(numbers_attribute(op, "base_values"));
  PX_TRY(finish_rows(scores, targets, base, transform));
  return op.set_output(0, DType::float32, Shape{x.rows, targets}, std::span<const double>(scores));
}

// ai.onnx.ml TreeEnsemble-5. The transforms are numbered as the page has it (1 SOFTMAX, 2 LOGISTIC); onnxruntime has
// these two the other way round.
Status op_ml_tree_ensemble(OpContext& op) {
  constexpr PostTransform kTransforms[] = {PostTransform::none, PostTransform::softmax, PostTransform::logistic,
                                           PostTransform::softmax_zero, PostTransform::probit};
  const Features x = PX_TRY(read_features(op, 0));
  const int64_t transform = op.int_attribute("post_transform");
  const int64_t aggregate = op.int_attribute("aggregate_function");
  if (transform < 0 || transform > 4)
    return as_invalid_model(wrong_attribute("post_transform", transform, "be in [0, 4]"));
  if (aggregate < 0 || aggregate > 3)
    return as_invalid_model(wrong_attribute("aggregate_function", aggregate, "be in [0, 3]"));
  const Forest forest = PX_TRY(Forest::from_positions(op));
  PX_TRY(check_targets(forest.targets));
  std::vector<double> scores = PX_TRY(evaluate_all(forest, x, static_cast<Aggregate>(aggregate)));
  PX_TRY(finish_rows(scores, forest.targets, {}, kTransforms[transform]));
  return op.set_output(0, op.input(0).dtype(), Shape{x.rows, forest.targets}, std::span<const double>(scores));
}

// ai.onnx.ml TreeEnsembleClassifier-1, -3, -5: sums of the votes, base values added; the label is the class of the
// greatest score. With two labels and votes for class 0 alone the sum s is the score of the second class, which the
// page does not say: a probability where no weight is negative and no transform that takes decision values follows, (1
// - s, s) with the second label where s > 0.5; else a decision value, (-s, s) with the second label where s > 0.
// onnxruntime keeps the first reading under LOGISTIC, skips SOFTMAX there, and leaves classes nobody voted for out of
// the choice of the label.
Status op_ml_tree_ensemble_classifier(OpContext& op) {
  const Features x = PX_TRY(read_features(op, 0));
  const ClassLabels labels = PX_TRY(ClassLabels::create(op, "classlabels_int64s"));
  const PostTransform transform = PX_TRY(post_transform_of(op));
  const Forest forest = PX_TRY(Forest::from_tuples(op, "class", labels.size()));
  const auto ids = ints_or_empty(op, "class_ids");
  const auto weights = PX_TRY(numbers_attribute(op, "class_weights"));
  const auto base = PX_TRY(numbers_attribute(op, "base_values"));
  const bool one_column = std::all_of(ids.begin(), ids.end(), [](int64_t id) { return id == 0; });
  const bool binary = labels.size() == 2 && one_column;
  const bool is_probability = (transform == PostTransform::none || transform == PostTransform::probit) &&
                              std::all_of(weights.begin(), weights.end(), [](double weight) { return weight >= 0; });
  const std::vector<double> sums = PX_TRY(evaluate_all(forest, x, Aggregate::sum));
  std::vector<int64_t> chosen;
  std::vector<double> results;
  for (int64_t row = 0; row < x.rows; ++row) {
    const auto own =
        std::span(sums).subspan(static_cast<size_t>(row * labels.size()), static_cast<size_t>(labels.size()));
    std::vector<double> scores(own.begin(), own.end());
    if (binary) {
      const double score = own[0] + (base.empty() ? 0.0 : base[0]);
      scores = two_scores(score, is_probability);
      chosen.push_back(score > (is_probability ? 0.5 : 0.0) ? 1 : 0);
    } else {
      PX_TRY(add_base_values(scores, base));
      chosen.push_back(labels.size() > 1 ? index_of_greatest(scores) : scores[0] > 0 ? 0 : kNoClass);
    }
    apply_post_transform(transform, scores);
    results.insert(results.end(), scores.begin(), scores.end());
  }
  return set_classes(op, labels, chosen, results);
}

constexpr OpRow kMlTreeRows[] = {
    {"TreeEnsemble", kMl, 5, 5, op_ml_tree_ensemble},
    {"TreeEnsembleClassifier", kMl, 1, 5, op_ml_tree_ensemble_classifier},
    {"TreeEnsembleRegressor", kMl, 1, 5, op_ml_tree_ensemble_regressor},
};

}  // namespace

OpRows ml_tree_rows() { return kMlTreeRows; }

}  // namespace parallax::reference
