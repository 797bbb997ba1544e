// SPDX-License-Identifier: Apache-2.0
// Operators by the kind of work they do. A table: what stands in no row is "other".
#include <algorithm>
#include <array>
#include <cctype>

#include "gui/viewmodel/view_colors.h"
#include "inspector/base/text.h"

namespace parallax {
namespace {

struct KindRow {
  std::string_view kind;
  std::string_view color;
  std::string_view operators;  // separated by blanks
};

constexpr std::array<KindRow, 9> kKinds = {{
    {"matrix", "#77AADD",
     "MatMul Gemm Conv ConvTranspose Einsum MatMulInteger ConvInteger QLinearMatMul QLinearConv DeformConv Attention "
     "MultiHeadAttention GroupQueryAttention FusedMatMul FusedGemm FusedConv LSTM GRU RNN MatMulNBits Det "
     "RotaryEmbedding"},
    {"activation", "#EE8866",
     "Relu LeakyRelu PRelu Elu Celu Selu ThresholdedRelu Sigmoid HardSigmoid HardSwish Tanh Softplus Softsign Mish "
     "Gelu "
     "FastGelu QuickGelu BiasGelu Swish Softmax LogSoftmax Hardmax Shrink Clip Dropout"},
    {"normalization", "#EEDD88",
     "BatchNormalization LayerNormalization InstanceNormalization GroupNormalization RMSNormalization "
     "SimplifiedLayerNormalization SkipLayerNormalization SkipSimplifiedLayerNormalization LpNormalization LRN "
     "MeanVarianceNormalization"},
    {"reduction", "#FFAABB",
     "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp "
     "ReduceSumSquare ArgMax ArgMin CumSum CumProd TopK MaxPool AveragePool GlobalMaxPool GlobalAveragePool LpPool "
     "GlobalLpPool Unique"},
    {"elementwise", "#99DDFF",
     "Add Sub Mul Div Pow Mod Sqrt Reciprocal Exp Log Abs Neg Sign Floor Ceil Round Erf Sin Cos Tan Asin Acos Atan "
     "Sinh "
     "Cosh Asinh Acosh Atanh Max Min Sum Mean Where And Or Xor Not Equal Greater GreaterOrEqual Less LessOrEqual IsNaN "
     "IsInf BitwiseAnd BitwiseOr BitwiseXor BitwiseNot BitShift"},
    {"movement", "#44BB99",
     "Reshape Transpose Concat Split Slice Squeeze Unsqueeze Expand Tile Pad Flatten Identity Gather GatherElements "
     "GatherND Scatter ScatterElements ScatterND DepthToSpace SpaceToDepth Resize Upsample GridSample RoiAlign Trilu "
     "ReverseSequence Compress NonZero Col2Im CenterCropPad TensorScatter"},
    {"shape and constant", "#DDDDDD",
     "Shape Size Constant ConstantOfShape Range EyeLike OneHot RandomNormal RandomUniform RandomNormalLike "
     "RandomUniformLike Bernoulli Multinomial"},
    {"type and quantization", "#BBCC33",
     "Cast CastLike QuantizeLinear DequantizeLinear DynamicQuantizeLinear BitCast QLinearAdd QLinearMul"},
    {"control and sequences", "#AAAA00",
     "If Loop Scan SequenceConstruct SequenceEmpty SequenceAt SequenceInsert SequenceErase SequenceLength "
     "SequenceMap SplitToSequence ConcatFromSequence Optional OptionalGetElement OptionalHasElement"},
}};
constexpr std::string_view kOther = "other";
constexpr std::string_view kOtherColor = "#BBBBBB";

const KindRow* row_of(std::string_view op) {
  const size_t dot = op.rfind('.');  // "com.microsoft.Gelu"
  if (dot != std::string_view::npos) op.remove_prefix(dot + 1);
  const auto found = std::ranges::find_if(kKinds, [&](const KindRow& row) {
    const auto names = split(row.operators, ' ');
    return std::ranges::find(names, op) != names.end();
  });
  return found == kKinds.end() ? nullptr : &*found;
}

}  // namespace

std::string_view kind_of_operator(std::string_view op) {
  const KindRow* row = row_of(op);
  return row == nullptr ? kOther : row->kind;
}

std::span<const std::string_view> operator_kinds() {
  static constexpr std::array<std::string_view, kKinds.size() + 1> kNames = [] {
    std::array<std::string_view, kKinds.size() + 1> names{};
    for (size_t i = 0; i < kKinds.size(); ++i) names[i] = kKinds[i].kind;
    names.back() = kOther;
    return names;
  }();
  return kNames;
}

Color operator_color(std::string_view op) {
  const KindRow* row = row_of(op);
  return color_from_hex(row == nullptr ? kOtherColor : row->color);
}

}  // namespace parallax
