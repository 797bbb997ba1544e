// SPDX-License-Identifier: Apache-2.0
// Parts that the models of ai.onnx.ml share: rows of features, class labels, and the transforms of scores.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reference/ops/op_context.h"

namespace parallax::reference {

// An input [N, C], or [C] as one row, of any numbers.
struct Features {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<double> numbers;

  std::span<const double> row(int64_t index) const {
    return std::span(numbers).subspan(static_cast<size_t>(index * columns), static_cast<size_t>(columns));
  }
};
Result<Features> read_features(const OpContext& op, size_t index);

// The attribute's numbers: from the tensor `name`_as_tensor where it is given, else from the list `name`; empty where
// neither is.
Result<std::vector<double>> numbers_attribute(const OpContext& op, const std::string& name);
std::vector<int64_t> ints_or_empty(const OpContext& op, std::string_view name);
std::vector<std::string> strings_or_empty(const OpContext& op, std::string_view name);

// Class labels are integers or strings.
struct ClassLabels {
  std::vector<int64_t> integers;
  std::vector<std::string> strings;

  // Errors: neither or both lists are given.
  static Result<ClassLabels> create(const OpContext& op, std::string_view integers_name);
  int64_t size() const { return static_cast<int64_t>(integers.size() + strings.size()); }
};

enum class PostTransform { none, softmax, logistic, softmax_zero, probit };
Result<PostTransform> post_transform_of(const OpContext& op);
// Applied to the scores of one sample.
void apply_post_transform(PostTransform transform, std::span<double> scores);

// The scores of two classes from the one score of the second: (1 - s, s) where it is a probability, (-s, s) where it is
// the value of a decision function.
std::vector<double> two_scores(double score, bool is_probability);

// Output 0: for each row the label of class `chosen`; kNoClass is the label 0, or "". Output 1: the scores, `classes`
// of them a row.
inline constexpr int64_t kNoClass = -1;
Status set_classes(OpContext& op, const ClassLabels& labels, const std::vector<int64_t>& chosen,
                   const std::vector<double>& scores);

// The first of the greatest.
int64_t index_of_greatest(std::span<const double> values);

// Errors: the attribute `name` has not rows * columns entries.
Status expect_count(std::string_view name, size_t count, int64_t rows, int64_t columns = 1);

}  // namespace parallax::reference
