// SPDX-License-Identifier: Apache-2.0
// Products of 8-bit quantized values whose sums are exact: by oneDNN's product of bytes on processors that add such
// products to 32-bit sums in one instruction (VNNI); elsewhere oneDNN's saturates on the way, and quantized_panels.h
// does it where there is AVX2. What MatMulInteger, ConvInteger and the QLinear operators spend their time with;
// exact_products.h does the rest.
#pragma once

#include <cstdint>

#include "runtime/device/cpu/products/conv.h"
#include "runtime/device/cpu/products/gemm.h"

namespace parallax::runtime {

// Quantized values of int8 or uint8, dense, that represent value - zero.
struct QuantizedValues {
  const std::byte* data = nullptr;
  bool is_signed = false;
  int32_t zero = 0;          // a number of the type
  bool is_constant = false;  // the payload outlives the queue and never changes: what is made of it is kept
};

// True where this processor has such products, none of these sums leaves int32, and there are enough to be worth it.
bool suits_int8_gemm(const GemmProblem& problem);
bool suits_int8_gemm(const ConvProblem& problem);

// c = a * b for each matrix of the batch; no transposition, alpha and beta as they are by default.
Status gemm(Queue<Cpu>& queue, const GemmProblem& problem, const QuantizedValues& a, const QuantizedValues& b,
            int32_t* c);
// y = the sums without bias; padding counts as 0.
Status conv(Queue<Cpu>& queue, const ConvProblem& problem, const QuantizedValues& x, const QuantizedValues& filters,
            int32_t* y);

// The destination and type of sums: int32, or quantized values as of requantize_lines.
struct Int8Result {
  std::byte* data = nullptr;
  DType dtype = DType::int32;  // or int8, uint8
  std::vector<float> scales;   // one for all, or one for each column of a product, channel of a convolution
  float zero = 0;
  const int64_t* bias = nullptr;  // of each column or channel, none: null; sums with it fit int32
};

}  // namespace parallax::runtime
