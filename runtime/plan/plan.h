// SPDX-License-Identifier: Apache-2.0
// GraphPlan: what can be settled of a graph before it runs: its rewritten nodes, the kernel of each, the bodies they
// own, what is constant, and after which node each value's memory is free.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/exec/executor.h"
#include "inspector/exec/value_table.h"
#include "runtime/plan/control_flow.h"
#include "runtime/plan/fallback.h"
#include "runtime/plan/platform.h"
#include "runtime/rewrite/rewrite.h"

namespace parallax::runtime {

struct GraphPlan;

struct BodyPlan {
  std::string_view attribute;  // empty for a function call
  std::unique_ptr<GraphPlan> plan;
  std::vector<std::pair<ValueId, ValueId>> outer;  // (value in the body, value read in its place in this graph)
};

// The buffer slot of a value while its graph runs.
struct BufferSlot {
  ValueId value = kNoValue;
  int32_t slot = -1;                      // in the run's values; -1: it does not exist in this plan
  const ValueInfo* value_info = nullptr;  // null for what patterns add
};

struct StepInput {
  BufferSlot location;             // value kNoValue: omitted
  bool is_last_read = false;       // nothing reads it after this node
  bool may_be_absent = false;      // as the schema has it
  DType dtype = DType::undefined;  // as the model has it; undefined where it does not say
};

// One node ready to run. Exactly one of kernel, control, fallback is set, or none for a call of a model-local function.
struct Step {
  NodeId id = kNoNode;
  const Node* node = nullptr;
  int32_t memory_step = RunMemory::kOtherStep;  // its number in plans of memory; none in bodies of control flow
  NodeLocation value_info;
  ChosenKernel kernel;
  const ControlRow* control = nullptr;
  std::unique_ptr<FallbackNode> fallback;
  std::vector<BodyPlan> bodies;
  bool has_too_few_inputs = false;
  std::vector<StepInput> inputs;     // aliases resolved
  std::vector<BufferSlot> outputs;   // as many as the node's
  std::vector<size_t> store_order;   // indices of `outputs`: what is made of another comes after it, as in the source
  uint64_t only_to_observe = 0;      // bit i: output i of a fused node is made for nobody but the observer
  std::vector<ValueId> last_read;    // values that nothing reads after this node, its own unread outputs included
  std::vector<int32_t> freed_slots;  // theirs, but for those of constants
  uint64_t accumulated_inputs = 0;   // bit i: it appends to input i, a state of the session (growing.h)
  int64_t growing_axis = 0;          // along this axis

  const BodyPlan* body(std::string_view attribute) const;
};

struct GraphPlan {
  const Graph* graph = nullptr;
  const GraphValues* value_infos = nullptr;
  GraphEdit edit;
  std::vector<Step> steps;               // in execution order
  std::vector<Value> constants;          // by ValueId: stored before the first step
  std::vector<uint8_t> is_constant;      // by ValueId: the same payload in every run
  std::vector<BufferSlot> locations;     // by ValueId
  std::vector<int32_t> outputs;          // slots of the values to return, aliases resolved
  std::vector<uint8_t> growing_outputs;  // by output: it is a state that grows in place; empty: none does
  std::vector<uint8_t> kept_outputs;     // by output: a state, which stays on the device; empty: none does
  std::vector<uint8_t> read_on_host;     // by input of the main graph (host_reads.h); empty: none is
  int32_t slot_count = 0;                // values that live at different times share one
};

// The parameters of planning.
struct PlanRequest {
  const RunOptions* options = nullptr;
  const Platform* platform = nullptr;
  std::vector<ChosenPattern> patterns;  // to be applied, in order
  EvaluateNode evaluate;
  std::vector<std::string> fallback_nodes;  // filled: nodes that another executor runs
  int64_t weight_bytes = 0;                 // filled: bytes of all initializers
};

// Why no kernel of the platform runs a node, with what would.
Error lacks_kernel(Error error, const Platform& platform);

// Numbers the steps that run exactly once in each run, those of called functions among them; `next` counts them.
void number_steps(GraphPlan& plan, int32_t& next);

// Errors: unsupported (naming the first node without a kernel), invalid_model, out_of_memory.
Result<std::unique_ptr<GraphPlan>> plan_graph(const GraphValues& value_infos, PlanRequest& request);

// The patterns that the options ask for; none when everything is to be observed. Patterns of a set keep to operators of
// the set, patterns switched on by name make what they can. Errors: usage, naming an unknown pattern.
Result<std::vector<ChosenPattern>> chosen_patterns(const RunOptions& options, bool on_host);

}  // namespace parallax::runtime
