// SPDX-License-Identifier: Apache-2.0
// The files that --csv, --junit, --html, --dot, --svg, --netron and --model-explorer write from one comparison.
#pragma once

#include <string>
#include <vector>

#include "inspector/base/memory_budget.h"
#include "inspector/base/result.h"
#include "inspector/diff/comparison.h"
#include "inspector/model/ir.h"

namespace parallax {

struct ReportFiles {
  // Paths; empty: not wanted.
  std::string csv = {}, junit = {}, html = {}, dot = {}, svg = {}, netron = {}, model_explorer = {};
  std::string command = {};       // that makes this comparison again, for reports that say so
  std::string further_html = {};  // a section of the HTML report besides the comparison
};

// A graph as SVG: small ones as Graphviz draws them, others (and where Graphviz is not installed) by our own layout.
// `comparison` colors it; may be null. Errors: io, where Graphviz cannot be asked: another picture would be no answer.
Result<std::string> draw_graph(const Graph& graph, const Comparison* comparison);

// Reserves what the texts of a report take, roughly; small ones are not worth it. Errors: out_of_memory.
Result<MemoryBudget::Reservation> reserve_reports(const Comparison& comparison);

// Yields what was written. Pictures need `graph` (usage error without). A page of a very large graph shows the
// neighborhoods of its causes, not the whole graph.
Result<std::vector<std::string>> write_reports(const ReportFiles& files, const Comparison& comparison,
                                               const Graph* graph);

}  // namespace parallax
