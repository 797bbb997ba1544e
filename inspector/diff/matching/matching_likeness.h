// SPDX-License-Identifier: Apache-2.0
// Likeness of two values or nodes by operators and declared types alone. Private to this folder.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "inspector/diff/matching/matching_graph.h"
#include "inspector/diff/matching/matching_search.h"

namespace parallax::diff {

// Operators that stand for one another where a sum went into the product before it, or came out of it.
bool may_replace(HashKey a, HashKey b);

// False where the declared types leave no doubt that the two are different things.
bool may_be_equal(const FlatValue& a, const FlatValue& b);

// The number of elements of a declared type; -1 where it is not known.
double known_size(const TypeInfo& type);

// Both are known to the last dimension, and differ in how many elements they have.
bool have_other_sizes(const TypeInfo& a, const TypeInfo& b);

// Constants without a counterpart that hold the same in two types of floats, of A and of B, each once.
std::vector<std::pair<int32_t, int32_t>> stored_differently(const MatchSide& a, const MatchSide& b);

}  // namespace parallax::diff
