// SPDX-License-Identifier: Apache-2.0
// A comparison in the formats of other programs: JUnit for CI servers, and severities for two graph viewers.
#pragma once

#include <string>

#include "inspector/diff/comparison.h"
#include "inspector/model/ir.h"

namespace parallax {

// JUnit's XML: the verdict is the first test case, then one for each value. What diverged is a failure; what is
// damaged an error; what was mistrusted or not compared else is skipped, with the reason.
std::string comparison_to_junit(const Comparison& comparison);

// Netron's attachment (JSON, to be dropped on the open model): verdict, severity and errors of each value of the main
// graph, and of the node that makes it, where `graph` has a name for it.
std::string comparison_to_netron(const Comparison& comparison, const Graph* graph = nullptr);

// Model Explorer's custom node data (JSON) for one graph, by the ids that its ONNX adapter (model-explorer-onnx 0.4)
// gives: the worst severity of each node under the node's name, of inputs, weights and outputs under "[value] NAME"; in
// the reports' colors. The adapter gives nodes of `graph` without a name, or with one that comes again, names of its
// own.
std::string comparison_to_model_explorer(const Comparison& comparison, const Graph* graph = nullptr);

}  // namespace parallax
