// SPDX-License-Identifier: Apache-2.0
// Shapes of RNN, GRU and LSTM, and of the text operators and estimators of ai.onnx and ai.onnx.ml.
#include <algorithm>
#include <array>

#include "inspector/model/shape_inference/rows.h"

namespace parallax {
namespace {

// X is [time, batch, input], or batch first with layout 1; R is [directions, gates * hidden, hidden].
void recurrent(NodeContext& context) {
  const bool batch_first = context.integer_or("layout", 0) != 0;
  const DimExpression time = context.dim(0, batch_first ? 1 : 0), batch = context.dim(0, batch_first ? 0 : 1);
  const DimExpression directions = context.text("direction") == "bidirectional" ? 2 : 1;
  const auto given = context.integer("hidden_size");
  const DimExpression hidden = given ? DimExpression(*given) : context.dim(2, 2);
  const DimExpressions last =
      batch_first ? DimExpressions{batch, directions, hidden} : DimExpressions{directions, batch, hidden};
  context.set_shape(0, batch_first ? DimExpressions{batch, time, directions, hidden}
                                   : DimExpressions{time, directions, batch, hidden});
  context.set_shape(1, last);
  context.set_shape(2, last);
}

void string_split(NodeContext& context) {
  context.set_shape(1, context.shape(0));
  if (!context.shape(0)) return;
  DimExpressions parts = *context.shape(0);
  parts.emplace_back();
  context.set_shape(0, parts);
}

void term_frequencies(NodeContext& context) {
  const auto indexes = context.integers("ngram_indexes");
  const auto& shape = context.shape(0);
  if (!indexes || indexes->empty() || !shape || shape->empty() || shape->size() > 2) return;
  DimExpressions result(shape->begin(), shape->end() - 1);
  result.push_back(DimExpression(*std::ranges::max_element(*indexes)) + 1);
  context.set_shape(0, result);
}

void array_feature_extractor(NodeContext& context) {
  const auto& shape = context.shape(0);
  const auto picked = context.shape(1) ? std::optional(product(*context.shape(1))) : std::nullopt;
  if (!shape || shape->empty()) return;
  DimExpressions result = shape->size() == 1 ? DimExpressions{1, DimExpression{}} : *shape;
  result.back() = picked.value_or(DimExpression{});
  context.set_shape(0, result);
}

void linear_regressor(NodeContext& context) {
  const DimExpression rows = context.rank(0) == 1U ? DimExpression(1) : context.dim(0, 0);
  context.set_shape(0, DimExpressions{rows, context.integer_or("targets", 1)});
}

void tree_regressor(NodeContext& context) {
  const auto targets = context.integer("n_targets");
  context.set_shape(0, DimExpressions{context.dim(0, 0), targets ? DimExpression(*targets) : DimExpression{}});
}

// One label for each row, and one score for each row and class.
void classifier(NodeContext& context) {
  const DimExpression rows = context.rank(0) == 1U ? DimExpression(1) : context.dim(0, 0);
  context.set_shape(0, DimExpressions{rows});
  context.set_shape(1, DimExpressions{rows, DimExpression{}});
}

void one_hot_encoder(NodeContext& context) {
  const auto* strings = context.attribute<std::vector<std::string>>("cats_strings");
  const auto* integers = context.attribute<std::vector<int64_t>>("cats_int64s");
  if (!context.shape(0) || (strings == nullptr) == (integers == nullptr)) return;
  DimExpressions result = *context.shape(0);
  result.emplace_back(static_cast<int64_t>(strings != nullptr ? strings->size() : integers->size()));
  context.set_shape(0, result);
}

constexpr std::array kRecurrentRows = {
    ShapeRow{"ArrayFeatureExtractor", array_feature_extractor},
    ShapeRow{"GRU", recurrent},
    ShapeRow{"LSTM", recurrent},
    ShapeRow{"LinearClassifier", classifier},
    ShapeRow{"LinearRegressor", linear_regressor},
    ShapeRow{"OneHotEncoder", one_hot_encoder},
    ShapeRow{"RNN", recurrent},
    ShapeRow{"SVMClassifier", classifier},
    ShapeRow{"StringSplit", string_split},
    ShapeRow{"TfIdfVectorizer", term_frequencies},
    ShapeRow{"TreeEnsemble", tree_regressor},
    ShapeRow{"TreeEnsembleClassifier", classifier},
    ShapeRow{"TreeEnsembleRegressor", tree_regressor},
};

}  // namespace

std::span<const ShapeRow> recurrent_rows() { return kRecurrentRows; }

}  // namespace parallax
