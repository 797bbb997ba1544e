// SPDX-License-Identifier: Apache-2.0
// Constant folding: what depends on weights alone is computed once. Results that would take much more memory than what
// they are made from (an expanded mask) are left to the run.
#include <algorithm>

#include "inspector/model/opset/op_schema.h"
#include "inspector/model/random_operators.h"
#include "runtime/rewrite/patterns.h"

namespace parallax::runtime {
namespace {

constexpr size_t kFreeBytes = size_t{1} << 16;  // results up to this size are always kept

// Dropout may draw, too; a Constant's value is there already without a copy.
bool is_left_alone(const Node& node) {
  return draws_at_random(node.op_type) || node.op_type == "Dropout" || node.op_type == "Constant";
}

bool has_body(const Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(), [](const Attribute& attribute) {
    return std::holds_alternative<std::shared_ptr<Graph>>(attribute.value) ||
           std::holds_alternative<std::vector<std::shared_ptr<Graph>>>(attribute.value);
  });
}

bool may_fold(const GraphEdit& edit, const Node& node) {
  if (node.schema == nullptr || node.function != nullptr || node.inputs.empty() || has_body(node)) return false;
  if (is_left_alone(node)) return false;
  const bool outputs_free = std::none_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
    return output != kNoValue && edit.pinned[static_cast<size_t>(output)];
  });
  return outputs_free && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
           return input == kNoValue || !edit.constants[static_cast<size_t>(edit.resolve(input))].is_absent();
         });
}

// Values of Constant nodes count as known to those who read them.
void note_constant_node(GraphEdit& edit, const Node& node) {
  if (node.op_type != "Constant" || node.schema == nullptr || node.outputs.empty() || node.outputs[0] == kNoValue)
    return;
  const Attribute* value = find_attribute(node, "value");
  const auto* stored = value == nullptr ? nullptr : std::get_if<StoredTensor>(&value->value);
  const auto output = static_cast<size_t>(node.outputs[0]);
  if (stored != nullptr && !edit.pinned[output]) edit.constants[output] = stored->tensor;
}

size_t total_bytes(std::span<const Value> values) {
  size_t bytes = 0;
  for (const Value& value : values) bytes += payload_bytes(value);
  return bytes;
}

bool fold_node(GraphEdit& edit, const RewriteContext& context, const Node& node) {
  std::vector<Value> inputs;
  for (ValueId input : node.inputs) {
    inputs.push_back(input == kNoValue ? Value() : edit.constants[static_cast<size_t>(edit.resolve(input))]);
  }
  auto results = context.evaluate(node, inputs);
  if (!results.ok() || total_bytes(*results) > std::max(kFreeBytes, total_bytes(inputs))) return false;
  for (size_t index = 0; index < node.outputs.size(); ++index) {
    if (node.outputs[index] == kNoValue) continue;
    if (index >= results->size() || (*results)[index].is_absent()) return false;
  }
  for (size_t index = 0; index < node.outputs.size(); ++index) {
    if (node.outputs[index] != kNoValue) edit.fold(node.outputs[index], std::move((*results)[index]));
  }
  ++edit.changes;
  return true;
}

}  // namespace

void fold_constants(GraphEdit& edit, const RewriteContext& context) {
  if (!context.evaluate) return;
  std::erase_if(edit.nodes, [&](const PlannedNode& planned) {
    note_constant_node(edit, *planned.node);
    return may_fold(edit, *planned.node) && fold_node(edit, context, *planned.node);
  });
}

}  // namespace parallax::runtime
