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

namespace parallax::diff {
namespace {

constexpr double kRound = 0;
constexpr double kFunction = 2;
constexpr double kMean = 1;
constexpr double kNorm = 3;
constexpr double kRoomy = 8;

// Sorted by operator.
constexpr NoiseRow kRows[] = {
    {"Abs", ErrorPropagation::moves, kRound},
    {"Acos", ErrorPropagation::unknown, kRoomy},
    {"Acosh", ErrorPropagation::unknown, kRoomy},
    {"Add", ErrorPropagation::adds, kRound},
    {"Asin", ErrorPropagation::unknown, kRoomy},
    {"Asinh", ErrorPropagation::bounded, kFunction},
    {"Atan", ErrorPropagation::bounded, kFunction},
    {"Attention", ErrorPropagation::unknown, kRoomy},
    {"AveragePool", ErrorPropagation::adds, kMean},
    {"BatchNormalization", ErrorPropagation::normalizes, kNorm},
    {"BiasGelu", ErrorPropagation::gates, kFunction},
    {"Cast", ErrorPropagation::scales, kRound},
    {"CastLike", ErrorPropagation::scales, kRound},
    {"Ceil", ErrorPropagation::moves, kRound},
    {"Clip", ErrorPropagation::moves, kRound},
    {"Compress", ErrorPropagation::moves, kRound},
    {"Concat", ErrorPropagation::moves, kRound},
    {"Conv", ErrorPropagation::dots, 2},
    {"ConvTranspose", ErrorPropagation::dots, 2},
    {"Cos", ErrorPropagation::bounded, kFunction},
    {"CumSum", ErrorPropagation::adds, kRoomy},
    {"DepthToSpace", ErrorPropagation::moves, kRound},
    {"DequantizeLinear", ErrorPropagation::scales, kRound},
    {"Div", ErrorPropagation::scales, kRound},
    {"Dropout", ErrorPropagation::moves, kRound},
    {"Einsum", ErrorPropagation::dots, 1},
    {"Elu", ErrorPropagation::bounded, kFunction},
    {"Erf", ErrorPropagation::bounded, kFunction},
    {"Exp", ErrorPropagation::exponential, kFunction},
    {"Expand", ErrorPropagation::moves, kRound},
    {"FastGelu", ErrorPropagation::gates, kFunction},
    {"Flatten", ErrorPropagation::moves, kRound},
    {"Floor", ErrorPropagation::moves, kRound},
    {"GRU", ErrorPropagation::recurrent, kRoomy},
    {"Gather", ErrorPropagation::moves, kRound},
    {"GatherElements", ErrorPropagation::moves, kRound},
    {"GatherND", ErrorPropagation::moves, kRound},
    {"Gelu", ErrorPropagation::gates, kFunction},
    {"Gemm", ErrorPropagation::dots, 1},
    {"GlobalAveragePool", ErrorPropagation::adds, kMean},
    {"GlobalMaxPool", ErrorPropagation::moves, kRound},
    {"GroupNormalization", ErrorPropagation::normalizes, kNorm},
    {"HardSigmoid", ErrorPropagation::bounded, kRound},
    {"HardSwish", ErrorPropagation::bounded, kRound},
    {"Identity", ErrorPropagation::moves, kRound},
    {"InstanceNormalization", ErrorPropagation::normalizes, kNorm},
    {"LSTM", ErrorPropagation::recurrent, kRoomy},
    {"LayerNormalization", ErrorPropagation::normalizes, kNorm},
    {"LeakyRelu", ErrorPropagation::scales, kRound},
    {"Log", ErrorPropagation::unknown, kRoomy},
    {"LogSoftmax", ErrorPropagation::bounded, kRoomy},
    {"MatMul", ErrorPropagation::dots, 1},
    {"Max", ErrorPropagation::moves, kRound},
    {"MaxPool", ErrorPropagation::moves, kRound},
    {"Mean", ErrorPropagation::adds, kMean},
    {"Min", ErrorPropagation::moves, kRound},
    {"Mish", ErrorPropagation::bounded, kFunction},
    {"Mul", ErrorPropagation::scales, kRound},
    {"Neg", ErrorPropagation::moves, kRound},
    {"Pad", ErrorPropagation::moves, kRound},
    {"Pow", ErrorPropagation::scales, kFunction},
    {"PRelu", ErrorPropagation::scales, kRound},
    {"RMSNormalization", ErrorPropagation::normalizes, kNorm},
    {"RNN", ErrorPropagation::recurrent, kRoomy},
    {"Reciprocal", ErrorPropagation::scales, kRound},
    {"ReduceMax", ErrorPropagation::moves, kRound},
    {"ReduceMean", ErrorPropagation::adds, kMean},
    {"ReduceMin", ErrorPropagation::moves, kRound},
    {"ReduceSum", ErrorPropagation::adds, kMean},
    {"ReduceSumSquare", ErrorPropagation::scales, kRoomy},
    {"Relu", ErrorPropagation::moves, kRound},
    {"Reshape", ErrorPropagation::moves, kRound},
    {"Resize", ErrorPropagation::adds, kFunction},
    {"RotaryEmbedding", ErrorPropagation::adds, kFunction},
    {"ScatterElements", ErrorPropagation::moves, kRound},
    {"ScatterND", ErrorPropagation::moves, kRound},
    {"Selu", ErrorPropagation::bounded, kFunction},
    {"Sigmoid", ErrorPropagation::bounded, kFunction},
    {"Sign", ErrorPropagation::moves, kRound},
    {"SimplifiedLayerNormalization", ErrorPropagation::normalizes, kNorm},
    {"Sin", ErrorPropagation::bounded, kFunction},
    {"SkipLayerNormalization", ErrorPropagation::normalizes, kNorm},
    {"SkipSimplifiedLayerNormalization", ErrorPropagation::normalizes, kNorm},
    {"Slice", ErrorPropagation::moves, kRound},
    {"Softmax", ErrorPropagation::exponential, kNorm},
    {"Softplus", ErrorPropagation::bounded, kFunction},
    {"Softsign", ErrorPropagation::bounded, kRound},
    {"SpaceToDepth", ErrorPropagation::moves, kRound},
    {"Split", ErrorPropagation::moves, kRound},
    {"Sqrt", ErrorPropagation::scales, kRound},
    {"Squeeze", ErrorPropagation::moves, kRound},
    {"Sub", ErrorPropagation::adds, kRound},
    {"Sum", ErrorPropagation::adds, kRound},
    {"Swish", ErrorPropagation::bounded, kFunction},
    {"Tanh", ErrorPropagation::bounded, kFunction},
    {"Tile", ErrorPropagation::moves, kRound},
    {"TopK", ErrorPropagation::moves, kRound},
    {"Transpose", ErrorPropagation::moves, kRound},
    {"Trilu", ErrorPropagation::moves, kRound},
    {"Unsqueeze", ErrorPropagation::moves, kRound},
    {"Where", ErrorPropagation::moves, kRound},
};

constexpr NoiseRow kUnknown = {"", ErrorPropagation::unknown, kRoomy};

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
  if (!domain.empty() && domain != "ai.onnx" && domain != "com.microsoft") return kUnknown;
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
