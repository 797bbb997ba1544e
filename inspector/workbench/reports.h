// SPDX-License-Identifier: Apache-2.0
// The workbench's own results as JSON (the command line's contract) and as text for a terminal.
#pragma once

#include <string>

#include "inspector/workbench/backend_test.h"
#include "inspector/workbench/run.h"

namespace parallax {

// `failure` (may be null) is what failed afterwards: the document's "error".
std::string single_run_to_json(const RunResult& result, const Error* failure = nullptr);
// A value's entry of a comparison's document, for a caller that gets each.
std::string value_to_json(const ValueComparison& value);
std::string single_run_to_text(const RunResult& result);
// A run of several samples (data_sources.h).
struct SampleRun {
  std::string name;
  RunResult result;
};
// The index of the sample that is worst: by verdict, then by the largest severity; the first of equals.
size_t worst_sample(const std::vector<SampleRun>& runs);
// One line for each sample, the worst first.
std::string samples_to_text(const std::vector<SampleRun>& runs);
// Each sample's document with its name, in the order of the run; `failure` as above.
std::string samples_to_json(const std::vector<SampleRun>& runs, const Error* failure = nullptr);

std::string bench_to_json(const BenchResult& result);
std::string bench_to_text(const BenchResult& result);
std::string backend_tests_to_json(const BackendTestResult& result);
// A table of operators with passed, failed, unsupported; then every case that did not pass, with its reason.
std::string backend_tests_to_text(const BackendTestResult& result);

}  // namespace parallax
