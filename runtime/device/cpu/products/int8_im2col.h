// SPDX-License-Identifier: Apache-2.0
// The left side of an int8 convolution: the input as uint8 with its channels last and its padding around it, in which
// the elements under a filter have the same distances everywhere.
#pragma once

#include "runtime/device/cpu/products/int8_gemm.h"
#include "runtime/device/cpu/products/int8_panels.h"

namespace parallax::runtime {

// The properties that follow from a convolution's shape alone.
struct Int8Im2colShape {
  explicit Int8Im2colShape(const ConvProblem& problem);

  Ints dims;   // of the padded input, without channels
  Ints steps;  // from one position to the next along each axis, in bytes
  int64_t bytes = 0;
  bool is_padded = false;
  std::vector<int64_t> locations;  // the offset of the first tap of each output position
};

// Number `sample` of x, to `to`, which has `shape.bytes`; signed values are moved up by 128, and so is their zero.
// `scratch` has the bytes of a sample without padding.
void fill_int8_im2col(const ConvProblem& problem, const Int8Im2colShape& shape, const QuantizedValues& x,
                      int64_t sample, uint8_t* scratch, uint8_t* to);

}  // namespace parallax::runtime
