// SPDX-License-Identifier: Apache-2.0
// Preparing and running one side.
#include "inspector/workbench/run_side.h"

#include <algorithm>
#include <chrono>
#include <tuple>

#include <fmt/format.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/diff/matching/matching.h"
#include "inspector/dump/tensor_files/declared_type.h"
#include "inspector/exec/capture_traffic.h"
#include "inspector/exec/executor_names.h"
#include "inspector/exec/reported_times.h"
#include "inspector/tensor/elements.h"
#include "inspector/transform/freeze_inputs.h"
#include "inspector/transform/runnable.h"
#include "inspector/workbench/extremes.h"
#include "inspector/workbench/inputs/index_hint.h"
#include "inspector/workbench/inputs/other_sizes.h"
#include "inspector/workbench/inputs/stand_ins.h"

namespace parallax {
namespace {

bool is_reference(const std::string& executor) { return executor.starts_with("reference"); }
bool is_foreign(const std::string& executor) { return is_foreign_executor(executor); }
bool is_fast(const std::string& executor) { return !is_reference(executor) && !is_foreign(executor); }

bool any_executor(const RunRequest& request, bool (*predicate)(const std::string&)) {
  return std::any_of(request.executors.begin(), request.executors.end(), predicate);
}

Error needs(std::string_view option, std::string_view executors) {
  return usage_error(fmt::format("{} is an option of {}, and --with names none of these", option, executors));
}

// Inputs of integers for which nothing was given.
std::vector<std::string> generated_integers(const Graph& graph, const InputRequest& request) {
  std::vector<std::string> names;
  if (!request.source.empty()) return names;
  for (const ValueId id : graph.inputs) {
    const ValueDef& input = value_at(graph, id);
    const bool is_integer = input.type.kind == TypeInfo::Kind::tensor && parallax::is_integer(input.type.dtype);
    const bool is_given =
        std::ranges::any_of(request.files, [&](const auto& file) { return file.first == input.name; });
    if (is_integer && input.initializer_index < 0 && !is_given && !request.values.contains(input.name) &&
        !request.ranges.contains(input.name))
      names.push_back(input.name);
  }
  return names;
}

// The model that can be executed of one with problems: with what was given instead of its faulty nodes, else as far as
// --only asks for.
Result<std::shared_ptr<const Model>> executable_model(std::shared_ptr<const Model> model, const RunRequest& request) {
  std::map<std::string, Tensor> stubs;
  std::map<std::string, Value> given = PX_TRY(given_values(request.inputs));
  for (const auto& [op, file] : request.inputs.stubs) {
    for (auto& [name, value] : PX_TRY(stub_values(*model, op, file))) {
      if (value.is_tensor()) stubs.emplace(name, value.tensor());
      given[name] = std::move(value);
    }
  }
  const auto whole = PX_TRY(transform::with_stand_ins(model, given));
  if (whole != model) {
    std::erase_if(stubs, [&](const auto& stub) { return whole->graph.find_value(stub.first) == kNoValue; });
    if (stubs.empty()) return whole;
    return std::shared_ptr<const Model>(PX_TRY(transform::freeze_inputs(*whole, stubs)));
  }
  if (!request.only.empty()) return transform::runnable_model(model, request.only);
  return error_of(model->problems.front()).with_context(fmt::format("'{}'", model->path));
}

}  // namespace

Result<std::shared_ptr<const Model>> load_model(const RunRequest& request, const ImportOptions& options) {
  if (request.model_in_memory != nullptr) return request.model_in_memory;
  const bool may_be_faulty = !request.only.empty() || request.inputs.is_given();
  if (!may_be_faulty) return import_model(request.model, options);
  ImportOptions lenient = options;
  lenient.checks = ModelChecks::recorded;
  const auto model = PX_TRY(import_model(request.model, lenient));
  return model->problems.empty() ? model : executable_model(model, request);
}

Result<std::shared_ptr<const Model>> load_runnable(const RunRequest& request, std::vector<std::string>& notes) {
  if (request.model_in_memory != nullptr) return request.model_in_memory;
  const auto model = PX_TRY(import_model(request.model, {.checks = ModelChecks::recorded}));
  if (model->problems.empty()) return model;
  if (auto whole = executable_model(model, request); whole.ok()) return whole;
  const transform::Part part = PX_TRY(transform::runnable_part(model));
  std::string left_out = transform::describe_left_out(*model, part);
  if (request.message) {
    request.message(left_out);
  } else {
    notes.push_back(std::move(left_out));
  }
  return transform::model_of(part);
}

Result<std::shared_ptr<const Model>> load_against(const RunRequest& request, const ImportOptions& options) {
  if (!request.has_against()) return std::shared_ptr<const Model>();
  if (request.against_in_memory != nullptr) return request.against_in_memory;
  return import_model(request.against, options);
}

Result<ModelPair> pair_models(std::shared_ptr<const Model> a, std::shared_ptr<const Model> b) {
  ModelPair pair{std::move(a), std::move(b)};
  if (pair.a == pair.b) return pair;
  const size_t in_a = transform::count_quantized_operators(*pair.a);
  const size_t in_b = transform::count_quantized_operators(*pair.b);
  if (in_a == in_b) return pair;
  const auto lower = [](std::shared_ptr<const Model>& model, transform::NodeOrigins& origins) -> Status {
    transform::LoweredQuantized lowered = PX_TRY(transform::lower_quantized(*model));
    model = std::move(lowered.model);
    origins = std::move(lowered.origins);
    return {};
  };
  if (in_a > 0) PX_TRY(lower(pair.a, pair.origins_a));
  if (in_b > 0) PX_TRY(lower(pair.b, pair.origins_b));
  return pair;
}

Status check_sides(const std::vector<std::string>& executors, bool has_against) {
  if (executors.size() != 2 || executors[0] != executors[1] || has_against) return {};
  return usage_error(fmt::format(
      "--with names {} twice, and one executor with one model is no comparison; name two executors, or a second model "
      "with --against (run --repeat N runs one executor against itself)",
      executors[0]));
}

Status check_options(const RunRequest& request, const ExecutorFactory& make_executor) {
  PX_TRY(check_sides(request.executors, request.has_against()));
  const bool has_double = any_executor(request, [](const std::string& name) { return name == "reference:double"; });
  const bool has_fast = any_executor(request, is_fast), has_foreign = any_executor(request, is_foreign);
  if (request.options.keep_casts && !has_double) return needs("--keep-casts", "reference:double");
  if (request.options.tf32 && !has_fast) return needs("--tf32=on", "cuda");
  if (request.options.accumulate != Accumulate::default_ && !has_fast) return needs("--accumulate", "cpu and cuda");
  const bool rewrites =
      request.options.rewrite.base != RewriteChoice::Base::default_ || !request.options.rewrite.changes.empty();
  const bool keeps_graph =
      request.options.rewrite.base == RewriteChoice::Base::none && request.options.rewrite.changes.empty();
  if (rewrites && !has_fast && !(keeps_graph && has_foreign)) return needs("--rewrite", "cpu and cuda");
  if (!request.fallback.empty() && !has_fast) return needs("--fallback", "cpu and cuda");
  if (request.options.time_limit_s > 0 && !has_foreign)
    return needs("--time-limit", "executors that are programs of their own (cmd:COMMAND, onnxruntime)");
  for (const std::string& name : request.executors) {
    const auto executor = PX_TRY(make_executor(name));
    PX_TRY(executor->check_options(options_for(request, name)));
  }
  return {};
}

RunOptions options_for(const RunRequest& request, const std::string& executor_name) {
  RunOptions options = request.options;
  if (executor_name != "reference:double") options.keep_casts = false;
  const bool leaves_options_to_others = is_foreign(executor_name) && any_executor(request, is_fast);
  if (is_reference(executor_name) || leaves_options_to_others) {
    options.tf32 = false;
    options.accumulate = Accumulate::default_;
    if (is_reference(executor_name) || options.rewrite.base != RewriteChoice::Base::none) options.rewrite.base = {};
    options.rewrite.changes.clear();
    options.fallback = nullptr;
  }
  return options;
}

Result<InputSet> make_reported_inputs(const Model& model, const RunRequest& request, const Model* other) {
  InputRequest inputs = request.inputs;
  if (other != nullptr) inputs.other = PX_TRY(sizes_of_other(model, *other));
  InputSet set = PX_TRY(make_inputs(model, inputs));
  if (other != nullptr) PX_TRY(check_sizes_for_other(model, set.values, *other, inputs));
  if (!request.message) return set;
  for (const std::string& note : set.notes) request.message(note);
  set.notes.clear();
  return set;
}

Result<RunSide> prepare_side(const RunRequest& request, const std::string& executor_name,
                             std::shared_ptr<const Model> model, std::vector<Value> inputs,
                             const ExecutorFactory& make_executor) {
  RunSide side;
  side.executor = PX_TRY(make_executor(executor_name));
  side.options = options_for(request, executor_name);
  if (!request.fallback.empty() && is_fast(executor_name))
    side.options.fallback = PX_TRY(make_executor(request.fallback));
  side.inputs = std::move(inputs);
  side.generated = generated_integers(model->graph, request.inputs);
  const auto start = std::chrono::steady_clock::now();
  side.session = PX_TRY_CONTEXT(model->path, side.executor->prepare(model, side.options));
  side.prepare_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  side.info = describe_run(*side.executor, side.options, model);
  side.model = std::move(model);
  return side;
}

Status RunSide::run(Observer* watcher) {
  FailureWatcher failure;
  TeeObserver observer({dump.get(), watcher, &failure});
  const auto start = std::chrono::steady_clock::now();
  Status status = observer.begin_run(info);
  if (status.ok()) {
    auto result = session->run(inputs, observer);
    if (result.ok()) {
      outputs = std::move(result).take();
    } else {
      Error error = std::move(result).error();
      if (error.code == ErrorCode::execution) error.message += range_hint(model->graph, failure, generated, inputs);
      status = std::move(error).with_context(fmt::format("{} on {}", model->path, executor->name()));
    }
  }
  wall_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (status.ok()) wall_ms = reported_run_ms(*session).value_or(wall_ms);
  const Status ended = observer.end_run(status.ok());
  if (dump != nullptr) {
    // A node's failure is a result; what the system cut short is none in place of an older one.
    Status finished = dump->finish(status.ok() || status.error().code == ErrorCode::execution);
    if (status.ok() && !finished.ok()) return finished;
  }
  if (status.ok() && !ended.ok()) return Status(ended.error());
  return status;
}

Result<std::vector<Value>> inputs_for_other(const Model& a, const std::vector<Value>& values, const Model& b,
                                            std::vector<std::string>& notes) {
  const SignatureMatch match = match_inputs(a.graph, b.graph);
  const auto name_of_input = [](const Graph& graph, size_t index) -> const std::string& {
    return graph.values[static_cast<size_t>(graph.inputs[index])].name;
  };
  std::vector<Value> result;
  for (size_t index = 0; index < b.graph.inputs.size(); ++index) {
    const ValueDef& input = b.graph.values[static_cast<size_t>(b.graph.inputs[index])];
    const int32_t in_a = match.a_of_b[index];
    if (in_a >= 0) {
      result.push_back(PX_TRY(in_declared_type(values[static_cast<size_t>(in_a)], input.type,
                                               fmt::format("input '{}' of '{}'", input.name, b.path), notes)));
      if (static_cast<int32_t>(index) == match.paired_last)
        notes.push_back(
            fmt::format("input '{}' of '{}' takes the data of '{}': all others have the same names in both models",
                        input.name, b.path, name_of_input(a.graph, static_cast<size_t>(in_a))));
      if (match.by_position)
        notes.push_back(
            fmt::format("input '{}' of '{}' takes the data of '{}': no input has a name that both models know",
                        input.name, b.path, name_of_input(a.graph, static_cast<size_t>(in_a))));
    } else if (input.initializer_index >= 0) {
      result.emplace_back();
    } else {
      return usage_error(
          fmt::format("input '{}' of '{}' is no input of '{}': --against compares two models with the same inputs",
                      input.name, b.path, a.path));
    }
  }
  return result;
}

Result<std::vector<PathMatch>> match_paths(const std::shared_ptr<const Model>& a,
                                           const std::shared_ptr<const Model>& b) {
  const ValueTable infos_a = PX_TRY(ValueTable::build(a));
  const ValueTable infos_b = PX_TRY(ValueTable::build(b));
  return matched_paths(infos_a, infos_b, match_models(infos_a, infos_b));
}

ComparedExecution describe_side(const RunSide& side, Side which) {
  ComparedExecution execution = describe_execution(side.info, which, side.wall_ms);
  if (const auto* traffic = dynamic_cast<const CaptureTraffic*>(side.session.get()))
    execution.capture = traffic->capture_counts();
  execution.costs = RunCosts{side.prepare_ms, side.session->statistics().peak_bytes};
  return execution;
}

void add_capture_note(const ComparedExecution& execution, std::vector<std::string>& notes) {
  const CaptureCounts counts = execution.capture.value_or(CaptureCounts{});
  if (counts.waits == 0) return;
  notes.push_back(fmt::format("{}: the run waited {} times, {:.1f} ms in all, for {} copies of {} bytes to the host",
                              execution.name, counts.waits, counts.waited_ms, counts.copies, counts.bytes));
}

namespace {

std::vector<Value> round_items(const std::vector<Value>& items, const TypeInfo& declared) {
  std::vector<Value> rounded;
  for (const Value& item : items) rounded.push_back(round_to_declared(item, declared));
  return rounded;
}

}  // namespace

Value round_to_declared(const Value& value, const TypeInfo& declared) {
  if (value.is_sequence() && declared.kind == TypeInfo::Kind::sequence) {
    TypeInfo element = value.sequence().element_type;
    element.dtype = declared.inner[0].dtype;
    if (!element.inner.empty() && !declared.inner[0].inner.empty())
      element.inner[0].dtype = declared.inner[0].inner[0].dtype;
    return SequenceValue{element, round_items(value.sequence().items, declared.inner[0])};
  }
  if (value.is_map() && declared.kind == TypeInfo::Kind::map) {
    TypeInfo element = value.map().value_type;
    element.dtype = declared.inner[0].dtype;
    return MapValue{value.map().keys, element, round_items(value.map().values, declared.inner[0])};
  }
  if (value.is_optional() && declared.kind == TypeInfo::Kind::optional) {
    TypeInfo element = value.optional().element_type;
    element.dtype = declared.inner[0].dtype;
    if (!element.inner.empty() && !declared.inner[0].inner.empty())
      element.inner[0].dtype = declared.inner[0].inner[0].dtype;
    return OptionalValue{element, round_items(value.optional().item, declared.inner[0])};
  }
  if (!value.is_tensor() || declared.kind != TypeInfo::Kind::tensor || !is_floating(declared.dtype)) return value;
  if (value.tensor().dtype() != DType::float64 || declared.dtype == DType::float64) return value;
  auto rounded = Tensor::allocate(declared.dtype, value.tensor().shape());
  if (!rounded.ok()) return value;
  store_doubles(*rounded, 0, value.tensor().as<double>());
  return rounded.take();
}

std::vector<NamedValue> named_outputs(const Graph& graph, const std::vector<Value>& outputs, bool carries_doubles) {
  std::vector<NamedValue> named;
  for (size_t index = 0; index < outputs.size(); ++index) {
    const ValueDef& output = graph.values[static_cast<size_t>(graph.outputs[index])];
    named.push_back({output.name, carries_doubles ? round_to_declared(outputs[index], output.type) : outputs[index]});
  }
  return named;
}

std::vector<OutputSummary> summarize_outputs(const Graph& graph, const std::vector<Value>& outputs) {
  std::vector<OutputSummary> summaries;
  for (size_t index = 0; index < outputs.size(); ++index) {
    OutputSummary summary;
    summary.name = graph.values[static_cast<size_t>(graph.outputs[index])].name;
    if (outputs[index].is_tensor()) {
      const Tensor& tensor = outputs[index].tensor();
      summary.type = name_of(tensor.dtype());
      summary.shape.assign(tensor.shape().begin(), tensor.shape().end());
      if (tensor.dtype() != DType::string) {
        summary.statistics = compute_statistics(tensor);
        summary.integers = integer_extremes(tensor.view(), *summary.statistics);
        std::tie(summary.min, summary.max) = extremes_text(summary.integers, *summary.statistics, tensor.dtype(), 6);
      }
    } else {
      summary.type = outputs[index].is_absent() ? "absent" : to_string(type_of(outputs[index]));
    }
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

}  // namespace parallax
