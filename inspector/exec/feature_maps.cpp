// SPDX-License-Identifier: Apache-2.0
// Operators by name: those that make images, and those that keep their axes.
#include "inspector/exec/feature_maps.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "inspector/tensor/channels_last.h"

namespace parallax {
namespace {

// Their specifications name the axes N, C and spatial ones.
constexpr std::array<std::string_view, 23> kMakers = {"AveragePool",
                                                      "BatchNormalization",
                                                      "Conv",
                                                      "ConvInteger",
                                                      "ConvTranspose",
                                                      "DeformConv",
                                                      "DepthToSpace",
                                                      "FusedConv",
                                                      "GlobalAveragePool",
                                                      "GlobalLpPool",
                                                      "GlobalMaxPool",
                                                      "GroupNormalization",
                                                      "InstanceNormalization",
                                                      "LRN",
                                                      "LpPool",
                                                      "MaxPool",
                                                      "MaxUnpool",
                                                      "QLinearAveragePool",
                                                      "QLinearConv",
                                                      "QLinearGlobalAveragePool",
                                                      "SpaceToDepth",
                                                      "ConvTransposeWithDynamicPads",
                                                      "Upsample"};

constexpr std::array<std::string_view, 57> kKeepers = {"Abs",
                                                       "Add",
                                                       "BiasGelu",
                                                       "Cast",
                                                       "CastLike",
                                                       "Ceil",
                                                       "Celu",
                                                       "Clip",
                                                       "Concat",
                                                       "DequantizeLinear",
                                                       "Div",
                                                       "Dropout",
                                                       "Elu",
                                                       "Erf",
                                                       "Exp",
                                                       "FastGelu",
                                                       "Floor",
                                                       "Gelu",
                                                       "HardSigmoid",
                                                       "HardSwish",
                                                       "Identity",
                                                       "LeakyRelu",
                                                       "Log",
                                                       "Max",
                                                       "Mean",
                                                       "Min",
                                                       "Mish",
                                                       "Mul",
                                                       "Neg",
                                                       "PRelu",
                                                       "Pad",
                                                       "Pow",
                                                       "QLinearAdd",
                                                       "QLinearConcat",
                                                       "QLinearLeakyRelu",
                                                       "QLinearMul",
                                                       "QLinearSigmoid",
                                                       "QuantizeLinear",
                                                       "QuickGelu",
                                                       "Reciprocal",
                                                       "Relu",
                                                       "Resize",
                                                       "Round",
                                                       "Selu",
                                                       "Sigmoid",
                                                       "Sign",
                                                       "Slice",
                                                       "Softplus",
                                                       "Softsign",
                                                       "Split",
                                                       "Sqrt",
                                                       "Sub",
                                                       "Sum",
                                                       "Swish",
                                                       "Tanh",
                                                       "ThresholdedRelu",
                                                       "Where"};

}  // namespace

bool gives_feature_maps(const Node& node, const std::function<bool(ValueId)>& is_feature_map) {
  if (node.function != nullptr) return false;
  if (std::ranges::find(kMakers, node.op_type) != kMakers.end()) return true;
  const bool keeps = std::ranges::find(kKeepers, node.op_type) != kKeepers.end();
  return keeps &&
         std::ranges::any_of(node.inputs, [&](ValueId input) { return input != kNoValue && is_feature_map(input); });
}

ElementOrder counting_order(const ValueInfo& value_info, const TensorView& tensor) {
  const bool is_permuted = value_info.is_feature_map && can_be_channels_last(tensor.dtype, tensor.shape);
  return is_permuted ? ElementOrder::channels_last : ElementOrder::row_major;
}

}  // namespace parallax
