// SPDX-License-Identifier: Apache-2.0
// The walk over a graph: store inputs and constants, run nodes in order, let values go after their last reader.
#include "reference/interpreter.h"

#include <chrono>
#include <new>
#include <stdexcept>

#include <fmt/format.h>

#include "inspector/base/check.h"
#include "inspector/base/memory_budget.h"
#include "inspector/exec/signature.h"

namespace parallax::reference {
namespace {

bool same_payload(const Value& a, const Value& b) {
  if (!a.is_tensor() || !b.is_tensor()) return false;
  const Tensor& left = a.tensor();
  const Tensor& right = b.tensor();
  return left.storage() == right.storage() && left.dtype() == right.dtype() &&
         left.element_count() == right.element_count();
}

// Memory that an operator allocates apart from its tensors is not metered: an allocation that the job's budget or the
// system refuses is an error like the meter's.
Status run_function(OpFunction function, OpContext& op) {
  try {
    return function(op);
  } catch (const std::bad_alloc&) {
    return MemoryBudget::take_refusal("a buffer of its kernel")
        .value_or(out_of_memory("the system has no memory for what it computes"));
  } catch (const std::length_error&) {
    return out_of_memory("it computes more numbers than memory can hold");
  }
}

}  // namespace

Interpreter::Interpreter(const RunOptions& options, ReferencePrecision precision, std::span<const CaptureLevel> levels,
                         MemoryMeter& meter, Observer& observer)
    : options_(options),
      precision_(precision),
      levels_(levels),
      meter_(meter),
      observer_(observer),
      wants_times_(observer.wants_node_times()) {}

Result<std::vector<Value>> Interpreter::call(const GraphPlan& plan, std::vector<Value> inputs, const CallInfo& info) {
  if (!info.graph.empty()) frames_.push({Frame::Kind::graph, info.graph, -1});
  if (info.step >= 0) frames_.push({Frame::Kind::step, "", info.step});
  PX_TRY(observer_.begin_call(info, inputs));
  auto outputs = run_graph(plan, std::move(inputs), nullptr, nullptr);
  if (observer_failed_) return outputs;
  Status ended = observer_.end_call(info);
  if (outputs.ok() && !ended.ok()) return std::move(ended).error();
  return outputs;
}

Result<std::vector<Value>> Interpreter::run_graph(const GraphPlan& plan, std::vector<Value> inputs,
                                                  const ActiveGraph* enclosing, const BodyPlan* body) {
  ActiveGraph active{plan, std::vector<Value>(plan.graph->values.size())};
  if (body != nullptr) {
    for (const auto& [inner, outer] : body->outer) {
      const Value& value = enclosing->values[static_cast<size_t>(outer)];
      meter_.add(value);
      active.values[static_cast<size_t>(inner)] = value;
    }
  }
  Status status = store_sources(active, std::move(inputs));
  for (size_t index = 0; status.ok() && index < plan.nodes.size(); ++index)
    status = run_node(active, plan.nodes[index]);
  std::vector<Value> outputs;
  if (status.ok()) {
    for (ValueId output : plan.graph->outputs) outputs.push_back(active.values[static_cast<size_t>(output)]);
  }
  for (size_t id = 0; id < active.values.size(); ++id) release(active, static_cast<ValueId>(id));
  if (!status.ok()) return std::move(status).error();
  return outputs;
}

// Inputs first, then the constants that are no inputs: the order of their ids.
Status Interpreter::store_sources(ActiveGraph& active, std::vector<Value> inputs) {
  const Graph& graph = *active.plan.graph;
  for (size_t index = 0; index < graph.inputs.size(); ++index) {
    const auto id = static_cast<size_t>(graph.inputs[index]);
    const bool given = index < inputs.size() && !inputs[index].is_absent();
    PX_TRY(store(active, graph.inputs[index], given ? std::move(inputs[index]) : active.plan.constants[id], nullptr));
  }
  const auto store_constants = [&](const std::vector<ValueId>& ids) -> Status {
    for (ValueId id : ids) {
      if (graph.values[static_cast<size_t>(id)].input_index >= 0) continue;
      PX_TRY(store(active, id, active.plan.constants[static_cast<size_t>(id)], nullptr));
    }
    return {};
  };
  PX_TRY(store_constants(graph.initializer_values));
  return store_constants(graph.sparse_initializer_values);
}

Status Interpreter::run_node(ActiveGraph& active, const NodePlan& step) {
  if (options_.cancel.is_cancelled()) {
    return make_error(ErrorCode::cancelled,
                      fmt::format("cancelled before node '{}{}'", frames_.prefix(), step.value_info.node));
  }
  const auto begin = std::chrono::steady_clock::now();
  auto outputs = compute_node(active, step);
  if (!outputs.ok()) return failed(step, std::move(outputs).error());
  const std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - begin;
  auto stored = store_outputs(active, step, std::move(outputs).value());
  if (!stored.ok()) return failed(step, std::move(stored).error());
  if (wants_times_) PX_TRY(reported(observer_.node_done(step.value_info, elapsed.count())));
  for (ValueId id : step.last_read) release(active, id);
  return {};
}

Result<std::vector<Value>> Interpreter::compute_node(ActiveGraph& active, const NodePlan& step) {
  const Node& node = active.plan.graph->nodes[static_cast<size_t>(step.id)];
  std::vector<Value> inputs;
  for (ValueId id : node.inputs) inputs.push_back(id == kNoValue ? Value() : active.values[static_cast<size_t>(id)]);
  if (step.function == nullptr) return run_body(active, step, "", Frame::Kind::call, -1, std::move(inputs));
  const bool carries_double = precision_ == ReferencePrecision::double_;
  std::vector<const Value*> given;
  for (const Value& input : inputs) given.push_back(&input);
  PX_TRY(check_arguments(node, given, carries_double));
  OpEnvironment environment;
  environment.precision = precision_;
  environment.keep_casts = options_.keep_casts;
  environment.reserve = [this](const Value& value) { return meter_.reserve(value); };
  environment.run_body = [&](std::string_view attribute, Frame::Kind kind, int64_t index,
                             std::vector<Value> arguments) {
    return run_body(active, step, attribute, kind, index, std::move(arguments));
  };
  environment.graph = active.plan.graph;
  environment.frames = [this] { return frames_.prefix(); };
  OpContext op(node, std::move(inputs), environment);
  PX_TRY(run_function(step.function, op));
  return op.take_outputs();
}

Result<std::vector<Value>> Interpreter::run_body(ActiveGraph& active, const NodePlan& step, std::string_view attribute,
                                                 Frame::Kind kind, int64_t index, std::vector<Value> inputs) {
  if (options_.cancel.is_cancelled()) return make_error(ErrorCode::cancelled, "cancelled before a body");
  const BodyPlan* body = step.body(attribute);
  PX_CHECK(body != nullptr);
  const Frame frame{kind, std::string(step.value_info.node), index};
  PX_TRY(reported(observer_.enter_body(step.value_info, frame)));
  frames_.push(frame);
  auto outputs = run_graph(*body->plan, std::move(inputs), &active, body);
  frames_.pop();
  if (!outputs.ok()) return outputs;
  PX_TRY(reported(observer_.leave_body(step.value_info, frame)));
  return outputs;
}

Status Interpreter::store_outputs(ActiveGraph& active, const NodePlan& step, std::vector<Value> outputs) {
  const Node& node = active.plan.graph->nodes[static_cast<size_t>(step.id)];
  for (size_t index = 0; index < node.outputs.size(); ++index) {
    if (node.outputs[index] == kNoValue) continue;
    if (index >= outputs.size() || outputs[index].is_absent()) {
      return unsupported(fmt::format("its output {} is not computed by the reference", index));
    }
    const ValueInfo* alias = alias_of(active, node, outputs[index]);
    PX_TRY(store(active, node.outputs[index], std::move(outputs[index]), alias));
  }
  return {};
}

Status Interpreter::store(ActiveGraph& active, ValueId id, Value value, const ValueInfo* alias_of) {
  const ValueInfo& value_info = *active.plan.value_infos->values[static_cast<size_t>(id)];
  if (!options_.overrides.empty()) {
    Value chosen = PX_TRY(overridden(value_info, value));
    if (!same_payload(chosen, value)) alias_of = nullptr;
    value = std::move(chosen);
  }
  meter_.add(value);
  Value& slot = active.values[static_cast<size_t>(id)];
  slot = std::move(value);
  if (levels_[static_cast<size_t>(value_info.id)] == CaptureLevel::none || slot.is_absent()) return {};
  return reported(observer_.observe({value_info, frames_, slot, alias_of, nullptr}));
}

const ValueInfo* Interpreter::alias_of(const ActiveGraph& active, const Node& node, const Value& output) const {
  for (ValueId id : node.inputs) {
    if (id == kNoValue || !same_payload(active.values[static_cast<size_t>(id)], output)) continue;
    return active.plan.value_infos->values[static_cast<size_t>(id)];
  }
  return nullptr;
}

Result<Value> Interpreter::overridden(const ValueInfo& value_info, Value computed) const {
  const auto found = options_.overrides.find(frames_.path_of(value_info.escaped_name));
  if (found == options_.overrides.end()) return computed;
  Value chosen = precision_ == ReferencePrecision::double_ ? PX_TRY(widen(found->second)) : found->second;
  const bool fits = chosen.is_tensor() == computed.is_tensor() && chosen.is_sequence() == computed.is_sequence() &&
                    (!chosen.is_tensor() || chosen.tensor().dtype() == computed.tensor().dtype());
  if (fits) return chosen;
  return usage_error(fmt::format("the override of '{}' is {}; it must be {}, as the value it stands for", found->first,
                                 to_string(type_of(chosen)), to_string(type_of(computed))));
}

void Interpreter::release(ActiveGraph& active, ValueId id) {
  Value& slot = active.values[static_cast<size_t>(id)];
  meter_.remove(slot);
  slot = Value();
}

Status Interpreter::reported(Status status) {
  observer_failed_ = observer_failed_ || !status.ok();
  return status;
}

Error Interpreter::failed(const NodePlan& step, Error error) {
  if (observer_failed_ || failure_reported_ || error.code == ErrorCode::cancelled) return error;
  failure_reported_ = true;
  Error named = at_location(std::move(error), frames_.prefix(), step.value_info);
  PX_CHECK(!named.message.empty());
  Status status = reported(observer_.node_failed(step.value_info, frames_, named));
  return named;
}

}  // namespace parallax::reference
