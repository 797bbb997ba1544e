// SPDX-License-Identifier: Apache-2.0
// Interpreter: one call of a planned model, walking its graphs in order and telling the observer of every value.
#pragma once

#include <vector>

#include "inspector/exec/executor.h"
#include "reference/memory_meter.h"
#include "reference/plan.h"

namespace parallax::reference {

class Interpreter {
 public:
  Interpreter(const RunOptions& options, ReferencePrecision precision, std::span<const CaptureLevel> levels,
              MemoryMeter& meter, Observer& observer);

  // `inputs` are as the graph carries them. Everything between begin_call and end_call happens here.
  Result<std::vector<Value>> call(const GraphPlan& plan, std::vector<Value> inputs, const CallInfo& info);

 private:
  // A graph in execution: its values by ValueId.
  struct ActiveGraph {
    const GraphPlan& plan;
    std::vector<Value> values;
  };

  Result<std::vector<Value>> run_graph(const GraphPlan& plan, std::vector<Value> inputs, const ActiveGraph* enclosing,
                                       const BodyPlan* body);
  Status store_sources(ActiveGraph& active, std::vector<Value> inputs);
  Status run_node(ActiveGraph& active, const NodePlan& step);
  Result<std::vector<Value>> compute_node(ActiveGraph& active, const NodePlan& step);
  Result<std::vector<Value>> run_body(ActiveGraph& active, const NodePlan& step, std::string_view attribute,
                                      Frame::Kind kind, int64_t index, std::vector<Value> inputs);
  Status store_outputs(ActiveGraph& active, const NodePlan& step, std::vector<Value> outputs);
  Status store(ActiveGraph& active, ValueId id, Value value, const ValueInfo* alias_of);
  const ValueInfo* alias_of(const ActiveGraph& active, const Node& node, const Value& output) const;
  Result<Value> overridden(const ValueInfo& value_info, Value computed) const;
  void release(ActiveGraph& active, ValueId id);

  Status reported(Status status);                   // remembers that it was the observer who failed
  Error failed(const NodePlan& step, Error error);  // names the node and tells the observer, once

  const RunOptions& options_;
  ReferencePrecision precision_;
  std::span<const CaptureLevel> levels_;  // by value id
  MemoryMeter& meter_;
  Observer& observer_;
  FrameStack frames_;
  bool wants_times_;
  bool observer_failed_ = false;
  bool failure_reported_ = false;
};

}  // namespace parallax::reference
