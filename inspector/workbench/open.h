// SPDX-License-Identifier: Apache-2.0
// Opening what a person names on the command line or drops on the window: models, dumps, pairs of dumps.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/diff/compare/compare.h"
#include "inspector/diff/comparison.h"
#include "inspector/diff/tolerance/policy.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/model/ir.h"

namespace parallax {

// By the first bytes of the file, or its ending .plx.
Result<bool> is_dump_file(const std::string& path);

// The advice to users who need a graph and have a dump without one.
inline constexpr const char* kWayToGraph = "parallax import ORIGIN --model M.onnx -o F.plx makes a dump that has one";

// A dump, or the weights of a model as one.
Result<std::shared_ptr<const DumpReader>> open_values(const std::string& path);

// The graph of a model file, or the (first) graph a dump holds. Errors: usage, when a dump holds none.
Result<std::shared_ptr<const Model>> open_graph(const std::string& path);

// The (first) graph that a dump holds; null when it holds none.
Result<std::shared_ptr<const Model>> graph_of(const DumpReader& dump);

// Checks that all graphs of a dump can be read. Values are matched and judged by the graphs of both sides: a damaged
// one must not go unseen.
Status check_graphs(const DumpReader& dump);

// "A (file.plx)", or the file's name alone.
std::string title_of(const DumpReader& dump, std::string_view side);

// True where all runs in a dump came to their end.
bool runs_ended(const DumpReader& dump);
// Remarks on the runs of a dump for its readers, a sentence each: it is unfinished, a run did not end, nodes failed.
// Empty when all is well. `side`: "A", "B" or empty.
std::vector<std::string> run_remarks(const DumpReader& dump, std::string_view side = "");

struct OpenedComparison {
  Comparison comparison;
  std::shared_ptr<const Model> model;  // graph of A, else of B, else null
  std::vector<std::string> remarks;    // on both dumps
};
Result<OpenedComparison> compare_files(const std::string& a, const std::string& b, const Policy& policy,
                                       const CompareOptions& options = {});

}  // namespace parallax
