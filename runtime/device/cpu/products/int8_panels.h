// SPDX-License-Identifier: Apache-2.0
// Exact int8 products on processors that add four of them to a 32-bit sum in one instruction (AVX-512 VNNI). The right
// side is stored in panels of columns, packed once; rows of the left side are assembled from pieces at addresses of the
// caller, so that a convolution is a product, too; sums are quantized while they are in registers.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "inspector/tensor/dtype.h"
#include "runtime/device/cpu/aligned_numbers.h"

namespace parallax::runtime {

// True where vector_level() is AVX-512 and the processor has VNNI.
bool has_int8_panels();

constexpr int64_t kInt8PanelColumns = 16;
constexpr int64_t kByteSlack = 64;  // that can be read after the left side's last byte

// The right side b [segments * depth, n] of int8 numbers: for each panel, segment and every four rows of it the
// columns' fours, filled up with zeros. A quantized value represents number - zero.
struct Int8Panels {
  int64_t n = 0, segments = 1, depth = 0;
  int32_t zero = 0;
  AlignedBytes numbers;
  std::vector<int32_t> column_sums;  // of the numbers, filled up

  int64_t panel_count() const { return (n + kInt8PanelColumns - 1) / kInt8PanelColumns; }
  int64_t panel_bytes() const { return segments * ((depth + 3) / 4) * 4 * kInt8PanelColumns; }
};

// Quantized values of int8 or uint8, and their zero point. The value of row `row` of segment `segment` in column
// `column` is at segment * segment_step + row * row_step + column * column_step, all of b within `count` values.
struct ByteSource {
  const std::byte* quantized = nullptr;
  bool is_signed = false;
  int32_t zero = 0;
  int64_t count = 0;
  int64_t segment_step = 0, row_step = 0, column_step = 0;
  int64_t fine = 1, fine_step = 0;  // row r is at r / fine * row_step + r % fine * fine_step
};
std::shared_ptr<Int8Panels> pack_int8_panels(int64_t n, int64_t segments, int64_t depth, const ByteSource& b);

// Rows of the left side, uint8 that represents number - zero: row i is the segments at
// base + locations[i] + segments[s].
struct Int8Rows {
  const uint8_t* base = nullptr;
  int32_t zero = 0;
  const int64_t* locations = nullptr;
  const int64_t* segments = nullptr;
};

// The destination of sums: rows [count, n] of int32, or of quantized values = saturate(round(sum * scale) + zero) as
// requantize_lines has it.
struct Int8Sums {
  std::byte* data = nullptr;
  int64_t row_step = 0;           // in elements
  DType dtype = DType::int32;     // or int8, uint8
  const float* scales = nullptr;  // of each column, filled up to whole panels
  bool are_finite = false;        // the scales
  float zero = 0;
};

// The initial value of each sum: the column's bias (none: null) and the contribution of the zero points. Filled up to
// whole panels.
std::vector<int32_t> byte_starts(const Int8Panels& b, int32_t left_zero, const int64_t* bias);

// Rows [first_row, last_row) by the panels [first_panel, last_panel), on this thread; `sums` begins with the sum of
// the first of both.
void multiply_bytes(const Int8Rows& a, const Int8Panels& b, const int32_t* starts, int64_t first_row, int64_t last_row,
                    int64_t first_panel, int64_t last_panel, const Int8Sums& sums);

// `rows` of `columns` sums, with a stride of `step`, to the begin of `target`; `scales` are those of these columns.
void finish_int8_sums(int64_t rows, int64_t columns, int64_t step, const int32_t* sums, const float* scales,
                      const Int8Sums& target);

}  // namespace parallax::runtime
