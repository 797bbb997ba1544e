// SPDX-License-Identifier: Apache-2.0
// If, Loop, Scan and SequenceMap: operators whose bodies the planner runs. They stay on the host; values that they pass
// to bodies may be anywhere.
#pragma once

#include <functional>
#include <vector>

#include "inspector/exec/value_path.h"
#include "runtime/plan/platform.h"

namespace parallax::runtime {

// Runs a graph attribute of the node as its `kind` frame number `index` (-1 for branches).
using RunBody = std::function<Result<std::vector<Value>>(std::string_view attribute, Frame::Kind kind, int64_t index,
                                                         std::vector<Value> inputs)>;

struct ControlCall {
  OpCall& op;
  Platform& platform;
  const RunBody& run_body;
};

struct ControlRow {
  std::string_view op;
  Status (*run)(ControlCall& call);
  int64_t since_first = 1;
  size_t host_inputs = 0;  // the first so many inputs are read by the planner: conditions, trip counts
  int64_t since_last = INT64_MAX;
  std::string_view domain = "ai.onnx";
  bool reads_on_host(size_t input) const { return input < host_inputs; }
};

// Null where the node is no control flow.
const ControlRow* find_control(const Node& node);

}  // namespace parallax::runtime
