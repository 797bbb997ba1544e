// SPDX-License-Identifier: Apache-2.0
// The walk over a plan: store inputs and constants, run steps in order, let values go after their last reader.
#include "runtime/plan/runner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "inspector/base/check.h"
#include "inspector/exec/signature.h"
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/growable.h"
#include "runtime/plan/host_reads.h"
#include "runtime/rewrite/fused_ops.h"

namespace parallax::runtime {
namespace {

const Value* value_of(const Value& input) { return &input; }
const Value* value_of(const OpInput& input) { return input.value; }

// The index of the input with the output's payload: input `input` of the node, for outputs of bodies and other
// executors.
template <class Inputs>
int64_t input_with_payload(const Inputs& inputs, const Value& output) {
  if (!output.is_tensor()) return -1;
  for (size_t index = 0; index < inputs.size(); ++index) {
    const Value* input = value_of(inputs[index]);
    if (input == nullptr || !input->is_tensor()) continue;
    const Tensor& tensor = input->tensor();
    if (tensor.view().data == output.tensor().view().data && tensor.dtype() == output.tensor().dtype() &&
        tensor.element_count() == output.tensor().element_count() && tensor.size_bytes() > 0) {
      return static_cast<int64_t>(index);
    }
  }
  return -1;
}

template <class Inputs>
std::vector<int64_t> aliases_of(const Inputs& inputs, std::span<const Value> outputs) {
  std::vector<int64_t> aliases;
  for (const Value& output : outputs) aliases.push_back(input_with_payload(inputs, output));
  return aliases;
}

// FNV-1a, 32 bits, of the frames' text: what random operators start from, so that each iteration draws anew. Text that
// is added to it goes on from the hash of what stood before.
constexpr uint64_t kNoFrames = 2166136261U;
uint64_t seed_of(std::string_view text, uint64_t before = kNoFrames) {
  auto hash = static_cast<uint32_t>(before);
  for (char character : text) hash = (hash ^ static_cast<unsigned char>(character)) * 16777619U;
  return hash;
}

bool has_bit(uint64_t bits, size_t index) { return index < 64 && (bits >> index & 1) != 0; }

std::string expected_type(const Value& value) { return value.is_absent() ? "nothing" : to_string(type_of(value)); }

// Checks the arguments that a kernel relies on: present where the schema demands it, tensors where the row says so, and
// of the schema's types where the model did not say theirs.
Status check_operands(const Step& step, std::span<const OpInput> inputs) {
  bool are_as_planned = true;
  const bool wants_tensors = step.kernel && step.kernel.arguments == Arguments::tensors;
  for (size_t index = 0; index < inputs.size(); ++index) {
    const Value* value = inputs[index].value;
    const bool absent = value == nullptr || value->is_absent();
    if (absent && !step.inputs[index].may_be_absent)
      return broken_rule(fmt::format("input {} has no value", index), "have one");
    if (!absent && wants_tensors && !value->is_tensor())
      return wrong_value(fmt::format("input {}", index), expected_type(*value), "be a tensor");
    if (!absent && value->is_tensor())
      are_as_planned = are_as_planned && value->tensor().dtype() == step.inputs[index].dtype;
  }
  if (!are_as_planned && step.node->schema != nullptr) {
    std::vector<const Value*> values;
    for (const OpInput& input : inputs) values.push_back(input.value);
    PX_TRY(check_arguments(*step.node, values, false));
  }
  if (!step.has_too_few_inputs) return {};
  return wrong_value("the number of inputs", inputs.size(), "be {} or more", step.node->schema->min_inputs);
}

DType dtype_at(std::span<const OpInput> inputs, size_t index) {
  const Value* value = index < inputs.size() ? inputs[index].value : nullptr;
  return value != nullptr && value->is_tensor() ? value->tensor().dtype() : DType::undefined;
}

// The kernel chosen at prepare does, unless the types were not known then and turn out to be others.
bool suits(const ChosenKernel& kernel, std::span<const OpInput> inputs) {
  const DType dtype = dtype_at(inputs, static_cast<size_t>(kernel.dtype_input));
  return dtype == DType::undefined || (kernel.dtypes & dtype_bit(dtype)) != 0;
}

Result<ChosenKernel> kernel_for(const Platform& platform, const Step& step, std::span<const OpInput> inputs) {
  std::vector<DType> dtypes;
  for (size_t index = 0; index < inputs.size(); ++index) dtypes.push_back(dtype_at(inputs, index));
  auto kernel = platform.choose(*step.node, dtypes);
  if (!kernel.ok()) return lacks_kernel(std::move(kernel).error(), platform);
  return kernel;
}

}  // namespace

Result<std::vector<Value>> Runner::call(const GraphPlan& plan, std::vector<Value> inputs, const CallInfo& info,
                                        Observer& observer, std::span<const CaptureLevel> levels, bool announce) {
  observer_ = &observer;
  levels_ = levels;
  wants_times_ = observer.wants_node_times();
  observer_failed_ = failure_reported_ = false;
  event_queue_.begin(observer);
  frames_ = FrameStack();
  if (!info.graph.empty()) frames_.push({Frame::Kind::graph, info.graph, -1});
  if (info.step >= 0) frames_.push({Frame::Kind::step, "", info.step});
  frame_seed_ = seed_of(frames_.prefix());
  PX_TRY(begin_call(platform_, *observer_, info, inputs));
  if (announce) PX_TRY(announce_absent(plan));
  auto outputs = run_graph(plan, std::move(inputs), nullptr, nullptr);
  if (observer_failed_) {
    event_queue_.drop();
    return outputs;
  }
  Status all_reported = noted(event_queue_.flush());
  if (!all_reported.ok()) {
    if (outputs.ok()) return std::move(all_reported).error();
    return outputs;
  }
  Status ended = observer_->end_call(info);
  if (outputs.ok() && !ended.ok()) return std::move(ended).error();
  return outputs;
}

Status begin_call(Platform& platform, Observer& observer, const CallInfo& info, std::span<const Value> inputs) {
  const auto is_kept = [](const Value& value) { return value.is_tensor() && !value.tensor().device().is_host(); };
  const bool is_observed = dynamic_cast<const NullObserver*>(&observer) == nullptr;
  if (!is_observed || std::ranges::none_of(inputs, is_kept)) return observer.begin_call(info, inputs);
  std::vector<Value> shown;
  for (const Value& input : inputs) shown.push_back(PX_TRY(platform.to_host(input)));
  return observer.begin_call(info, shown);
}

Status Runner::announce_absent(const GraphPlan& plan) {
  constexpr Absence::Kind kKinds[] = {Absence::Kind::fused, Absence::Kind::folded, Absence::Kind::aliased,
                                      Absence::Kind::removed};
  for (const ValueAbsence& absence : plan.edit.absences) {
    const ValueInfo& value_info = *plan.value_infos->values[static_cast<size_t>(absence.value)];
    PX_TRY(observer_->absent(value_info, {kKinds[static_cast<size_t>(absence.kind)], absence.into}));
  }
  for (const Step& step : plan.steps) {
    for (const BodyPlan& body : step.bodies) PX_TRY(announce_absent(*body.plan));
  }
  return {};
}

Runner::ActiveGraph::ActiveGraph(const GraphPlan& its_plan)
    : plan(its_plan),
      values(static_cast<size_t>(its_plan.slot_count)),
      is_constant(static_cast<size_t>(its_plan.slot_count), 0) {
  for (const BufferSlot& location : plan.locations) {
    if (plan.is_constant[static_cast<size_t>(location.value)] != 0) is_constant[static_cast<size_t>(location.slot)] = 1;
  }
}

std::unique_ptr<Runner::ActiveGraph> Runner::take_frame(const GraphPlan& plan) {
  auto& idle = idle_frames_[&plan];
  if (idle.empty()) return std::make_unique<ActiveGraph>(plan);
  auto frame = std::move(idle.back());
  idle.pop_back();
  return frame;
}

// Nothing of the call stays in it but the constants.
void Runner::give_frame(std::unique_ptr<ActiveGraph> frame, const BodyPlan* body) {
  const GraphPlan& plan = frame->plan;
  const auto clear = [&](int32_t slot) { frame->values[static_cast<size_t>(slot)] = Value(); };
  for (ValueId input : plan.graph->inputs) clear(plan.locations[static_cast<size_t>(input)].slot);
  for (int32_t output : plan.outputs) {
    if (frame->is_constant[static_cast<size_t>(output)] == 0) clear(output);
  }
  if (body != nullptr) {
    for (const auto& [inner, outer] : body->outer) clear(plan.locations[static_cast<size_t>(inner)].slot);
  }
  idle_frames_[&plan].push_back(std::move(frame));
}

Result<std::vector<Value>> Runner::run_graph(const GraphPlan& plan, std::vector<Value> inputs, ActiveGraph* enclosing,
                                             const BodyPlan* body) {
  std::unique_ptr<ActiveGraph> frame = take_frame(plan);
  if (body != nullptr) {
    for (const auto& [inner, outer] : body->outer) {
      const int32_t from = enclosing->plan.locations[static_cast<size_t>(outer)].slot;
      const int32_t to = plan.locations[static_cast<size_t>(inner)].slot;
      frame->values[static_cast<size_t>(to)] = enclosing->values[static_cast<size_t>(from)];
    }
  }
  auto outputs = run_steps(*frame, std::move(inputs), body != nullptr);
  if (outputs.ok()) give_frame(std::move(frame), body);
  return outputs;
}

Result<std::vector<Value>> Runner::run_steps(ActiveGraph& active, std::vector<Value> inputs, bool is_body) {
  const GraphPlan& plan = active.plan;
  PX_TRY(store_sources(active, std::move(inputs)));
  if (!is_body) {
    for (size_t index = 0; index < plan.graph->inputs.size(); ++index) {
      const auto id = static_cast<size_t>(plan.graph->inputs[index]);
      const auto slot = static_cast<size_t>(plan.locations[id].slot);
      if (active.is_constant[slot] != 0) continue;  // moved where it is read, once for the session
      if (stays_on_host(plan, index, active.values[slot])) continue;
      active.values[slot] = PX_TRY(platform_.to_device(active.values[slot]));
    }
  }
  for (const Step& step : plan.steps) PX_TRY(run_step(active, step));
  std::vector<Value> outputs;
  outputs.reserve(plan.outputs.size());
  for (int32_t slot : plan.outputs) outputs.push_back(active.values[static_cast<size_t>(slot)]);
  const auto marked = [](const std::vector<uint8_t>& marks, size_t index) {
    return index < marks.size() && marks[index] != 0;
  };
  for (size_t index = 0; index < outputs.size(); ++index) {
    if (marked(plan.growing_outputs, index) && is_growable(outputs[index])) continue;
    const bool stay = is_body || leaves_outputs_ || marked(plan.kept_outputs, index);
    outputs[index] = PX_TRY(stay ? platform_.to_row_major(outputs[index]) : platform_.to_host(outputs[index]));
  }
  return outputs;
}

// Inputs first, then the constants that are no inputs: the order of their ids.
Status Runner::store_sources(ActiveGraph& active, std::vector<Value> inputs) {
  const GraphPlan& plan = active.plan;
  const Graph& graph = *plan.graph;
  for (size_t index = 0; index < graph.inputs.size(); ++index) {
    const auto id = static_cast<size_t>(graph.inputs[index]);
    const BufferSlot& where = plan.locations[id];
    const bool given = index < inputs.size() && !inputs[index].is_absent();
    const bool is_default = !given && !plan.constants[id].is_absent() && options_.overrides.empty();
    active.is_constant[static_cast<size_t>(where.slot)] = is_default ? 1 : 0;
    PX_TRY(store(active, where, given ? std::move(inputs[index]) : Value(plan.constants[id]), nullptr));
  }
  return store_constants(active);
}

// A frame that was used before has them. Folded values are not observed.
Status Runner::store_constants(ActiveGraph& active) {
  const GraphPlan& plan = active.plan;
  const Graph& graph = *plan.graph;
  const bool afresh = !active.has_constants || !options_.overrides.empty();
  for (const std::vector<ValueId>* ids : {&graph.initializer_values, &graph.sparse_initializer_values}) {
    for (ValueId id : *ids) {
      const BufferSlot& where = plan.locations[static_cast<size_t>(id)];
      if (graph.values[static_cast<size_t>(id)].input_index >= 0) continue;
      if (!afresh && levels_[static_cast<size_t>(where.value_info->id)] == CaptureLevel::none) continue;
      PX_TRY(store(active, where, Value(plan.constants[static_cast<size_t>(id)]), nullptr));
    }
  }
  if (!afresh) return {};
  const auto slot_of = [&](size_t id) -> Value& { return active.values[static_cast<size_t>(plan.locations[id].slot)]; };
  for (const ValueAbsence& absence : plan.edit.absences) {
    const auto id = static_cast<size_t>(absence.value);
    if (absence.kind == ValueAbsence::Kind::folded) slot_of(id) = plan.constants[id];
  }
  for (size_t id = graph.values.size(); id < plan.constants.size(); ++id) slot_of(id) = plan.constants[id];
  active.has_constants = true;
  return {};
}

Status Runner::run_step(ActiveGraph& active, const Step& step) {
  if (options_.cancel.is_cancelled()) {
    return make_error(ErrorCode::cancelled,
                      fmt::format("cancelled before node '{}{}'", frames_.prefix(), step.value_info.node));
  }
  const auto begin = wants_times_ ? std::chrono::steady_clock::now() : std::chrono::steady_clock::time_point();
  platform_.enter_step(step.memory_step);
  Status computed = compute(active, step);
  if (computed.ok() && platform_.waits_for_each_node()) computed = platform_.synchronize();
  if (!computed.ok()) return failed(step, std::move(computed).error());
  if (wants_times_) {
    PX_TRY(platform_.synchronize());
    const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - begin;
    PX_TRY(noted(event_queue_.flush()));
    PX_TRY(reported(observer_->node_done(step.value_info, elapsed.count())));
  }
  for (int32_t slot : step.freed_slots) active.values[static_cast<size_t>(slot)] = Value();
  return {};
}

Status Runner::compute(ActiveGraph& active, const Step& step) {
  if (step.kernel || step.control != nullptr) return compute_kernel(active, step);
  if (step.fallback != nullptr) return compute_elsewhere(active, step, *step.fallback);
  const std::vector<Value> inputs = inputs_of(active, step);
  std::vector<Value> outputs = PX_TRY(run_body(active, step, "", Frame::Kind::call, -1, inputs));
  return store_outputs(active, step, outputs, aliases_of(inputs, outputs));
}

Status Runner::compute_kernel(ActiveGraph& active, const Step& step) {
  operands_.clear();
  // A kernel that leaves out an output must have left the inputs as they were, for the other executor.
  const bool may_take_over = options_.fallback == nullptr || step.outputs.size() == 1;
  for (const StepInput& input : step.inputs) {
    if (input.location.slot < 0) {
      operands_.emplace_back();
    } else {
      const auto slot = static_cast<size_t>(input.location.slot);
      operands_.push_back({&active.values[slot], active.is_constant[slot] != 0, input.is_last_read && may_take_over});
    }
  }
  PX_TRY(check_operands(step, operands_));
  result_.spared = unobserved(step);
  if (step.control != nullptr)
    return compute_control(active, step, std::vector<OpInput>(operands_));  // bodies use operands_
  if (step.accumulated_inputs != 0) PX_TRY(open_states(step));
  Status called = call_kernel(step);
  opened_.clear();
  if (called.ok()) return store_outputs(active, step, result_.outputs, result_.aliases);
  if (called.error().code != ErrorCode::unsupported || !may_run_elsewhere(step)) return called;
  FallbackNode* fallback = PX_TRY(late_fallback(active.plan, step));
  return compute_elsewhere(active, step, *fallback);
}

Status Runner::open_states(const Step& step) {
  opened_.resize(operands_.size());
  for (size_t index = 0; index < operands_.size(); ++index) {
    if (!has_bit(step.accumulated_inputs, index) || operands_[index].value == nullptr) continue;
    opened_[index] = PX_TRY(platform_.open(*operands_[index].value, step.growing_axis));
    operands_[index] = {&opened_[index], false, false};
  }
  return {};
}

Status Runner::call_kernel(const Step& step) {
  const ChosenKernel kernel =
      suits(step.kernel, operands_) ? step.kernel : PX_TRY(kernel_for(platform_, step, operands_));
  PX_TRY(platform_.call(kernel, *step.node, operands_, frame_seed_, result_));
  for (size_t index = 0; index < step.outputs.size(); ++index) {
    const bool is_made = index < result_.outputs.size() && !result_.outputs[index].is_absent();
    if (is_made || step.outputs[index].slot < 0 || has_bit(result_.spared, index)) continue;
    return unsupported(fmt::format("its output {} is not computed by executor '{}'; --fallback=reference runs it",
                                   index, platform_.name()));
  }
  return {};
}

// Fused nodes exist in no other executor; and a run that is recorded for replay goes on without recording instead.
bool Runner::may_run_elsewhere(const Step& step) const {
  return options_.fallback != nullptr && !leaves_outputs_ && step.node->domain != kFusedDomain;
}

Result<FallbackNode*> Runner::late_fallback(const GraphPlan& plan, const Step& step) {
  std::unique_ptr<FallbackNode>& fallback = late_fallbacks_[&step];
  if (fallback == nullptr) {
    fallback = PX_TRY(FallbackNode::create(*step.node, options_.fallback, options_));
    late_fallback_nodes_.push_back(plan.value_infos->scope + step.node->display_name);
  }
  return fallback.get();
}

Status Runner::compute_elsewhere(ActiveGraph& active, const Step& step, FallbackNode& fallback) {
  std::vector<Value> inputs = inputs_of(active, step);
  for (Value& input : inputs) input = PX_TRY(platform_.to_host(input));
  std::vector<Value> outputs = PX_TRY(fallback.run(inputs));
  return store_outputs(active, step, outputs, aliases_of(inputs, outputs));
}

std::vector<Value> Runner::inputs_of(const ActiveGraph& active, const Step& step) {
  std::vector<Value> inputs;
  for (const StepInput& input : step.inputs)
    inputs.push_back(input.location.slot < 0 ? Value() : active.values[static_cast<size_t>(input.location.slot)]);
  return inputs;
}

// The outputs that are computed for the observer alone and that this one does not want.
uint64_t Runner::unobserved(const Step& step) const {
  uint64_t spared = 0;
  if (step.only_to_observe == 0) return spared;
  for (size_t index = 0; index < step.outputs.size(); ++index) {
    if (!has_bit(step.only_to_observe, index)) continue;
    const ValueInfo& value_info = *step.outputs[index].value_info;
    if (levels_[static_cast<size_t>(value_info.id)] == CaptureLevel::none) spared |= uint64_t{1} << index;
  }
  return spared;
}

// Control flow reads conditions and counts on the host; values that it passes to bodies stay where they are.
Status Runner::compute_control(ActiveGraph& active, const Step& step, std::span<const OpInput> inputs) {
  std::vector<OpInput> operands(inputs.begin(), inputs.end());
  std::vector<Value> read(operands.size());
  for (size_t index = 0; index < operands.size(); ++index) {
    if (operands[index].value == nullptr) continue;
    const Value& value = *operands[index].value;
    read[index] = PX_TRY(step.control->reads_on_host(index) ? platform_.to_host(value) : platform_.to_row_major(value));
    operands[index].value = &read[index];
  }
  const RunBody run = [&](std::string_view attribute, Frame::Kind kind, int64_t index, std::vector<Value> arguments) {
    return run_body(active, step, attribute, kind, index, std::move(arguments));
  };
  OpCall op(*step.node, operands, frame_seed_);
  ControlCall call{op, platform_, run};
  PX_TRY(step.control->run(call));
  std::vector<Value> outputs = op.take_outputs();
  return store_outputs(active, step, outputs, aliases_of(inputs, outputs));
}

Result<std::vector<Value>> Runner::run_body(ActiveGraph& active, const Step& step, std::string_view attribute,
                                            Frame::Kind kind, int64_t index, std::vector<Value> inputs) {
  const BodyPlan* body = step.body(attribute);
  if (body == nullptr) return invalid_model(fmt::format("it has no body '{}'; it must have one", attribute));
  const Frame frame{kind, std::string(step.value_info.node), index};
  PX_TRY(noted(event_queue_.enter_body(step.value_info, frame)));
  const size_t outer_length = frames_.prefix().size();
  frames_.push(frame);
  const std::string_view inner = std::string_view(frames_.prefix()).substr(outer_length);
  const uint64_t outer_seed = std::exchange(frame_seed_, seed_of(inner, frame_seed_));
  auto outputs = run_graph(*body->plan, std::move(inputs), &active, body);
  frame_seed_ = outer_seed;
  frames_.pop();
  if (!outputs.ok()) return outputs;
  PX_TRY(noted(event_queue_.leave_body(step.value_info, frame)));
  return outputs;
}

Status Runner::store_outputs(ActiveGraph& active, const Step& step, std::span<Value> outputs,
                             std::span<const int64_t> aliases) {
  const uint64_t spared = unobserved(step);
  for (const size_t index : step.store_order) {
    const BufferSlot& where = step.outputs[index];
    if (where.slot < 0 || has_bit(spared, index)) continue;
    if (index >= outputs.size() || outputs[index].is_absent())
      return unsupported(fmt::format("its output {} is not computed by executor '{}'; --fallback=reference runs it",
                                     index, platform_.name()));
    const int64_t input = index < aliases.size() ? aliases[index] : -1;
    const ValueInfo* alias = input < 0 ? nullptr : step.inputs[static_cast<size_t>(input)].location.value_info;
    PX_TRY(store(active, where, std::move(outputs[index]), alias));
  }
  return {};
}

Status Runner::store(ActiveGraph& active, const BufferSlot& where, Value&& value, const ValueInfo* alias_of) {
  if (!options_.overrides.empty()) value = PX_TRY(overridden(*where.value_info, std::move(value), alias_of));
  Value& slot = active.values[static_cast<size_t>(where.slot)];
  slot = std::move(value);
  const CaptureLevel level = levels_[static_cast<size_t>(where.value_info->id)];
  if (level == CaptureLevel::none || slot.is_absent()) return {};
  platform_.enter_step(RunMemory::kOtherStep);  // observing leaves the plan of the run's own memory as it is
  return noted(event_queue_.observe(*where.value_info, frames_, slot, alias_of, level));
}

Result<Value> Runner::overridden(const ValueInfo& value_info, Value computed, const ValueInfo*& alias_of) const {
  const auto found = options_.overrides.find(frames_.path_of(value_info.escaped_name));
  if (found == options_.overrides.end()) return computed;
  const Value& chosen = found->second;
  const bool fits = chosen.is_tensor() == computed.is_tensor() && chosen.is_sequence() == computed.is_sequence() &&
                    (!chosen.is_tensor() || chosen.tensor().dtype() == computed.tensor().dtype());
  if (!fits)
    return usage_error(fmt::format("the override of '{}' is {}; it must be {}, as the value it stands for",
                                   found->first, expected_type(chosen), expected_type(computed)));
  alias_of = nullptr;
  if (computed.is_tensor() && computed.tensor().device().is_host()) return chosen;
  return platform_.to_device(chosen);
}

Status Runner::reported(Status status) {
  observer_failed_ = observer_failed_ || !status.ok();
  return status;
}

Status Runner::noted(Status status) {
  observer_failed_ = observer_failed_ || event_queue_.observer_failed();
  return status;
}

Error Runner::failed(const Step& step, Error error) {
  if (observer_failed_ || failure_reported_ || error.code == ErrorCode::cancelled) return error;
  failure_reported_ = true;
  Status reported_before = noted(event_queue_.flush());
  if (observer_failed_) return std::move(reported_before).error();
  Error named = at_location(std::move(error), frames_.prefix(), step.value_info, platform_.name());
  const Status status = reported(observer_->node_failed(step.value_info, frames_, named));
  return named;
}

}  // namespace parallax::runtime
