// If, Loop, Scan and SequenceMap: operators whose bodies the planner runs. They stay on the host; what they hand to
// bodies may lie anywhere.
#pragma once

#include <functional>
#include <vector>

#include "inspector/exec/value_path.h"
#include "runtime/ops/op_context.h"

namespace parallax::runtime {

// Runs a graph attribute of the node as its `kind` frame number `index` (-1 for branches).
using RunBody = std::function<Result<std::vector<Value>>(std::string_view attribute, Frame::Kind kind, int64_t index,
                                                         std::vector<Value> inputs)>;

struct ControlCall {
  OpContext<Cpu>& op;
  const RunBody& run_body;
};

using ControlFunction = Status (*)(ControlCall& call);

// Null where the node is no control flow.
ControlFunction find_control(const Node& node);

}  // namespace parallax::runtime
