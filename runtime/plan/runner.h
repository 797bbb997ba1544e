// Runner: one call of a planned model, walking its graphs in order and telling the observer of every value.
#pragma once

#include <span>
#include <vector>

#include "inspector/exec/executor.h"
#include "runtime/plan/plan.h"

namespace parallax::runtime {

class Runner {
 public:
  Runner(const RunOptions& options, std::span<const CaptureLevel> levels, Platform& platform, Observer& observer);

  // Everything between begin_call and end_call. `announce` tells first of the values that do not exist.
  Result<std::vector<Value>> call(const GraphPlan& plan, std::span<const Value> inputs, const CallInfo& info,
                                  bool announce);

 private:
  // A graph in execution: its values by ValueId.
  struct ActiveGraph {
    const GraphPlan& plan;
    std::vector<Value> values;
    std::vector<uint8_t> is_constant;
  };

  Status announce_absent(const GraphPlan& plan);
  Result<std::vector<Value>> run_graph(const GraphPlan& plan, std::vector<Value> inputs, ActiveGraph* enclosing,
                                       const BodyPlan* body);
  Status place_sources(ActiveGraph& active, std::vector<Value> inputs);
  Status run_step(ActiveGraph& active, const Step& step);
  Status compute(ActiveGraph& active, const Step& step);
  Status compute_kernel(ActiveGraph& active, const Step& step);
  Status compute_control(ActiveGraph& active, const Step& step, std::span<const OpInput> inputs);
  Result<std::vector<Value>> run_body(ActiveGraph& active, const Step& step, std::string_view attribute,
                                      Frame::Kind kind, int64_t index, std::vector<Value> inputs);
  Status place_outputs(ActiveGraph& active, const Step& step, std::vector<Value> outputs,
                       std::span<const int64_t> aliases);
  Status place(ActiveGraph& active, ValueId id, Value value, const ValueSite* alias_of);
  Result<Value> overridden(const ValueSite& site, Value computed, const ValueSite*& alias_of) const;

  Status told(Status status);                   // remembers that it was the observer who failed
  Error failed(const Step& step, Error error);  // names the node and tells the observer, once

  const RunOptions& options_;
  std::span<const CaptureLevel> levels_;  // by site id
  Platform& platform_;
  Observer& observer_;
  FrameStack frames_;
  uint64_t frame_seed_ = 0;  // see OpCall
  bool wants_times_;
  bool observer_failed_ = false;
  bool failure_told_ = false;
};

}  // namespace parallax::runtime
