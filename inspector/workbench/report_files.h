// The files that --csv, --html, --dot and --svg write from one comparison.
#pragma once

#include <string>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/diff/comparison.h"
#include "inspector/model/ir.h"

namespace parallax {

struct ReportFiles {
  std::string csv, html, dot, svg;  // paths; empty: not wanted
};

// Yields what was written. Pictures need `graph` (usage error without). A graph too large to be drawn whole is drawn
// with its scopes folded as far as needed, and a warning says so; a report without its picture is still a report.
Result<std::vector<std::string>> write_reports(const ReportFiles& files, const Comparison& comparison,
                                               const Graph* graph);

}  // namespace parallax
