// SPDX-License-Identifier: Apache-2.0
// Enumerates the values of a model: every input, initializer and node output of the main graph, of all bodies, and
// of each function call's body, in execution order. All executors use it, so that their values have the same ids and
// paths.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inspector/exec/observer.h"
#include "inspector/model/value_names.h"

namespace parallax {

// One graph as it is executed at one static location: the main graph, a body of a control-flow node, a called function.
class GraphValues {
 public:
  const Graph* graph = nullptr;
  std::string scope;                     // as ValueInfo::scope
  std::vector<const ValueInfo*> values;  // by ValueId; null for outer values (see outer)
  // For each ValueId with is_outer: the value of the enclosing graph that it names.
  std::unordered_map<ValueId, const ValueInfo*> outer;
  // Children by node, in execution order: one for each graph attribute in attribute order, or one for a function call.
  struct Child {
    NodeId node = kNoNode;
    std::string attribute;  // "body", "then_branch", ...; empty for a function call
    std::unique_ptr<GraphValues> value_infos;
  };
  std::vector<Child> children;
  const GraphValues* parent = nullptr;

  const GraphValues* child(NodeId node, std::string_view attribute) const;
  std::span<const Child> children_of(NodeId node) const;
  void add_child(Child child);  // those of one node one after the other

  // Graph::find_value of this graph, by an index that the first look-up makes. Safe to call from any thread.
  ValueId find_value(std::string_view name) const;

  // (value in this body, value of the enclosing graph) for all that the body reads from outside. Errors: invalid_model,
  // naming a value that the enclosing graph does not have.
  Result<std::vector<std::pair<ValueId, ValueId>>> outer_values() const;

 private:
  std::unordered_map<NodeId, size_t> first_child_;  // of each node that has children
  mutable std::once_flag is_indexed_;
  mutable ValueNames by_name_;
};

// `error` with the node's location in front, "node 'loop.body[3]//add' (Add-14), cpu: ...", and the node as the one at
// fault. `prefix` is the text of the frames; `executor` may be empty.
Error at_location(Error error, std::string_view prefix, const NodeLocation& value_info, std::string_view executor = {});

class ValueTable {
 public:
  // Errors: invalid_model when nesting exceeds 256 or the expansion of functions exceeds 1,000,000 nodes.
  static Result<ValueTable> build(std::shared_ptr<const Model> model);

  const GraphValues& main() const { return *main_; }
  const std::deque<ValueInfo>& value_infos() const { return value_infos_; }  // by id

 private:
  class Builder;
  ValueTable() = default;

  std::shared_ptr<const Model> model_;
  std::vector<std::shared_ptr<const Graph>> bound_functions_;
  std::deque<ValueInfo> value_infos_;
  std::unique_ptr<GraphValues> main_;
};

}  // namespace parallax
