// SPDX-License-Identifier: Apache-2.0
// GraphPlan: what can be known of a graph before it runs: each node's function, the bodies it owns, which values of the
// enclosing graph they read, and which values no later node reads.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/exec/value_table.h"
#include "reference/ops/table.h"

namespace parallax::reference {

struct GraphPlan;

struct BodyPlan {
  std::string_view attribute;  // empty for a function call
  std::unique_ptr<GraphPlan> plan;
  // (value in the body, value in this graph) for all that the body reads from outside.
  std::vector<std::pair<ValueId, ValueId>> outer;
};

struct NodePlan {
  NodeId id = kNoNode;
  NodeLocation value_info;
  OpFunction function = nullptr;  // null for a call of a model-local function
  std::vector<BodyPlan> bodies;
  std::vector<ValueId> last_read;  // values that nothing reads after this node, its own unread outputs included

  const BodyPlan* body(std::string_view attribute) const;
};

struct GraphPlan {
  const Graph* graph = nullptr;
  const GraphValues* value_infos = nullptr;
  std::vector<NodePlan> nodes;   // in execution order
  std::vector<Value> constants;  // by ValueId: initializers as they are carried; absent for others

  // Errors: unsupported (no function for a node), invalid_model (a node breaks its schema), out_of_memory.
  static Result<std::unique_ptr<GraphPlan>> build(const GraphValues& value_infos, bool carries_double);
};

}  // namespace parallax::reference
