// SPDX-License-Identifier: Apache-2.0
// Blame: which node's own arithmetic is wrong, on which side, and what only inherited it. Works on two dumps, each side
// with what is at hand: its model, its executor.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/cancel.h"
#include "inspector/base/result.h"
#include "inspector/diff/diagnosis.h"
#include "inspector/diff/tolerance/policy.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/exec/executor.h"

namespace parallax {

struct BlameSide {
  std::shared_ptr<const DumpReader> dump;  // the values that are judged
  std::shared_ptr<const Model> model;      // with weights; null: the dump's graph, and weights as they were captured
  std::shared_ptr<Executor> executor;      // the one that made the dump, for second evidence; may be null
  RunOptions options;                      // of that executor
  std::set<std::string, std::less<>> damaged = {};  // paths whose payloads are: as good as not captured
};

struct BlameRequest {
  BlameSide a, b;
  std::shared_ptr<Executor> oracle;  // reference:double
  Policy policy;
  CancelToken cancel;
};

// Writes the origin of `node`, as the exporter tells it, into the cause.
void set_source(const Node& node, Cause& cause);

// True where both sides ran the same model file.
bool run_one_model(const BlameRequest& request);

// The causes where both sides run one model: each node's captured outputs against the oracle on the same side's
// captured inputs. Where all nodes are right and the policy is `auto`, what exceeds its limit is accumulated rounding:
// the diagnosis accepts it, with evidence, and there is no cause.
Status blame_executions(const BlameRequest& request, const Comparison& comparison, Diagnosis& diagnosis);

}  // namespace parallax
