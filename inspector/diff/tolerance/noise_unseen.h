// SPDX-License-Identifier: Apache-2.0
// The rounding of values that were not observed, as far as the graph alone tells. Private to noise_model.cpp.
#pragma once

#include <functional>

#include "inspector/model/ir.h"

namespace parallax::diff {

// True where a value that was not observed may have rounded on its way: false where it is given (an input of the main
// graph, a constant), or follows from given values without a single rounding.
bool may_have_rounded(const Graph& graph, ValueId id, bool in_main_graph, int depth = 0);

// The coarsest type of a value that was not observed and of those before it in the graph, back to observed ones: a
// float32 that half precision was cast to has rounded to that.
DType coarsest_unseen(const Graph& graph, ValueId id, const std::function<bool(const ValueDef&)>& is_observed);

// True for the size of a value that was not observed; constants that nodes hold are of ordinary size.
bool has_unknown_size(const Graph& graph, ValueId id);

}  // namespace parallax::diff
