// SPDX-License-Identifier: Apache-2.0
// The reference as an Executor: options, preparation, and sessions around the interpreter.
#include <fmt/format.h>

#include "inspector/base/memory_budget.h"
#include "inspector/exec/kept_states.h"
#include "inspector/exec/overrides.h"
#include "inspector/exec/session_states.h"
#include "inspector/exec/wanted_levels.h"
#include "reference/interpreter.h"
#include "reference/reference.h"

namespace parallax {
namespace reference {
namespace {

class ReferenceSession final : public Session, public SessionStates {
 public:
  ReferenceSession(std::shared_ptr<const Model> model, ValueTable value_infos, std::unique_ptr<GraphPlan> plan,
                   KeptStates states, RunOptions options, ReferencePrecision precision)
      : model_(std::move(model)),
        value_infos_(std::move(value_infos)),
        plan_(std::move(plan)),
        states_(std::move(states)),
        options_(std::move(options)),
        precision_(precision),
        meter_(options_.memory_limit_bytes) {}

  // Takes the weights into account; the first thing after construction.
  Status hold_weights() {
    hold_constants(*plan_);
    weight_bytes_ = meter_.bytes();
    const int64_t limit = options_.memory_limit_bytes;
    return limit > 0 && weight_bytes_ > limit ? Status(weights_over_memory_limit(weight_bytes_, limit)) : Status();
  }

  Result<std::vector<Value>> run(std::span<const Value> inputs, Observer& observer, const CallInfo& call) override {
    std::vector<Value> carried = PX_TRY(states_.inputs(inputs));
    PX_TRY(check_inputs(model_->graph, as_declared(carried)));
    if (precision_ == ReferencePrecision::double_) {
      for (Value& value : carried) value = PX_TRY(widen(value));
    }
    Interpreter interpreter(options_, precision_, levels_.of(observer, value_infos_), meter_, observer);
    std::vector<Value> outputs = PX_TRY(interpreter.call(*plan_, std::move(carried), call));
    PX_TRY(states_.keep(outputs));
    return outputs;
  }

  Status reset_states(int64_t batch, int64_t capacity) override { return states_.reset(batch, capacity); }
  Status reorder_states(std::span<const int32_t> rows) override { return states_.reorder(rows); }
  Status set_state(size_t index, const Value& value) override { return states_.set(index, value); }
  Result<Value> state(size_t index) const override { return states_.get(index); }

  SessionStatistics statistics() const override {
    SessionStatistics statistics;
    statistics.peak_bytes = meter_.peak_bytes();
    statistics.weight_bytes = weight_bytes_;
    statistics.plan_count = 1;
    return statistics;
  }

 private:
  void hold_constants(const GraphPlan& plan) {
    for (const Value& constant : plan.constants) meter_.add(constant);
    for (const NodePlan& node : plan.nodes) {
      for (const BodyPlan& body : node.bodies) hold_constants(*body.plan);
    }
  }

  // In double precision outputs of one call (float64) are welcome as inputs of the next: for the check of shapes they
  // are shown under the declared type.
  std::vector<Value> as_declared(std::span<const Value> inputs) const {
    std::vector<Value> shown(inputs.begin(), inputs.end());
    if (precision_ == ReferencePrecision::declared || shown.size() != model_->graph.inputs.size()) return shown;
    for (size_t index = 0; index < shown.size(); ++index) {
      const DType declared = model_->graph.values[static_cast<size_t>(model_->graph.inputs[index])].type.dtype;
      if (!shown[index].is_tensor() || shown[index].tensor().dtype() != DType::float64 || !is_floating(declared))
        continue;
      const Tensor& tensor = shown[index].tensor();
      shown[index] = Tensor::wrap(declared, tensor.shape(), tensor.storage());
    }
    return shown;
  }

  std::shared_ptr<const Model> model_;
  ValueTable value_infos_;
  std::unique_ptr<GraphPlan> plan_;
  KeptStates states_;
  RunOptions options_;
  ReferencePrecision precision_;
  MemoryMeter meter_;
  WantedLevels levels_;
  int64_t weight_bytes_ = 0;
};

class ReferenceExecutor final : public Executor {
 public:
  explicit ReferenceExecutor(ReferencePrecision precision) : precision_(precision) {}

  std::string name() const override {
    return precision_ == ReferencePrecision::double_ ? "reference:double" : "reference";
  }
  std::string device() const override { return "CPU"; }  // any: results do not depend on it

  std::map<std::string, std::string> settings(const RunOptions& options) const override {
    const bool carries_double = precision_ == ReferencePrecision::double_;
    return {{"precision", carries_double ? "double" : "declared"},
            {"accumulate", "double"},
            {"casts", carries_double && !options.keep_casts ? "identity between floats" : "kept"}};
  }

  Status check_options(const RunOptions& options) const override {
    if (options.tf32) return usage_error("the reference computes without TF32: leave --tf32 off");
    if (options.accumulate != Accumulate::default_)
      return usage_error("the reference sums in double: leave --accumulate at default");
    for (const auto& [pattern, on] : options.rewrite.changes) {
      if (on)
        return usage_error(
            fmt::format("rewrite pattern '{}' is asked for; the reference has no patterns. Ask for it on an executor "
                        "of the runtime",
                        pattern));
    }
    return {};
  }

  Result<std::unique_ptr<Session>> prepare(std::shared_ptr<const Model> model, const RunOptions& options) override {
    PX_TRY(check_options(options));
    ValueTable value_infos = PX_TRY(ValueTable::build(model));
    PX_TRY(check_override_paths(value_infos, options.overrides));
    const bool carries_double = precision_ == ReferencePrecision::double_;
    KeptStates states = PX_TRY(
        KeptStates::create(model->graph, options.states, carries_double ? WideStates::accepted : WideStates::refused));
    auto plan = PX_TRY(GraphPlan::build(value_infos.main(), carries_double));
    auto session = std::make_unique<ReferenceSession>(std::move(model), std::move(value_infos), std::move(plan),
                                                      std::move(states), options, precision_);
    PX_TRY(session->hold_weights());
    return std::unique_ptr<Session>(std::move(session));
  }

 private:
  ReferencePrecision precision_;
};

}  // namespace
}  // namespace reference

std::unique_ptr<Executor> make_reference_executor(ReferencePrecision precision) {
  return std::make_unique<reference::ReferenceExecutor>(precision);
}

}  // namespace parallax
