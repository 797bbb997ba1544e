// SPDX-License-Identifier: Apache-2.0
// Pairs of int8 become pairs of 16 bits in registers, which pmaddwd multiplies and adds without rounding.
#include "runtime/device/cpu/products/weight_rows.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#define PX_ROWS __attribute__((target("avx2")))
#endif

#if defined(__clang__)
#define PX_ROWS_UNROLLED _Pragma("unroll")
#else
#define PX_ROWS_UNROLLED _Pragma("GCC unroll 8")
#endif

#include "inspector/base/check.h"
#include "inspector/base/thread_pool.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kPairColumns = 16;
constexpr int64_t kPairBytes = 2 * kPairColumns;  // of two rows of a panel

int64_t pair_panels(int64_t n) { return (n + kPairColumns - 1) / kPairColumns; }
int64_t pair_count(int64_t k) { return (k + 1) / 2; }

}  // namespace

WeightPanels pack_weight_panels(int64_t n, int64_t k, const QuantizedMatrix& b) {
  const int64_t panel_bytes = pair_count(k) * kPairBytes;
  WeightPanels made{n, k, b.is_signed ? b.zero : b.zero - 128, AlignedBytes::of_weights(pair_panels(n) * panel_bytes)};
  const auto flipped = static_cast<uint8_t>(b.is_signed ? 0 : 0x80);
  const auto* const quantized = reinterpret_cast<const uint8_t*>(b.quantized);
  uint8_t* const target = made.pairs.data();
  parallel_for(pair_panels(n), panel_bytes, [=](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      uint8_t* const to = target + panel * panel_bytes;
      std::fill_n(to, panel_bytes, uint8_t{0});
      const int64_t column = panel * kPairColumns, columns = std::min(kPairColumns, n - column);
      for (int64_t i = 0; i < k; ++i) {
        const uint8_t* const from = quantized + i * n + column;
        uint8_t* const pairs = to + i / 2 * kPairBytes + i % 2;
        for (int64_t j = 0; j < columns; ++j) pairs[2 * j] = static_cast<uint8_t>(from[j] ^ flipped);
      }
    }
  });
  return made;
}

#if defined(__x86_64__)

namespace {

// c [kRows, kPanels * 16] = the products of panels next to each other.
template <size_t kRows, size_t kPanels>
PX_ROWS void multiply_pairs(const int16_t* rows, int64_t row_step, int64_t pairs, const uint8_t* panels, int32_t* c) {
  constexpr size_t kHalfPrecision = 2;
  __m256i sums[kRows][kPanels][kHalfPrecision];
  PX_ROWS_UNROLLED
  for (auto& of_row : sums) {
    PX_ROWS_UNROLLED
    for (auto& of_panel : of_row) {
      PX_ROWS_UNROLLED
      for (auto& sum : of_panel) sum = _mm256_setzero_si256();
    }
  }
  for (int64_t pair = 0; pair < pairs; ++pair) {
    __m256i factors[kRows];
    PX_ROWS_UNROLLED
    for (size_t row = 0; row < kRows; ++row) {
      int32_t both;
      std::memcpy(&both, rows + static_cast<int64_t>(row) * row_step + 2 * pair, sizeof(both));
      factors[row] = _mm256_set1_epi32(both);
    }
    PX_ROWS_UNROLLED
    for (size_t panel = 0; panel < kPanels; ++panel) {
      const uint8_t* const line = panels + (static_cast<int64_t>(panel) * pairs + pair) * kPairBytes;
      PX_ROWS_UNROLLED
      for (size_t half = 0; half < kHalfPrecision; ++half) {
        const __m256i numbers =
            _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(line + half * 16)));
        PX_ROWS_UNROLLED
        for (size_t row = 0; row < kRows; ++row)
          sums[row][panel][half] = _mm256_add_epi32(sums[row][panel][half], _mm256_madd_epi16(numbers, factors[row]));
      }
    }
  }
  PX_ROWS_UNROLLED
  for (size_t row = 0; row < kRows; ++row) {
    PX_ROWS_UNROLLED
    for (size_t panel = 0; panel < kPanels; ++panel) {
      PX_ROWS_UNROLLED
      for (size_t half = 0; half < kHalfPrecision; ++half)
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(c + ((row * kPanels + panel) * kHalfPrecision + half) * 8),
                            sums[row][panel][half]);
    }
  }
}

// The zero point times the sum of a row, modulo 2^32.
uint32_t correction_of(const int16_t* row, int64_t count, int32_t zero) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += static_cast<uint32_t>(static_cast<int32_t>(row[i]));
  return sum * static_cast<uint32_t>(zero);
}

template <size_t kRows, size_t kPanels>
void multiply_panels_of(const int16_t* rows, int64_t row_step, const WeightPanels& b, int64_t begin, int64_t end,
                        const uint32_t* corrections, int32_t* c) {
  constexpr auto kAtOnce = static_cast<int64_t>(kPanels);
  const int64_t pairs = pair_count(b.k);
  alignas(32) int32_t sums[kRows * kPanels * kPairColumns];
  for (; begin + kAtOnce <= end; begin += kAtOnce) {
    const int64_t column = begin * kPairColumns, columns = std::min(kAtOnce * kPairColumns, b.n - column);
    multiply_pairs<kRows, kPanels>(rows, row_step, pairs, b.pairs.data() + begin * pairs * kPairBytes, sums);
    for (size_t row = 0; row < kRows; ++row) {
      int32_t* const out = c + static_cast<int64_t>(row) * b.n + column;
      const int32_t* const from = sums + row * kPanels * kPairColumns;
      for (int64_t j = 0; j < columns; ++j)
        out[j] = static_cast<int32_t>(static_cast<uint32_t>(from[j]) - corrections[row]);
    }
  }
  if constexpr (kPanels > 1) multiply_panels_of<kRows, 1>(rows, row_step, b, begin, end, corrections, c);
}

}  // namespace

void multiply_weight_rows(int64_t m, const int16_t* rows, const WeightPanels& b, int32_t* c) {
  constexpr int64_t kRowsAtOnce = 4, kPanelsAtOnce = 4, kBytesPerNanosecond = 8;
  PX_CHECK(m <= kMostWeightRows);
  const int64_t row_step = 2 * pair_count(b.k), groups = (pair_panels(b.n) + kPanelsAtOnce - 1) / kPanelsAtOnce;
  uint32_t corrections[kMostWeightRows];
  for (int64_t row = 0; row < m; ++row) corrections[row] = correction_of(rows + row * row_step, row_step, b.zero);
  const int64_t work = kPanelsAtOnce * kPairColumns * b.k * std::max<int64_t>(1, m / 2) / kBytesPerNanosecond + 1;
  parallel_for(groups, work, [&](int64_t first, int64_t last) {
    for (int64_t group = first; group < last; ++group) {
      const int64_t begin = group * kPanelsAtOnce, end = std::min(begin + kPanelsAtOnce, pair_panels(b.n));
      for (int64_t row = 0; row < m; row += kRowsAtOnce) {
        const int16_t* const left = rows + row * row_step;
        const uint32_t* const zeros = corrections + row;
        int32_t* const out = c + row * b.n;
        const int64_t count = std::min(kRowsAtOnce, m - row);
        if (count == 1) multiply_panels_of<1, 4>(left, row_step, b, begin, end, zeros, out);
        if (count == 2) multiply_panels_of<2, 2>(left, row_step, b, begin, end, zeros, out);
        if (count == 3) multiply_panels_of<3, 1>(left, row_step, b, begin, end, zeros, out);
        if (count == 4) multiply_panels_of<4, 1>(left, row_step, b, begin, end, zeros, out);
      }
    }
  });
}

#else

void multiply_weight_rows(int64_t, const int16_t*, const WeightPanels&, int32_t*) { PX_CHECK(has_quantized_panels()); }

#endif

}  // namespace parallax::runtime
