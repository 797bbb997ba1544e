// SPDX-License-Identifier: Apache-2.0
// Runs: one executor on one model, or two sides compared while they run. Used by the command line and the graphical
// program.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "inspector/diff/comparison.h"
#include "inspector/diff/tolerance/policy.h"
#include "inspector/dump/statistics/statistics.h"
#include "inspector/exec/executor.h"
#include "inspector/exec/planned_memory.h"
#include "inspector/workbench/extremes.h"
#include "inspector/workbench/inputs/inputs.h"

namespace parallax {

// Makes executors by the names of CLI.md's EXEC; given by the composition root. Errors: usage, saying why there is
// none.
using ExecutorFactory = std::function<Result<std::shared_ptr<Executor>>(const std::string& name)>;

// Called while values arrive; `total` is 0 while it is not known.
using ProgressCallback = std::function<void(int64_t done, int64_t total)>;
// Called with a sentence for the person who waits: what was chosen for generated inputs, what takes more time than was
// to be expected.
using MessageCallback = std::function<void(const std::string& sentence)>;

struct RunRequest {
  std::string model;
  std::string against;  // second model; empty: one model
  // Models in memory. They run in place of the files, whose names then serve messages alone and may be empty.
  std::shared_ptr<const Model> model_in_memory, against_in_memory;
  std::vector<std::string> executors;  // one or two
  InputRequest inputs;
  RunOptions options;                   // fallback is set from `fallback`
  std::string fallback;                 // executor name, or empty
  std::optional<CaptureLevel> capture;  // default: all with two sides or a dump, else none
  std::vector<std::string> only;        // globs over value paths
  int64_t capture_limit_bytes = 0;
  std::string dump_directory;  // empty: no dumps
  Policy policy;
  int repeat = 0;               // N: one executor N times against itself, bit by bit
  std::string baseline;         // a kept dump that stands as side A
  std::string save_baseline;    // where to write a dump of statistics
  bool error_pictures = false;  // of some diverged values, for a report that shows them
  ProgressCallback progress;
  // Two sides: each value as soon as it has been compared, one after the other, from whichever side's thread came last.
  std::function<void(const ValueComparison&)> on_value;
  MessageCallback message;

  bool has_against() const { return !against.empty() || against_in_memory != nullptr; }
};

struct OutputSummary {
  std::string name;
  std::string type;  // "float32" for tensors, the whole type for others
  std::vector<int64_t> shape;
  std::optional<TensorStatistics> statistics;
  std::string min, max;  // for people: of integers every digit
  std::optional<IntegerExtremes> integers;
};

struct RunResult {
  std::vector<std::string> notes;        // what was chosen for generated inputs, unless `message` reports it
  std::vector<std::string> written;      // files that remain
  std::optional<Comparison> comparison;  // with two sides, a baseline, or expected outputs
  ComparedExecution execution;           // of a run with one side
  std::vector<OutputSummary> outputs;
  std::vector<NamedValue> output_values;  // of a run with one side, as the executor made them
  double load_ms = 0;                     // of the models
  std::shared_ptr<const Model> model_a;
  std::shared_ptr<const Model> model_b;
};

// Errors as of everything inside; a failed node has been written to the dumps first.
Result<RunResult> run_models(const RunRequest& request, const ExecutorFactory& make_executor);

// The globs of --only and of tolerances that no compared value's path matches: most likely misspelt.
std::vector<std::string> idle_globs(const std::vector<std::string>& only, const Policy& policy,
                                    const Comparison& comparison);

// True when the run compares two executions (and so makes a Comparison of values).
bool has_two_sides(const RunRequest& request);

struct BenchResult {
  std::string executor;
  int64_t iterations = 0;
  double min_ms = 0, median_ms = 0, p95_ms = 0;
  int64_t peak_bytes = 0;
  MemoryReport memory;
  double load_ms = 0;  // import and prepare
};

// Runs `iterations` times after a warm-up (weights are packed, then memory is planned), nothing observed.
Result<BenchResult> bench_model(const RunRequest& request, int64_t iterations, const ExecutorFactory& make_executor);

}  // namespace parallax
