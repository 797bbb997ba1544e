// SPDX-License-Identifier: Apache-2.0
// One thread a side.
#include "inspector/workbench/generate/runner.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace parallax::generate {
namespace {

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// The graph that a call's name stands for, in a dump of several: that of another step's model from then on.
Status name_graph(DumpWriter* dump, const ModelSide::Call& call, const Part*& dumped) {
  if (dump == nullptr || call.part == dumped) return {};
  const bool is_only = call.info.graph.empty() && dumped == nullptr && call.run->info.model == call.part->model;
  dumped = call.part;
  return is_only ? Status() : dump->add_graph(call.info.graph, *call.part->model, false);
}

}  // namespace

Result<std::vector<Value>> run_call(const ModelSide::Call& call, Observer& observer, const CallInfo& shown) {
  auto outputs = call.run->session->run(call.run->inputs, observer, shown);
  if (outputs.ok()) return outputs;
  std::string context = fmt::format("{} on {}", call.part->path, call.run->executor->name());
  if (call.info.step >= 0) context += fmt::format(", step {}", call.info.step);
  return std::move(outputs).error().with_context(context);
}

SideRunner::SideRunner(ModelSide& a, ModelSide* b, const PromptBatch& batch, const Watchers& watchers,
                       CallComparison* comparison)
    : a_(a), b_(b), batch_(batch), watchers_(watchers), comparison_(comparison) {
  if (watchers.observer != nullptr && watchers.dump_a != nullptr)
    both_ = std::make_unique<TeeObserver>(std::vector<Observer*>{watchers.dump_a, watchers.observer});
}

Result<SideRunner::Outputs> SideRunner::run_calls(const ModelSide::Call& a, const std::optional<ModelSide::Call>& b,
                                                  StepLogits& step) {
  Outputs outputs;
  PX_TRY(name_graph(watchers_.dump_a, a, dumped_a_));
  if (b.has_value()) PX_TRY(name_graph(watchers_.dump_b, *b, dumped_b_));
  const auto start = std::chrono::steady_clock::now();
  if (!b.has_value()) {
    Observer* observer = both_ != nullptr                ? static_cast<Observer*>(both_.get())
                         : watchers_.dump_a != nullptr   ? static_cast<Observer*>(watchers_.dump_a)
                         : watchers_.observer != nullptr ? watchers_.observer
                                                         : &quiet_;
    outputs.a = PX_TRY(run_call(a, *observer, a.info));
    step.ms += ms_since(start);
    wall_ms_a_ += ms_since(start);
    return outputs;
  }
  auto compared = PX_TRY(comparison_->run(a, *b, {watchers_.dump_a, watchers_.observer}, {watchers_.dump_b}));
  step.ms += ms_since(start);
  wall_ms_a_ += compared.ms_a;
  wall_ms_b_ += compared.ms_b;
  if (compared.severity > step.severity || step.worst.empty()) {
    step.severity = compared.severity;
    step.worst = compared.worst;
  }
  step.diverged = step.diverged || compared.diverged;
  outputs.a = std::move(compared.outputs_a);
  outputs.b = std::move(compared.outputs_b);
  return outputs;
}

Status SideRunner::run_encoder(StepLogits& step) {
  if (!a_.has_encoder()) return {};
  const ModelSide::Call a = PX_TRY(a_.encoder_call());
  std::optional<ModelSide::Call> b;
  if (b_ != nullptr) b = PX_TRY(b_->encoder_call());
  const Outputs outputs = PX_TRY(run_calls(a, b, step));
  PX_TRY(a_.accept_encoder(outputs.a));
  return b_ == nullptr ? Status() : b_->accept_encoder(outputs.b);
}

Result<StepLogits> SideRunner::run_step(const ModelSide::Call& a, const std::optional<ModelSide::Call>& b,
                                        StepLogits step) {
  const Outputs outputs = PX_TRY(run_calls(a, b, step));
  ModelSide::Logits logits = PX_TRY(a_.accept_step(a, outputs.a));
  step.vocabulary = logits.vocabulary;
  step.a = std::move(logits.values);
  if (b_ == nullptr) return step;
  ModelSide::Logits others = PX_TRY(b_->accept_step(*b, outputs.b));
  if (others.vocabulary != logits.vocabulary)
    return usage_error(fmt::format("'{}' has {} logits and '{}' {}; two sides need the same vocabulary", a.part->path,
                                   logits.vocabulary, b->part->path, others.vocabulary));
  step.b = std::move(others.values);
  return step;
}

Result<StepLogits> SideRunner::start() {
  StepLogits step;
  PX_TRY(a_.begin(batch_));
  if (b_ != nullptr) PX_TRY(b_->begin(batch_));
  PX_TRY(run_encoder(step));
  const ModelSide::Call a = PX_TRY(a_.first_call());
  std::optional<ModelSide::Call> b;
  if (b_ != nullptr) b = PX_TRY(b_->first_call());
  return run_step(a, b, std::move(step));
}

Result<StepLogits> SideRunner::next(std::span<const int64_t> tokens) {
  const ModelSide::Call a = PX_TRY(a_.next_call(tokens));
  std::optional<ModelSide::Call> b;
  if (b_ != nullptr) b = PX_TRY(b_->next_call(tokens));
  return run_step(a, b, {});
}

Status SideRunner::reorder(std::span<const int32_t> rows) {
  PX_TRY(a_.reorder(rows));
  return b_ == nullptr ? Status() : b_->reorder(rows);
}

}  // namespace parallax::generate
