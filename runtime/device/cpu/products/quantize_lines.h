// SPDX-License-Identifier: Apache-2.0
// Between floats and the quantized values of 8 and 16 bits that represent them, whole lines at a time, on the host:
// what QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear and the quantized products spend their time with. The
// general case, of any type and with blocks along an axis, is the operators' own.
#pragma once

#include <cstdint>
#include <vector>

#include "inspector/tensor/dtype.h"
#include "runtime/device/cpu/queue_cpu.h"

namespace parallax::runtime {

// Element i has scale and zero point number (i / inner) % scales.size().
struct QuantizedLines {
  int64_t count = 0;
  int64_t inner = 1;
  std::vector<float> scales;
  std::vector<float> zeros;  // as many; whole numbers that a quantized value can be
};

// Quantized values of these types, and lines long enough to be worth it. Nothing is quantized to int32, which is
// dequantized alone.
bool suits_lines(DType dtype, const QuantizedLines& lines);

// y = saturate(round(x / scale) + zero), halves to even; NaN counts as 0, whose quantized value is `zero`.
void quantize_lines(Queue<Cpu>& queue, const QuantizedLines& lines, const float* x, DType dtype, std::byte* y);
// y = saturate(round(sum * scale) + zero), where the sum as a float and the product are rounded; NaN as above.
void requantize_lines(Queue<Cpu>& queue, const QuantizedLines& lines, const int64_t* sums, DType dtype, std::byte* y);
void requantize_lines(Queue<Cpu>& queue, const QuantizedLines& lines, const int32_t* sums, DType dtype, std::byte* y);
// Requantizes rows of sums on the calling thread, each column with a scale of its own.
struct QuantizedColumns {
  int64_t rows = 0, columns = 0;
  int64_t sum_step = 0, quantized_step = 0;  // from row to row
  const float* scales = nullptr;
  bool are_finite = false;  // the scales
  float zero = 0;
};
void requantize_columns(const QuantizedColumns& columns, const int32_t* sums, DType dtype, std::byte* y);
// y = (x - zero) * scale, rounded once.
void dequantize_lines(Queue<Cpu>& queue, const QuantizedLines& lines, DType dtype, const std::byte* x, float* y);

}  // namespace parallax::runtime
