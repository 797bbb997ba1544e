// SPDX-License-Identifier: Apache-2.0
// Rows of a document: the values of dumps, models and comparisons in execution order, each with its item.
#pragma once

#include "gui/viewmodel/view_document.h"

namespace parallax {

// Each appends rows to the document; index_rows() follows.
void add_dump_rows(Document& document);        // the values of dump `a`, each with its entry in `b`
void add_model_rows(Document& document);       // inputs of the graph, and the values that nodes make
void add_weight_rows(Document& document);      // follow those of nodes; each stands at the first node that reads it
void add_comparison_rows(Document& document);  // paths are A's, and B's where A has none
// The rows of the second of two models: values that `b.comparison` found in B, under B's paths. `before` is the same
// side without them.
void add_comparison_rows_of_b(const Document& before, Document& b);
// Weights that `before` has rows of and `document` has not.
void keep_weight_rows(const Document& before, Document& document);

// Remarks on a dump for its readers: those of its runs, and that elements are missing. `side`: "A", "B" or empty.
std::vector<std::string> remarks_on(const DumpReader& dump, std::string_view side);

// The path without its iterations and steps.
std::string family_of(const std::string& path);

// Joins rows with items, families and paths.
void index_rows(Document& document);

}  // namespace parallax
