// SPDX-License-Identifier: Apache-2.0
// Products of floats on processors with AVX2 and FMA but without AVX-512, on which oneDNN has no product whose right
// side stays packed. The right side is stored in panels of columns; the rows of the left side are where its caller
// says, so that a convolution is one, too (Dukhan: The Indirect Convolution Algorithm, 2019).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>

#include "runtime/device/cpu/aligned_numbers.h"

namespace parallax::runtime {

// True where vector_level() is AVX2.
bool has_float_panels();

// b [k, n], of which b[i, j] is at i * row_step + j * column_step, as panels of 24 columns. The last one has as many
// eights of columns as it takes, filled up with zeros. `panels` is aligned to 32 bytes.
int64_t float_panel_numbers(int64_t n, int64_t k);
void pack_float_panels(int64_t n, int64_t k, const float* b, int64_t row_step, int64_t column_step, float* panels);

// Rows that are put together from `segments` runs of `depth` numbers each.
struct PanelRows {
  int64_t count = 0;
  int64_t segments = 1;
  int64_t depth = 0;
  const float* base = nullptr;
  int64_t step = 0;                  // of one segment: row i begins at base + i * step
  const int32_t* offsets = nullptr;  // of more: [segments, count], each from base; below 0: `zeros`
  const float* zeros = nullptr;      // [depth]
  // Groups: group g reads from base + g * depth, has panels of its own, and makes columns [g * n, (g + 1) * n).
  int64_t groups = 1;
};

// Called with first row, rows, first column and columns of a part of the result when its sums are complete, while they
// are in the nearest cache.
using FinishTile = std::function<void(int64_t row, int64_t rows, int64_t column, int64_t columns)>;

// The work done in registers: a sum begins with the bias, the addend comes last, and what is stored is between the
// bounds or is NaN.
struct PanelEpilogue {
  const float* bias = nullptr;    // [groups * n], and as many numbers more as fill the last panel; null: 0
  const float* addend = nullptr;  // [rows, groups * n], not c; null: 0
  float lowest = -std::numeric_limits<float>::infinity();
  float highest = std::numeric_limits<float>::infinity();
};

// c [rows, groups * n] = a b on at most `threads` threads; k = segments * depth. Every sum is made of runs of at most
// 1024 products in the order of k, whatever the row, the column and the number of threads.
void multiply_float_panels(const PanelRows& a, int64_t n, const float* panels, int threads, const FinishTile& finish,
                           float* c, const PanelEpilogue& epilogue = {});

// The part of it that one panel makes, all of whose columns are filled up: columns [column, column + 24) of c, as far
// as it has them, on the caller's thread.
constexpr int64_t kFloatPanelColumns = 24;
void multiply_float_panel(const PanelRows& a, int64_t n, int64_t column, const float* panel, float* c);

// c [n] = a [k] b, whose time is that of reading the panels. A sum has the order of k.
void multiply_row_by_float_panels(const float* a, int64_t n, int64_t k, const float* panels, float* c);

}  // namespace parallax::runtime
