// SPDX-License-Identifier: Apache-2.0
// From GraphEdit to Graph: nodes with their aliases resolved, constants as initializers, what nothing reads left out.
#include "runtime/rewrite/apply.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "inspector/model/link.h"
#include "inspector/model/opset/opset_registry.h"
#include "inspector/model/value_names.h"
#include "runtime/rewrite/fused_ops.h"
#include "runtime/rewrite/fuser.h"
#include "runtime/rewrite/outer_names.h"

namespace parallax::runtime {
namespace {

Attribute constant_attribute(const Tensor& tensor) {
  Attribute attribute;
  attribute.name = "value";
  attribute.type = AttributeType::tensor;
  StoredTensor stored;
  stored.tensor = tensor;
  attribute.value = std::move(stored);
  return attribute;
}

class Rewriter {
 public:
  Rewriter(Model& model, std::span<const ChosenPattern> patterns, const RewriteContext& context)
      : model_(model), patterns_(patterns), context_(context), counts_(patterns.size(), 0) {}

  // Bodies first: what they read of the graph around them is then known by its new name.
  void rewrite(Graph& graph) {
    for (Node& node : graph.nodes) {
      for (Attribute& attribute : node.attributes) {
        if (auto* body = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) rewrite(**body);
        if (auto* bodies = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute.value)) {
          for (auto& body : *bodies) rewrite(*body);
        }
      }
    }
    GraphEdit edit = begin_edit(graph);
    for (size_t at = 0; at < patterns_.size(); ++at) counts_[at] += apply_pattern(patterns_[at], edit, context_);
    Graph rewritten = assemble(edit);
    graph = std::move(rewritten);
    link_graph(graph);
  }

  void import_domains() {
    for (const std::string& domain : domains_) {
      if (opset_version_in(model_.opset_imports, domain) == 0) model_.opset_imports.push_back({domain, 1});
    }
  }

  std::vector<int64_t> take_counts() { return std::move(counts_); }

 private:
  using Makers = std::unordered_map<ValueId, const PlannedNode*>;

  // ---- The graph ----

  Graph assemble(const GraphEdit& edit) {
    const Graph& source = *edit.source;
    Graph graph;
    graph.name = source.name;
    graph.doc = source.doc;
    graph.metadata = source.metadata;
    graph.unparsed = source.unparsed;
    node_of_value_.clear();
    for (const PlannedNode& planned : edit.nodes) {
      for (const ValueId output : planned.node->outputs) node_of_value_[output] = &planned;
    }
    std::map<ValueId, ValueId> ids;
    const auto value_of = [&](ValueId old) {
      if (old == kNoValue) return kNoValue;
      const auto [found, is_new] = ids.emplace(old, static_cast<ValueId>(graph.values.size()));
      if (is_new) graph.values.push_back(definition(edit, old));
      return found->second;
    };
    for (ValueId input : source.inputs) graph.inputs.push_back(value_of(input));
    const Renames renames = renames_of(edit);
    for (const PlannedNode& planned : edit.nodes) {
      Node node = node_of(edit, planned);
      rename_outer_values(node, renames);
      for (ValueId& input : node.inputs) input = value_of(input == kNoValue ? kNoValue : edit.resolve(input));
      for (ValueId& output : node.outputs) output = value_of(output);
      graph.nodes.push_back(std::move(node));
    }
    for (ValueId output : source.outputs) graph.outputs.push_back(value_of(edit.resolve(output)));
    const std::set<std::string> read_by_bodies = names_read_by_bodies(graph);
    const ValueNames names = read_by_bodies.empty() ? ValueNames() : values_by_name(source);
    for (const std::string& name : read_by_bodies) {
      const ValueId old = find_value(names, name);
      if (old != kNoValue) value_of(old);
    }
    add_initializers(edit, ids, graph);
    for (ValueId outer : source.outer_values) {
      if (const auto found = ids.find(outer); found != ids.end()) graph.outer_values.push_back(found->second);
    }
    return graph;
  }

  static ValueDef definition(const GraphEdit& edit, ValueId old) {
    ValueDef value;
    if (!edit.is_added(old)) value = edit.source->values[static_cast<size_t>(old)];
    value.name = edit.name_of(old);
    if (const Value& constant = edit.constants[static_cast<size_t>(old)]; constant.is_tensor() && edit.is_added(old))
      value.type = TypeInfo::tensor(constant.tensor().dtype());
    value.producer = kNoNode;
    value.output_index = value.input_index = value.initializer_index = value.sparse_initializer_index = -1;
    value.readers.clear();
    return value;
  }

  // Those that are still read; then folded and added constants.
  static void add_initializers(const GraphEdit& edit, const std::map<ValueId, ValueId>& ids, Graph& graph) {
    const Graph& source = *edit.source;
    std::set<ValueId> made;
    for (const Node& node : graph.nodes) made.insert(node.outputs.begin(), node.outputs.end());
    for (size_t index = 0; index < source.initializers.size(); ++index) {
      const auto found = ids.find(source.initializer_values[index]);
      if (found == ids.end()) continue;
      graph.initializers.push_back(source.initializers[index]);
      graph.initializer_values.push_back(found->second);
    }
    for (size_t index = 0; index < source.sparse_initializers.size(); ++index) {
      const auto found = ids.find(source.sparse_initializer_values[index]);
      if (found == ids.end()) continue;
      graph.sparse_initializers.push_back(source.sparse_initializers[index]);
      graph.sparse_initializer_values.push_back(found->second);
    }
    const std::set<ValueId> stored(graph.initializer_values.begin(), graph.initializer_values.end());
    const std::set<ValueId> sparse(graph.sparse_initializer_values.begin(), graph.sparse_initializer_values.end());
    for (const auto& [old, id] : ids) {
      const Value& constant = edit.constants[static_cast<size_t>(old)];
      if (!constant.is_tensor() || stored.contains(id) || sparse.contains(id) || made.contains(id)) continue;
      StoredTensor tensor;
      tensor.name = edit.name_of(old);
      tensor.tensor = constant.tensor();
      graph.initializers.push_back(std::move(tensor));
      graph.initializer_values.push_back(id);
    }
  }

  // ---- Nodes ----

  Node node_of(const GraphEdit& edit, const PlannedNode& planned) {
    Node node = *planned.node;
    if (planned.sources.empty()) return node;
    std::string sources;
    for (NodeId id : planned.sources)
      sources += (sources.empty() ? "" : ", ") + edit.source->nodes[static_cast<size_t>(id)].display_name;
    if (!is_standard(node)) domains_.insert(node.domain);
    if (node.domain == kFusedDomain) call_function(edit, planned, node);
    node.metadata.emplace_back("parallax.sources", std::move(sources));
    return node;
  }

  // The fused node becomes the call of a function of its own, whose body is the source nodes.
  void call_function(const GraphEdit& edit, const PlannedNode& planned, Node& node) {
    node.metadata.emplace_back("parallax.operator", node.op_type);
    std::vector<ValueId> inputs;  // each once, as a function names its own
    for (const ValueId input : node.inputs) {
      const ValueId resolved = input == kNoValue ? kNoValue : edit.resolve(input);
      if (resolved != kNoValue && std::ranges::find(inputs, resolved) == inputs.end()) inputs.push_back(resolved);
    }
    node.inputs = std::move(inputs);
    const std::set<NodeId> members = nodes_of_body(edit, node_of_value_, planned, node);
    node.attributes.clear();
    auto function = std::make_shared<Function>();
    function->domain = node.domain;
    function->name = fmt::format("{}_{}", node.op_type, ++functions_);
    function->opset_imports = model_.opset_imports;
    function->body = body_of(edit, members, node);
    node.op_type = function->name;
    node.schema = nullptr;
    link_graph(function->body);
    model_.functions.push_back(std::move(function));
  }

  // The source nodes, and those whose results they read that no other node makes any more (shapes that the fused node
  // does not need). Values that they still read become inputs of the call.
  static std::set<NodeId> nodes_of_body(const GraphEdit& edit, const Makers& makers, const PlannedNode& fused,
                                        Node& call) {
    const auto is_made_elsewhere = [&](ValueId value) {
      const auto maker = makers.find(value);
      return maker != makers.end() && maker->second != &fused;
    };
    std::set<NodeId> members(fused.sources.begin(), fused.sources.end());
    std::vector<NodeId> waiting(members.begin(), members.end());
    while (!waiting.empty()) {
      const Node& node = edit.source->nodes[static_cast<size_t>(waiting.back())];
      waiting.pop_back();
      for (const ValueId input : node.inputs) {
        const ValueId value = input == kNoValue ? kNoValue : edit.resolve(input);
        if (value == kNoValue || edit.constant(value) != nullptr) continue;
        if (std::ranges::find(call.inputs, value) != call.inputs.end()) continue;
        const NodeId producer = edit.source->values[static_cast<size_t>(value)].producer;
        if (members.contains(producer)) continue;
        if (producer == kNoNode || is_made_elsewhere(value)) {
          call.inputs.push_back(value);
        } else {
          members.insert(producer);
          waiting.push_back(producer);
        }
      }
    }
    return members;
  }

  static Graph body_of(const GraphEdit& edit, const std::set<NodeId>& members, const Node& call) {
    Graph body;
    std::map<ValueId, ValueId> ids;
    std::vector<Node> constants;
    const auto value_of = [&](ValueId old) {
      if (old == kNoValue) return kNoValue;
      const auto [found, is_new] = ids.emplace(old, static_cast<ValueId>(body.values.size()));
      if (is_new) {
        ValueDef value;
        value.name = edit.name_of(old);
        body.values.push_back(std::move(value));
      }
      return found->second;
    };
    for (ValueId input : call.inputs) body.inputs.push_back(value_of(input));
    for (const NodeId id : members) {
      Node node = edit.source->nodes[static_cast<size_t>(id)];
      for (ValueId& input : node.inputs) {
        const ValueId old = input == kNoValue ? kNoValue : edit.resolve(input);
        const bool is_known = old == kNoValue || ids.contains(old);
        input = value_of(old);
        const Tensor* constant = is_known ? nullptr : edit.constant(old);
        if (constant == nullptr) continue;
        Node made;
        made.op_type = "Constant";
        made.attributes.push_back(constant_attribute(*constant));
        made.outputs = {input};
        constants.push_back(std::move(made));
      }
      for (ValueId& output : node.outputs) output = value_of(output);
      body.nodes.push_back(std::move(node));
    }
    body.nodes.insert(body.nodes.begin(), constants.begin(), constants.end());
    for (ValueId output : call.outputs) body.outputs.push_back(value_of(output));
    return body;
  }

  Model& model_;
  std::span<const ChosenPattern> patterns_;
  const RewriteContext& context_;
  std::vector<int64_t> counts_;  // by pattern
  std::set<std::string> domains_;
  Makers node_of_value_;  // of the edit that is being assembled
  int functions_ = 0;
};

}  // namespace

Result<std::shared_ptr<Model>> apply_rewrite(const Model& model, std::span<const ChosenPattern> patterns,
                                             const RewriteContext& context, std::vector<int64_t>* counts) {
  std::shared_ptr<Model> copy = copy_model(model);
  Rewriter rewriter(*copy, patterns, context);
  rewriter.rewrite(copy->graph);
  rewriter.import_domains();
  if (counts != nullptr) *counts = rewriter.take_counts();
  constexpr int64_t kFunctionsAndMetadata = 10;  // IR versions: functions since 8, a node's metadata since 10
  copy->ir_version = std::max(copy->ir_version, kFunctionsAndMetadata);
  resolve_operators(*copy);
  return copy;
}

}  // namespace parallax::runtime
