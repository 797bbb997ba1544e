// SPDX-License-Identifier: Apache-2.0
// Products with weights of 4 or 8 bits in blocks. For few rows they are unpacked in registers: a row then reads an
// eighth or a quarter of what floats would take, and no unpacked copy of the weights is kept.
#pragma once

#include <cstddef>
#include <cstdint>

namespace parallax::runtime {

// Numbers (quantized value - zero) * scale in rows of k, each cut into blocks with a scale and a zero of their own. Of
// two values in a byte the first has the low bits; the last block of a row may go on beyond k.
struct Int4Matrix {
  int64_t n = 0, k = 0;
  int64_t block_size = 0;  // a multiple of kInt4Unit
  const std::byte* quantized = nullptr;
  const float* scales = nullptr;  // [n, blocks]
  const float* zeros = nullptr;   // [n, blocks]; null: middle()
  int64_t bits = 4;               // or 8

  int64_t blocks() const { return (k + block_size - 1) / block_size; }
  int64_t row_step() const { return blocks() * block_size; }
  float middle() const { return static_cast<float>(int64_t{1} << (bits - 1)); }
};

constexpr int64_t kInt4Unit = 32;    // values that are unpacked at once into panels
constexpr int64_t kFewInt4Rows = 8;  // for which multiply_few_rows() is meant

// y [m, n] = a [m, k] times the transposed matrix. A sum has one order, whatever the vectors and the number of threads.
// Weights are unpacked again for every four rows.
void multiply_few_rows(int64_t m, const float* a, const Int4Matrix& b, float* y);

// The product for more rows: columns of the weights are unpacked once for all of them, a few at a time. For 4 bits, and
// for 8 where has_float_panels().
void multiply_unpacked_int4(int64_t m, const float* a, const Int4Matrix& b, float* y);
void multiply_unpacked_bytes(int64_t m, const float* a, const Int4Matrix& b, float* y);

}  // namespace parallax::runtime
