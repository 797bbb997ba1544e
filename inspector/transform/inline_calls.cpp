// SPDX-License-Identifier: Apache-2.0
// Copies the bodies of functions into the graphs that call them.
#include "inspector/transform/inline_calls.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "inspector/exec/value_path.h"
#include "inspector/model/io/import.h"
#include "inspector/model/link.h"
#include "inspector/model/opset/opset_registry.h"
#include "inspector/model/shape_inference/infer_types.h"
#include "inspector/transform/graph_building.h"

namespace parallax::transform {
namespace {

constexpr size_t kMostNodes = 1'000'000;  // as ValueTable has it

std::shared_ptr<Graph> deep_copy(const Graph& graph) {
  auto copy = std::make_shared<Graph>(graph);
  for (Node& node : copy->nodes) {
    for (Attribute& attribute : node.attributes) {
      if (auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) *body = deep_copy(**body);
      if (auto* list = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
        for (auto& body : *list) body = deep_copy(*body);
      }
    }
  }
  return copy;
}

// The new name of each value of a function's body; empty for a formal input that the call omits.
using Renames = std::map<std::string, std::string, std::less<>>;

// Renames what a body reads from the graphs around it. A name that the body defines itself is another value.
void rename_outer_values(Graph& body, const Renames& renames) {
  Renames visible = renames;
  for (ValueDef& value : body.values) {
    if (!value.is_outer) visible.erase(value.name);
  }
  for (Node& node : body.nodes) {
    for (ValueId& input : node.inputs) {
      if (input == kNoValue || !value_at(body, input).is_outer) continue;
      const auto found = visible.find(value_at(body, input).name);
      if (found != visible.end() && found->second.empty()) input = kNoValue;
    }
    for (const Graph* inner : bodies_of(node)) rename_outer_values(const_cast<Graph&>(*inner), visible);
  }
  for (ValueDef& value : body.values) {
    const auto found = value.is_outer ? visible.find(value.name) : visible.end();
    if (found != visible.end() && !found->second.empty()) value.name = found->second;
  }
}

void use_display_names(Graph& graph) {
  for (Node& node : graph.nodes) {
    node.name = node.display_name;
    for (const Graph* body : bodies_of(node)) use_display_names(const_cast<Graph&>(*body));
  }
}

class Inliner {
 public:
  Inliner(Model& model, InlinedCalls& result) : model_(model), result_(result), names_(model) {}

  Status inline_graph(Graph& graph, const std::string& scope) {
    if (has_calls(graph)) {
      std::vector<Node> nodes;
      for (const NodeId id : graph.order) {
        Node& node = graph.nodes[static_cast<size_t>(id)];
        if (node.function == nullptr) {
          PX_TRY(inline_bodies(node, scope));
          nodes.push_back(std::move(node));
        } else {
          PX_TRY(inline_call(graph, node, scope, nodes));
        }
        node_count_ += 1;
        if (node_count_ > kMostNodes)
          return invalid_model(fmt::format("calls of functions expand to more than {} nodes", kMostNodes));
      }
      graph.nodes = std::move(nodes);
    }
    link_graph(graph);
    return {};
  }

 private:
  static bool has_calls(const Graph& graph) {
    return std::ranges::any_of(graph.nodes, [](const Node& node) {
      return node.function != nullptr ||
             std::ranges::any_of(bodies_of(node), [](const Graph* body) { return has_calls(*body); });
    });
  }

  std::string text_of(const std::string& name) const { return path_text(result_.paths, name); }

  Status inline_bodies(const Node& node, const std::string& scope) {
    for (const Graph* body : bodies_of(node)) {
      PX_TRY(inline_graph(const_cast<Graph&>(*body), fmt::format("{}{}.body[*]//", scope, text_of(node.display_name))));
    }
    return {};
  }

  // Why the nodes of a body would mean something else among the model's operator sets, or nothing.
  std::string obstacle(const Graph& body, const Function& function) const {
    for (const Node& node : body.nodes) {
      for (const Graph* inner : bodies_of(node)) {
        if (std::string found = obstacle(*inner, function); !found.empty()) return found;
      }
      if (node.function != nullptr) continue;
      const int64_t version = model_.opset_version(node.domain);
      if (version == node.opset_version || version == 0) continue;
      if (node.schema != nullptr && OpsetRegistry::standard().find(node.domain, node.op_type, version) == node.schema)
        continue;
      return fmt::format("function '{}' uses {} of opset {}, the model imports opset {}", function.name, node.op_type,
                         node.opset_version, version);
    }
    return {};
  }

  void import_operator_sets(const Function& function) {
    for (const OpsetImport& import : function.opset_imports) {
      if (model_.opset_version(import.domain) == 0) model_.opset_imports.push_back(import);
    }
  }

  Status inline_call(Graph& graph, Node& call, const std::string& scope, std::vector<Node>& nodes) {
    const Function& function = *call.function;
    const std::string prefix = text_of(call.display_name) + ".call//";
    if (std::string reason = obstacle(function.body, function); !reason.empty()) {
      result_.left_out.emplace_back(scope + text_of(call.display_name), std::move(reason));
      nodes.push_back(std::move(call));
      return {};
    }
    import_operator_sets(function);
    const auto body = deep_copy(*bind_function(function, call));
    use_display_names(*body);
    PX_TRY(inline_graph(*body, scope + prefix));

    Renames renames;
    std::vector<ValueId> ids(body->values.size(), kNoValue);
    const auto define = [&](ValueId inner) {
      ValueDef value = value_at(*body, inner);
      const std::string path = prefix + text_of(value.name);
      const std::string name = names_.take(path);
      renames[value.name] = name;
      value.name = name;
      result_.paths[name] = path;
      ids[static_cast<size_t>(inner)] = static_cast<ValueId>(graph.values.size());
      graph.values.push_back(std::move(value));
      return ids[static_cast<size_t>(inner)];
    };
    const auto pass_on = [&](const std::string& name, ValueId from, ValueId to) {
      result_.paths[prefix + name] = prefix + name;
      nodes.push_back(make_node(prefix + name, "Identity", {from}, {to}));
    };
    for (size_t index = 0; index < body->inputs.size(); ++index) {
      const ValueId inner = body->inputs[index];
      const ValueId given = index < call.inputs.size() ? call.inputs[index] : kNoValue;
      const std::string formal = value_at(*body, inner).name;
      if (given == kNoValue) {
        renames[formal] = "";
      } else {
        pass_on(fmt::format("input {}", formal), given, define(inner));
      }
    }
    for (const Node& node : body->nodes) {
      for (const ValueId id : node.outputs) {
        if (id != kNoValue) define(id);
      }
    }
    for (Node& node : body->nodes) {
      for (const Graph* inner : bodies_of(node)) rename_outer_values(const_cast<Graph&>(*inner), renames);
      for (ValueId& id : node.inputs) id = id == kNoValue ? kNoValue : ids[static_cast<size_t>(id)];
      for (ValueId& id : node.outputs) id = id == kNoValue ? kNoValue : ids[static_cast<size_t>(id)];
      node.name = prefix + text_of(node.display_name);
      result_.paths[node.name] = node.name;
      nodes.push_back(std::move(node));
    }
    for (size_t index = 0; index < std::min(call.outputs.size(), body->outputs.size()); ++index) {
      const ValueId inner = ids[static_cast<size_t>(body->outputs[index])];
      if (call.outputs[index] == kNoValue || inner == kNoValue) continue;
      pass_on(fmt::format("output {}", value_at(*body, body->outputs[index]).name), inner, call.outputs[index]);
    }
    node_count_ += body->nodes.size();
    return {};
  }

  Model& model_;
  InlinedCalls& result_;
  FreshNames names_;
  size_t node_count_ = 0;
};

}  // namespace

std::string path_text(const PathTexts& paths, const std::string& name) {
  const auto found = paths.find(name);
  return found == paths.end() ? escape_name(name) : found->second;
}

Result<InlinedCalls> inline_calls(const Model& model) {
  InlinedCalls result;
  result.model = copy_model(model);
  Model& copy = *result.model;
  use_display_names(copy.graph);
  PX_TRY(Inliner(copy, result).inline_graph(copy.graph, ""));
  if (result.left_out.empty()) copy.functions.clear();
  resolve_operators(copy);
  fill_types(copy, infer_types(copy));
  return result;
}

}  // namespace parallax::transform
