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
    {"Abs", Spread::moves, kRound},
    {"Acos", Spread::unknown, kRoomy},
    {"Acosh", Spread::unknown, kRoomy},
    {"Add", Spread::adds, kRound},
    {"Asin", Spread::unknown, kRoomy},
    {"Asinh", Spread::bounded, kFunction},
    {"Atan", Spread::bounded, kFunction},
    {"Attention", Spread::unknown, kRoomy},
    {"AveragePool", Spread::adds, kMean},
    {"BatchNormalization", Spread::normalizes, kNorm},
    {"BiasGelu", Spread::gates, kFunction},
    {"Cast", Spread::scales, kRound},
    {"CastLike", Spread::scales, kRound},
    {"Ceil", Spread::moves, kRound},
    {"Clip", Spread::moves, kRound},
    {"Compress", Spread::moves, kRound},
    {"Concat", Spread::moves, kRound},
    {"Conv", Spread::dots, 2},
    {"ConvTranspose", Spread::dots, 2},
    {"Cos", Spread::bounded, kFunction},
    {"CumSum", Spread::adds, kRoomy},
    {"DepthToSpace", Spread::moves, kRound},
    {"DequantizeLinear", Spread::scales, kRound},
    {"Div", Spread::scales, kRound},
    {"Dropout", Spread::moves, kRound},
    {"Einsum", Spread::dots, 1},
    {"Elu", Spread::bounded, kFunction},
    {"Erf", Spread::bounded, kFunction},
    {"Exp", Spread::exponential, kFunction},
    {"Expand", Spread::moves, kRound},
    {"FastGelu", Spread::gates, kFunction},
    {"Flatten", Spread::moves, kRound},
    {"Floor", Spread::moves, kRound},
    {"GRU", Spread::recurrent, kRoomy},
    {"Gather", Spread::moves, kRound},
    {"GatherElements", Spread::moves, kRound},
    {"GatherND", Spread::moves, kRound},
    {"Gelu", Spread::gates, kFunction},
    {"Gemm", Spread::dots, 1},
    {"GlobalAveragePool", Spread::adds, kMean},
    {"GlobalMaxPool", Spread::moves, kRound},
    {"GroupNormalization", Spread::normalizes, kNorm},
    {"HardSigmoid", Spread::bounded, kRound},
    {"HardSwish", Spread::bounded, kRound},
    {"Identity", Spread::moves, kRound},
    {"InstanceNormalization", Spread::normalizes, kNorm},
    {"LSTM", Spread::recurrent, kRoomy},
    {"LayerNormalization", Spread::normalizes, kNorm},
    {"LeakyRelu", Spread::scales, kRound},
    {"Log", Spread::unknown, kRoomy},
    {"LogSoftmax", Spread::bounded, kRoomy},
    {"MatMul", Spread::dots, 1},
    {"Max", Spread::moves, kRound},
    {"MaxPool", Spread::moves, kRound},
    {"Mean", Spread::adds, kMean},
    {"Min", Spread::moves, kRound},
    {"Mish", Spread::bounded, kFunction},
    {"Mul", Spread::scales, kRound},
    {"Neg", Spread::moves, kRound},
    {"Pad", Spread::moves, kRound},
    {"Pow", Spread::scales, kFunction},
    {"PRelu", Spread::scales, kRound},
    {"RMSNormalization", Spread::normalizes, kNorm},
    {"RNN", Spread::recurrent, kRoomy},
    {"Reciprocal", Spread::scales, kRound},
    {"ReduceMax", Spread::moves, kRound},
    {"ReduceMean", Spread::adds, kMean},
    {"ReduceMin", Spread::moves, kRound},
    {"ReduceSum", Spread::adds, kMean},
    {"ReduceSumSquare", Spread::scales, kRoomy},
    {"Relu", Spread::moves, kRound},
    {"Reshape", Spread::moves, kRound},
    {"Resize", Spread::adds, kFunction},
    {"RotaryEmbedding", Spread::adds, kFunction},
    {"ScatterElements", Spread::moves, kRound},
    {"ScatterND", Spread::moves, kRound},
    {"Selu", Spread::bounded, kFunction},
    {"Sigmoid", Spread::bounded, kFunction},
    {"Sign", Spread::moves, kRound},
    {"SimplifiedLayerNormalization", Spread::normalizes, kNorm},
    {"Sin", Spread::bounded, kFunction},
    {"SkipLayerNormalization", Spread::normalizes, kNorm},
    {"SkipSimplifiedLayerNormalization", Spread::normalizes, kNorm},
    {"Slice", Spread::moves, kRound},
    {"Softmax", Spread::exponential, kNorm},
    {"Softplus", Spread::bounded, kFunction},
    {"Softsign", Spread::bounded, kRound},
    {"SpaceToDepth", Spread::moves, kRound},
    {"Split", Spread::moves, kRound},
    {"Sqrt", Spread::scales, kRound},
    {"Squeeze", Spread::moves, kRound},
    {"Sub", Spread::adds, kRound},
    {"Sum", Spread::adds, kRound},
    {"Swish", Spread::bounded, kFunction},
    {"Tanh", Spread::bounded, kFunction},
    {"Tile", Spread::moves, kRound},
    {"TopK", Spread::moves, kRound},
    {"Transpose", Spread::moves, kRound},
    {"Trilu", Spread::moves, kRound},
    {"Unsqueeze", Spread::moves, kRound},
    {"Where", Spread::moves, kRound},
};

constexpr NoiseRow kUnknown = {"", Spread::unknown, kRoomy};

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
