// Opening what a person names on the command line or drops on the window: models, dumps, pairs of dumps.
#pragma once

#include <memory>
#include <string>

#include "inspector/base/result.h"
#include "inspector/diff/compare.h"
#include "inspector/diff/comparison.h"
#include "inspector/diff/policy.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/model/ir.h"

namespace parallax {

// By the first bytes of the file.
Result<bool> is_dump_file(const std::string& path);

// The graph of a model file, or the (first) graph a dump holds. Errors: usage, when a dump holds none.
Result<std::shared_ptr<const Model>> open_graph(const std::string& path);

// The (first) graph that a dump holds; null when it holds none.
Result<std::shared_ptr<const Model>> graph_of(const DumpReader& dump);

struct OpenedComparison {
  Comparison comparison;
  std::shared_ptr<const Model> model;  // graph of A, else of B, else null
};
Result<OpenedComparison> compare_files(const std::string& a, const std::string& b, const Policy& policy,
                                       const CompareOptions& options = {});

}  // namespace parallax
