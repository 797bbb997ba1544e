// SPDX-License-Identifier: Apache-2.0
// Few rows of 8-bit quantized values by a weight that keeps its 8 bits, on processors with AVX2 alone: exact, as
// quantized_panels.h, whose panels take twice the bytes. Such products take the time of reading the weight.
#pragma once

#include <cstdint>

#include "runtime/device/cpu/aligned_numbers.h"
#include "runtime/device/cpu/products/quantized_panels.h"

namespace parallax::runtime {

constexpr int64_t kMostWeightRows = 8;

// The right matrix [k, n] as int8 in panels of 16 columns, filled up with zeros: the pairs of two rows of b, column by
// column. Values of uint8 are 128 less, and so is their zero point.
struct WeightPanels {
  int64_t n = 0, k = 0;
  int32_t zero = 0;  // what is subtracted from each int8
  AlignedBytes pairs;
};

WeightPanels pack_weight_panels(int64_t n, int64_t k, const QuantizedMatrix& b);

// c [m, n] = rows of pack_quantized_rows() times the weight; has_quantized_panels() holds, and sums fit int32.
void multiply_weight_rows(int64_t m, const int16_t* rows, const WeightPanels& b, int32_t* c);

}  // namespace parallax::runtime
