// SPDX-License-Identifier: Apache-2.0
// Judging one node: how far its captured outputs are from the oracle's on the same inputs, in units of what rounding
// may do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspector/diff/localize/captured_side.h"
#include "inspector/diff/localize/node_group.h"
#include "inspector/diff/tolerance/value_compare.h"

namespace parallax::diff {

// The limit of one node's own rounding on an output: the table's bound with exact inputs. `inputs` as
// NodeReplay::reads; those that were recomputed count as known to some rounding only.
Limit own_rounding_limit(const CapturedSide& side, const NodeInstance& instance, const std::vector<ValueId>& reads,
                         const std::vector<FoundValue>& inputs, ValueId output, const Value& captured);

// The oracle's value in the type (and so to the rounding) of the captured one.
Value rounded_like(const Value& oracle, const Value& captured);

// The distance of two values under a limit; infinity where shapes or types differ. Metrics of the worst tensor.
struct Distance {
  double severity = 0;
  std::optional<Metrics> metrics;  // nothing: they cannot be compared
};
Distance distance_between(const Value& expected, const Value& actual, const Limit& limit);

struct NodeJudgement {
  bool is_judged = false;
  std::string reason;  // why not
  size_t output = 0;   // the one that is furthest off
  double introduced = 0;
  Limit limit;
  CapturedSide::Computed computed;         // inputs, and the oracle's outputs
  std::shared_ptr<const NodeGroup> group;  // the nodes judged with it; null where all its inputs were captured
  Value expected;                          // of that output, rounded as captured
  Value actual;
  std::string carried_values;  // of a node with bodies: what it handed on wrongly; empty where that is not known
};

// `carried`: for a node with bodies, whose inner rounding no table knows, the limits that the comparison gave its
// outputs (by output, may be empty). Errors: corrupt_file.
Result<NodeJudgement> judge_node(const CapturedSide& side, const NodeInstance& instance,
                                 const std::vector<std::optional<Limit>>& carried);

// The inputs moved by about a unit in the last place (of float32 at least), this way or that by chance; whole ones
// stay.
std::vector<Value> nudged(const std::vector<FoundValue>& inputs, uint32_t seed, double ulps);
Value nudged_value(const Value& value, uint32_t seed, double ulps);

bool has_body(const Node& node);

}  // namespace parallax::diff
