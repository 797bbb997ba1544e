// SPDX-License-Identifier: Apache-2.0
// CapturedSide: one side's captured values, found as the nodes of its graph name them. What was not captured (fused,
// folded, left out) is computed by the oracle from what was.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inspector/diff/localize/blame.h"
#include "inspector/diff/localize/node_replay.h"
#include "inspector/exec/value_table.h"

namespace parallax::diff {

// A node as it ran once: in the main graph, or in one iteration of a body.
struct NodeInstance {
  const GraphValues* location = nullptr;
  NodeId node = kNoNode;
  std::string prefix;  // of its value paths: "" or "...//"

  const Node& definition() const { return location->graph->nodes[static_cast<size_t>(node)]; }
};

// A value that a node reads or makes.
struct FoundValue {
  Value value;  // absent: not to be had
  bool is_constant = false;
  std::string path;                      // where it was captured; empty for one that was computed
  std::vector<const Node*> computed_by;  // nodes the oracle ran for it, because it was not captured; in order
};

class CapturedSide {
 public:
  // `model` is the one whose value table names the values; `side.model` may hold its weights. The oracle keeps casts.
  CapturedSide(const BlameSide& side, std::shared_ptr<const Model> model, std::shared_ptr<Executor> oracle);

  const DumpReader& dump() const { return *side_.dump; }
  const BlameSide& side() const { return side_; }
  bool is_reference() const;

  // The captured value of this path, absent when there is none in full.
  Result<Value> captured(const std::string& path) const;
  bool has(const std::string& path) const { return by_path_.contains(path); }

  // The value of `id` of the graph at `location` after `prefix`.
  Result<FoundValue> find(const GraphValues& location, const std::string& prefix, ValueId id) const;

  // The values that a node reads (as NodeReplay::reads), and what the oracle makes of them (as its outputs). Errors:
  // usage, when a value is not to be had; those of the oracle.
  struct Computed {
    std::vector<ValueId> reads;
    std::vector<FoundValue> inputs;
    std::vector<Value> outputs;
    double oracle_ms = 0;
  };
  Result<Computed> compute(const NodeInstance& instance) const;
  // The inputs alone.
  Result<Computed> gather(const NodeInstance& instance) const;
  // Gathers the inputs of a node that is examined together with another one, whose session stays.
  Result<Computed> gather_neighbors(const NodeInstance& instance) const { return gather(instance, 1); }
  // The oracle on a node at the position of `instance`, ready to run on any values.
  std::unique_ptr<NodeReplay> make_replay(const NodeInstance& instance, const Node& node) const;
  // The oracle on other values than those captured, or another node in its place.
  Result<std::vector<Value>> replay(const NodeInstance& instance, const Node& node,
                                    std::span<const Value> values) const;

 private:
  Result<FoundValue> compute_absent(const GraphValues& location, const std::string& prefix, ValueId id,
                                    int depth) const;
  Result<FoundValue> compute_from_inputs(const GraphValues& location, const std::string& prefix, ValueId id,
                                         int depth) const;
  Result<FoundValue> find(const GraphValues& location, const std::string& prefix, ValueId id, int depth) const;
  Result<Computed> gather(const NodeInstance& instance, int depth) const;
  Value stored(const Graph& graph, const ValueDef& definition) const;
  NodeReplay& replay_of(const NodeInstance& instance) const;

  BlameSide side_;
  std::shared_ptr<const Model> model_;
  std::shared_ptr<Executor> oracle_;
  RunOptions oracle_options_;
  std::unordered_map<std::string, int32_t> by_path_;
  // Computed values by path: many nodes may read one, and what it is made of. Not to be had: from which depth on.
  mutable std::unordered_map<std::string, FoundValue> computed_;
  mutable int64_t computed_bytes_ = 0;
  mutable std::unordered_map<std::string, int> not_computed_;
  mutable const Node* replayed_ = nullptr;  // the session of one node is kept, for its iterations
  mutable std::unique_ptr<NodeReplay> replay_;
};

}  // namespace parallax::diff
