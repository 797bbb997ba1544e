// SPDX-License-Identifier: Apache-2.0
// Building the short texts.
#include "inspector/render/graph_labels.h"

#include <fmt/format.h>

#include "inspector/base/shown_text.h"
#include "inspector/exec/value_path.h"
#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

constexpr size_t kMaxAttributeText = 60;
constexpr size_t kMaxListItems = 12;

template <class Item, class Print>
std::string list_text(const std::vector<Item>& items, Print print) {
  std::string text = "[";
  for (size_t index = 0; index < items.size() && index < kMaxListItems; ++index) {
    if (index > 0) text += ',';
    text += print(items[index]);
  }
  if (items.size() > kMaxListItems) text += fmt::format(",... {} in all", items.size());
  return text + "]";
}

std::string stored_tensor_text(const StoredTensor& stored) {
  const std::string content = stored.absence.empty() ? small_tensor_text(stored.tensor) : "not here";
  const std::string type = std::string(name_of(stored.tensor.dtype())) + stored.tensor.shape().to_string();
  return content.empty() ? type : type + ":" + content;
}

struct AttributePrinter {
  std::string operator()(const std::monostate&) const { return "?"; }
  std::string operator()(float value) const { return fmt::format("{}", value); }
  std::string operator()(int64_t value) const { return fmt::format("{}", value); }
  std::string operator()(const std::string& value) const { return "\"" + shorten(value, kMaxAttributeText) + "\""; }
  std::string operator()(const StoredTensor& value) const { return stored_tensor_text(value); }
  std::string operator()(const std::shared_ptr<Graph>&) const { return "{graph}"; }
  std::string operator()(const SparseTensor& value) const {
    return fmt::format("sparse[{}]", fmt::join(value.dims, ","));
  }
  std::string operator()(const TypeInfo& value) const { return to_string(value); }
  template <class Item>
  std::string operator()(const std::vector<Item>& values) const {
    return list_text(values, *this);
  }
};

const StoredTensor* constant_of(const Graph& graph, const ValueDef& value) {
  if (value.initializer_index >= 0 && value.input_index < 0)
    return &graph.initializers[static_cast<size_t>(value.initializer_index)];
  if (value.producer == kNoNode) return nullptr;
  const Node& node = graph.nodes[static_cast<size_t>(value.producer)];
  const Attribute* attribute = node.op_type == "Constant" ? find_attribute(node, "value") : nullptr;
  return attribute == nullptr ? nullptr : std::get_if<StoredTensor>(&attribute->value);
}

}  // namespace

std::string small_tensor_text(const TensorView& tensor, int64_t limit) {
  if (tensor.element_count() > limit || tensor.dtype == DType::undefined || !tensor.device.is_host()) return {};
  if (tensor.shape.rank() == 0) return element_to_string(tensor, 0);
  std::string text = "[";
  for (int64_t index = 0; index < tensor.element_count(); ++index) {
    if (index > 0) text += ',';
    text += element_to_string(tensor, index);
  }
  return text + "]";
}

std::string attribute_text(const Attribute& attribute) {
  if (!attribute.ref_attr_name.empty()) return fmt::format("{}=@{}", attribute.name, attribute.ref_attr_name);
  return fmt::format("{}={}", attribute.name, std::visit(AttributePrinter{}, attribute.value));
}

std::string qualified_op(const Node& node) {
  const bool is_standard = node.domain.empty() || node.domain == "ai.onnx";
  return is_standard ? node.op_type : node.domain + "." + node.op_type;
}

std::string constant_text(const StoredTensor& stored, int64_t limit) {
  const std::string content = stored.absence.empty() ? small_tensor_text(stored.tensor, limit) : "";
  return content.empty() ? std::string(name_of(stored.tensor.dtype())) + stored.tensor.shape().to_string() : content;
}

std::string constant_node_text(const Node& node, int64_t limit) {
  if (node.attributes.empty()) return {};
  const Attribute& attribute = node.attributes.front();
  const auto* stored = std::get_if<StoredTensor>(&attribute.value);
  return stored != nullptr ? constant_text(*stored, limit) : std::visit(AttributePrinter{}, attribute.value);
}

std::string name_text(std::string_view name) {
  const bool looks_like_content = !name.empty() && std::string_view("0123456789+-.[").find(name.front()) != name.npos;
  return looks_like_content ? "\"" + escape_name(name) + "\"" : escape_name(name);
}

std::string operand_text(const Graph& graph, ValueId value) {
  if (value == kNoValue) return "_";
  const ValueDef& definition = graph.values[static_cast<size_t>(value)];
  const StoredTensor* constant = constant_of(graph, definition);
  const bool is_shown = constant != nullptr && constant->absence.empty();
  const std::string content = is_shown ? small_tensor_text(constant->tensor, 4) : "";
  return content.empty() ? name_text(definition.name) : content;
}

}  // namespace parallax
