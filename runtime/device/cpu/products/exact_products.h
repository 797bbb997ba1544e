// SPDX-License-Identifier: Apache-2.0
// Products of integers by the libraries' products of floats, which are faster by far, where no sum can be rounded: a
// float holds every integer up to 2^24, so sums of k products are exact in any order while |a| |b| k stays below that.
// Longer sums are cut into parts. 8-bit operands with their zero points taken off always go this way.
#pragma once

#include "inspector/base/result.h"
#include "runtime/device/cpu/products/conv.h"
#include "runtime/device/cpu/products/gemm.h"

namespace parallax::runtime {

// As gemm and conv of int64. False: the numbers are too large, or the work is too small, and nothing was done. Errors
// as of the float products.
Result<bool> gemm_in_floats(Queue<Cpu>& queue, const GemmProblem& problem, const int64_t* a, const int64_t* b,
                            int64_t* c);
Result<bool> conv_in_floats(Queue<Cpu>& queue, const ConvProblem& problem, const int64_t* x, const int64_t* filters,
                            const int64_t* bias, int64_t* y);

}  // namespace parallax::runtime
