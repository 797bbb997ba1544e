// SPDX-License-Identifier: Apache-2.0
// The rows of the noise table.
//
// Rounding to nearest has a standard deviation of 1/sqrt(12) = 0.29 epsilon of the binade, at most twice that relative
// to the number; two executions differ by sqrt(2) of it: 0.5 epsilon (Higham, Accuracy and Stability of Numerical
// Algorithms, 2nd ed., section 2.1 and, for the square-root growth of random roundings, 2.8). Every operator has that;
// the table holds what comes on top, in float32 (narrower types are computed there): elementary functions 2 ulp, which
// is what vector libraries promise (SLEEF: 1.0; SVML and CUDA's: up to 2); norms and recurrent cells room for
// algorithms that differ (one-pass variance, Winograd).
#include "inspector/diff/tolerance/noise_table.h"

#include <algorithm>
#include <iterator>

#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/model/blocked_operators.h"

namespace parallax::diff {
namespace {

// Sorted by operator.
constexpr NoiseRow kRows[] = {
    {"Abs", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Acos", ErrorPropagation::unknown, thresholds::kRoomyEpsilons},
    {"Acosh", ErrorPropagation::unknown, thresholds::kRoomyEpsilons},
    {"Add", ErrorPropagation::absolute, thresholds::kRoundedOnce},
    {"Asin", ErrorPropagation::unknown, thresholds::kRoomyEpsilons},
    {"Asinh", ErrorPropagation::bounded, thresholds::kFunctionEpsilons},
    {"Atan", ErrorPropagation::bounded, thresholds::kFunctionEpsilons},
    {"Attention", ErrorPropagation::unknown, thresholds::kRoomyEpsilons},
    {"AveragePool", ErrorPropagation::absolute, thresholds::kMeanEpsilons},
    {"BatchNormalization", ErrorPropagation::normalizes, thresholds::kNormEpsilons},
    {"BiasGelu", ErrorPropagation::gated, thresholds::kFunctionEpsilons},
    {"Cast", ErrorPropagation::relative, thresholds::kRoundedOnce},
    {"CastLike", ErrorPropagation::relative, thresholds::kRoundedOnce},
    {"Ceil", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Clip", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Compress", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Concat", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Conv", ErrorPropagation::dot_product, 2},
    {"ConvTranspose", ErrorPropagation::dot_product, 2},
    {"Cos", ErrorPropagation::bounded, thresholds::kFunctionEpsilons},
    {"CumSum", ErrorPropagation::absolute, thresholds::kRoomyEpsilons},
    {"DepthToSpace", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"DequantizeLinear", ErrorPropagation::relative, thresholds::kRoundedOnce},
    {"Div", ErrorPropagation::relative, thresholds::kRoundedOnce},
    {"Dropout", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Einsum", ErrorPropagation::dot_product, 1},
    {"Elu", ErrorPropagation::bounded, thresholds::kFunctionEpsilons},
    {"Erf", ErrorPropagation::bounded, thresholds::kFunctionEpsilons},
    {"Exp", ErrorPropagation::exponential, thresholds::kFunctionEpsilons},
    {"Expand", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"FastGelu", ErrorPropagation::gated, thresholds::kFunctionEpsilons},
    {"Flatten", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Floor", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"GRU", ErrorPropagation::recurrent, thresholds::kRoomyEpsilons},
    {"Gather", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"GatherElements", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"GatherND", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Gelu", ErrorPropagation::gated, thresholds::kFunctionEpsilons},
    {"Gemm", ErrorPropagation::dot_product, 1},
    {"GlobalAveragePool", ErrorPropagation::absolute, thresholds::kMeanEpsilons},
    {"GlobalMaxPool", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"GroupNormalization", ErrorPropagation::normalizes, thresholds::kNormEpsilons},
    {"HardSigmoid", ErrorPropagation::bounded, thresholds::kRoundedOnce},
    {"HardSwish", ErrorPropagation::bounded, thresholds::kRoundedOnce},
    {"Identity", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"InstanceNormalization", ErrorPropagation::normalizes, thresholds::kNormEpsilons},
    {"LSTM", ErrorPropagation::recurrent, thresholds::kRoomyEpsilons},
    {"LayerNormalization", ErrorPropagation::normalizes, thresholds::kNormEpsilons},
    {"LeakyRelu", ErrorPropagation::relative, thresholds::kRoundedOnce},
    {"Log", ErrorPropagation::unknown, thresholds::kRoomyEpsilons},
    {"LogSoftmax", ErrorPropagation::bounded, thresholds::kRoomyEpsilons},
    {"MatMul", ErrorPropagation::dot_product, 1},
    {"Max", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"MaxPool", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Mean", ErrorPropagation::absolute, thresholds::kMeanEpsilons},
    {"Min", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Mish", ErrorPropagation::bounded, thresholds::kFunctionEpsilons},
    {"Mul", ErrorPropagation::relative, thresholds::kRoundedOnce},
    {"Neg", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Pad", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Pow", ErrorPropagation::relative, thresholds::kFunctionEpsilons},
    {"PRelu", ErrorPropagation::relative, thresholds::kRoundedOnce},
    {"RMSNormalization", ErrorPropagation::normalizes, thresholds::kNormEpsilons},
    {"RNN", ErrorPropagation::recurrent, thresholds::kRoomyEpsilons},
    {"Reciprocal", ErrorPropagation::relative, thresholds::kRoundedOnce},
    {"ReduceMax", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"ReduceMean", ErrorPropagation::absolute, thresholds::kMeanEpsilons},
    {"ReduceMin", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"ReduceSum", ErrorPropagation::absolute, thresholds::kMeanEpsilons},
    {"ReduceSumSquare", ErrorPropagation::relative, thresholds::kRoomyEpsilons},
    {"Relu", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"ReorderInput", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"ReorderOutput", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Reshape", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Resize", ErrorPropagation::absolute, thresholds::kFunctionEpsilons},
    {"RotaryEmbedding", ErrorPropagation::absolute, thresholds::kFunctionEpsilons},
    {"ScatterElements", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"ScatterND", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Selu", ErrorPropagation::bounded, thresholds::kFunctionEpsilons},
    {"Sigmoid", ErrorPropagation::bounded, thresholds::kFunctionEpsilons},
    {"Sign", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"SimplifiedLayerNormalization", ErrorPropagation::normalizes, thresholds::kNormEpsilons},
    {"Sin", ErrorPropagation::bounded, thresholds::kFunctionEpsilons},
    {"SkipLayerNormalization", ErrorPropagation::normalizes, thresholds::kNormEpsilons},
    {"SkipSimplifiedLayerNormalization", ErrorPropagation::normalizes, thresholds::kNormEpsilons},
    {"Slice", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Softmax", ErrorPropagation::exponential, thresholds::kNormEpsilons},
    {"Softplus", ErrorPropagation::bounded, thresholds::kFunctionEpsilons},
    {"Softsign", ErrorPropagation::bounded, thresholds::kRoundedOnce},
    {"SpaceToDepth", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Split", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Sqrt", ErrorPropagation::relative, thresholds::kRoundedOnce},
    {"Squeeze", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Sub", ErrorPropagation::absolute, thresholds::kRoundedOnce},
    {"Sum", ErrorPropagation::absolute, thresholds::kRoundedOnce},
    {"Swish", ErrorPropagation::bounded, thresholds::kFunctionEpsilons},
    {"Tanh", ErrorPropagation::bounded, thresholds::kFunctionEpsilons},
    {"Tile", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"TopK", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Transpose", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Trilu", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Unsqueeze", ErrorPropagation::copy, thresholds::kRoundedOnce},
    {"Upsample", ErrorPropagation::absolute, thresholds::kFunctionEpsilons},
    {"Where", ErrorPropagation::copy, thresholds::kRoundedOnce},
};

constexpr NoiseRow kUnknown = {"", ErrorPropagation::unknown, thresholds::kRoomyEpsilons};

// A tensor of a million normal deviates holds one of 5; the rest is room for estimates that are too low. 16-bit types
// hardly add up errors of long sums (they are summed in float32), so that their estimates are too high rather than too
// low. Compared values bound the later estimates; through values that were not (outputs alone, fused ones) they would
// grow by a factor an operator, and after some dozens anything would pass.
constexpr NoiseMargin kMargins[] = {
    {DType::float64, 16, 64, 4096},
    {DType::float32, 16, 16, 1024},
    {DType::float16, 8, 4, 16},
    {DType::bfloat16, 6, 3, 6},
};
constexpr NoiseMargin kNarrow = {DType::undefined, 3, 2, 3};  // 8 bits and fewer

}  // namespace

const NoiseRow& noise_row_of(std::string_view op, std::string_view domain) {
  const bool is_known = domain.empty() || domain == "ai.onnx" || domain == "com.microsoft";
  if (!is_known && domain != kBlockedDomain) return kUnknown;  // calls of functions, each like its operator
  const auto* row =
      std::find_if(std::begin(kRows), std::end(kRows), [op](const NoiseRow& candidate) { return candidate.op == op; });
  return row == std::end(kRows) ? kUnknown : *row;
}

const NoiseMargin& noise_margin_of(DType dtype) {
  const auto* row = std::find_if(std::begin(kMargins), std::end(kMargins),
                                 [dtype](const NoiseMargin& candidate) { return candidate.dtype == dtype; });
  return row == std::end(kMargins) ? kNarrow : *row;
}

}  // namespace parallax::diff
