// SPDX-License-Identifier: Apache-2.0
// Products of floats with weights that stay in the type in which they are stored: float16, bfloat16 or int8. Few rows
// read half or a quarter of the bytes that a copy in float32 would take, and that copy is not kept. On processors with
// AVX2, FMA and F16C but without AVX-512.
#pragma once

#include <cstdint>

#include "inspector/tensor/dtype.h"
#include "runtime/device/cpu/aligned_numbers.h"

namespace parallax::runtime {

// True where weights of this type can be packed here.
bool has_stored_panels(DType dtype);

// A matrix [k, n] in panels of 24 columns, the last one filled up with zeros.
struct StoredPanels {
  DType dtype = DType::undefined;
  int64_t n = 0, k = 0;
  AlignedBytes numbers;
};

// b[i, j] is element i * row_step + j * column_step.
StoredPanels pack_stored_panels(DType dtype, int64_t n, int64_t k, const std::byte* b, int64_t row_step,
                                int64_t column_step);

// c [m, n] = a [m, k] b in float32. A sum has the order of k for few rows, else it is made of runs of at most 1024
// products in that order, whatever the number of threads.
void multiply_stored_panels(int64_t m, const float* a, const StoredPanels& b, float* c);

}  // namespace parallax::runtime
