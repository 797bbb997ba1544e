// SPDX-License-Identifier: Apache-2.0
// Layouts: pairs of values that hold the same elements in another order of axes, as an optimizer leaves them that moves
// a Transpose into the axes of the nodes after it.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "inspector/exec/executor.h"

namespace parallax::diff {

// The permutations that make a tensor of shape `from` one of shape `to`, the identity left out; none where they have
// more than thresholds::kMostPermutedAxes axes.
std::vector<std::vector<size_t>> permutations_between(const Shape& from, const Shape& to);

// Float elements as doubles, axis `i` of the result being axis `permutation[i]` of the value; absent where the value
// holds no floats.
Value transposed(const Value& value, const std::vector<size_t>& permutation);

// How B lays out the counterpart of a value of A.
struct Layout {
  Shape shape_a, shape_b;
  std::vector<size_t> permutation;  // from A's axes to B's; empty: the same elements in the same order
};

// The layout with which B's value is nearest to A's: nothing where both are as they are, where the shapes are no
// permutations of each other, or where one holds no floats.
std::optional<Layout> layout_between(const Value& in_a, const Value& in_b);
// The layout of as many floats in another number of axes, as a product of rows has them; else nothing.
std::optional<Layout> rows_between(const Value& in_a, const Value& in_b);

// The value, of A's shape, as B lays it out, and one of B's shape as A does; a value of another shape as it is.
Value as_b_lays_it_out(const Layout& layout, const Value& value);
Value as_a_lays_it_out(const Layout& layout, const Value& value);

}  // namespace parallax::diff
