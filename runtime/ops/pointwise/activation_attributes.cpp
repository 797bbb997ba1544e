// SPDX-License-Identifier: Apache-2.0
// Names of activations, and the parameters they have by default: those of the operators of ai.onnx.
#include "runtime/ops/pointwise/activation_attributes.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"

namespace parallax::runtime {
namespace {

using Kind = Activation::Kind;

struct Row {
  std::string_view name;
  Activation activation;  // with default parameters
};

constexpr float kMost = std::numeric_limits<float>::max();
constexpr Row kDefaultAttributes[] = {
    {"Relu", {Kind::relu}},
    {"Sigmoid", {Kind::sigmoid}},
    {"Tanh", {Kind::tanh}},
    {"LeakyRelu", {Kind::leaky_relu, 0.01F}},
    {"Clip", {Kind::clip, -kMost, kMost}},
    {"HardSigmoid", {Kind::hard_sigmoid, 0.2F, 0.5F}},
    {"HardSwish", {Kind::hard_swish}},
    {"Softsign", {Kind::softsign}},
    {"Gelu", {Kind::gelu}},
    {"FastGelu", {Kind::fast_gelu}},
    {"QuickGelu", {Kind::swish, 1.702F}},
};

const Row* row_named(std::string_view name) {
  const auto* found = std::find_if(std::begin(kDefaultAttributes), std::end(kDefaultAttributes),
                                   [&](const Row& candidate) { return candidate.name == name; });
  return found == std::end(kDefaultAttributes) ? nullptr : found;
}

Result<Activation> named(const OpCall& op) {
  const std::string name = op.find_text("activation").value_or("");
  if (name.empty()) return Activation{};
  const Row* found = row_named(name);
  if (found == nullptr)
    return unsupported(fmt::format("activation '{}' has no kernel here; --fallback=reference runs it", name));
  return found->activation;
}

}  // namespace

bool has_known_activation(const Node& node) {
  const Attribute* attribute = find_attribute(node, "activation");
  const auto* name = attribute == nullptr ? nullptr : std::get_if<std::string>(&attribute->value);
  return name == nullptr || name->empty() || row_named(*name) != nullptr;
}
bool has_other_activation(const Node& node) { return !has_known_activation(node); }

Result<Activation> activation_of_conv(const OpCall& op) {
  Activation activation = PX_TRY(named(op));
  const auto parameters = op.find_reals("activation_params").value_or(std::vector<float>{});
  if (parameters.size() > 2) return wrong_length("attribute 'activation_params'", parameters.size(), "have 2 or fewer");
  if (!parameters.empty()) activation.alpha = parameters[0];
  if (parameters.size() > 1) activation.beta = parameters[1];
  return activation;
}

Result<Activation> activation_of_product(const OpCall& op) {
  Activation activation = PX_TRY(named(op));
  if (const auto alpha = op.find_real("activation_alpha")) activation.alpha = static_cast<float>(*alpha);
  if (const auto beta = op.find_real("activation_beta")) activation.beta = static_cast<float>(*beta);
  return activation;
}

}  // namespace parallax::runtime
