// SPDX-License-Identifier: Apache-2.0
// Runner: walks a planned model's graphs in order and shows the observer every value. It is kept between calls, with
// the frames that hold values, so that a small node costs no allocation but its values' own.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "inspector/exec/executor.h"
#include "runtime/plan/event_queue.h"
#include "runtime/plan/plan.h"

namespace parallax::runtime {

// States are shown as plain values of the host; who hears nothing needs no copy of them.
Status begin_call(Platform& platform, Observer& observer, const CallInfo& info, std::span<const Value> inputs);

class Runner {
 public:
  Runner(const RunOptions& options, Platform& platform)
      : options_(options), platform_(platform), event_queue_(platform) {}

  // Everything between begin_call and end_call. `levels`: by value id, the levels that the observer wants. `announce`
  // first announces the values that do not exist.
  Result<std::vector<Value>> call(const GraphPlan& plan, std::vector<Value> inputs, const CallInfo& info,
                                  Observer& observer, std::span<const CaptureLevel> levels, bool announce);

  // Nodes that ran in another executor though a kernel had been planned for them.
  const std::vector<std::string>& late_fallback_nodes() const { return late_fallback_nodes_; }

  void leave_outputs(bool on_device) { leaves_outputs_ = on_device; }  // of the main graph, where they are

 private:
  // A graph in execution: its values by slot. Constants stay from call to call.
  struct ActiveGraph {
    explicit ActiveGraph(const GraphPlan& its_plan);
    const GraphPlan& plan;
    std::vector<Value> values;
    std::vector<uint8_t> is_constant;
    bool has_constants = false;
  };

  Status announce_absent(const GraphPlan& plan);
  Result<std::vector<Value>> run_graph(const GraphPlan& plan, std::vector<Value> inputs, ActiveGraph* enclosing,
                                       const BodyPlan* body);
  Result<std::vector<Value>> run_steps(ActiveGraph& active, std::vector<Value> inputs, bool is_body);
  Status store_sources(ActiveGraph& active, std::vector<Value> inputs);
  Status store_constants(ActiveGraph& active);
  std::unique_ptr<ActiveGraph> take_frame(const GraphPlan& plan);
  void give_frame(std::unique_ptr<ActiveGraph> frame, const BodyPlan* body);
  Status run_step(ActiveGraph& active, const Step& step);
  Status compute(ActiveGraph& active, const Step& step);
  Status compute_kernel(ActiveGraph& active, const Step& step);
  Status open_states(const Step& step);
  Status call_kernel(const Step& step);  // errors: unsupported, also where it leaves out an output
  uint64_t unobserved(const Step& step) const;
  // ---- Nodes of which it shows only as they run that no kernel here does them ----
  bool may_run_elsewhere(const Step& step) const;
  Result<FallbackNode*> late_fallback(const GraphPlan& plan, const Step& step);
  Status compute_elsewhere(ActiveGraph& active, const Step& step, FallbackNode& fallback);
  static std::vector<Value> inputs_of(const ActiveGraph& active, const Step& step);
  Status compute_control(ActiveGraph& active, const Step& step, std::span<const OpInput> inputs);
  Result<std::vector<Value>> run_body(ActiveGraph& active, const Step& step, std::string_view attribute,
                                      Frame::Kind kind, int64_t index, std::vector<Value> inputs);
  Status store_outputs(ActiveGraph& active, const Step& step, std::span<Value> outputs,
                       std::span<const int64_t> aliases);
  Status store(ActiveGraph& active, const BufferSlot& where, Value&& value, const ValueInfo* alias_of);
  Result<Value> overridden(const ValueInfo& value_info, Value computed, const ValueInfo*& alias_of) const;

  Status reported(Status status);               // remembers that it was the observer who failed
  Status noted(Status status);                  // the same of events that went through the queue
  Error failed(const Step& step, Error error);  // names the node and tells the observer, once

  const RunOptions& options_;
  Platform& platform_;
  EventQueue event_queue_;
  Observer* observer_ = nullptr;          // of the call being made, as all below
  std::span<const CaptureLevel> levels_;  // by value id
  FrameStack frames_;
  uint64_t frame_seed_ = 0;  // see OpCall
  bool wants_times_ = false;
  bool leaves_outputs_ = false;
  bool observer_failed_ = false;
  bool failure_reported_ = false;

  std::unordered_map<const GraphPlan*, std::vector<std::unique_ptr<ActiveGraph>>> idle_frames_;
  std::vector<OpInput> operands_;  // of the kernel being called
  std::vector<Value> opened_;      // those that it appends to
  CallResult result_;              // of it
  std::unordered_map<const Step*, std::unique_ptr<FallbackNode>> late_fallbacks_;
  std::vector<std::string> late_fallback_nodes_;
};

}  // namespace parallax::runtime
