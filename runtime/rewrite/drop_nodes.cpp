// SPDX-License-Identifier: Apache-2.0
// Patterns that drop nodes which pass their input on: Identity, and Dropout where nothing is dropped.
#include <algorithm>

#include "inspector/model/opset/op_schema.h"
#include "runtime/rewrite/fuser.h"
#include "runtime/rewrite/patterns.h"

namespace parallax::runtime {
namespace {

// The single output may go: it is not pinned, and no other output is used.
bool may_alias(const GraphEdit& edit, const Node& node) {
  if (node.inputs.empty() || node.inputs[0] == kNoValue || node.outputs.empty() || node.outputs[0] == kNoValue)
    return false;
  for (size_t index = 1; index < node.outputs.size(); ++index) {
    if (node.outputs[index] != kNoValue) return false;
  }
  return !edit.pinned[static_cast<size_t>(node.outputs[0])];
}

template <class Passes>
void drop_if(GraphEdit& edit, const Passes& passes) {
  std::erase_if(edit.nodes, [&](const PlannedNode& planned) {
    const Node& node = *planned.node;
    if (!is_standard(node) || node.function != nullptr || !passes(node) || !may_alias(edit, node)) return false;
    edit.alias(node.outputs[0], node.inputs[0]);
    return true;
  });
}

// True where input `index` is known to be one false bool.
bool is_false(const GraphEdit& edit, ValueId value) {
  const Value& constant = edit.constants[static_cast<size_t>(edit.resolve(value))];
  return constant.is_tensor() && constant.tensor().dtype() == DType::bool_ && constant.tensor().element_count() == 1 &&
         !constant.tensor().as<bool>()[0];
}

// Versions 7 and 10 have no training mode; before, is_test says; since 12, an optional input does.
bool is_inference(const GraphEdit& edit, const Node& node) {
  if (node.schema == nullptr) return false;
  const int64_t version = node.schema->since_version;
  if (version >= 12) return node.inputs.size() < 3 || node.inputs[2] == kNoValue || is_false(edit, node.inputs[2]);
  if (version >= 7) return true;
  const Attribute* is_test = find_attribute(node, "is_test");
  const auto* value = is_test == nullptr ? nullptr : std::get_if<int64_t>(&is_test->value);
  return value != nullptr && *value != 0;
}

}  // namespace

void drop_identities(GraphEdit& edit, const RewriteContext&) {
  drop_if(edit, [](const Node& node) { return node.op_type == "Identity"; });
}

void drop_dropouts(GraphEdit& edit, const RewriteContext&) {
  drop_if(edit, [&](const Node& node) { return node.op_type == "Dropout" && is_inference(edit, node); });
}

}  // namespace parallax::runtime
