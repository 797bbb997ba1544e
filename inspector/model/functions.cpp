// SPDX-License-Identifier: Apache-2.0
// The definition of an operator name (schema or model-local function), and the body of a function as one call executes
// it.
#include <algorithm>
#include <map>
#include <tuple>

#include "inspector/model/link.h"
#include "inspector/model/opset/opset_registry.h"

namespace parallax {
namespace {

// Domain, name, overload: what identifies a function.
using FunctionKey = std::tuple<std::string_view, std::string_view, std::string_view>;
using FunctionTable = std::map<FunctionKey, const Function*>;

// A function of the model hides an operator of the same name: that is how the format lets a model bring its own.
void resolve_graph(Graph& graph, std::span<const OpsetImport> imports, const FunctionTable& functions) {
  for (Node& node : graph.nodes) {
    node.opset_version = opset_version_in(imports, node.domain);
    const auto called = functions.find({canonical_domain(node.domain), node.op_type, node.overload});
    node.function = called == functions.end() ? nullptr : called->second;
    node.schema = node.function == nullptr && node.overload.empty()
                      ? OpsetRegistry::standard().find(node.domain, node.op_type, node.opset_version)
                      : nullptr;
    for (const Graph* body : bodies_of(node)) resolve_graph(const_cast<Graph&>(*body), imports, functions);
  }
}

// Calls within calls, and nodes of a graph with every call replaced by its function's body: real models stay far below,
// and a file of a few kilobytes could otherwise ask for more than any memory holds.
constexpr size_t kMaxCallDepth = 256;
constexpr int64_t kMaxExpandedNodes = 10'000'000;

// Depth-first search over calls; `path_` holds the functions being expanded.
class CallSearch {
 public:
  // Nodes of the graph with all calls expanded.
  Result<int64_t> expanded_nodes(const Graph& graph) {
    int64_t nodes = 0;
    for (const Node& node : graph.nodes) {
      ++nodes;
      if (node.function != nullptr) nodes += PX_TRY(visit(*node.function));
      for (const Graph* body : bodies_of(node)) nodes += PX_TRY(expanded_nodes(*body));
      if (nodes > kMaxExpandedNodes) {
        return invalid_model("calls of functions expand to more than " + std::to_string(kMaxExpandedNodes) + " nodes");
      }
    }
    return nodes;
  }

  Result<int64_t> visit(const Function& function) {
    if (const auto known = done_.find(&function); known != done_.end()) return known->second;
    if (std::ranges::find(path_, &function) != path_.end()) return report(function);
    if (path_.size() == kMaxCallDepth) {
      return invalid_model("function '" + function.name + "' is called through more than " +
                           std::to_string(kMaxCallDepth) + " others");
    }
    path_.push_back(&function);
    const int64_t nodes = PX_TRY(expanded_nodes(function.body));
    path_.pop_back();
    done_.emplace(&function, nodes);
    return nodes;
  }

 private:
  Error report(const Function& function) const {
    std::string calls;
    for (auto at = std::ranges::find(path_, &function); at != path_.end(); ++at) calls += (*at)->name + " -> ";
    return invalid_model("function '" + function.name + "' calls itself: " + calls + function.name +
                         "; functions must not be recursive");
  }

  std::vector<const Function*> path_;
  std::map<const Function*, int64_t> done_;
};

// ---- Binding -------------------------------------------------------------------------------------------------------

// The attribute a reference takes its value from, or null.
const Attribute* source_of_reference(const Function& function, const Node& call, const std::string& name) {
  if (const Attribute* given = find_attribute(call, name)) return given;
  const auto found = std::ranges::find(function.attribute_defaults, name, &Attribute::name);
  return found == function.attribute_defaults.end() ? nullptr : &*found;
}

// Replaces every graph the attribute holds by what `copy` makes of it.
template <class Copy>
void replace_bodies(Attribute& attribute, Copy copy) {
  if (auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) *body = copy(**body);
  if (auto* bodies = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
    for (auto& body : *bodies) body = copy(*body);
  }
}

std::shared_ptr<Graph> bind_graph(const Graph& graph, const Function& function, const Node& call) {
  auto bound = std::make_shared<Graph>(graph);
  for (Node& node : bound->nodes) {
    std::vector<Attribute> attributes;
    for (Attribute& attribute : node.attributes) {
      if (attribute.ref_attr_name.empty()) {
        replace_bodies(attribute, [&](const Graph& body) { return bind_graph(body, function, call); });
        attributes.push_back(std::move(attribute));
      } else if (const Attribute* source = source_of_reference(function, call, attribute.ref_attr_name)) {
        attributes.push_back(*source);
        attributes.back().name = attribute.name;
      }
    }
    node.attributes = std::move(attributes);
  }
  return bound;
}

std::shared_ptr<Graph> copy_graph(const Graph& graph) {
  auto copy = std::make_shared<Graph>(graph);
  for (Node& node : copy->nodes) {
    for (Attribute& attribute : node.attributes) replace_bodies(attribute, copy_graph);
  }
  return copy;
}

}  // namespace

void resolve_operators(Model& model) {
  FunctionTable functions;
  for (const auto& function : model.functions) {
    functions.emplace(FunctionKey(canonical_domain(function->domain), function->name, function->overload),
                      function.get());
  }
  resolve_graph(model.graph, model.opset_imports, functions);
  for (const auto& function : model.functions) resolve_graph(function->body, function->opset_imports, functions);
}

Status check_calls(const Model& model) {
  CallSearch search;
  for (const auto& function : model.functions) PX_TRY(search.visit(*function));
  PX_TRY(search.expanded_nodes(model.graph));
  return {};
}

std::shared_ptr<Model> copy_model(const Model& model) {
  auto copy = std::make_shared<Model>(model);
  copy->file = nullptr;
  copy->sha256.clear();
  copy->graph = std::move(*copy_graph(model.graph));
  for (auto& function : copy->functions) {
    auto own = std::make_shared<Function>(*function);
    own->body = std::move(*copy_graph(function->body));
    function = std::move(own);
  }
  resolve_operators(*copy);
  return copy;
}

std::shared_ptr<const Graph> bind_function(const Function& function, const Node& call) {
  return bind_graph(function.body, function, call);
}

}  // namespace parallax
