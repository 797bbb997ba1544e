// SPDX-License-Identifier: Apache-2.0
// Renames what would hide a value of the enclosing graph, then keeps the values that are read.
#include "inspector/transform/merge_branch.h"

#include <algorithm>

#include "inspector/model/link.h"

namespace parallax::transform {
namespace {

using NameMap = std::map<std::string, std::string, std::less<>>;

class Branch {
 public:
  Branch(const BranchRequest& request, const EnclosingGraph& enclosing, FreshNames& fresh,
         std::vector<RenamedItem>& renamed)
      : request_(request), enclosing_(enclosing), fresh_(fresh), renamed_(renamed) {}

  std::shared_ptr<Graph> make() {
    old_ = std::move(copy_model(*request_.model)->graph);
    rename_values(old_, request_.sources, true);
    body_ = std::make_shared<Graph>();
    body_->name = old_.name;
    body_->doc = old_.doc;
    body_->metadata = old_.metadata;
    for (size_t id = 0; id < old_.values.size(); ++id) old_ids_.emplace(old_.values[id].name, static_cast<ValueId>(id));
    for (Node& node : old_.nodes) take_node(std::move(node));
    for (const std::string& name : enclosing_.outputs) body_->outputs.push_back(take_output(name));
    for (size_t id = 0; id < body_->values.size(); ++id) {
      if (body_->values[id].is_outer) body_->outer_values.push_back(static_cast<ValueId>(id));
    }
    link_graph(*body_);
    return body_;
  }

 private:
  // `visible` maps names that the graphs around `graph` have changed.
  void rename_values(Graph& graph, const NameMap& visible, bool is_root) {
    NameMap deeper = visible;
    for (ValueDef& value : graph.values) {
      if (is_root ? is_source(value) : value.is_outer) {
        const auto found = visible.find(value.name);
        if (found != visible.end()) value.name = found->second;
        continue;
      }
      deeper.erase(value.name);
      if (!enclosing_.types.contains(value.name)) continue;
      const std::string name = fresh_.take(value.name);
      renamed_.push_back({"value", request_.model->path, value.name, name});
      deeper[value.name] = name;
      value.name = name;
    }
    for (size_t index = 0; !is_root && index < graph.initializers.size(); ++index)
      graph.initializers[index].name = value_at(graph, graph.initializer_values[index]).name;
    for (Node& node : graph.nodes) {
      for (const Graph* inner : bodies_of(node)) rename_values(const_cast<Graph&>(*inner), deeper, false);
    }
  }

  ValueId take_value(ValueId old) {
    if (old == kNoValue) return kNoValue;
    const ValueDef& value = value_at(old_, old);
    const auto [known, is_new] = ids_.emplace(value.name, static_cast<ValueId>(body_->values.size()));
    if (!is_new) return known->second;
    ValueDef& taken = body_->values.emplace_back();
    if (is_source(value)) {
      taken.name = value.name;
      taken.type = enclosing_.types.at(value.name);
      taken.is_outer = true;
    } else {
      taken = value;
    }
    return known->second;
  }

  void take_node(Node node) {
    for (const Graph* inner : bodies_of(node)) {
      for (const ValueId outer : inner->outer_values) {
        const auto found = old_ids_.find(value_at(*inner, outer).name);
        if (found != old_ids_.end()) take_value(found->second);
      }
    }
    for (ValueId& id : node.inputs) id = take_value(id);
    for (ValueId& id : node.outputs) id = take_value(id);
    body_->nodes.push_back(std::move(node));
  }

  // The body's value of that name. One that is no node's result is passed on by an Identity.
  ValueId take_output(const std::string& name) {
    const auto passed = request_.passed.find(name);
    const Graph& graph = request_.model->graph;
    const ValueId old = passed == request_.passed.end() ? graph.find_value(name) : graph.find_value(passed->second);
    if (passed == request_.passed.end() && !is_source(value_at(graph, old))) return take_value(old);
    const ValueId from = take_value(old);
    const ValueId to = add_value(*body_, name, enclosing_.types.at(value_at(*body_, from).name));
    body_->nodes.push_back(make_node("pass " + name, "Identity", {from}, {to}));
    return to;
  }

  const BranchRequest& request_;
  const EnclosingGraph& enclosing_;
  FreshNames& fresh_;
  std::vector<RenamedItem>& renamed_;
  Graph old_;
  std::shared_ptr<Graph> body_;
  std::map<std::string, ValueId, std::less<>> old_ids_;
  std::map<std::string, ValueId, std::less<>> ids_;
};

}  // namespace

std::shared_ptr<Graph> make_branch(const BranchRequest& request, const EnclosingGraph& enclosing, FreshNames& fresh,
                                   std::vector<RenamedItem>& renamed) {
  return Branch(request, enclosing, fresh, renamed).make();
}

void collect_inner_names(const Graph& graph, bool is_body, std::set<std::string, std::less<>>& names) {
  for (const ValueDef& value : graph.values) {
    if (!value.is_outer && (is_body || !is_source(value))) names.insert(value.name);
  }
  for (const Node& node : graph.nodes) {
    for (const Graph* body : bodies_of(node)) collect_inner_names(*body, true, names);
  }
}

}  // namespace parallax::transform
