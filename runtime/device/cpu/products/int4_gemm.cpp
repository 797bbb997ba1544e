// SPDX-License-Identifier: Apache-2.0
// Eight words of 32 bits are unpacked together: a mask leaves one value of each where it stands, as that value times a
// power of two, which the row's numbers are divided by beforehand. No bit is shifted, and no rounding is added.
#include "runtime/device/cpu/products/int4_gemm.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/aligned_numbers.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/device/cpu/products/float_panels.h"

#if defined(__clang__)
#define PX_UNPACKED _Pragma("unroll")
#else
#define PX_UNPACKED _Pragma("GCC unroll 8")
#endif

namespace parallax::runtime {
namespace {

constexpr int64_t kWordLanes = 8;
constexpr int64_t kWordBytes = 4 * kWordLanes;  // unpacked together

// Values of one word.
template <int kBits>
constexpr int kWordValues = 32 / kBits;
template <int kBits>
constexpr int64_t kStepValues = kWordLanes* kWordValues<kBits>;
// The factor of value `number` at its bits of a word; the last one is shifted down.
template <int kBits>
constexpr float weight_of(int number) {
  return number + 1 == kWordValues<kBits> ? 1.0F : static_cast<float>(uint32_t{1} << (kBits * number));
}
template <int kBits>
constexpr uint32_t mask_of(int number) {
  return ((uint32_t{1} << kBits) - 1) << (kBits * number);
}

// The steps of a row of k numbers, [steps, values of a word, lanes], with zeros beyond k.
template <int kBits>
void lay_out_row(int64_t k, int64_t steps, const float* a, float* out) {
  std::fill_n(out, steps * kStepValues<kBits>, 0.0F);
  for (int64_t i = 0; i < k; ++i) {
    const int64_t step = i / kStepValues<kBits>, within = i % kStepValues<kBits>;
    const int64_t lane = within / kWordValues<kBits>, number = within % kWordValues<kBits>;
    out[step * kStepValues<kBits> + number * kWordLanes + lane] = a[i] / weight_of<kBits>(static_cast<int>(number));
  }
}

// Rows of the matrix next to each other, and laid out rows of the left side.
struct BlockDots {
  int64_t blocks = 0;
  int64_t block_lanes = 0;  // lanes of a step that belong to one block: 4, or 8 where a block has whole steps
  int64_t block_steps = 0;  // of a block
  int64_t steps = 0;
  int64_t row_bytes = 0;
  const std::byte* quantized = nullptr;
  const float* scales = nullptr;
  const float* zeros = nullptr;  // null: the middle
  const float* left = nullptr;
  int64_t left_step = 0;  // from row to row
  float* y = nullptr;
  int64_t y_step = 0;

  int64_t block_at(int64_t step, int64_t lane) const {
    return block_lanes == kWordLanes ? step / block_steps : 2 * step + lane / block_lanes;
  }
  int64_t bytes_at(int64_t step) const { return std::min(kWordBytes, row_bytes - step * kWordBytes); }
};

float sum_of_eight(const float* lanes) {
  return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

template <int kBits>
void dots_baseline(const BlockDots& dots, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      float total[kWordLanes] = {};
      for (int64_t step = 0; step < dots.steps; ++step) {
        uint32_t words[kWordLanes] = {};
        std::memcpy(words, dots.quantized + column * dots.row_bytes + step * kWordBytes,
                    static_cast<size_t>(dots.bytes_at(step)));
        for (int64_t lane = 0; lane < kWordLanes; ++lane) {
          const int64_t block = dots.block_at(step, lane);
          const bool is_there = block < dots.blocks;
          const int64_t location = column * dots.blocks + block;
          const float scale = is_there ? dots.scales[location] : 0.0F;
          const float middle = static_cast<float>(1 << (kBits - 1));
          const float zero = dots.zeros == nullptr ? middle : (is_there ? dots.zeros[location] : 0.0F);
          float part = 0.0F;
          for (int number = 0; number < kWordValues<kBits>; ++number) {
            const float weight = weight_of<kBits>(number);
            const bool is_last = number + 1 == kWordValues<kBits>;
            const uint32_t value = is_last ? words[lane] >> (32 - kBits) : words[lane] & mask_of<kBits>(number);
            const float left = dots.left[row * dots.left_step + step * kStepValues<kBits> + number * kWordLanes + lane];
            part = std::fma(static_cast<float>(value) - zero * weight, left, part);
          }
          total[lane] = std::fma(scale, part, total[lane]);
        }
      }
      dots.y[row * dots.y_step + column] = sum_of_eight(total);
    }
  }
}

#ifdef __x86_64__
#define PX_DOTS __attribute__((target("avx2,fma")))
#define PX_DOTS_INLINE __attribute__((target("avx2,fma"), always_inline)) inline

// A number for each lane of one step: that of its block.
PX_DOTS_INLINE __m256 of_blocks(const BlockDots& dots, const float* numbers, int64_t step, int64_t block) {
  if (dots.block_lanes == kWordLanes) return _mm256_broadcast_ss(numbers + block);
  const __m128 first = _mm_broadcast_ss(numbers + 2 * step);
  const __m128 second = 2 * step + 1 < dots.blocks ? _mm_broadcast_ss(numbers + 2 * step + 1) : _mm_setzero_ps();
  return _mm256_insertf128_ps(_mm256_castps128_ps256(first), second, 1);
}

PX_DOTS_INLINE __m256i words_at(const BlockDots& dots, int64_t column, int64_t step) {
  const std::byte* const from = dots.quantized + column * dots.row_bytes + step * kWordBytes;
  if (dots.bytes_at(step) == kWordBytes) return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm256_inserti128_si256(_mm256_setzero_si256(), _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)), 0);
}

template <int kBits, int kNumber>
PX_DOTS_INLINE __m256 floats_of(__m256i words) {
  if constexpr (kNumber + 1 == kWordValues<kBits>) return _mm256_cvtepi32_ps(_mm256_srli_epi32(words, 32 - kBits));
  const __m256i mask = _mm256_set1_epi32(static_cast<int32_t>(mask_of<kBits>(kNumber)));
  return _mm256_cvtepi32_ps(_mm256_and_si256(words, mask));
}

template <int kBits, int kRows, int kColumns, int kNumber>
PX_DOTS_INLINE void add_numbers(const BlockDots& dots, int64_t step, const __m256i* words, const __m256* zeros,
                                __m256 (&parts)[kRows][kColumns]) {
  if constexpr (kNumber < kWordValues<kBits>) {
    const __m256 weight = _mm256_set1_ps(weight_of<kBits>(kNumber));
    __m256 lefts[kRows];
    PX_UNPACKED
    for (int row = 0; row < kRows; ++row)
      lefts[row] = _mm256_loadu_ps(dots.left + row * dots.left_step + step * kStepValues<kBits> + kNumber * kWordLanes);
    PX_UNPACKED
    for (int column = 0; column < kColumns; ++column) {
      const __m256 numbers =
          _mm256_sub_ps(floats_of<kBits, kNumber>(words[column]), _mm256_mul_ps(zeros[column], weight));
      PX_UNPACKED
      for (int row = 0; row < kRows; ++row)
        parts[row][column] = _mm256_fmadd_ps(numbers, lefts[row], parts[row][column]);
    }
    add_numbers<kBits, kRows, kColumns, kNumber + 1>(dots, step, words, zeros, parts);
  }
}

// The compiler knows the subtrahend where kHasZeros is false.
template <int kBits, int kRows, int kColumns, bool kHasZeros>
PX_DOTS void dots_avx2(const BlockDots& dots) {
  __m256 totals[kRows][kColumns];
  PX_UNPACKED
  for (auto& row : totals) {
    PX_UNPACKED
    for (auto& total : row) total = _mm256_setzero_ps();
  }
  int64_t block = 0, left_of_block = dots.block_steps;
  for (int64_t step = 0; step < dots.steps; ++step) {
    __m256 parts[kRows][kColumns], zeros[kColumns];
    __m256i words[kColumns];
    PX_UNPACKED
    for (int column = 0; column < kColumns; ++column) {
      words[column] = words_at(dots, column, step);
      zeros[column] = kHasZeros ? of_blocks(dots, dots.zeros + column * dots.blocks, step, block)
                                : _mm256_set1_ps(static_cast<float>(1 << (kBits - 1)));
    }
    PX_UNPACKED
    for (auto& row : parts) {
      PX_UNPACKED
      for (auto& part : row) part = _mm256_setzero_ps();
    }
    add_numbers<kBits, kRows, kColumns, 0>(dots, step, words, zeros, parts);
    PX_UNPACKED
    for (int column = 0; column < kColumns; ++column) {
      const __m256 scale = of_blocks(dots, dots.scales + column * dots.blocks, step, block);
      PX_UNPACKED
      for (int row = 0; row < kRows; ++row)
        totals[row][column] = _mm256_fmadd_ps(scale, parts[row][column], totals[row][column]);
    }
    if (--left_of_block == 0) ++block, left_of_block = dots.block_steps;
  }
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kColumns; ++column) {
      float lanes[kWordLanes];
      _mm256_storeu_ps(lanes, totals[row][column]);
      dots.y[row * dots.y_step + column] = sum_of_eight(lanes);
    }
  }
}

// kRows rows by `columns` columns, as many at once as leave their sums in registers.
template <int kBits, int kRows, int kColumns, bool kHasZeros>
void dots_of_rows(BlockDots dots, int64_t columns) {
  for (; columns >= kColumns; columns -= kColumns) {
    dots_avx2<kBits, kRows, kColumns, kHasZeros>(dots);
    dots.quantized += kColumns * dots.row_bytes;
    dots.scales += kColumns * dots.blocks;
    if (kHasZeros) dots.zeros += kColumns * dots.blocks;
    dots.y += kColumns;
  }
  if constexpr (kColumns > 1) {
    if (columns > 0) dots_of_rows<kBits, kRows, 1, kHasZeros>(dots, columns);
  }
}

template <int kBits, bool kHasZeros>
void dots_avx2(const BlockDots& dots, int64_t rows, int64_t columns) {
  if (rows == 1) return dots_of_rows<kBits, 1, 4, kHasZeros>(dots, columns);
  if (rows == 2) return dots_of_rows<kBits, 2, 2, kHasZeros>(dots, columns);
  if (rows == 3) return dots_of_rows<kBits, 3, 1, kHasZeros>(dots, columns);
  dots_of_rows<kBits, 4, 1, kHasZeros>(dots, columns);
}

#endif

template <int kBits>
void dots_of(const BlockDots& dots, int64_t rows, int64_t columns) {
#ifdef __x86_64__
  if (vector_level() != VectorLevel::baseline) {
    return dots.zeros == nullptr ? dots_avx2<kBits, false>(dots, rows, columns)
                                 : dots_avx2<kBits, true>(dots, rows, columns);
  }
#endif
  dots_baseline<kBits>(dots, rows, columns);
}

template <int kBits>
void multiply_rows(int64_t m, const float* a, const Int4Matrix& b, float* y) {
  constexpr int64_t kRowsAtOnce = 4, kColumnsAtOnce = 4, kBytesPerNanosecond = 6;
  BlockDots all;
  all.blocks = b.blocks();
  all.block_lanes = b.block_size < kStepValues<kBits> ? kWordLanes / 2 : kWordLanes;
  all.block_steps = std::max<int64_t>(1, b.block_size / kStepValues<kBits>);
  all.row_bytes = b.row_step() * kBits / 8;
  all.steps = (all.row_bytes + kWordBytes - 1) / kWordBytes;
  all.left_step = all.steps * kStepValues<kBits>;
  all.y_step = b.n;
  AlignedFloats left(m * all.left_step);
  for (int64_t row = 0; row < m; ++row)
    lay_out_row<kBits>(b.k, all.steps, a + row * b.k, left.data() + row * all.left_step);
  const int64_t groups = (b.n + kColumnsAtOnce - 1) / kColumnsAtOnce;
  parallel_for(groups, kColumnsAtOnce * all.row_bytes * m / kBytesPerNanosecond + 1, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      const int64_t column = group * kColumnsAtOnce;
      BlockDots dots = all;
      dots.quantized = b.quantized + column * all.row_bytes;
      dots.scales = b.scales + column * all.blocks;
      dots.zeros = b.zeros == nullptr ? nullptr : b.zeros + column * all.blocks;
      for (int64_t row = 0; row < m; row += kRowsAtOnce) {
        dots.left = left.data() + row * all.left_step;
        dots.y = y + row * b.n + column;
        dots_of<kBits>(dots, std::min(kRowsAtOnce, m - row), std::min(kColumnsAtOnce, b.n - column));
      }
    }
  });
}

// Columns [column, column + columns) of the transposed matrix, [k, kFloatPanelColumns].
void unpack_int8_columns(const Int4Matrix& b, int64_t column, int64_t columns, float* panel) {
  for (int64_t i = 0; i < b.k; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t block = (column + j) * b.blocks() + i / b.block_size;
      const auto value = static_cast<float>(std::to_integer<int>(b.quantized[(column + j) * b.row_step() + i]));
      const float zero = b.zeros == nullptr ? b.middle() : b.zeros[block];
      panel[i * kFloatPanelColumns + j] = (value - zero) * b.scales[block];
    }
  }
}

}  // namespace

void multiply_few_rows(int64_t m, const float* a, const Int4Matrix& b, float* y) {
  if (b.bits == 4) return multiply_rows<4>(m, a, b, y);
  multiply_rows<8>(m, a, b, y);
}

void multiply_unpacked_bytes(int64_t m, const float* a, const Int4Matrix& b, float* y) {
  PanelRows rows;
  rows.count = m;
  rows.depth = rows.step = b.k;
  rows.base = a;
  const int64_t panels = (b.n + kFloatPanelColumns - 1) / kFloatPanelColumns;
  parallel_for(panels, b.k * kFloatPanelColumns * (1 + m / 32), [&](int64_t begin, int64_t end) {
    auto panel = AlignedFloats::of_task(b.k * kFloatPanelColumns);
    for (int64_t number = begin; number < end; ++number) {
      const int64_t column = number * kFloatPanelColumns, columns = std::min(kFloatPanelColumns, b.n - column);
      if (columns < kFloatPanelColumns) std::fill_n(panel.data(), b.k * kFloatPanelColumns, 0.0F);
      unpack_int8_columns(b, column, columns, panel.data());
      multiply_float_panel(rows, b.n, column, panel.data(), y);
    }
  });
}

}  // namespace parallax::runtime
