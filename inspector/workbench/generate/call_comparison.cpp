// SPDX-License-Identifier: Apache-2.0
// Limits of one call take in what the caches differed by before; causes come from the same call on equal inputs.
#include "inspector/workbench/generate/call_comparison.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "inspector/base/memory_budget.h"
#include "inspector/diff/compare/apply_diagnosis.h"
#include "inspector/diff/tolerance/value_compare.h"
#include "inspector/exec/tee_observer.h"
#include "inspector/exec/value_path.h"
#include "inspector/tensor/elements.h"
#include "inspector/workbench/blame.h"
#include "inspector/workbench/generate/framed_observer.h"
#include "inspector/workbench/generate/runner.h"
#include "inspector/workbench/side_by_side.h"

namespace parallax::generate {
namespace {

// Runs one side between begin_run and end_run, which the comparer waits for.
Result<std::vector<Value>> run_watched(const ModelSide::Call& call, Observer& comparer, std::vector<Observer*> watchers,
                                       double& ms) {
  std::erase(watchers, nullptr);
  std::vector<std::unique_ptr<FramedObserver>> framed;
  std::vector<Observer*> observers;
  for (Observer* watcher : watchers) {
    framed.push_back(std::make_unique<FramedObserver>(*watcher, call.info));
    observers.push_back(framed.back().get());
  }
  observers.push_back(&comparer);
  TeeObserver tee(observers);
  const auto start = std::chrono::steady_clock::now();
  PX_TRY(comparer.begin_run(call.run->info));
  auto outputs = run_call(call, tee, {});  // limits follow from paths of one run, without steps
  ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  PX_TRY(comparer.end_run(outputs.ok()));
  return outputs;
}

std::string prefix_of_call(const CallInfo& info) {
  std::string prefix;
  if (!info.graph.empty()) prefix += to_string(Frame{Frame::Kind::graph, info.graph, -1}) + "//";
  if (info.step >= 0) prefix += to_string(Frame{Frame::Kind::step, {}, info.step}) + "//";
  return prefix;
}

void put_before(const std::string& prefix, std::string& path) {
  if (!path.empty()) path.insert(0, prefix);
}

// The first `length` positions.
Result<Value> cut(const Value& value, int axis, int64_t length) {
  const Tensor& tensor = value.tensor();
  std::vector<int64_t> dims(tensor.shape().begin(), tensor.shape().end());
  const auto at = static_cast<size_t>(axis);
  if (dims[at] == length) return value;
  std::vector<int32_t> rows(static_cast<size_t>(length));
  for (size_t row = 0; row < rows.size(); ++row) rows[row] = static_cast<int32_t>(row);
  return gather_rows(value, axis, rows);
}

int64_t past_length(const Part& part, const std::vector<Value>& inputs) {
  const auto ids = part.roles.input(InputRole::input_ids), mask = part.roles.input(InputRole::attention_mask);
  if (!ids.has_value() || !mask.has_value() || inputs[*mask].is_absent()) return -1;
  const Shape &tokens = inputs[*ids].tensor().shape(), &seen = inputs[*mask].tensor().shape();
  return seen[seen.rank() - 1] - tokens[1];
}

// The call's inputs with the caches that its session has kept; after the run these hold the new positions too.
Result<std::vector<Value>> explicit_inputs(const ModelSide::Call& call) {
  std::vector<Value> inputs = call.run->inputs;
  const auto* states = dynamic_cast<SessionStates*>(call.run->session.get());
  size_t state = 0;
  for (const CacheSlot& past : call.part->roles.past) {
    if (past.is_cross || !inputs[past.index].is_absent()) continue;
    if (states == nullptr)
      return execution_error(fmt::format(
          "the cache '{}' is neither an input nor a kept state of the call; it must be one of them", past.name));
    const Value kept = PX_TRY(states->state(state++));
    const int64_t length = past_length(*call.part, inputs);
    const auto ids = call.part->roles.input(InputRole::input_ids);
    const int64_t all = kept.tensor().shape()[static_cast<size_t>(past.axis)];
    const int64_t tokens = inputs[*ids].tensor().shape()[1];
    inputs[past.index] = PX_TRY(cut(kept, past.axis, length >= 0 ? std::min(length, all) : all - tokens));
  }
  return inputs;
}

Result<Value> as_type(const Value& value, DType dtype) {
  if (!value.is_tensor() || value.tensor().dtype() == dtype || !is_floating(dtype)) return value;
  Tensor converted = PX_TRY(Tensor::allocate(dtype, value.tensor().shape()));
  std::vector<double> numbers(static_cast<size_t>(value.tensor().element_count()));
  load_doubles(value.tensor(), 0, numbers);
  store_doubles(converted, 0, numbers);
  return Value(std::move(converted));
}

// The inputs of B where it must compute the same as A: its own, with A's caches and encoder states.
Result<std::vector<Value>> inputs_as_in_a(const Part& a, const std::vector<Value>& inputs_a, const Part& b,
                                          std::vector<Value> inputs_b) {
  const auto pairs = pair_caches(b.roles.past, a.roles.past);
  for (size_t slot = 0; slot < pairs.size(); ++slot) {
    if (pairs[slot] < 0) continue;
    const CacheSlot& past = b.roles.past[slot];
    const Value& in_a = inputs_a[a.roles.past[static_cast<size_t>(pairs[slot])].index];
    inputs_b[past.index] = PX_TRY(as_type(in_a, past.dtype));
  }
  const auto from = a.roles.input(InputRole::encoder_hidden_states),
             to = b.roles.input(InputRole::encoder_hidden_states);
  if (from.has_value() && to.has_value()) {
    const DType dtype = value_at(b.model->graph, b.model->graph.inputs[*to]).type.dtype;
    inputs_b[*to] = PX_TRY(as_type(inputs_a[*from], dtype));
  }
  return inputs_b;
}

// Made by an earlier call: a cache, or the encoder's states.
bool is_past(const Part& part, const ValueComparison& value) {
  const auto states = part.roles.input(InputRole::encoder_hidden_states);
  const Graph& graph = part.model->graph;
  if (states.has_value() && escape_name(value_at(graph, graph.inputs[*states]).name) == value.path) return true;
  return std::ranges::any_of(part.roles.past,
                             [&](const CacheSlot& past) { return escape_name(past.name) == value.path; });
}

}  // namespace

CallComparison::CallComparison(const ModelSide& a, const ModelSide& b, RunRequest request,
                               CallComparisonOptions options, ExecutorFactory make_executor)
    : a_(a),
      b_(b),
      request_(std::move(request)),
      options_(std::move(options)),
      make_executor_(std::move(make_executor)) {
  request_.policy = options_.policy;
}

// Rules that name graphs and steps hold in those; others in each call.
Policy CallComparison::policy_for(const std::string& prefix) const {
  Policy policy = options_.policy;
  std::vector<PolicyRule> rules;
  for (PolicyRule rule : policy.rules) {
    const bool has_frames = rule.glob.starts_with("step[") || rule.glob.starts_with("graph(");
    if (has_frames) {
      const std::string inner = static_glob(rule.glob);
      const size_t frames = rule.glob.size() >= inner.size() ? rule.glob.size() - inner.size() : 0;
      if (!glob_matches(rule.glob.substr(0, frames), prefix)) continue;
      rule.glob = rule.glob.substr(frames);
    }
    rules.push_back(rule);
  }
  policy.rules = rules;
  return policy;
}

Result<const std::vector<PathMatch>*> CallComparison::matches_of(const Part& a, const Part& b) {
  if (a.model == b.model) return static_cast<const std::vector<PathMatch>*>(nullptr);
  const auto key = std::pair(&a, &b);
  if (!matches_.contains(key)) matches_[key] = PX_TRY(match_paths(a.model, b.model));
  return static_cast<const std::vector<PathMatch>*>(&matches_[key]);
}

Result<CallComparison::Compared> CallComparison::run_together(const ModelSide::Call& a, const ModelSide::Call& b,
                                                              std::vector<Observer*> watch_a,
                                                              std::vector<Observer*> watch_b, const std::string& prefix,
                                                              bool inherits) {
  StreamOptions stream;
  stream.error_pictures = options_.error_pictures;
  const std::vector<PathMatch>* matches = PX_TRY(matches_of(*a.part, *b.part));
  if (matches != nullptr) stream.matches = *matches;
  if (options_.capture == CaptureLevel::none) {
    stream.only = {""};
    stream.follows_rest = false;
  }
  if (inherits) stream.inherited = inherited_;
  StreamComparer comparer(policy_for(prefix), std::move(stream));
  Compared compared;
  Result<std::vector<Value>> in_b = std::vector<Value>();
  std::thread other([&, budget = MemoryBudget::current()] {
    const MemoryBudget::ThreadScope scope(budget);
    in_b = run_watched(b, comparer.side_b(), std::move(watch_b), compared.call.ms_b);
  });
  auto in_a = run_watched(a, comparer.side_a(), std::move(watch_a), compared.call.ms_a);
  other.join();
  if (!in_a.ok()) return with_first_divergence(std::move(in_a).error(), comparer, {});
  if (!in_b.ok()) return with_first_divergence(std::move(in_b).error(), comparer, {});
  compared.call.outputs_a = in_a.take();
  compared.call.outputs_b = in_b.take();
  compared.comparison = comparer.finish();
  return compared;
}

// The call again on equal inputs, without caches kept in sessions: what differs then is a node's doing, what does not
// came with the caches.
Status CallComparison::look_into(const ModelSide::Call& a, const ModelSide::Call& b, const std::string& prefix,
                                 Comparison& comparison) {
  const std::vector<Value> inputs_a = PX_TRY(explicit_inputs(a));
  const std::vector<Value> own_b = PX_TRY(explicit_inputs(b));
  const std::vector<Value> inputs_b = PX_TRY(inputs_as_in_a(*a.part, inputs_a, *b.part, own_b));
  RunSide side_a = PX_TRY(prepare_side(request_, a.run->executor->name(), a.part->model, inputs_a, make_executor_));
  RunSide side_b = PX_TRY(prepare_side(request_, b.run->executor->name(), b.part->model, inputs_b, make_executor_));
  side_a.generated.clear();
  side_b.generated.clear();
  ModelSide::Call equal_a{&side_a, a.part, {}, a.is_encoder}, equal_b{&side_b, b.part, {}, b.is_encoder};
  Compared seen = PX_TRY(run_together(equal_a, equal_b, {}, {}, prefix, false));
  RunRequest request = request_;
  request.policy = policy_for(prefix);
  request.message = {};
  if (are_mismatched(seen.comparison)) PX_TRY(blame_sides(request, make_executor_, side_a, side_b, seen.comparison));
  if (are_mismatched(seen.comparison)) {
    is_blamed_ = true;
    total_.causes = seen.comparison.causes;
    for (Cause& cause : total_.causes) put_before(prefix, cause.path);
    return {};
  }
  const auto wrong_cache = std::ranges::find_if(comparison.values, [&](const ValueComparison& value) {
    return are_mismatched(value) && is_past(*a.part, value);
  });
  if (wrong_cache == comparison.values.end()) {
    Diagnosis diagnosis;
    accept_diverged(
        comparison,
        {"accumulated rounding", "caches have taken in rounding over the steps; on equal caches both sides agree"},
        diagnosis);
    apply(diagnosis, comparison);
    return {};
  }
  is_blamed_ = true;
  Cause cause = cause_at(*wrong_cache,
                         "the caches that the two sides have differ here though the step before agreed, and on equal "
                         "caches both sides agree: what keeps them between steps is wrong (rows in another order after "
                         "a beam's change, stale positions)");
  cause.introduced = wrong_cache->severity;
  put_before(prefix, cause.path);
  total_.causes = {std::move(cause)};
  return {};
}

// Remembers the difference of the two sides' values of an output as the limit of the next call's input of it.
void CallComparison::remember(const std::string& output, const std::string& input, const Comparison& comparison) {
  const auto found = std::ranges::find(comparison.values, escape_name(output), &ValueComparison::path);
  if (found == comparison.values.end() || !found->metrics.has_value() || found->verdict != Verdict::pass) return;
  double& error = inherited_[escape_name(input)];
  error = std::max(error, diff::inherited_error(*found->metrics));
}

void CallComparison::remember_outputs(const ModelSide::Call& call, const Comparison& comparison) {
  const LanguageModel& model = a_.model();
  if (call.is_encoder) {
    const Graph& graph = call.part->model->graph;
    const std::string& states = value_at(graph, graph.outputs[*call.part->roles.hidden_states]).name;
    for (const Part* part : {&model.first, &model.stepping()}) {
      const auto input = part->roles.input(InputRole::encoder_hidden_states);
      if (input.has_value())
        remember(states, value_at(part->model->graph, part->model->graph.inputs[*input]).name, comparison);
    }
    return;
  }
  // The stepping model reads what this one returns.
  const ModelRoles &next = model.stepping().roles, &own = call.part->roles;
  const bool is_other = call.part != &model.stepping();
  const std::vector<int32_t> pairs = is_other ? pair_caches(next.past, own.present) : next.present_of_past;
  for (size_t slot = 0; slot < pairs.size(); ++slot) {
    if (pairs[slot] < 0) continue;
    remember(own.present[static_cast<size_t>(pairs[slot])].name, next.past[slot].name, comparison);
  }
}

// Weights are compared once, and caches as what the step before returned.
void CallComparison::drop_repeated(const Part& part, Comparison& comparison) {
  const bool is_repeated = std::exchange(has_run_[&part], true);
  std::erase_if(comparison.values, [&](const ValueComparison& value) {
    if (value.verdict == Verdict::diverged || !value.shape_a.empty()) return false;
    return (is_repeated && value.origin == Origin::constant) || is_past(part, value);
  });
}

bool CallComparison::is_kept(const ValueComparison& value) const {
  if (!options_.only.empty()) {
    const auto matches = [&](const std::string& glob) {
      return glob_matches(glob, value.path) || glob_matches(glob, value.b);
    };
    return value.is_graph_output || std::ranges::any_of(options_.only, matches);
  }
  const bool keeps_all = options_.capture.has_value() && *options_.capture != CaptureLevel::none;
  return keeps_all || value.is_graph_output || value.verdict == Verdict::diverged ||
         value.verdict == Verdict::mistrusted;
}

void CallComparison::add(const std::string& prefix, Comparison comparison, Call& call) {
  const bool was_fine = total_.reason.empty() && !total_.first_divergence.has_value();
  ComparisonSummary& sum = total_.summary;
  const ComparisonSummary& own = comparison.summary;
  sum.values += own.values;
  sum.compared += own.compared;
  sum.passed += own.passed;
  sum.diverged += own.diverged;
  sum.mistrusted += own.mistrusted;
  sum.not_compared += own.not_compared;
  if (was_fine) total_.reason = comparison.reason;
  if (!total_.first_divergence.has_value() && comparison.first_divergence.has_value()) {
    total_.first_divergence = comparison.first_divergence;
    put_before(prefix, total_.first_divergence->path);
  }
  call.diverged = comparison.verdict == OverallVerdict::diverged;
  for (ValueComparison& value : comparison.values) {
    for (std::string* path : {&value.path, &value.a, &value.b}) put_before(prefix, *path);
    if (judged_severity(value) > call.severity || call.worst.empty()) {
      call.severity = judged_severity(value);
      call.worst = value.path;
    }
    if (is_kept(value)) total_.values.push_back(std::move(value));
  }
}

Result<CallComparison::Call> CallComparison::run(const ModelSide::Call& a, const ModelSide::Call& b,
                                                 std::vector<Observer*> watch_a, std::vector<Observer*> watch_b) {
  const std::string prefix = prefix_of_call(a.info);
  Compared compared = PX_TRY(run_together(a, b, std::move(watch_a), std::move(watch_b), prefix, true));
  if (are_mismatched(compared.comparison) && !is_blamed_) PX_TRY(look_into(a, b, prefix, compared.comparison));
  remember_outputs(a, compared.comparison);
  drop_repeated(*a.part, compared.comparison);
  conclude(compared.comparison);
  add(prefix, std::move(compared.comparison), compared.call);
  return std::move(compared.call);
}

Comparison CallComparison::take() {
  conclude_sum(total_);
  return std::move(total_);
}

}  // namespace parallax::generate
