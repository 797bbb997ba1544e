// SPDX-License-Identifier: Apache-2.0
// Ranking: the relevant ones of the nodes that two models define differently, and their order in the report.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "inspector/diff/localize_models/blame_models_side.h"
#include "inspector/diff/matching/matching.h"

namespace parallax::diff {

struct ModelRoot {
  LocatedNode node;  // in A; in B where it was inserted
  std::string path;
  std::vector<std::string> also_seen_at = {};  // other values of A that it makes
  std::string why;
  double introduced = 0;
  double inherited = 0;
  double size = 0;  // of what was introduced, relative to the value
  double confidence = 1;
  int32_t wanted = -1, instead = -1;  // these three as in diff::Culprit
  std::string b_reads;
  LocatedNode node_b = {};  // these two as in diff::Culprit
  bool is_missing_in_b = false;
  bool is_of_stored_values = false;  // as in Cause
  int64_t first_iteration = -1;
  int64_t order = 0;
  bool is_users_limit = false;   // that `introduced` is in units of
  bool is_draw = false;          // as in diff::Culprit
  bool always_counts = false;    // however little it has done
  bool is_quantization = false;  // it does no more than to quantize
};

// The ranked list. Left out is what stayed within a user's limits, where something else did not, and the rounding to
// another type where a value left the range of numbers. Such a value is a cause where no root explains it.
std::vector<Cause> ranked_causes(std::vector<ModelRoot> roots, const ModelSide& a, const ModelSide& b,
                                 const ModelMatching& matching, const Comparison& comparison);

// Fills each cause's `node_b` by its node and path, where no root names it.
void name_nodes_in_b(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, std::span<Cause> causes);

}  // namespace parallax::diff
