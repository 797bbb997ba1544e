// SPDX-License-Identifier: Apache-2.0
// Which nodes are activations, and their parameters.
#include "runtime/rewrite/epilogue.h"

#include <cmath>
#include <limits>

namespace parallax::runtime {
namespace {

struct Row {
  std::string_view domain, op;
  const char* name;
  const char* parameters[2];
  bool is_published;
};

constexpr std::string_view kStandard = "";
constexpr Row kRows[] = {
    {kStandard, "Relu", "Relu", {}, true},
    {kStandard, "Sigmoid", "Sigmoid", {}, true},
    {kStandard, "Tanh", "Tanh", {}, true},
    {kStandard, "LeakyRelu", "LeakyRelu", {"alpha", nullptr}, true},
    {kStandard, "HardSigmoid", "HardSigmoid", {"alpha", "beta"}, true},
    {kStandard, "HardSwish", "HardSwish", {}, false},
    {kMicrosoft, "Gelu", "Gelu", {}, false},
    {kMicrosoft, "FastGelu", "FastGelu", {}, false},
    {kMicrosoft, "QuickGelu", "QuickGelu", {"alpha", nullptr}, false},
};

// Clip-11 and later with constant bounds; before, attributes say them.
std::optional<EpilogueStep> clip(const Fuser& fuser, const Node& node) {
  EpilogueStep activation{"Clip", {}, true};
  constexpr float kMost = std::numeric_limits<float>::max();
  for (size_t index = 1; index <= 2; ++index) {
    const char* name = index == 1 ? "min" : "max";
    const float open = index == 1 ? -kMost : kMost;
    const ValueId bound = fuser.input(node, index);
    const auto value =
        bound == kNoValue ? std::optional(float_of(node, name, static_cast<double>(open))) : fuser.scalar(bound);
    if (!value.has_value() || std::isnan(*value)) return std::nullopt;
    activation.parameters.push_back(static_cast<float>(*value));
  }
  return activation;
}

}  // namespace

std::optional<EpilogueStep> activation_at(const Fuser& fuser, size_t position) {
  const Node* node = position == Fuser::kNowhere ? nullptr : fuser.at(position);
  if (node == nullptr || node->function != nullptr || node->outputs.size() != 1) return std::nullopt;
  if (is_standard(*node) && node->op_type == "Clip") return clip(fuser, *node);
  if (is_standard(*node) && node->op_type == "Gelu" && node->schema != nullptr)
    return EpilogueStep{text_of(*node, "approximate", "none") == "tanh" ? "FastGelu" : "Gelu", {}, false};
  for (const Row& row : kRows) {
    const bool in_domain = row.domain.empty() ? is_standard(*node) : node->domain == row.domain;
    if (!in_domain || node->op_type != row.op || node->inputs.size() != 1) continue;
    EpilogueStep activation{row.name, {}, row.is_published};
    for (const char* parameter : row.parameters) {
      if (parameter != nullptr) activation.parameters.push_back(static_cast<float>(float_of(*node, parameter, 0)));
    }
    return activation;
  }
  return std::nullopt;
}

}  // namespace parallax::runtime
