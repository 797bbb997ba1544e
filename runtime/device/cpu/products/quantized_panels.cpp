// SPDX-License-Identifier: Apache-2.0
// Tiles of 6 rows by 16 columns, whose sums stay in registers while a block of both sides is walked that stays near.
#include "runtime/device/cpu/products/quantized_panels.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "inspector/base/check.h"
#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/multiversion.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define PX_AVX2 __attribute__((target("avx2")))
#endif

namespace parallax::runtime {
namespace {

constexpr int64_t kQuantizedColumns = 16;
constexpr int64_t kPairNumbers = 2 * kQuantizedColumns;  // of one panel, of two rows of b
constexpr int64_t kQuantizedTileRows = 6;
constexpr int64_t kBlockPairs = 256;                     // 16 KiB of a panel
constexpr int64_t kChunkRows = 16 * kQuantizedTileRows;  // of one task
constexpr int64_t kProductsPerNanosecond = 64;

int64_t pairs_of(int64_t k) { return (k + 1) / 2; }
int64_t quantized_panels_of(int64_t n) { return (n + kQuantizedColumns - 1) / kQuantizedColumns; }

}  // namespace

int64_t quantized_row_numbers(int64_t m, int64_t k) { return m * 2 * pairs_of(k); }
int64_t quantized_panel_numbers(int64_t n, int64_t k) { return quantized_panels_of(n) * pairs_of(k) * kPairNumbers; }

#if defined(__x86_64__)

bool has_quantized_panels() { return vector_level() != VectorLevel::baseline; }

namespace {

PX_AVX2 inline __m256i sixteen_numbers(const std::byte* values, bool is_signed, __m256i zero) {
  const __m128i loaded = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
  return _mm256_sub_epi16(is_signed ? _mm256_cvtepi8_epi16(loaded) : _mm256_cvtepu8_epi16(loaded), zero);
}

// The quantized values, followed by zeros.
class FilledQuantized {
 public:
  FilledQuantized(const std::byte* values, int64_t count, int32_t zero) {
    filled_.fill(static_cast<std::byte>(zero));
    std::copy_n(values, std::min<int64_t>(count, kQuantizedColumns), filled_.begin());
  }
  const std::byte* data() const { return filled_.data(); }

 private:
  std::array<std::byte, kQuantizedColumns> filled_;
};

PX_AVX2 void pack_row(int64_t k, const QuantizedMatrix& a, const std::byte* values, int16_t* row) {
  const __m256i zero = _mm256_set1_epi16(static_cast<int16_t>(a.zero));
  int64_t i = 0;
  for (; i + kQuantizedColumns <= k; i += kQuantizedColumns) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + i), sixteen_numbers(values + i, a.is_signed, zero));
  }
  if (i == k) return;
  alignas(32) int16_t rest[kQuantizedColumns];
  const FilledQuantized filled(values + i, k - i, a.zero);
  _mm256_store_si256(reinterpret_cast<__m256i*>(rest), sixteen_numbers(filled.data(), a.is_signed, zero));
  std::copy_n(rest, 2 * pairs_of(k) - i, row + i);
}

PX_AVX2 void pack_panel(int64_t n, int64_t k, const QuantizedMatrix& b, int64_t column, int16_t* panel) {
  const __m256i zero = _mm256_set1_epi16(static_cast<int16_t>(b.zero));
  const int64_t count = std::min(kQuantizedColumns, n - column);
  const auto numbers_at = [&](int64_t row) PX_AVX2 {
    const std::byte* const values = b.quantized + row * n + column;
    if (count == kQuantizedColumns) return sixteen_numbers(values, b.is_signed, zero);
    return sixteen_numbers(FilledQuantized(values, count, b.zero).data(), b.is_signed, zero);
  };
  for (int64_t row = 0; row < k; row += 2) {
    const __m256i even = numbers_at(row);
    const __m256i odd = row + 1 < k ? numbers_at(row + 1) : _mm256_setzero_si256();
    auto* const pairs = reinterpret_cast<__m256i*>(panel + row * kQuantizedColumns);
    _mm256_storeu_si256(pairs, _mm256_unpacklo_epi16(even, odd));
    _mm256_storeu_si256(pairs + 1, _mm256_unpackhi_epi16(even, odd));
  }
}

struct QuantizedTile {
  const int16_t* rows;   // of a, from the block on
  const int16_t* panel;  // likewise
  int64_t row_numbers;   // from one row of a to the next
  int64_t pairs;
  int32_t* c;
  int64_t n;        // from one row of c to the next
  int64_t columns;  // of c
  bool is_first;    // block: c holds nothing yet
};

PX_AVX2 inline void put_sums(const QuantizedTile& tile, int32_t* c, __m256i low, __m256i high) {
  __m256i sums[2] = {_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31)};
  alignas(32) int32_t part[kQuantizedColumns] = {};
  const bool is_whole = tile.columns == kQuantizedColumns;
  int32_t* const location = is_whole ? c : part;
  if (!tile.is_first) {
    if (!is_whole) std::copy_n(c, tile.columns, part);
    for (int half = 0; half < 2; ++half) {
      sums[half] =
          _mm256_add_epi32(sums[half], _mm256_loadu_si256(reinterpret_cast<const __m256i*>(location + 8 * half)));
    }
  }
  for (int half = 0; half < 2; ++half) _mm256_storeu_si256(reinterpret_cast<__m256i*>(location + 8 * half), sums[half]);
  if (!is_whole) std::copy_n(part, tile.columns, c);
}

template <int kRows>
PX_AVX2 void multiply_quantized_tile(const QuantizedTile& tile) {
  __m256i low[kRows], high[kRows];
#pragma GCC unroll 6
  for (int row = 0; row < kRows; ++row) low[row] = high[row] = _mm256_setzero_si256();
  const int16_t* rows = tile.rows;
  const auto* panel = reinterpret_cast<const __m256i*>(tile.panel);
  for (int64_t pair = 0; pair < tile.pairs; ++pair, rows += 2, panel += 2) {
    const __m256i b0 = _mm256_loadu_si256(panel), b1 = _mm256_loadu_si256(panel + 1);
#pragma GCC unroll 6
    for (int row = 0; row < kRows; ++row) {
      int32_t both;
      std::memcpy(&both, rows + row * tile.row_numbers, sizeof(both));
      const __m256i a = _mm256_set1_epi32(both);
      low[row] = _mm256_add_epi32(low[row], _mm256_madd_epi16(a, b0));
      high[row] = _mm256_add_epi32(high[row], _mm256_madd_epi16(a, b1));
    }
  }
#pragma GCC unroll 6
  for (int row = 0; row < kRows; ++row) put_sums(tile, tile.c + row * tile.n, low[row], high[row]);
}

void multiply_rows(int64_t count, const QuantizedTile& tile) {
  constexpr void (*kOfRows[])(const QuantizedTile&) = {multiply_quantized_tile<1>, multiply_quantized_tile<2>,
                                                       multiply_quantized_tile<3>, multiply_quantized_tile<4>,
                                                       multiply_quantized_tile<5>, multiply_quantized_tile<6>};
  kOfRows[count - 1](tile);
}

}  // namespace

void pack_quantized_rows(int64_t m, int64_t k, const QuantizedMatrix& a, int16_t* rows) {
  parallel_for(m, k / 16 + 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) pack_row(k, a, a.quantized + row * k, rows + row * 2 * pairs_of(k));
  });
}

void pack_quantized_panels(int64_t n, int64_t k, const QuantizedMatrix& b, int16_t* panels) {
  parallel_for(quantized_panels_of(n), k, [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel)
      pack_panel(n, k, b, panel * kQuantizedColumns, panels + panel * pairs_of(k) * kPairNumbers);
  });
}

void multiply_quantized_panels(int64_t m, int64_t n, int64_t k, const int16_t* rows, const int16_t* panels,
                               int32_t* c) {
  if (m == 0 || n == 0) return;
  if (k == 0) return static_cast<void>(std::fill_n(c, m * n, 0));
  const int64_t pairs = pairs_of(k), chunks = (m + kChunkRows - 1) / kChunkRows;
  const int64_t work = std::min(m, kChunkRows) * kQuantizedColumns * k / kProductsPerNanosecond + 1;
  parallel_for(quantized_panels_of(n) * chunks, work, [=](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t panel = task / chunks, first = task % chunks * kChunkRows, last = std::min(m, first + kChunkRows);
      const int64_t column = panel * kQuantizedColumns;
      for (int64_t pair = 0; pair < pairs; pair += kBlockPairs) {
        for (int64_t row = first; row < last; row += kQuantizedTileRows) {
          multiply_rows(std::min(kQuantizedTileRows, last - row),
                        {rows + (row * pairs + pair) * 2, panels + (panel * pairs + pair) * kPairNumbers, 2 * pairs,
                         std::min(kBlockPairs, pairs - pair), c + row * n + column, n,
                         std::min(kQuantizedColumns, n - column), pair == 0});
        }
      }
    }
  });
}

#else

bool has_quantized_panels() { return false; }
void pack_quantized_rows(int64_t, int64_t, const QuantizedMatrix&, int16_t*) { PX_CHECK(false); }
void pack_quantized_panels(int64_t, int64_t, const QuantizedMatrix&, int16_t*) { PX_CHECK(false); }
void multiply_quantized_panels(int64_t, int64_t, int64_t, const int16_t*, const int16_t*, int32_t*) { PX_CHECK(false); }

#endif

}  // namespace parallax::runtime
