// SPDX-License-Identifier: Apache-2.0
// The left side of a convolution of bytes: an image as uint8 with its channels last and its padding around it, in which
// what a filter meets lies at the same distances everywhere.
#pragma once

#include "runtime/device/cpu/products/int8_gemm.h"
#include "runtime/device/cpu/products/int8_panels.h"

namespace parallax::runtime {

// What follows from a convolution's shape alone.
struct Int8Im2colShape {
  explicit Int8Im2colShape(const ConvProblem& problem);

  Ints dims;   // of the padded image, without channels
  Ints steps;  // from one place to the next along each axis, in bytes
  int64_t bytes = 0;
  bool is_padded = false;
  std::vector<int64_t> locations;  // where the first tap of each place of the result lies
};

// Number `image` of x, to `to`, which has `shape.bytes`; signed codes are moved up by 128, and so is their zero.
// `scratch` has the bytes of an image without padding.
void fill_int8_im2col(const ConvProblem& problem, const Int8Im2colShape& shape, const QuantizedRange& x, int64_t image,
                      uint8_t* scratch, uint8_t* to);

}  // namespace parallax::runtime
