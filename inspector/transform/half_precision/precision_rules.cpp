// SPDX-License-Identifier: Apache-2.0
// The rules as a table by operator of ai.onnx.
#include "inspector/transform/half_precision/precision_rules.h"

#include <algorithm>
#include <array>

namespace parallax::transform {
namespace {

struct OperatorRule {
  std::string_view op;
  PrecisionRule rule;
};

using enum PrecisionRule;

constexpr std::array kOperatorRules = {
    OperatorRule{"BitCast", float32_only},
    OperatorRule{"Bernoulli", float32_only},
    OperatorRule{"BlackmanWindow", float32_only},
    OperatorRule{"Cast", casts},
    OperatorRule{"CastLike", casts},
    OperatorRule{"Compress", moves},
    OperatorRule{"Concat", moves},
    OperatorRule{"Constant", constant},
    OperatorRule{"ConstantOfShape", fills},
    OperatorRule{"DepthToSpace", moves},
    OperatorRule{"DequantizeLinear", quantizes},
    OperatorRule{"Expand", moves},
    OperatorRule{"EyeLike", float32_only},
    OperatorRule{"Flatten", moves},
    OperatorRule{"Gather", moves},
    OperatorRule{"GatherElements", moves},
    OperatorRule{"GatherND", moves},
    OperatorRule{"HammingWindow", float32_only},
    OperatorRule{"HannWindow", float32_only},
    OperatorRule{"Identity", moves},
    OperatorRule{"If", branches},
    OperatorRule{"Loop", loops},
    OperatorRule{"MelWeightMatrix", float32_only},
    OperatorRule{"Multinomial", float32_only},
    OperatorRule{"Pad", moves},
    OperatorRule{"QuantizeLinear", quantizes},
    OperatorRule{"RandomNormal", float32_only},
    OperatorRule{"RandomNormalLike", float32_only},
    OperatorRule{"RandomUniform", float32_only},
    OperatorRule{"RandomUniformLike", float32_only},
    OperatorRule{"Reshape", moves},
    OperatorRule{"ReverseSequence", moves},
    OperatorRule{"Scan", scans},
    OperatorRule{"Shape", reads_shape},
    OperatorRule{"Size", reads_shape},
    OperatorRule{"Slice", moves},
    OperatorRule{"SpaceToDepth", moves},
    OperatorRule{"Split", moves},
    OperatorRule{"Squeeze", moves},
    OperatorRule{"Tile", moves},
    OperatorRule{"Transpose", moves},
    OperatorRule{"Unsqueeze", moves},
    OperatorRule{"Where", moves},
};

struct Float32Input {
  std::string_view op;
  size_t index;
};
constexpr std::array kFloat32Inputs = {Float32Input{"Resize", 1}, Float32Input{"Resize", 2},
                                       Float32Input{"Upsample", 1}};

bool is_standard(const Node& node) {
  return node.function == nullptr && (node.domain.empty() || node.domain == "ai.onnx");
}

}  // namespace

PrecisionRule precision_rule_of(const Node& node) {
  if (!is_standard(node)) return computes;
  const auto found = std::ranges::find(kOperatorRules, node.op_type, &OperatorRule::op);
  return found == kOperatorRules.end() ? computes : found->rule;
}

bool is_always_float32(const Node& node, size_t index) {
  return is_standard(node) && std::ranges::any_of(kFloat32Inputs, [&](const Float32Input& input) {
           return input.op == node.op_type && input.index == index;
         });
}

std::string_view type_attribute_of(const Node& node) {
  if (!is_standard(node)) return {};
  if (node.op_type == "Cast") return "to";
  return node.op_type == "DequantizeLinear" ? "output_dtype" : std::string_view();
}

}  // namespace parallax::transform
