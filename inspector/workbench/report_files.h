// The files that --csv, --junit, --html, --dot, --svg, --netron and --model-explorer write from one comparison.
#pragma once

#include <string>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/diff/comparison.h"
#include "inspector/model/ir.h"

namespace parallax {

struct ReportFiles {
  // Paths; empty: not wanted.
  std::string csv = {}, junit = {}, html = {}, dot = {}, svg = {}, netron = {}, model_explorer = {};
  std::string command = {};  // that makes this comparison again, for reports that say so
};

// Yields what was written. Pictures need `graph` (usage error without). A graph too large to be drawn whole is drawn
// with its scopes folded as far as needed, and a warning says so; a report without its picture is still a report.
Result<std::vector<std::string>> write_reports(const ReportFiles& files, const Comparison& comparison,
                                               const Graph* graph);

}  // namespace parallax
