// SPDX-License-Identifier: Apache-2.0
// `show --json`: the graph as one JSON document.
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "inspector/model/scope_tree.h"
#include "inspector/render/graph_text.h"
#include "inspector/render/report_json.h"
#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

using nlohmann::ordered_json;

ordered_json name_or_null(const Graph& graph, ValueId id) {
  if (id == kNoValue) return nullptr;
  return graph.values[static_cast<size_t>(id)].name;
}

ordered_json names_of(const Graph& graph, const std::vector<ValueId>& ids) {
  ordered_json names = ordered_json::array();
  for (ValueId id : ids) names.push_back(name_or_null(graph, id));
  return names;
}

ordered_json typed_values(const Graph& graph, const std::vector<ValueId>& ids) {
  ordered_json values = ordered_json::array();
  for (ValueId id : ids) {
    const ValueDef& value = graph.values[static_cast<size_t>(id)];
    values.push_back({{"name", value.name}, {"type", to_string(value.type)}});
    if (!value.doc.empty()) values.back()["doc"] = value.doc;
  }
  return values;
}

ordered_json graph_document(const Graph& graph, const GraphTextOptions& options);

ordered_json metadata_json(const Metadata& metadata) {
  ordered_json json = ordered_json::object();
  for (const auto& [key, value] : metadata) json[key] = value;
  return json;
}

// Adds what the file says for people, where it says anything.
void add_remarks(const std::string& doc, const Metadata& metadata, ordered_json& json) {
  if (!doc.empty()) json["doc"] = doc;
  if (!metadata.empty()) json["metadata"] = metadata_json(metadata);
}

// An attribute's value in JSON's own types. Elements of tensors are listed up to a number that fits the eye.
struct AttributeJson {
  static constexpr int64_t kMostElements = 64;

  ordered_json operator()(const std::monostate&) const { return nullptr; }
  // The shortest digits of a float, not those of the double it widens to.
  ordered_json operator()(float value) const {
    return std::isfinite(value) ? ordered_json::parse(fmt::format("{}", value)) : number_json(value);
  }
  ordered_json operator()(int64_t value) const { return value; }
  ordered_json operator()(const std::string& value) const { return value; }
  ordered_json operator()(const StoredTensor& stored) const {
    const Shape& shape = stored.tensor.shape();
    ordered_json json{{"dtype", name_of(stored.tensor.dtype())},
                      {"shape", std::vector<int64_t>(shape.begin(), shape.end())}};
    if (!stored.absence.empty()) {
      json["absence"] = stored.absence;
    } else if (stored.tensor.element_count() <= kMostElements) {
      json["values"] = ordered_json::array();
      for (int64_t index = 0; index < stored.tensor.element_count(); ++index)
        json["values"].push_back(element(stored.tensor, index));
    }
    return json;
  }
  ordered_json operator()(const std::shared_ptr<Graph>&) const { return nullptr; }  // see node_document
  ordered_json operator()(const SparseTensor& sparse) const {
    return {{"dtype", name_of(sparse.values.tensor.dtype())}, {"shape", sparse.dims}, {"sparse", true}};
  }
  ordered_json operator()(const TypeInfo& type) const { return to_string(type); }
  template <class Item>
  ordered_json operator()(const std::vector<Item>& values) const {
    ordered_json list = ordered_json::array();
    for (const Item& value : values) list.push_back((*this)(value));
    return list;
  }

 private:
  static ordered_json element(const TensorView& tensor, int64_t index) {
    const std::string text = element_to_string(tensor, index);
    if (tensor.dtype == DType::string || is_complex(tensor.dtype)) return text;
    ordered_json number = ordered_json::parse(text, nullptr, false);
    return number.is_discarded() ? ordered_json(text) : number;
  }
};

ordered_json attribute_json(const Attribute& attribute) {
  if (!attribute.ref_attr_name.empty()) return {{"ref_attr_name", attribute.ref_attr_name}};
  if (!attribute.absence.empty()) return {{"absence", attribute.absence}};
  return std::visit(AttributeJson{}, attribute.value);
}

ordered_json node_document(const Graph& graph, const Node& node, const std::string& scope,
                           const GraphTextOptions& options) {
  ordered_json json{{"node", node.display_name},
                    {"op", node.op_type},
                    {"domain", node.domain},
                    {"version", node.opset_version},
                    {"scope", scope},
                    {"inputs", names_of(graph, node.inputs)},
                    {"outputs", names_of(graph, node.outputs)}};
  if (options.shapes) {
    json["types"] = ordered_json::array();
    for (ValueId id : node.outputs) {
      json["types"].push_back(id == kNoValue ? ordered_json(nullptr)
                                             : ordered_json(to_string(graph.values[static_cast<size_t>(id)].type)));
    }
  }
  if (!node.problem.empty()) json["problem"] = node.problem;
  json["attributes"] = ordered_json::object();
  for (const Attribute& attribute : node.attributes) {
    const auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
    if (body != nullptr && *body != nullptr) {
      json["attributes"][attribute.name] = graph_document(**body, options);
    } else {
      json["attributes"][attribute.name] = attribute_json(attribute);
    }
  }
  add_remarks(node.doc, node.metadata, json);
  return json;
}

ordered_json graph_document(const Graph& graph, const GraphTextOptions& options) {
  const ScopeTree tree = build_scope_tree(graph);
  ordered_json json{{"graph", graph.name},
                    {"inputs", typed_values(graph, graph.inputs)},
                    {"outputs", typed_values(graph, graph.outputs)}};
  json["initializers"] = ordered_json::array();
  for (const StoredTensor& stored : graph.initializers) {
    const auto& shape = stored.tensor.shape();
    json["initializers"].push_back({{"name", stored.name},
                                    {"dtype", name_of(stored.tensor.dtype())},
                                    {"shape", std::vector<int64_t>(shape.begin(), shape.end())}});
    if (!stored.absence.empty()) json["initializers"].back()["absence"] = stored.absence;
  }
  if (!graph.doc.empty()) json["graph_doc"] = graph.doc;
  if (!graph.metadata.empty()) json["graph_metadata"] = metadata_json(graph.metadata);
  json["nodes"] = ordered_json::array();
  for (NodeId id : graph.order) {
    const auto scope = static_cast<size_t>(tree.scope_of_node[static_cast<size_t>(id)]);
    json["nodes"].push_back(
        node_document(graph, graph.nodes[static_cast<size_t>(id)], tree.scopes[scope].path, options));
  }
  return json;
}

}  // namespace

std::string graph_to_json(const Model& model, const GraphTextOptions& options) {
  ordered_json json{{"model", model.path},
                    {"ir_version", model.ir_version},
                    {"producer", model.producer_name},
                    {"producer_version", model.producer_version},
                    {"domain", model.domain},
                    {"model_version", model.model_version},
                    {"doc", model.doc},
                    {"metadata", metadata_json(model.metadata)}};
  json["opset_imports"] = ordered_json::object();
  for (const OpsetImport& import : model.opset_imports)
    json["opset_imports"][import.domain.empty() ? "ai.onnx" : import.domain] = import.version;
  json["problems"] = ordered_json::array();
  for (const ModelProblem& problem : model.problems)
    json["problems"].push_back({{"where", problem.where}, {"message", problem.message}});
  json.update(graph_document(model.graph, options));
  json["functions"] = ordered_json::array();
  for (const auto& function : model.functions) {
    ordered_json body = graph_document(function->body, options);
    body["domain"] = function->domain;
    body["function"] = function->name;
    json["functions"].push_back(std::move(body));
  }
  return json_text(json);
}

}  // namespace parallax
