// Products with weights of 4 bits. For few rows they are unpacked in registers: a row then reads an eighth of what
// floats would take, and no unpacked copy of the weights is kept.
#pragma once

#include <cstddef>
#include <cstdint>

namespace parallax::runtime {

// Numbers (code - zero) * scale in rows of k, each cut into blocks with a scale and a zero of their own. Of two codes
// in a byte the first has the low bits; the last block of a row may go on beyond k.
struct NibbleMatrix {
  int64_t n = 0, k = 0;
  int64_t block_size = 0;  // a multiple of kNibbleUnit
  const std::byte* codes = nullptr;
  const float* scales = nullptr;  // [n, blocks]
  const float* zeros = nullptr;   // [n, blocks]; null: kMiddleCode

  int64_t blocks() const { return (k + block_size - 1) / block_size; }
  int64_t row_step() const { return blocks() * block_size; }
};

constexpr int64_t kNibbleUnit = 32;  // codes that are unpacked at once
constexpr float kMiddleCode = 8.0F;  // stands for zero where there are no zeros

// Numbers stand in the order of units here: of each unit first the 16 that meet low bits, then the 16 that meet high
// bits. This brings rows of k numbers into that order, [m, row_step()], with zeros behind k.
void lay_out_units(int64_t m, int64_t k, const float* a, int64_t row_step, float* out);

// y [m, n] = left [m, row_step()], in the order of units, times the transposed matrix. A sum has one order, whatever
// the vectors and the number of threads. Meant for few rows: codes are unpacked again for every four of them.
void multiply_nibbles(int64_t m, const float* left, const NibbleMatrix& b, float* y);

// y [m, n] = a [m, k] times the transposed matrix, for more rows: columns of the weights are unpacked once for all of
// them, a few at a time.
void multiply_unpacked_nibbles(int64_t m, const float* a, const NibbleMatrix& b, float* y);

}  // namespace parallax::runtime
