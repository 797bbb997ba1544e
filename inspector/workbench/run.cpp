// SPDX-License-Identifier: Apache-2.0
// Runs with one side, two sides, a kept baseline, and repetitions.
#include "inspector/workbench/run.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include <fmt/format.h>

#include "inspector/base/input_files.h"
#include "inspector/base/memory_budget.h"
#include "inspector/base/output_group.h"
#include "inspector/base/signal_cleanup.h"
#include "inspector/diff/compare/compare.h"
#include "inspector/diff/compare/stream_compare.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/exec/executor_names.h"
#include "inspector/exec/reported_times.h"
#include "inspector/exec/value_path.h"
#include "inspector/model/io/import.h"
#include "inspector/render/report_text.h"
#include "inspector/workbench/blame.h"
#include "inspector/workbench/dump_size.h"
#include "inspector/workbench/expected_outputs.h"
#include "inspector/workbench/open.h"
#include "inspector/workbench/run_side.h"
#include "inspector/workbench/side_by_side.h"

namespace parallax {
namespace {

struct Prepared {
  std::shared_ptr<const Model> model_a;
  std::shared_ptr<const Model> model_b;  // model_a unless there is a second one
  ModelPair pair;                        // both as they are compared
  InputSet inputs;
  double load_ms = 0;
};

Result<Prepared> prepare_models(const RunRequest& request) {
  ImportOptions options;
  options.hash = true;
  Prepared prepared;
  const auto start = std::chrono::steady_clock::now();
  prepared.model_a = PX_TRY(load_model(request, options));
  const auto against = PX_TRY(load_against(request, options));
  prepared.model_b = against == nullptr ? prepared.model_a : against;
  prepared.pair = PX_TRY(pair_models(prepared.model_a, prepared.model_b));
  prepared.load_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  prepared.inputs = PX_TRY(make_reported_inputs(*prepared.model_a, request, against.get()));
  return prepared;
}

// A dump for the side's run. Where everything goes into a file in memory, its pages are made ready beforehand.
Result<std::unique_ptr<DumpWriter>> make_dump(const RunRequest& request, const std::string& path, CaptureLevel level,
                                              const RunSide& side, RunResult& result) {
  constexpr int64_t kMostPrepared = int64_t{1} << 30;
  DumpWriterOptions options;
  options.level = level;
  options.only = request.only;
  options.capture_limit_bytes = request.capture_limit_bytes;
  auto writer = PX_TRY(DumpWriter::create(path, options));
  result.written.push_back(path);
  const bool has_limit = request.options.memory_limit_bytes > 0;
  if (level == CaptureLevel::all && options.only.empty() && options.capture_limit_bytes == 0 && !has_limit) {
    const int64_t foreseen = foreseen_payload_bytes(side.model->graph, side.inputs);
    writer->prepare(static_cast<size_t>(std::min(foreseen, kMostPrepared)));
  }
  return writer;
}

Status make_folder(const std::string& folder) {
  PX_TRY(admit_output(folder));  // its files are checked one by one: it may hold the model
  return make_output_folder(folder);
}

StreamOptions stream_options(const RunRequest& request) {
  StreamOptions options;
  options.only = request.only;
  options.on_value = request.on_value;
  options.error_pictures = request.error_pictures;
  // A glob that no path can match leaves the graph's outputs, which are always compared.
  if (request.capture.value_or(CaptureLevel::all) == CaptureLevel::none) {
    options.only = {""};
    options.follows_rest = false;
  }
  return options;
}

// Names the dump where an older one has its name still.
Error with_kept_dump(Error error, const RunSide& side, const std::vector<std::string>& names) {
  const std::string path = side.dump == nullptr ? "" : side.dump->path();
  const bool is_named = path.empty() || path == names.front() || error.message.find(path) != std::string::npos;
  if (!is_named) error.message += fmt::format("; what ran is kept as '{}'", path);
  return error;
}

std::vector<std::string> kept_dumps(const RunSide& a, const RunSide& b) {
  std::vector<std::string> paths;
  for (const RunSide* side : {&a, &b}) {
    if (side->dump != nullptr && !side->dump->path().empty()) paths.push_back(side->dump->path());
  }
  return paths;
}

Result<RunResult> run_single(const RunRequest& request, const ExecutorFactory& make_executor) {
  RunResult result;
  Prepared prepared = PX_TRY(prepare_models(request));
  result.notes = prepared.inputs.notes;
  result.model_a = prepared.model_a;
  result.load_ms = prepared.load_ms;
  RunSide side =
      PX_TRY(prepare_side(request, request.executors.front(), prepared.model_a, prepared.inputs.values, make_executor));
  if (!request.dump_directory.empty()) {
    PX_TRY(make_folder(request.dump_directory));
    const std::string path = fmt::format("{}/{}.plx", request.dump_directory, file_name_of(side.executor->name()));
    side.dump = PX_TRY(make_dump(request, path, request.capture.value_or(CaptureLevel::all), side, result));
  } else if (!request.save_baseline.empty()) {
    side.dump = PX_TRY(make_dump(request, request.save_baseline, CaptureLevel::stats, side, result));
  }
  if (Status ran = side.run(nullptr); !ran.ok()) return with_kept_dump(std::move(ran).error(), side, result.written);
  result.execution = describe_side(side, Side::a);
  add_capture_note(result.execution, result.notes);
  result.outputs = summarize_outputs(side.model->graph, side.outputs);
  result.output_values = named_outputs(side.model->graph, side.outputs, false);
  if (!prepared.inputs.expected.empty()) {
    result.comparison.emplace();
    add_expected(request.policy, prepared.inputs.expected, {&side}, {}, *result.comparison);
    look_into_expected(request, prepared.inputs.expected, {&side}, {}, make_executor, *result.comparison);
  }
  return result;
}

// A caller that replaces A by B asks for the outputs by name or by position.
void note_outputs(const Graph& a, const Graph& b, std::vector<std::string>& notes) {
  const auto names_of = [](const Graph& graph) {
    std::vector<std::string> names;
    for (const ValueId output : graph.outputs) names.push_back(graph.values[static_cast<size_t>(output)].name);
    return names;
  };
  const std::vector<std::string> names_a = names_of(a), names_b = names_of(b);
  if (names_a == names_b) return;
  if (std::ranges::is_permutation(names_a, names_b)) {
    notes.push_back(fmt::format("B gives its graph outputs in another order: {} in A, {} in B",
                                fmt::join(names_a, ", "), fmt::join(names_b, ", ")));
    return;
  }
  if (names_a.size() == names_b.size()) return;  // renamed: compared by what they are made of
  for (const std::string& name : names_a) {
    if (std::ranges::find(names_b, name) == names_b.end())
      notes.push_back(fmt::format("'{}' is a graph output of A and none of B", name));
  }
}

Status open_dumps(const RunRequest& request, RunSide& a, RunSide& b, RunResult& result) {
  const CaptureLevel level = request.capture.value_or(CaptureLevel::all);
  if (request.dump_directory.empty() || level == CaptureLevel::none) return {};
  PX_TRY(make_folder(request.dump_directory));
  const auto open = [&](RunSide& side, char letter) -> Status {
    side.dump = PX_TRY(make_dump(
        request, fmt::format("{}/{}-{}.plx", request.dump_directory, letter, file_name_of(side.executor->name())),
        level, side, result));
    return {};
  };
  PX_TRY(open(a, 'A'));
  return open(b, 'B');
}

Result<RunResult> run_pair(const RunRequest& request, const ExecutorFactory& make_executor) {
  RunResult result;
  Prepared prepared = PX_TRY(prepare_models(request));
  result.notes = prepared.inputs.notes;
  result.model_a = prepared.model_a;
  result.model_b = prepared.model_b;
  const auto inputs_b =
      request.has_against()
          ? PX_TRY(inputs_for_other(*prepared.model_a, prepared.inputs.values, *prepared.model_b, result.notes))
          : prepared.inputs.values;
  RunSide a =
      PX_TRY(prepare_side(request, request.executors.front(), prepared.pair.a, prepared.inputs.values, make_executor));
  RunSide b = PX_TRY(prepare_side(request, request.executors.back(), prepared.pair.b, inputs_b, make_executor));
  a.origins = prepared.pair.origins_a;
  b.origins = prepared.pair.origins_b;
  PX_TRY(open_dumps(request, a, b, result));
  StreamOptions stream = stream_options(request);
  if (request.has_against()) {
    stream.matches = PX_TRY(match_paths(prepared.pair.a, prepared.pair.b));
    note_outputs(prepared.model_a->graph, prepared.model_b->graph, result.notes);
  }
  StreamComparer comparer(request.policy, std::move(stream));
  if (Status ran = run_side_by_side(a, b, comparer, request.progress); !ran.ok())
    return with_first_divergence(std::move(ran).error(), comparer, kept_dumps(a, b));
  result.comparison = finish_comparison(a, b, comparer);
  for (const ComparedExecution& execution : result.comparison->executions) add_capture_note(execution, result.notes);
  const LimitsByPath carried = output_limits(*result.comparison);
  add_expected(request.policy, prepared.inputs.expected, {&a, &b}, carried, *result.comparison);
  if (request.repeat == 0) {
    Status blamed = blame_sides(request, make_executor, a, b, *result.comparison);
    if (!blamed.ok() && blamed.error().code == ErrorCode::out_of_memory)
      return std::move(blamed).error().with_context("finding the causes");
    if (!blamed.ok()) result.notes.push_back("the causes could not be found: " + blamed.error().message);
    look_into_expected(request, prepared.inputs.expected, {&a, &b}, carried, make_executor, *result.comparison);
  }
  return result;
}

// N runs of one executor: the first against each other one, stopping at the first that differs.
Result<RunResult> run_repeated(RunRequest request, const ExecutorFactory& make_executor) {
  if (request.executors.size() != 1)
    return usage_error("--repeat compares one executor with itself: give --with one name");
  if (request.has_against()) return usage_error("--repeat and --against exclude each other");
  if (!request.baseline.empty())
    return usage_error("--repeat and --baseline exclude each other: one compares an executor with itself");
  request.executors.push_back(request.executors.front());
  request.policy = Policy{Tolerance{0, 0}, {}};
  RunResult result;
  for (int round = 1; round < request.repeat; ++round) {
    result = PX_TRY(run_pair(request, make_executor));
    request.message = [](const std::string&) {};  // the failure was reported
    if (result.comparison->verdict != OverallVerdict::pass) break;
  }
  if (const ValueComparison* first = first_diverged(*result.comparison); first != nullptr) {
    Cause cause = cause_at(*first,
                           "values differ between two runs of the same executor: uninitialized memory, a race, or sums "
                           "in an order that is not fixed");
    cause.node_b = cause.node;
    cause.introduced = std::numeric_limits<double>::infinity();
    result.comparison->causes.push_back(std::move(cause));
  }
  return result;
}

// ---- against a kept dump ----

CaptureLevel level_of(const DumpReader& dump) {
  CaptureLevel level = CaptureLevel::shape;
  for (const DumpEntry& entry : dump.entries()) level = std::max(level, entry.level);
  return level;
}

Result<RunResult> run_against_baseline(const RunRequest& request, const ExecutorFactory& make_executor) {
  if (request.executors.size() != 1)
    return usage_error("--baseline compares one executor's run with the kept one: give --with one name");
  if (request.has_against()) return usage_error("--baseline and --against exclude each other");
  const auto baseline = PX_TRY(DumpReader::open(request.baseline));
  PX_TRY(check_graphs(*baseline));
  RunRequest today = request;
  std::unique_ptr<TemporaryPath> folder;
  if (request.dump_directory.empty()) {
    folder = PX_TRY(TemporaryPath::make_folder("parallax-baseline"));
    today.dump_directory = folder->path();
  }
  today.capture = level_of(*baseline);
  RunResult result = PX_TRY(run_single(today, make_executor));
  const auto dump = PX_TRY(DumpReader::open(result.written.front()));
  std::optional<Comparison> expected = std::move(result.comparison);
  CompareOptions compare;
  compare.error_pictures = request.error_pictures;
  compare.cancel = request.options.cancel;
  result.comparison = PX_TRY(compare_dumps(*baseline, *dump, request.policy, compare));
  result.comparison->executions.back().capture = result.execution.capture;
  const Status blamed = blame_files(request.baseline, result.written.front(), request.policy, make_executor,
                                    *result.comparison, request.options.cancel);
  if (!blamed.ok()) result.notes.push_back("the causes could not be found: " + blamed.error().message);
  if (expected.has_value()) {
    result.comparison->expected = std::move(expected->expected);
    for (ValueComparison& value : result.comparison->expected) value.held = Side::b;  // A is the baseline
    result.comparison->has_expected = true;
    conclude(*result.comparison);
  }
  if (folder != nullptr) result.written.clear();
  return result;
}

}  // namespace

std::vector<std::string> idle_globs(const std::vector<std::string>& only, const Policy& policy,
                                    const Comparison& comparison) {
  std::vector<std::string> globs = only;
  for (const PolicyRule& rule : policy.rules) globs.push_back(rule.glob);
  std::erase_if(globs, [&](const std::string& glob) {
    const auto matches = [&](const ValueComparison& value) { return glob_matches(glob, value.path); };
    return std::ranges::any_of(comparison.values, matches) || std::ranges::any_of(comparison.expected, matches);
  });
  return globs;
}

bool has_two_sides(const RunRequest& request) {
  return request.executors.size() == 2 || request.has_against() || request.repeat > 0 || !request.baseline.empty();
}

namespace {

// Checks the destinations of a run's values: options that leave each other without effect are refused.
Status check_destinations(const RunRequest& request) {
  const bool captures = request.capture.value_or(CaptureLevel::none) != CaptureLevel::none;
  if (!request.dump_directory.empty() && request.capture == CaptureLevel::none)
    return usage_error("--dump keeps values, and --capture none keeps none: leave one of the two out");
  if (!request.baseline.empty() && request.capture.has_value())
    return usage_error("--baseline and --capture exclude each other: as much is captured as the baseline holds");
  if (request.save_baseline.empty()) {
    if (!captures || has_two_sides(request) || !request.dump_directory.empty()) return {};
    return usage_error("--capture with one executor needs --dump: there is nowhere else for the values to go");
  }
  const auto excludes = [](std::string_view option, std::string_view why) {
    return usage_error(fmt::format("--save-baseline and {} exclude each other: {}", option, why));
  };
  if (!request.baseline.empty()) return excludes("--baseline", "one writes what the other compares with");
  if (request.has_against()) return excludes("--against", "a baseline is one model's run");
  if (request.repeat > 0) return excludes("--repeat", "a baseline is one run");
  if (!request.dump_directory.empty()) return excludes("--dump", "each writes the run's values");
  if (request.capture.has_value()) return excludes("--capture", "a baseline holds statistics");
  if (has_two_sides(request)) return usage_error("--save-baseline keeps one executor's run: give --with one name");
  return {};
}

}  // namespace

Result<RunResult> run_models(const RunRequest& request, const ExecutorFactory& make_executor) {
  PX_TRY(check_options(request, make_executor));
  PX_TRY(check_destinations(request));
  const MemoryBudget::Scope budget(request.options.memory_limit_bytes);
  if (request.repeat > 0) return budget.settled(run_repeated(request, make_executor));
  if (!request.baseline.empty()) return budget.settled(run_against_baseline(request, make_executor));
  return budget.settled(has_two_sides(request) ? run_pair(request, make_executor) : run_single(request, make_executor));
}

Result<BenchResult> bench_model(const RunRequest& request, int64_t iterations, const ExecutorFactory& make_executor) {
  using Clock = std::chrono::steady_clock;
  const auto elapsed_ms = [](Clock::time_point start) {
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  };
  PX_TRY(check_options(request, make_executor));
  const MemoryBudget::Scope budget(request.options.memory_limit_bytes);
  const auto load_start = Clock::now();
  const auto model = PX_TRY(load_model(request));
  const double import_ms = elapsed_ms(load_start);
  InputSet inputs = PX_TRY(make_reported_inputs(*model, request));
  const auto prepare_start = Clock::now();
  RunSide side = PX_TRY(prepare_side(request, request.executors.front(), model, inputs.values, make_executor));
  BenchResult result;
  result.executor = side.executor->name();
  result.iterations = iterations;
  result.load_ms = import_ms + elapsed_ms(prepare_start);
  NullObserver observer;
  for (int warm_up = 0; warm_up < 2; ++warm_up) PX_TRY(side.session->run(side.inputs, observer));
  std::vector<double> latencies;
  for (int64_t iteration = 0; iteration < iterations; ++iteration) {
    const auto start = Clock::now();
    PX_TRY(side.session->run(side.inputs, observer));
    latencies.push_back(reported_run_ms(*side.session).value_or(elapsed_ms(start)));
  }
  std::sort(latencies.begin(), latencies.end());
  const auto at = [&](double quantile) {
    return latencies[std::min(latencies.size() - 1,
                              static_cast<size_t>(quantile * static_cast<double>(latencies.size())))];
  };
  result.min_ms = latencies.front();
  result.median_ms = at(0.5);
  result.p95_ms = at(0.95);
  result.peak_bytes = side.session->statistics().peak_bytes;
  if (const auto* planned = dynamic_cast<const PlannedMemory*>(side.session.get()))
    result.memory = planned->memory_report();
  return result;
}

}  // namespace parallax
