// SPDX-License-Identifier: Apache-2.0
// Several runs against one baseline: a table of them, and the error of each along the baseline's values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inspector/diff/comparison.h"

namespace parallax {

struct ComparedRun {
  std::string file;       // as it was named; side B
  Comparison comparison;  // with the baseline as side A
};

struct ComparedRuns {
  std::string baseline;  // the file of side A
  std::vector<ComparedRun> runs;
};

// The worst of all: diverged, then inconclusive.
OverallVerdict verdict_of(const ComparedRuns& compared);

// A line for each run, its cause and, for at most `top` of the baseline's values (-1: all), the severity in every run:
// values by their largest severity, with -1 in execution order.
std::string runs_to_text(const ComparedRuns& compared, int64_t top);

// { "parallax", "verdict", "baseline", "runs": [ { "file", "comparison": the document of two dumps } ] }
std::string runs_to_json(const ComparedRuns& compared);

// One page: the table, severities along the baseline's execution order as a plot, causes, values by run. `command`:
// what makes the page again.
std::string runs_to_html(const ComparedRuns& compared, const std::string& command);

}  // namespace parallax
