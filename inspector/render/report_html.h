// SPDX-License-Identifier: Apache-2.0
// A comparison as one HTML file that needs no other file: verdict, causes with their neighborhoods and errors, a table
// to sort and filter, the graph.
#pragma once

#include <string>
#include <vector>

#include "inspector/diff/comparison.h"

namespace parallax {

// The parts of a report next to the comparison itself. Pictures are as Graphviz writes them; empty ones are left out.
struct ReportPictures {
  std::string graph;
  std::vector<std::string> causes;  // the neighborhood of each of the first causes, or of the first divergence
  std::string command;              // that makes this comparison again
  std::string further = {};         // HTML, after the executions: what a job adds to the comparison
};

std::string comparison_to_html(const Comparison& comparison, const ReportPictures& pictures);

}  // namespace parallax
