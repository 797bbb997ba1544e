// SPDX-License-Identifier: Apache-2.0
// The problem of attention, and the offsets of its operands.
#pragma once

#include "runtime/device/cpu/ints.h"

namespace parallax::runtime {

// Element (i, j) of matrix b stands at offsets[b] + i * row + j * column of a payload.
struct MatrixOffsets {
  Ints offsets;
  int64_t row = 0;
  int64_t column = 1;
};

// A rule changes the scores of a query before they are softened. On the host it has change(matrix, query, first_key,
// scores, count); on a GPU row(matrix, query), which answers a functor of a score and its key.
struct AttentionProblem {
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t size = 0;        // of a query and a key
  int64_t value_size = 0;  // of a value and a result
  double scale = 1;
  bool no_number_is_zero = false;  // a query whose weights are no numbers (all of its keys hidden) weighs them with 0
  MatrixOffsets q;                 // [queries, size]
  MatrixOffsets k;                 // [size, keys]
  MatrixOffsets v;                 // [keys, value_size]
  MatrixOffsets y;                 // [queries, value_size]
  int64_t batch() const { return y.offsets.size(); }
};

}  // namespace parallax::runtime
