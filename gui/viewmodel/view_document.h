// SPDX-License-Identifier: Apache-2.0
// Document: what a window shows, one model or two, one dump or two, as one list of values and one tree of graph items.
// It does not change once it is made; a new comparison makes a new document.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/diff/compare/structure.h"
#include "inspector/diff/comparison.h"
#include "inspector/diff/tolerance/policy.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/render/scope_items.h"
#include "inspector/workbench/profile.h"

namespace parallax {

// "2x3", "Nx?"; empty for a scalar and where it is not known.
std::string dims_text(const TypeInfo& type);

// One value in execution order.
struct ValueRow {
  std::string path;
  std::string node;
  std::string op;
  std::string dtype;
  std::string shape;              // "2x3"; empty for a scalar and where it is not known
  std::vector<std::string> dims;  // of that text
  int32_t item = -1;              // of the document's graph
  int32_t comparison = -1;        // index into Comparison::values
  int32_t entry_a = -1;           // of the dumps
  int32_t entry_b = -1;
  int32_t weight = -1;     // entry of Document::weights
  int32_t row_b = -1;      // of two models: its counterpart among the rows of TwoModels::b
  bool is_only_b = false;  // of two models: B alone has it
  int32_t family = 0;      // rows of one value in several iterations and steps share it
  int64_t iteration = -1;  // of the outermost loop, or the step, that the value belongs to
};

// The run that a document shows, as it was asked for.
struct RunOrigin {
  std::string model, against;
  std::vector<std::string> executors;
  std::string inputs, fallback;
  bool observe_all = false;
  std::string more_options;  // as they stand on the command line, each with a space before it
};
// `parallax run` with these options.
std::string command_of(const RunOrigin& run);

struct TwoModels;

// The difference of an item from its counterpart in the other of two models.
struct ItemDifference {
  enum class Kind : uint8_t { same, changed, only_a, only_b };
  Kind kind = Kind::same;
  int32_t count = 0;  // differences of it and of all within
};

// All of a document but its rows.
struct DocumentParts {
  std::vector<std::string> files;  // as they were named; of a run its models
  std::optional<RunOrigin> run;    // where it shows one that was made here: its dumps go with the program
  std::shared_ptr<const Model> model;
  std::shared_ptr<const GraphItems> items;  // null when no graph is known
  std::shared_ptr<const DumpReader> a, b;
  std::shared_ptr<const DumpReader> weights;        // of a model's file; null where dumps alone are open
  std::shared_ptr<const Comparison> comparison;     // null before two sides have been compared
  std::shared_ptr<const TwoModels> models;          // where two models are shown: items, rows and weights are A's
  std::vector<ItemDifference> differences_of_item;  // likewise, of both sides' documents; else empty
  std::vector<std::string> remarks;                 // "B.plx is unfinished: ..."
  // Times, where they have been measured: of each item, -1 where there is none, and how they were measured.
  std::vector<double> ms_of_item;
  std::string times_of;
};

struct Document : DocumentParts {
  // The files by their names, with a folder where the name says too little: "resnet50/model.onnx".
  std::string title() const;

  std::vector<ValueRow> rows;
  std::vector<std::vector<int32_t>> rows_of_item;
  std::vector<std::vector<int32_t>> rows_of_family;
  std::unordered_map<std::string, int32_t> row_of_path;
  std::unordered_map<std::string, int32_t> family_of_path;  // by paths with [*] for iterations
  int64_t iterations = 0;  // of the loop, or steps, with most of them; 0 where nothing is repeated

  bool is_pair() const { return comparison != nullptr || b != nullptr; }
  const ValueComparison* compared(int32_t row) const;
  // The row of what a test_data_set's output (an entry of Comparison::expected) was held against; -1 where there is
  // none.
  int32_t row_of_expected(const ValueComparison& expected) const;
  // The statistics that the dumps hold of a row's values; null where they hold none.
  const TensorStatistics* statistics_a(const ValueRow& row) const;
  const TensorStatistics* statistics_b(const ValueRow& row) const;
  int32_t find_row(const std::string& path) const;  // -1 when there is none
  // That row; of a path with [*] for iterations the row of `iteration`, or else the first one. The weights of a model
  // have one row for all iterations.
  int32_t find_any_row(const std::string& path, int64_t iteration = -1) const;
};

// One file, a model or a dump, or two of a kind, or two models with a dump of each. Errors: usage (other files, a dump
// that is not of its model), io, corrupt_file, invalid_model, cancelled. Two models come with their differences, and so
// do two dumps of models whose graphs differ. Dumps open without their comparison: with_comparison() brings it.
Result<std::shared_ptr<const Document>> open_document(const std::vector<std::string>& files,
                                                      const StructureOptions& options = {});

// The document with the time of each node.
std::shared_ptr<const Document> with_times(const Document& document, const ProfileResult& profile);

// A document without rows, for those that replace them: rows are most of it.
Document without_rows(const DocumentParts& parts);

// The document with its values compared, in `run` where there is one.
std::shared_ptr<const Document> with_comparison(const Document& document, Comparison comparison,
                                                std::optional<RunOrigin> run = {});

// A run's result as a document; `model` is A's.
Result<std::shared_ptr<const Document>> document_of_run(std::shared_ptr<const Model> model,
                                                        std::shared_ptr<const GraphItems> items, Comparison comparison,
                                                        std::optional<RunOrigin> run = {});
// A run of what was open when it began: a model, or two.
Result<std::shared_ptr<const Document>> document_of_run(const Document& start, Comparison comparison, RunOrigin run);
// The document with the run's two dumps, whose elements can be shown. Errors: as of opening them.
Result<std::shared_ptr<const Document>> document_of_dumps(const Document& start, const std::string& a,
                                                          const std::string& b, Comparison comparison, RunOrigin run);

}  // namespace parallax
