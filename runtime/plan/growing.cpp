// SPDX-License-Identifier: Apache-2.0
// From a bound output up to the node that makes it.
#include "runtime/plan/growing.h"

#include <algorithm>

namespace parallax::runtime {
namespace {

struct Growth {
  ValueId past = kNoValue;
  int64_t axis = 0, rank = 0;
  bool on_host = true;
};

bool is_operator(const Node& node, std::string_view op, std::string_view domain = "ai.onnx") {
  return node.op_type == op && node.schema != nullptr && node.schema->domain == domain;
}

// An operator that makes `output` of its input `past` and new elements after it.
struct AppendingOperator {
  std::string_view op;
  size_t output, past;
  int64_t axis;  // -1: an attribute tells
  std::string_view domain = "ai.onnx";
  bool on_gpus = true;
};
constexpr AppendingOperator kAppendingOperators[] = {
    {"Concat", 0, 0, -1},
    {"Attention", 1, 4, 2},
    {"Attention", 2, 5, 2},
    {"GroupQueryAttention", 1, 3, 2, "com.microsoft", false},
    {"GroupQueryAttention", 2, 4, 2, "com.microsoft", false},
};

int64_t appending_axis(const Node& node, const AppendingOperator& by, int64_t rank) {
  if (by.axis >= 0) return by.axis;
  const Attribute* const attribute = find_attribute(node, "axis");
  const auto* const axis = attribute == nullptr ? nullptr : std::get_if<int64_t>(&attribute->value);
  if (axis == nullptr || node.inputs.size() != 2) return -1;
  return *axis < 0 ? *axis + rank : *axis;
}

bool mark_node(Step& step, size_t output, const Growth& growth) {
  for (const AppendingOperator& by : kAppendingOperators) {
    if (by.output != output || by.past >= step.inputs.size() || !is_operator(*step.node, by.op, by.domain) ||
        !step.kernel || !(by.on_gpus || growth.on_host))
      continue;
    if (step.inputs[by.past].location.value != growth.past) continue;
    if (appending_axis(*step.node, by, growth.rank) != growth.axis) continue;
    step.accumulated_inputs |= uint64_t{1} << by.past;
    step.growing_axis = growth.axis;
    return true;
  }
  return false;
}

bool mark_output(GraphPlan& plan, size_t output, const Growth& growth);

bool mark_branches(Step& step, size_t output, const Growth& growth) {
  bool any = false;
  for (BodyPlan& body : step.bodies) {
    for (const auto& [inner, outer] : body.outer) {
      if (outer != growth.past) continue;
      any = mark_output(*body.plan, output, {inner, growth.axis, growth.rank, growth.on_host}) || any;
    }
  }
  return any;
}

bool mark_output(GraphPlan& plan, size_t output, const Growth& growth) {
  if (output >= plan.graph->outputs.size()) return false;
  const ValueId made = plan.edit.resolve(plan.graph->outputs[output]);
  for (Step& step : plan.steps) {
    const auto found = std::ranges::find(step.node->outputs, made);
    if (found == step.node->outputs.end()) continue;
    const auto index = static_cast<size_t>(found - step.node->outputs.begin());
    const bool is_marked =
        is_operator(*step.node, "If") ? mark_branches(step, index, growth) : mark_node(step, index, growth);
    if (!is_marked) return false;
    plan.growing_outputs.resize(plan.graph->outputs.size(), 0);
    plan.growing_outputs[output] = 1;
    return true;
  }
  return false;
}

}  // namespace

std::vector<bool> mark_growing(GraphPlan& plan, const KeptStates& states, bool on_host) {
  std::vector<bool> grow;
  for (size_t index = 0; index < states.size(); ++index) {
    const KeptStates::Binding& binding = states.binding(index);
    const ValueId past = plan.edit.resolve(plan.graph->inputs[binding.input]);
    const auto rank = static_cast<int64_t>(binding.value->type.dims->size());
    grow.push_back(mark_output(plan, binding.output, {past, static_cast<int64_t>(binding.axis), rank, on_host}));
  }
  return grow;
}

}  // namespace parallax::runtime
