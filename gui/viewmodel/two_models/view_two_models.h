// SPDX-License-Identifier: Apache-2.0
// TwoModels: two models that one window shows, alone or with a dump of each: which of their items are counterparts, and
// where they differ.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gui/viewmodel/view_document.h"
#include "gui/viewmodel/view_graph.h"
#include "inspector/diff/compare/structure.h"

namespace parallax {

// One difference, of a node or of the signature.
struct ModelDifference {
  NodeDifference::Kind kind = NodeDifference::Kind::changed;
  std::string title;                     // "Conv 'conv1'", "input 'x'"
  std::vector<std::string> sentences;    // one for each change
  const NodeDifference* node = nullptr;  // of TwoModels::structure; null for the signature
  int32_t item_a = -1, item_b = -1;
};

struct TwoModels {
  std::shared_ptr<const Document> b;  // as it is when it is shown alone; with values, it has the comparison, too
  std::string name_a, name_b;         // the files of models and dumps
  std::shared_ptr<const StructureComparison> structure;
  std::vector<ModelDifference> differences;               // in A's order of execution, then those that only B has
  std::vector<int32_t> b_of_a, a_of_b;                    // items' counterparts; -1 where there is none
  std::vector<int32_t> difference_of_a, difference_of_b;  // of items: index into `differences`, -1
  // "The two models are the same.", or the counts of what differs.
  std::string verdict_text() const;
};

// Two models as one document: its items, rows and weights are A's; rows that only B has follow A's. `files` are the two
// models, and after them a dump of each where there are values. Errors: as of open_document of each and of
// compare_structure; usage, where a dump is not of its model.
Result<std::shared_ptr<const Document>> open_models(const std::vector<std::string>& files,
                                                    const StructureOptions& options);

// Two dumps of different models, opened as `document`, as two models. `document` itself where one drawing shows both:
// a dump has no graph, or constants alone differ.
Result<std::shared_ptr<const Document>> with_models_of_dumps(std::shared_ptr<const Document> document,
                                                             const StructureOptions& options);

// Two models that are shown, with the dumps of a run of them. Errors: as of opening them.
Result<std::shared_ptr<const Document>> with_dumps(const Document& models, const std::string& a, const std::string& b);

// For with_comparison: joins the rows of `result`, which has two models and its comparison's rows, with B's. `before`
// is the document without them.
void join_comparison(const Document& before, Document& result);

// The look of an item of one of two models, by its ItemDifference, and the legend for it.
ItemLook look_of_difference(const Document& document, int32_t item);
std::vector<LegendEntry> legend_of_differences(const Document& document);

}  // namespace parallax
