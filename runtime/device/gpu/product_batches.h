// SPDX-License-Identifier: Apache-2.0
// Batches of products as libraries take them: few calls, each for matrices at an even distance.
#pragma once

#include <vector>

#include "runtime/device/cpu/products/gemm.h"

namespace parallax::runtime {

// The products in fewer matrices: those of `a` that follow each other and share their `b` become one with more
// rows, as query heads that share their keys do.
GemmProblem with_joined_rows(const GemmProblem& problem);

// Matrices [first, first + count) of the batch, and the distance between neighbors, in elements.
struct EvenBatch {
  int64_t first = 0, count = 0;
  int64_t a_distance = 0, b_distance = 0;
};
std::vector<EvenBatch> even_batches(const GemmProblem& problem);

}  // namespace parallax::runtime
