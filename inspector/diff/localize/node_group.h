// SPDX-License-Identifier: Apache-2.0
// NodeGroup: a node together with those before it whose results were not captured, judged as one: the part of a graph
// between the nearest captured values and the node's outputs. An operator that an exporter writes as several nodes is
// one, where only its final value is known.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "inspector/diff/localize/captured_side.h"

namespace parallax::diff {

class NodeGroup {
 public:
  // One node of the group. Its reads and inputs are as CapturedSide::Computed has them.
  struct Member {
    NodeInstance instance;
    std::vector<ValueId> reads;
    std::vector<FoundValue> inputs;
  };

  // The group that ends with `root`, whose inputs are `computed`'s. Null where all of these were captured, where a
  // value on the way is not available, or where the group exceeds 128 nodes. `side` must outlive the group. Errors:
  // corrupt_file.
  static Result<std::shared_ptr<NodeGroup>> around(const CapturedSide& side, const NodeInstance& root,
                                                   const CapturedSide::Computed& computed);

  // In execution order, the root last; two members at least.
  std::span<const Member> members() const { return members_; }

  // The root's outputs when member `index` yields `outputs` instead of its own. Errors: those of the oracle.
  Result<std::vector<Value>> run_from(size_t index, std::vector<Value> outputs) const;

  // The root's outputs when all members read `value` for `id`, which no member makes. Errors: those of the oracle.
  Result<std::vector<Value>> run_with(ValueId id, const Value& value) const;

  // The root's outputs when every floating-point value that a member reads is moved by about `ulps` ULP of its
  // declared type (float32 at least), captured values once for all members.
  Result<std::vector<Value>> run_nudged(uint32_t seed, double ulps) const;

 private:
  using Values = std::unordered_map<ValueId, Value>;

  NodeGroup(const CapturedSide& side, const NodeInstance& root) : side_(side), root_(root) {}
  Status collect(const NodeInstance& root, const CapturedSide::Computed& computed);
  Status add(NodeId node, std::unordered_map<NodeId, Member>& found) const;
  Result<std::vector<Value>> run_member(size_t index, const Values& changed) const;
  Result<std::vector<Value>> run_changed(size_t first, Values changed, std::vector<Value> outputs) const;
  double units_of(ValueId id) const;

  const CapturedSide& side_;
  NodeInstance root_;
  std::vector<Member> members_;
  mutable std::vector<std::unique_ptr<NodeReplay>> replays_;  // by member; sessions are prepared once
};

}  // namespace parallax::diff
