// SPDX-License-Identifier: Apache-2.0
// `show --json`: the graph as one JSON document.
#include <nlohmann/json.hpp>

#include "inspector/model/scope_tree.h"
#include "inspector/render/graph_labels.h"
#include "inspector/render/graph_text.h"
#include "inspector/render/report_json.h"

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
  }
  return values;
}

ordered_json graph_document(const Graph& graph, const GraphTextOptions& options);

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
      json["attributes"][attribute.name] = attribute_text(attribute).substr(attribute.name.size() + 1);
    }
  }
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
  ordered_json json{{"model", model.path}, {"ir_version", model.ir_version}, {"producer", model.producer_name}};
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
