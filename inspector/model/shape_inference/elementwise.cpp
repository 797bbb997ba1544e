// SPDX-License-Identifier: Apache-2.0
// Shapes of operators whose output looks like an input, or like the broadcast of all inputs.
#include <array>

#include "inspector/model/shape_inference/rows.h"

namespace parallax {
namespace {

void like_second(NodeContext& context) { context.set_shape(0, context.shape(1)); }

void all_like_first(NodeContext& context) {
  for (size_t index = 0; index < context.output_count(); ++index) context.set_shape(index, context.shape(0));
}

void identity(NodeContext& context) {
  TypeInfo type = context.output(0).type;
  ValueFacts facts = context.input(0);
  if (facts.type.kind == TypeInfo::Kind::unknown) facts.type = type;
  context.set_facts(0, facts);
}

// Contents survive among the integer types that hold any dimension.
void cast(NodeContext& context) {
  like_first(context);
  const DType to = context.output(0).type.dtype;
  if (to == DType::int64 || to == DType::int32) context.set_contents(0, context.contents(0));
}

void broadcast_all(NodeContext& context) {
  std::optional<DimExpressions> shape = context.shape(0);
  for (size_t index = 1; index < context.input_count(); ++index) shape = broadcast(shape, context.shape(index));
  context.set_shape(0, shape);
}

void scalar_outputs_after_first(NodeContext& context) {
  like_first(context);
  for (size_t index = 1; index < context.output_count(); ++index) context.set_shape(index, DimExpressions{});
}

// Versions 1 to 9 could give five outputs, the later ones three; all but the first are one number for each channel.
void batch_normalization(NodeContext& context) {
  like_first(context);
  for (size_t index = 1; index < context.output_count(); ++index) context.set_shape(index, context.shape(3));
}

// The statistics keep the rank, with 1 for each axis that is averaged.
void layer_normalization(NodeContext& context) {
  like_first(context);
  const auto rank = context.rank(0);
  const auto axis = rank ? normalized_axis(context.integer_or("axis", -1), *rank) : std::nullopt;
  if (!axis) return;
  DimExpressions statistics = *context.shape(0);
  for (size_t index = *axis; index < statistics.size(); ++index) statistics[index] = 1;
  for (size_t index = 1; index < context.output_count(); ++index) context.set_shape(index, statistics);
}

// Input [batch, channels, length], kernel [channels, 1, k]; the state holds the k-1 positions before.
void causal_convolution(NodeContext& context) {
  like_first(context);
  context.set_shape(1, DimExpressions{context.dim(0, 0), context.dim(0, 1), context.dim(1, 2) - 1});
}

// Optimizer steps take R, T and then groups of equally many tensors: X, gradients, and states; all groups but the
// gradients come out again.
void optimizer_step(NodeContext& context) {
  const size_t outputs = context.output_count();
  if (context.input_count() < 3 || outputs == 0) return;
  const size_t tensors = context.input_count() - 2;
  const size_t group = tensors > outputs ? tensors - outputs : 0;  // the gradients are what is missing
  if (group == 0 || outputs % group != 0) return;
  for (size_t index = 0; index < outputs; ++index) {
    const ValueFacts& source = context.input(2 + index + (index < group ? 0 : group));
    context.output(index).type = source.type;
    context.set_shape(index, source.shape);
  }
}

constexpr std::array kElementwiseRows = {
    ShapeRow{"Abs", like_first},
    ShapeRow{"Acos", like_first},
    ShapeRow{"Acosh", like_first},
    ShapeRow{"Adagrad", optimizer_step},
    ShapeRow{"Adam", optimizer_step},
    ShapeRow{"Asin", like_first},
    ShapeRow{"Asinh", like_first},
    ShapeRow{"Atan", like_first},
    ShapeRow{"Atanh", like_first},
    ShapeRow{"BatchNormalization", batch_normalization},
    ShapeRow{"Bernoulli", like_first},
    ShapeRow{"Binarizer", like_first},
    ShapeRow{"BitCast", like_first},
    ShapeRow{"BitwiseNot", like_first},
    ShapeRow{"Cast", cast},
    ShapeRow{"CastLike", cast},
    ShapeRow{"CategoryMapper", like_first},
    ShapeRow{"CausalConvWithState", causal_convolution},
    ShapeRow{"Ceil", like_first},
    ShapeRow{"Celu", like_first},
    ShapeRow{"Clip", like_first},
    ShapeRow{"Cos", like_first},
    ShapeRow{"Cosh", like_first},
    ShapeRow{"CumProd", like_first},
    ShapeRow{"CumSum", like_first},
    ShapeRow{"DequantizeLinear", like_first},
    ShapeRow{"Dropout", all_like_first},
    ShapeRow{"DynamicQuantizeLinear", scalar_outputs_after_first},
    ShapeRow{"Elu", like_first},
    ShapeRow{"Erf", like_first},
    ShapeRow{"Exp", like_first},
    ShapeRow{"EyeLike", like_first},
    ShapeRow{"Floor", like_first},
    ShapeRow{"GatherElements", like_second},
    ShapeRow{"Gelu", like_first},
    ShapeRow{"GroupNormalization", like_first},
    ShapeRow{"HardSigmoid", like_first},
    ShapeRow{"HardSwish", like_first},
    ShapeRow{"Hardmax", like_first},
    ShapeRow{"Identity", identity},
    ShapeRow{"Imputer", like_first},
    ShapeRow{"InstanceNormalization", like_first},
    ShapeRow{"IsInf", like_first},
    ShapeRow{"IsNaN", like_first},
    ShapeRow{"LRN", like_first},
    ShapeRow{"LabelEncoder", like_first},
    ShapeRow{"LayerNormalization", layer_normalization},
    ShapeRow{"LeakyRelu", like_first},
    ShapeRow{"Log", like_first},
    ShapeRow{"LogSoftmax", like_first},
    ShapeRow{"LpNormalization", like_first},
    ShapeRow{"Mean", broadcast_all},
    ShapeRow{"MeanVarianceNormalization", like_first},
    ShapeRow{"Mish", like_first},
    ShapeRow{"Momentum", optimizer_step},
    ShapeRow{"Normalizer", like_first},
    ShapeRow{"PRelu", like_first},
    ShapeRow{"QuantizeLinear", like_first},
    ShapeRow{"RMSNormalization", like_first},
    ShapeRow{"RandomNormalLike", like_first},
    ShapeRow{"RandomUniformLike", like_first},
    ShapeRow{"Reciprocal", like_first},
    ShapeRow{"RegexFullMatch", like_first},
    ShapeRow{"Relu", like_first},
    ShapeRow{"ReverseSequence", like_first},
    ShapeRow{"RotaryEmbedding", like_first},
    ShapeRow{"Round", like_first},
    ShapeRow{"Scaler", like_first},
    ShapeRow{"Scatter", like_first},
    ShapeRow{"ScatterElements", like_first},
    ShapeRow{"ScatterND", like_first},
    ShapeRow{"Selu", like_first},
    ShapeRow{"Shrink", like_first},
    ShapeRow{"Sigmoid", like_first},
    ShapeRow{"Sign", like_first},
    ShapeRow{"SimplifiedLayerNormalization", layer_normalization},
    ShapeRow{"Sin", like_first},
    ShapeRow{"Sinh", like_first},
    ShapeRow{"Softmax", like_first},
    ShapeRow{"Softplus", like_first},
    ShapeRow{"Softsign", like_first},
    ShapeRow{"Sqrt", like_first},
    ShapeRow{"StringConcat", broadcast_all},
    ShapeRow{"Sum", broadcast_all},
    ShapeRow{"SwiGLU", like_first},
    ShapeRow{"Swish", like_first},
    ShapeRow{"Tan", like_first},
    ShapeRow{"Tanh", like_first},
    ShapeRow{"TensorScatter", like_first},
    ShapeRow{"ThresholdedRelu", like_first},
    ShapeRow{"Trilu", like_first},
};

}  // namespace

std::span<const ShapeRow> elementwise_rows() { return kElementwiseRows; }

}  // namespace parallax
