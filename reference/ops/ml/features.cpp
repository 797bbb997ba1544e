// SPDX-License-Identifier: Apache-2.0
// ai.onnx.ml's preparation of features: ArrayFeatureExtractor, Binarizer, FeatureVectorizer, Imputer, Normalizer,
// Scaler.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "reference/ops/families.h"
#include "reference/ops/map.h"
#include "reference/ops/ml/shared.h"
#include "reference/ops/move.h"

namespace parallax::reference {
namespace {

// ai.onnx.ml ArrayFeatureExtractor-1: columns of the last axis, chosen by all indices in order. A vector gives [1,
// indices], as both peers have it.
Status op_ml_array_feature_extractor(OpContext& op) {
  const Tensor& x = op.input(0);
  const std::vector<int64_t> indices = to_int64s(op.input(1));
  if (x.shape().rank() == 0) return wrong_input(op, 0, "have rank 1 or more");
  if (indices.empty()) return wrong_input(op, 1, "have one index or more");
  const int64_t columns = x.shape()[x.shape().rank() - 1];
  for (int64_t index : indices) {
    if (index < 0 || index >= columns)
      return wrong_value("an index in Y", index, "be in [0, {}), the columns of X", columns);
  }
  const auto count = static_cast<int64_t>(indices.size());
  std::vector<int64_t> dims(x.shape().begin(), x.shape().end());
  if (dims.size() == 1) dims.insert(dims.begin(), 1);
  dims.back() = count;
  const Shape shape = PX_TRY(Shape::create(dims));
  Tensor output = PX_TRY(op.allocate(x.dtype(), shape));
  gather_elements(x, output,
                  [&](int64_t at) { return at / count * columns + indices[static_cast<size_t>(at % count)]; });
  return op.set_output(0, std::move(output));
}

// ai.onnx.ml Binarizer-1: 1 where x is greater than the threshold, else 0.
Status op_ml_binarizer(OpContext& op) {
  const double threshold = op.float_attribute("threshold");
  return map_numbers(op, [&](auto x) { return static_cast<decltype(x)>(static_cast<double>(x) > threshold ? 1 : 0); });
}

// ai.onnx.ml FeatureVectorizer-1: inputs [N, C] side by side, each cut or filled with zeros to its inputdimensions
// (the page does not say what happens where the two differ; both peers do this).
Status op_ml_feature_vectorizer(OpContext& op) {
  std::vector<Features> inputs;
  for (size_t index = 0; index < op.input_count(); ++index) inputs.push_back(PX_TRY(read_features(op, index)));
  std::vector<int64_t> widths = ints_or_empty(op, "inputdimensions");
  if (widths.empty()) {
    for (const Features& input : inputs) widths.push_back(input.columns);
  }
  PX_TRY(expect_count("inputdimensions", widths.size(), static_cast<int64_t>(inputs.size())));
  constexpr int64_t kWidest = int64_t{1} << 40;
  int64_t total = 0;
  for (size_t index = 0; index < inputs.size(); ++index) {
    if (inputs[index].rows != inputs[0].rows)
      return wrong_input(op, index, "have {} rows, as the first one", inputs[0].rows);
    if (widths[index] < 0 || widths[index] > kWidest)
      return invalid_model(
          fmt::format("an entry of attribute 'inputdimensions' is {}; it must be in [0, {}]", widths[index], kWidest));
    total += widths[index];
  }
  const std::vector<int64_t> dims{inputs[0].rows, total};
  const Shape shape = PX_TRY(Shape::create(dims));
  Tensor output = PX_TRY(op.allocate(DType::float32, shape));  // asks for the memory before it is used
  std::vector<double> results;
  results.reserve(static_cast<size_t>(shape.element_count()));
  for (int64_t row = 0; row < shape[0]; ++row) {
    for (size_t index = 0; index < inputs.size(); ++index) {
      const auto own = inputs[index].row(row);
      const auto width = static_cast<size_t>(widths[index]);
      results.insert(results.end(), own.begin(), own.begin() + static_cast<ptrdiff_t>(std::min(width, own.size())));
      results.insert(results.end(), width - std::min(width, own.size()), 0.0);
    }
  }
  store<double>(output, 0, results);
  return op.set_output(0, std::move(output));
}

// ai.onnx.ml Imputer-1: elements equal to the replaced value (a NaN equals any NaN) become the imputed one: one for
// all, or one for each element along the last axis.
Status op_ml_imputer(OpContext& op) {
  const Tensor& x = op.input(0);
  const bool floats = is_floating(x.dtype());
  const auto impute = [&]<class T>(const std::vector<T>& imputed, T replaced) -> Status {
    const int64_t columns = x.shape().rank() == 0 ? 1 : x.shape()[x.shape().rank() - 1];
    if (imputed.size() != 1) {
      PX_TRY(expect_count(floats ? "imputed_value_floats" : "imputed_value_int64s", imputed.size(), columns));
    }
    const Numbers<T> numbers(x);
    std::vector<T> results;
    for (int64_t at = 0; at < numbers.size(); ++at) {
      const T value = numbers[at];
      bool same = value == replaced;
      if constexpr (std::is_same_v<T, double>) same = same || (std::isnan(value) && std::isnan(replaced));
      const size_t column = imputed.size() == 1 ? 0 : static_cast<size_t>(at % columns);
      results.push_back(same ? imputed[column] : value);
    }
    return op.set_output(0, x.dtype(), x.shape(), std::span<const T>(results));
  };
  if (floats) {
    return impute(op.find_floats("imputed_value_floats").value_or(std::vector<double>{}),
                  op.float_attribute("replaced_value_float"));
  }
  return impute(ints_or_empty(op, "imputed_value_int64s"), op.int_attribute("replaced_value_int64"));
}

// ai.onnx.ml Normalizer-1, each row by itself. The page's "max(X)" is the greatest element, sign and all (so
// onnxruntime; ReferenceEvaluator takes the greatest magnitude); its "sum(X)" of L1 is taken of the magnitudes, as the
// norm's name and both peers have it; under L2 elements keep their signs. A divisor of 0 leaves the row as it is.
Status op_ml_normalizer(OpContext& op) {
  const std::string norm = op.string_attribute("norm");
  if (norm != "MAX" && norm != "L1" && norm != "L2")
    return as_invalid_model(wrong_attribute("norm", norm, "be MAX, L1 or L2"));
  const Features x = PX_TRY(read_features(op, 0));
  std::vector<double> results;
  for (int64_t row = 0; row < x.rows && x.columns > 0; ++row) {
    const auto own = x.row(row);
    double divisor = norm == "MAX" ? *std::max_element(own.begin(), own.end()) : 0.0;
    if (norm == "L1") {
      for (double value : own) divisor += std::fabs(value);
    }
    if (norm == "L2") {
      for (double value : own) divisor += value * value;
      divisor = std::sqrt(divisor);
    }
    for (double value : own) results.push_back(divisor == 0.0 ? value : value / divisor);
  }
  return op.set_output(0, DType::float32, op.input(0).shape(), std::span<const double>(results));
}

// ai.onnx.ml Scaler-1: (x - offset) * scale, with one number for all, or one for each feature of [N, F] or [F].
Status op_ml_scaler(OpContext& op) {
  const Tensor& x = op.input(0);
  const auto offsets = op.find_floats("offset").value_or(std::vector<double>{0.0});
  const auto scales = op.find_floats("scale").value_or(std::vector<double>{1.0});
  const size_t rank = x.shape().rank();
  const int64_t features = rank == 0 || rank > 2 ? 1 : x.shape()[rank - 1];
  if (offsets.size() != 1) PX_TRY(expect_count("offset", offsets.size(), features));
  if (scales.size() != 1) PX_TRY(expect_count("scale", scales.size(), features));
  const Numbers<double> numbers(x);
  std::vector<double> results;
  for (int64_t at = 0; at < numbers.size(); ++at) {
    const auto feature = static_cast<size_t>(at % features);
    results.push_back((numbers[at] - offsets[offsets.size() == 1 ? 0 : feature]) *
                      scales[scales.size() == 1 ? 0 : feature]);
  }
  return op.set_output(0, DType::float32, x.shape(), std::span<const double>(results));
}

constexpr OpRow kMlFeaturesRows[] = {
    {"ArrayFeatureExtractor", kMl, 1, 1, op_ml_array_feature_extractor},
    {"Binarizer", kMl, 1, 1, op_ml_binarizer},
    {"FeatureVectorizer", kMl, 1, 1, op_ml_feature_vectorizer},
    {"Imputer", kMl, 1, 1, op_ml_imputer},
    {"Normalizer", kMl, 1, 1, op_ml_normalizer},
    {"Scaler", kMl, 1, 1, op_ml_scaler},
};

}  // namespace

OpRows ml_features_rows() { return kMlFeaturesRows; }

}  // namespace parallax::reference
