// SPDX-License-Identifier: Apache-2.0
// Sizes for a model's symbolic dimensions, so that generated inputs fit together: equal names get equal sizes, and
// names that are expressions ("past + sequence") are computed from the names they hold.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"

namespace parallax {

using DimSizes = std::map<std::string, int64_t>;

// Value of an expression of + - * / // ( ), numbers and names; nothing when it cannot be read or holds an unknown name.
std::optional<int64_t> evaluate_dimension(std::string_view expression, const DimSizes& sizes);

// The names (not expressions) that appear in an expression.
std::vector<std::string> names_in_dimension(std::string_view expression);

// A size for every symbolic dimension of the graph's inputs: `given` first, then what its name suggests (batch 1, past
// 4, others 8; "total..." is past + sequence, and "x_and_y" is x + y, where both exist).
DimSizes choose_dimensions(const Graph& graph, const DimSizes& given);

// The shape of one input under these sizes. Dimensions with neither number nor name become 1, or 64 where they look
// like the height and width of an image. Errors: usage, when an expression is negative or cannot be computed.
Result<std::vector<int64_t>> concrete_shape(const ValueDef& input, const DimSizes& sizes);

}  // namespace parallax
