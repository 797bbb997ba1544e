// SPDX-License-Identifier: Apache-2.0
// How two models differ as graphs, for people, programs and browsers.
#pragma once

#include <cstdint>
#include <string>

#include "inspector/diff/compare/structure.h"

namespace parallax {

// `most`: of the differences that are listed; -1: all.
std::string structure_to_text(const StructureComparison& comparison, int64_t most);
// {"parallax", "verdict": "same"|"different", "a", "b", "summary", "signature", "nodes"}, see report.schema.json.
std::string structure_to_json(const StructureComparison& comparison);
// Both graphs, A to the left: what is changed, missing and added is marked.
std::string structure_to_svg(const StructureComparison& comparison);
// One page that needs no other file: the differences as a table, and both graphs.
std::string structure_to_html(const StructureComparison& comparison);

}  // namespace parallax
