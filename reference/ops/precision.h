// SPDX-License-Identifier: Apache-2.0
// The precision that the reference computes in.
#pragma once

#include <cstdint>

namespace parallax {

enum class ReferencePrecision : uint8_t {
  declared,  // each operator's result is rounded once to the type the model declares; sums run in double
  double_,   // every floating tensor is carried as float64 through the whole graph, inputs and weights included
};

}  // namespace parallax
