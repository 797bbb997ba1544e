// SPDX-License-Identifier: Apache-2.0
// The time of a run: by node and by operator, with the work each node had to do, and as a trace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inspector/workbench/run.h"

namespace parallax {

// A node at one static location; figures are of one run, all iterations of the bodies around it together.
struct NodeProfile {
  std::string scope;  // frames around it, "node_loop.body[*]//"; empty in the main graph
  std::string node;
  std::string op;     // without domain and version; of fused nodes up to three joined, "Conv+Relu", or what they became
  int64_t calls = 0;  // in one run
  double ms = 0;      // of the node alone: nodes in its bodies have their own rows. Mean over the runs
  int64_t bytes = 0;  // see node_cost.h
  int64_t flops = 0;
  std::vector<std::string> sources = {};  // fused: the nodes whose work it does; else empty
};

struct OperatorProfile {
  std::string op;
  int64_t count = 0;  // nodes executed in one run
  double ms = 0;
  double share = 0;  // of the time of all operators, 0..1
};

struct ProfileResult {
  std::string executor;
  std::string device;
  int64_t iterations = 0;
  double total_ms = 0;               // a whole run, mean
  std::vector<OperatorProfile> ops;  // the most expensive first
  std::vector<NodeProfile> nodes;    // in execution order
  std::string trace;                 // the last run as Chrome's trace events (JSON), for chrome://tracing or Perfetto
  std::vector<std::string> notes;    // what was chosen for generated inputs
};

// Runs once unmeasured, then `iterations` times with every node timed; nothing is captured and nothing un-fused. (What
// a fused node has to do is counted in a further run, of its parts.) Errors as of run_models.
Result<ProfileResult> profile_model(const RunRequest& request, int64_t iterations,
                                    const ExecutorFactory& make_executor);

// `top`: how many nodes the text lists, the most expensive first; -1: all.
std::string profile_to_text(const ProfileResult& result, int64_t top);
std::string profile_to_json(const ProfileResult& result);

}  // namespace parallax
