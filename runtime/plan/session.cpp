// SPDX-License-Identifier: Apache-2.0
// One model made ready on one platform: preparation, calls, statistics.
#include "runtime/plan/session.h"

#include <algorithm>
#include <new>

#include "inspector/base/memory_budget.h"
#include "inspector/exec/capture_traffic.h"
#include "inspector/exec/kept_states.h"
#include "inspector/exec/overrides.h"
#include "inspector/exec/planned_memory.h"
#include "inspector/exec/session_cloning.h"
#include "inspector/exec/session_states.h"
#include "inspector/exec/wanted_levels.h"
#include "inspector/model/random_operators.h"
#include "runtime/device/cpu/growable.h"
#include "runtime/ops/table.h"
#include "runtime/plan/growing.h"
#include "runtime/plan/host_platform.h"
#include "runtime/plan/host_reads.h"
#include "runtime/plan/memory_plans.h"
#include "runtime/plan/runner.h"

namespace parallax::runtime {
namespace {

// Bytes of what the caller holds: a GPU's platform counts states on its device.
int64_t input_bytes(std::span<const Value> inputs, bool on_host) {
  int64_t bytes = 0;
  for (const Value& input : inputs) {
    const bool is_on_gpu = !on_host && input.is_tensor() && !input.tensor().device().is_host();
    if (!is_on_gpu) bytes += static_cast<int64_t>(payload_bytes(input));
  }
  return bytes;
}

// It draws random numbers, or may do so, also in a body.
bool draws(const GraphPlan& plan) {
  return std::ranges::any_of(plan.steps, [](const Step& step) {
    const bool in_body = std::ranges::any_of(step.bodies, [](const BodyPlan& body) { return draws(*body.plan); });
    return in_body || draws_at_random(step.node->op_type) || step.node->op_type.ends_with("Dropout");
  });
}

class RuntimeSession final : public Session,
                             public PlannedMemory,
                             public CaptureTraffic,
                             public SessionCloning,
                             public SessionStates {
 public:
  RuntimeSession(std::shared_ptr<const Model> model, RunOptions options, std::unique_ptr<Platform> platform)
      : model_(std::move(model)),
        options_(std::move(options)),
        platform_(std::move(platform)),
        runner_(options_, *platform_),
        memory_plans_(platform_->buffer_alignment()) {}

  Status prepare() {
    value_infos_ = std::make_shared<const ValueTable>(PX_TRY(ValueTable::build(model_)));
    PX_TRY(check_override_paths(*value_infos_, options_.overrides));
    states_ = PX_TRY(KeptStates::create(model_->graph, options_.states));
    PlanRequest request;
    request.options = &options_;
    request.platform = platform_.get();
    request.patterns = PX_TRY(chosen_patterns(options_, platform_->is_host()));
    request.evaluate = [this](const Node& node, std::span<const Value> inputs) { return evaluate(node, inputs); };
    std::unique_ptr<GraphPlan> plan = PX_TRY(plan_graph(value_infos_->main(), request));
    number_steps(*plan, memory_steps_);
    if (!platform_->is_host()) {
      mark_read_on_host(*plan);
      plan->kept_outputs.resize(plan->graph->outputs.size());
      for (size_t index = 0; index < states_.size(); ++index) plan->kept_outputs[states_.binding(index).output] = 1;
    }
    const std::vector<bool> grow = mark_growing(*plan, states_, platform_->is_host());
    for (size_t index = 0; index < grow.size(); ++index) {
      const size_t input = states_.binding(index).input;  // small ones that the host reads stay there
      const bool is_read_on_host = input < plan->read_on_host.size() && plan->read_on_host[input] != 0;
      if (grow[index] && !is_read_on_host) growing_states_.push_back(index);
    }
    draws_ = draws(*plan);
    plan_ = std::move(plan);
    weight_bytes_ = request.weight_bytes;
    fallback_nodes_ = std::move(request.fallback_nodes);
    if (options_.memory_limit_bytes > 0 && weight_bytes_ > options_.memory_limit_bytes)
      return weights_over_memory_limit(weight_bytes_, options_.memory_limit_bytes);
    platform_->set_limit(options_.memory_limit_bytes, weight_bytes_);
    return {};
  }

  Result<std::vector<Value>> run(std::span<const Value> inputs, Observer& observer, const CallInfo& call) override {
    if (states_.empty()) return run_on(inputs, observer, call);
    const std::vector<Value> carried = PX_TRY(states_.inputs(inputs));
    std::vector<Value> outputs = PX_TRY(run_on(carried, observer, call));
    PX_TRY(states_.keep(outputs));
    return outputs;
  }

  Status reset_states(int64_t batch, int64_t capacity) override {
    PX_TRY(states_.reset(batch, capacity));
    std::vector<GrowableShape> shapes;
    for (size_t index : growing_states_) {
      const Tensor& empty = states_.value(index).tensor();
      const auto axis = static_cast<int64_t>(states_.binding(index).axis);
      shapes.push_back({empty.dtype(), empty.shape(), axis, capacity});
    }
    if (shapes.empty()) return {};
    std::vector<Value> made = PX_TRY(platform_->make_growable(shapes));
    for (size_t i = 0; i < made.size(); ++i) states_.replace(growing_states_[i], std::move(made[i]));
    return {};
  }

  Status reorder_states(std::span<const int32_t> rows) override {
    PX_TRY(states_.check_rows(rows));
    std::vector<size_t> growable, plain;
    std::vector<Value> values, taken;
    for (size_t index = 0; index < states_.size(); ++index) {
      const Value& value = states_.value(index);
      (is_growable(value) ? growable : plain).push_back(index);
      if (is_growable(value)) values.push_back(value);
    }
    for (size_t index : plain) taken.push_back(PX_TRY(platform_->take_rows(states_.value(index), rows)));
    if (!values.empty()) values = PX_TRY(platform_->take_growable_rows(values, rows));
    for (size_t i = 0; i < plain.size(); ++i) states_.replace(plain[i], std::move(taken[i]));
    for (size_t i = 0; i < growable.size(); ++i) states_.replace(growable[i], std::move(values[i]));
    return {};
  }

  Status set_state(size_t index, const Value& value) override {
    PX_TRY(states_.check_value(index, value));
    if (!is_growable(states_.value(index))) return states_.set(index, value);
    states_.replace(index, PX_TRY(platform_->refill(states_.take(index), value)));
    return {};
  }

  Result<Value> state(size_t index) const override {
    PX_TRY(states_.check_index(index));
    const Value& value = states_.value(index);
    const bool is_kept = value.is_tensor() && !value.tensor().device().is_host();
    return is_kept ? platform_->to_host(value) : states_.get(index);
  }

  // Nodes of other executors have sessions of their own, which cannot be shared. The copy's states have no values yet.
  Result<std::unique_ptr<Session>> clone() const override {
    std::unique_ptr<Platform> platform = fallback_nodes_.empty() ? platform_->clone() : nullptr;
    if (platform == nullptr) return std::unique_ptr<Session>();
    auto copy = std::make_unique<RuntimeSession>(model_, options_, std::move(platform));
    copy->value_infos_ = value_infos_;
    copy->plan_ = plan_;
    copy->memory_steps_ = memory_steps_;
    copy->draws_ = draws_;
    copy->weight_bytes_ = weight_bytes_;
    copy->growing_states_ = growing_states_;
    copy->states_ = PX_TRY(KeptStates::create(model_->graph, options_.states));
    copy->platform_->set_limit(options_.memory_limit_bytes, weight_bytes_);
    return std::unique_ptr<Session>(std::move(copy));
  }

  SessionStatistics statistics() const override {
    SessionStatistics statistics;
    statistics.peak_bytes = peak_bytes_;
    statistics.weight_bytes = weight_bytes_ + platform_->extra_weight_bytes();
    statistics.plan_count = memory_plans_.built();
    if (const MemoryPlan* plan = memory_plans_.last_used()) statistics.arena_bytes = plan->arena_bytes;
    statistics.fallback_nodes = fallback_nodes_;
    for (const std::string& node : runner_.late_fallback_nodes()) statistics.fallback_nodes.push_back(node);
    return statistics;
  }

  std::optional<CaptureCounts> capture_counts() const override { return platform_->capture_counts(); }

  MemoryReport memory_report() const override {
    const MemoryPlan* plan = memory_plans_.last_used();
    if (plan == nullptr) return {0, 0, 0, memory_plans_.built()};
    return {plan->arena_bytes, plan->bound_bytes, plan->sum_bytes, memory_plans_.built()};
  }

 private:
  // All inputs are there.
  Result<std::vector<Value>> run_on(std::span<const Value> inputs, Observer& observer, const CallInfo& call) {
    PX_TRY(check_inputs(model_->graph, inputs));
    const std::vector<CaptureLevel>& levels = levels_.of(observer, *value_infos_);
    const bool is_watched = announced_to_ != observer.identity() || observer.wants_node_times() ||
                            std::ranges::any_of(levels, [](CaptureLevel level) { return level != CaptureLevel::none; });
    const bool is_planned = !platform_->waits_for_each_node();
    const bool may_replay = is_planned && !platform_->is_host() && growing_states_.empty() && !is_watched &&
                            options_.overrides.empty() && options_.memory_limit_bytes == 0 &&
                            (!draws_ || (call.graph.empty() && call.step < 0));  // random numbers depend on both
    const std::vector<uint8_t> on_host = may_replay ? inputs_on_host(*plan_, inputs) : std::vector<uint8_t>();
    if (may_replay && !options_.cancel.is_cancelled()) {
      auto replayed = PX_TRY(replays_.run({inputs, on_host, plan_->kept_outputs}));
      if (replayed.has_value()) return sentence_of(*std::move(replayed), inputs, observer, call);
    }
    platform_->reset_peak();
    platform_->begin_run(is_planned ? memory_plans_.choose(inputs) : nullptr);
    auto outputs = runner_.call(*plan_, {inputs.begin(), inputs.end()}, call, observer, levels,
                                announced_to_ != observer.identity());
    const RunMemory::Run seen = platform_->end_run();
    if (outputs.ok() && is_planned) memory_plans_.learn(seen, memory_steps_);
    announced_to_ = observer.identity();
    peak_bytes_ = std::max(peak_bytes_, weight_bytes_ + platform_->extra_weight_bytes() +
                                            input_bytes(inputs, platform_->is_host()) + platform_->peak_bytes());
    if (may_replay && outputs.ok()) learn_replay({inputs, on_host, plan_->kept_outputs}, *outputs, levels);
    return outputs;
  }

  // All that an observer hears of a run of which it wants to see nothing.
  Result<std::vector<Value>> sentence_of(std::vector<Value> outputs, std::span<const Value> inputs, Observer& observer,
                                         const CallInfo& call) {
    PX_TRY(begin_call(*platform_, observer, call, inputs));
    PX_TRY(observer.end_call(call));
    return outputs;
  }

  // Records a run that was planned and found all its buffers.
  void learn_replay(const ReplayInputs& inputs, std::span<const Value> outputs, std::span<const CaptureLevel> levels) {
    replays_.learn(*platform_, inputs, outputs, memory_plans_.is_settled(), [&](std::vector<Value> on_device) {
      NullObserver nobody;
      platform_->begin_run(memory_plans_.choose(inputs.values));
      runner_.leave_outputs(true);
      auto left = runner_.call(*plan_, std::move(on_device), {}, nobody, levels, false);
      runner_.leave_outputs(false);
      platform_->end_run();
      return left;
    });
  }

  // One node on constant inputs, for constant folding.
  Result<std::vector<Value>> evaluate(const Node& node, std::span<const Value> inputs) {
    std::vector<OpInput> operands;
    std::vector<DType> dtypes;
    for (const Value& input : inputs) {
      operands.push_back({&input, false, false});  // it may be gone after folding: nothing of it is kept
      dtypes.push_back(input.is_tensor() ? input.tensor().dtype() : DType::undefined);
      if (!input.is_tensor() && !input.is_absent())
        return unsupported("an input is a sequence, an optional or a map; only tensors are folded");
    }
    const KernelRow<Cpu>* kernel = PX_TRY(find_kernel<Cpu>(node, dtypes));
    OpContext<Cpu> op(node, operands, options_.seed, platform_->host_queue());
    PX_TRY(kernel->run(op));
    return op.take_outputs();
  }

  std::shared_ptr<const Model> model_;
  RunOptions options_;
  std::unique_ptr<Platform> platform_;
  std::shared_ptr<const ValueTable> value_infos_;
  std::shared_ptr<const GraphPlan> plan_;  // shared with clones
  Runner runner_;
  MemoryPlans memory_plans_;
  Replays replays_;
  int32_t memory_steps_ = 0;
  bool draws_ = false;
  KeptStates states_;
  std::vector<size_t> growing_states_;  // those that grow in place
  WantedLevels levels_;
  std::vector<std::string> fallback_nodes_;
  int64_t weight_bytes_ = 0;
  int64_t peak_bytes_ = 0;
  uint64_t announced_to_ = 0;  // the observer to which absences were announced
};

}  // namespace

Result<std::unique_ptr<Session>> make_session(std::shared_ptr<const Model> model, const RunOptions& options,
                                              std::unique_ptr<Platform> platform) {
  auto session = std::make_unique<RuntimeSession>(std::move(model), options, std::move(platform));
  try {  // constants are folded, and weights packed
    PX_TRY(session->prepare());
  } catch (const std::bad_alloc&) {
    return no_kernel_memory();
  }
  return std::unique_ptr<Session>(std::move(session));
}

std::string pattern_names(const RunOptions& options, bool on_host) {
  std::string names;
  const auto chosen = chosen_patterns(options, on_host);
  if (chosen.ok()) {
    for (const ChosenPattern& each : *chosen) {
      if (!names.empty()) names += ',';
      names += each.pattern->name;
    }
  }
  return names.empty() ? "none" : names;
}

}  // namespace parallax::runtime
