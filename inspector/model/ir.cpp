// SPDX-License-Identifier: Apache-2.0
// Look-ups in the IR.
#include "inspector/model/ir.h"

#include <algorithm>

#include "inspector/model/opset/op_schema.h"
#include "inspector/model/opset/opset_registry.h"

namespace parallax {

std::string_view find_metadata(const Metadata& metadata, std::string_view key) {
  const auto found = std::ranges::find(metadata, key, &Metadata::value_type::first);
  return found == metadata.end() ? std::string_view() : std::string_view(found->second);
}

std::string versioned_op_name(const Node& node) {
  if (node.schema != nullptr) return node.schema->versioned_name();
  return node.domain.empty() ? node.op_type : node.domain + "." + node.op_type;
}

const Attribute* find_attribute(const Node& node, std::string_view name) {
  const auto found = std::ranges::find(node.attributes, name, &Attribute::name);
  return found == node.attributes.end() ? nullptr : &*found;
}

ValueId Graph::find_value(std::string_view value_name) const {
  const auto found = std::ranges::find(values, value_name, &ValueDef::name);
  return found == values.end() ? kNoValue : static_cast<ValueId>(found - values.begin());
}

NodeId Graph::find_node(std::string_view display_name) const {
  const auto found = std::ranges::find(nodes, display_name, &Node::display_name);
  return found == nodes.end() ? kNoNode : static_cast<NodeId>(found - nodes.begin());
}

TypeInfo Graph::output_type(size_t index) const {
  const ValueId id = outputs[index];
  const TypeInfo declared = id == kNoValue ? TypeInfo{} : value_at(*this, id).type;
  if (inferred_outputs.size() != outputs.size()) return declared;
  TypeInfo type = inferred_outputs[index];
  if (declared.kind != TypeInfo::Kind::unknown && declared.kind != type.kind) return declared;
  if (declared.dtype != DType::undefined) type.dtype = declared.dtype;
  return type;
}

int64_t opset_version_in(std::span<const OpsetImport> imports, std::string_view domain) {
  int64_t version = 0;
  for (const OpsetImport& import : imports) {
    if (canonical_domain(import.domain) == canonical_domain(domain)) version = std::max(version, import.version);
  }
  return version;
}

int64_t Model::opset_version(std::string_view domain_name) const {
  return opset_version_in(opset_imports, domain_name);
}

}  // namespace parallax
