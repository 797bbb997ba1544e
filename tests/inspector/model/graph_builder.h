// SPDX-License-Identifier: Apache-2.0
// Builds small graphs and models for tests of what happens after import.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "inspector/model/ir.h"
#include "inspector/model/opset/opset_registry.h"

namespace parallax::testing {

// "float32[batch,3,?]", "int64" (rank unknown), "seq(float32[2])".
inline TypeInfo type_from_text(std::string_view text) {
  if (text.starts_with("seq(")) return TypeInfo::sequence(type_from_text(text.substr(4, text.size() - 5)));
  const size_t open = text.find('[');
  const auto dtype = dtype_from_name(text.substr(0, open));
  if (!dtype) return {};
  TypeInfo type = TypeInfo::tensor(*dtype);
  if (open == std::string_view::npos) return type;
  type.dims.emplace();
  std::string_view dims = text.substr(open + 1, text.size() - open - 2);
  while (!dims.empty()) {
    const size_t comma = std::min(dims.find(','), dims.size());
    const std::string dim(dims.substr(0, comma));
    dims.remove_prefix(std::min(comma + 1, dims.size()));
    const bool number = dim.find_first_not_of("0123456789") == std::string::npos;
    type.dims->push_back(number ? Dim{std::stoll(dim), ""} : Dim{-1, dim == "?" ? "" : dim});
  }
  return type;
}

class GraphBuilder {
 public:
  explicit GraphBuilder(int64_t opset) : opset_(opset) {}

  // The value of this name; made where there is none.
  ValueId value(const std::string& name) {
    if (name.empty()) return kNoValue;
    const ValueId known = graph_.find_value(name);
    if (known != kNoValue) return known;
    ValueDef definition;
    definition.name = name;
    graph_.values.push_back(std::move(definition));
    return static_cast<ValueId>(graph_.values.size() - 1);
  }

  GraphBuilder& input(const std::string& name, std::string_view type = "") {
    const ValueId id = value(name);
    at(id).type = type_from_text(type);
    at(id).input_index = static_cast<int32_t>(graph_.inputs.size());
    graph_.inputs.push_back(id);
    return *this;
  }

  GraphBuilder& initializer(const std::string& name, Tensor tensor) {
    const ValueId id = value(name);
    StoredTensor stored;
    stored.name = name;
    stored.tensor = std::move(tensor);
    at(id).initializer_index = static_cast<int32_t>(graph_.initializers.size());
    graph_.initializers.push_back(std::move(stored));
    graph_.initializer_values.push_back(id);
    return *this;
  }
  GraphBuilder& numbers(const std::string& name, const std::vector<int64_t>& values) {
    return initializer(name, Tensor::vector<int64_t>(values));
  }
  GraphBuilder& number(const std::string& name, int64_t value) { return initializer(name, Tensor::scalar(value)); }

  GraphBuilder& outer(const std::string& name) {
    const ValueId id = value(name);
    at(id).is_outer = true;
    graph_.outer_values.push_back(id);
    return *this;
  }

  GraphBuilder& declare(const std::string& name, std::string_view type) {
    at(value(name)).type = type_from_text(type);
    return *this;
  }

  // "com.microsoft.FusedMatMul" or a name of ai.onnx.
  GraphBuilder& node(std::string op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                     std::vector<std::pair<std::string, Attribute::Value>> attributes = {}) {
    Node node;
    const size_t dot = op.rfind('.');
    node.domain = dot == std::string::npos ? "" : op.substr(0, dot);
    node.op_type = dot == std::string::npos ? op : op.substr(dot + 1);
    node.display_name = node.op_type + "_" + std::to_string(graph_.nodes.size());
    node.opset_version = node.domain.empty() ? opset_ : OpsetRegistry::standard().latest_opset(node.domain);
    node.schema = OpsetRegistry::standard().find(node.domain, node.op_type, node.opset_version);
    const auto id = static_cast<NodeId>(graph_.nodes.size());
    for (const std::string& name : inputs) node.inputs.push_back(value(name));
    for (const std::string& name : outputs) {
      node.outputs.push_back(value(name));
      if (!name.empty()) at(node.outputs.back()).producer = id;
    }
    for (auto& [name, content] : attributes) {
      Attribute attribute;
      attribute.name = name;
      attribute.value = std::move(content);
      node.attributes.push_back(std::move(attribute));
    }
    graph_.nodes.push_back(std::move(node));
    graph_.order.push_back(id);
    return *this;
  }

  GraphBuilder& output(const std::string& name) {
    graph_.outputs.push_back(value(name));
    return *this;
  }

  Node& last_node() { return graph_.nodes.back(); }
  Graph graph() const { return graph_; }
  std::shared_ptr<Graph> body() const { return std::make_shared<Graph>(graph_); }
  Model model() const {
    Model model;
    model.ir_version = 10;
    model.opset_imports = {{"", opset_}};
    model.graph = graph_;
    return model;
  }

 private:
  ValueDef& at(ValueId id) { return graph_.values[static_cast<size_t>(id)]; }

  int64_t opset_;
  Graph graph_;
};

}  // namespace parallax::testing
