// SPDX-License-Identifier: Apache-2.0
// How two models differ as graphs, for people, programs and browsers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "inspector/diff/compare/structure.h"

namespace parallax {

// Fill and border of a node, "#RRGGBB", and the word for it: "changed", "only in A", "only in B".
std::pair<const char*, const char*> colors_of(NodeDifference::Kind kind);
const char* text_of(NodeDifference::Kind kind);
std::string_view name_of(NodeDifference::Kind kind);  // "changed", "only_a", "only_b"
// One sentence for each difference, which all forms share: "Relu 'act' (in B 'activation')",
// "attribute axis: 0 in A, 1 in B", "only in B: input 'mask' bool[1,8]".
std::pair<std::string, std::string> sides_of(const NodeChange& change);  // A's and B's text of it
std::string node_text(const NodeDifference& difference);
std::string change_text(const NodeChange& change);
std::string signature_text(const SignatureDifference& difference);
// "70 and 69 nodes: 69 matched (0 renamed), 2 changed, 1 only in A, 0 only in B".
std::string summary_text(const StructureComparison& comparison);

// `most`: of the differences that are listed; -1: all.
std::string structure_to_text(const StructureComparison& comparison, int64_t most);
// {"parallax", "verdict": "same"|"different", "a", "b", "summary", "signature", "nodes"}, see report.schema.json.
std::string structure_to_json(const StructureComparison& comparison);
// Both graphs, A to the left: what is changed, missing and added is marked.
std::string structure_to_svg(const StructureComparison& comparison);
// One page that needs no other file: the differences as a table, and both graphs.
std::string structure_to_html(const StructureComparison& comparison);

}  // namespace parallax
