// Sixteen sums run side by side, within a block unscaled, and are added up at the end of a row.
#include "runtime/device/nibble_products.h"

#include <algorithm>
#include <cmath>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "inspector/base/thread_pool.h"
#include "runtime/device/lane_sums.h"
#include "runtime/device/multiversion.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kNibbleLanes = kNibbleUnit / 2;  // bytes of a unit

// One row of the matrix, and rows of the left side.
struct NibbleRow {
  int64_t blocks, units;  // of a block
  const std::byte* codes;
  const float* scales;
  const float* zeros;  // null: the middle
  const float* left = nullptr;
  int64_t left_step = 0;  // from row to row

  float zero_of(int64_t block) const { return zeros == nullptr ? kMiddleCode : zeros[block]; }
};

template <int kRows>
void dot_nibbles_baseline(const NibbleRow& row, float* out) {
  float total[kRows][kNibbleLanes] = {};
  for (int64_t block = 0; block < row.blocks; ++block) {
    const float zero = row.zero_of(block);
    float part[kRows][kNibbleLanes] = {};
    for (int64_t unit = block * row.units; unit < (block + 1) * row.units; ++unit) {
      for (int64_t lane = 0; lane < kNibbleLanes; ++lane) {
        const auto byte = static_cast<unsigned>(row.codes[unit * kNibbleLanes + lane]);
        const float low = static_cast<float>(byte & 15U) - zero, high = static_cast<float>(byte >> 4U) - zero;
        for (int r = 0; r < kRows; ++r) {
          const float* const left = row.left + r * row.left_step + unit * kNibbleUnit + lane;
          part[r][lane] = std::fma(high, left[kNibbleLanes], std::fma(low, left[0], part[r][lane]));
        }
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int64_t lane = 0; lane < kNibbleLanes; ++lane)
        total[r][lane] = std::fma(row.scales[block], part[r][lane], total[r][lane]);
    }
  }
  for (int r = 0; r < kRows; ++r) out[r] = sum_of_sixteen(total[r]);
}

#ifdef __x86_64__

template <int kRows>
__attribute__((target("avx2,fma"))) void dot_nibbles_avx2(const NibbleRow& row, float* out) {
  __m256 total[kRows][2];
  for (int r = 0; r < kRows; ++r) total[r][0] = total[r][1] = _mm256_setzero_ps();
  const __m128i low_bits = _mm_set1_epi8(15);
  for (int64_t block = 0; block < row.blocks; ++block) {
    const __m256 zero = _mm256_set1_ps(row.zero_of(block)), scale = _mm256_set1_ps(row.scales[block]);
    __m256 part[kRows][2];
    for (int r = 0; r < kRows; ++r) part[r][0] = part[r][1] = _mm256_setzero_ps();
    for (int64_t unit = block * row.units; unit < (block + 1) * row.units; ++unit) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row.codes + unit * kNibbleLanes));
      const __m128i codes[2] = {_mm_and_si128(bytes, low_bits), _mm_and_si128(_mm_srli_epi16(bytes, 4), low_bits)};
      for (int half = 0; half < 2; ++half) {
        __m256 numbers[2];
        for (int bits = 0; bits < 2; ++bits) {
          const __m128i eight = half == 0 ? codes[bits] : _mm_srli_si128(codes[bits], 8);
          numbers[bits] = _mm256_sub_ps(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eight)), zero);
        }
        for (int r = 0; r < kRows; ++r) {
          const float* const left = row.left + r * row.left_step + unit * kNibbleUnit + half * 8;
          part[r][half] = _mm256_fmadd_ps(numbers[0], _mm256_loadu_ps(left), part[r][half]);
          part[r][half] = _mm256_fmadd_ps(numbers[1], _mm256_loadu_ps(left + kNibbleLanes), part[r][half]);
        }
      }
    }
    for (int r = 0; r < kRows; ++r) {
      for (int half = 0; half < 2; ++half) total[r][half] = _mm256_fmadd_ps(scale, part[r][half], total[r][half]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    float lanes[kNibbleLanes];
    for (int half = 0; half < 2; ++half) _mm256_storeu_ps(lanes + half * 8, total[r][half]);
    out[r] = sum_of_sixteen(lanes);
  }
}

// Masked, since GCC 12 takes the undefined vector in its unmasked intrinsics for an uninitialised one.
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) inline __m512 floats_of(__m128i bytes) {
  constexpr __mmask16 kAll = 0xFFFF;
  return _mm512_maskz_cvtepi32_ps(kAll, _mm512_maskz_cvtepu8_epi32(kAll, bytes));
}

template <int kRows>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) void dot_nibbles_avx512(const NibbleRow& row,
                                                                                      float* out) {
  __m512 total[kRows];
  for (int r = 0; r < kRows; ++r) total[r] = _mm512_setzero_ps();
  const __m128i low_bits = _mm_set1_epi8(15);
  for (int64_t block = 0; block < row.blocks; ++block) {
    const __m512 zero = _mm512_set1_ps(row.zero_of(block)), scale = _mm512_set1_ps(row.scales[block]);
    __m512 part[kRows];
    for (int r = 0; r < kRows; ++r) part[r] = _mm512_setzero_ps();
    for (int64_t unit = block * row.units; unit < (block + 1) * row.units; ++unit) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row.codes + unit * kNibbleLanes));
      const __m128i low = _mm_and_si128(bytes, low_bits), high = _mm_and_si128(_mm_srli_epi16(bytes, 4), low_bits);
      const __m512 lows = _mm512_sub_ps(floats_of(low), zero);
      const __m512 highs = _mm512_sub_ps(floats_of(high), zero);
      for (int r = 0; r < kRows; ++r) {
        const float* const left = row.left + r * row.left_step + unit * kNibbleUnit;
        part[r] = _mm512_fmadd_ps(lows, _mm512_loadu_ps(left), part[r]);
        part[r] = _mm512_fmadd_ps(highs, _mm512_loadu_ps(left + kNibbleLanes), part[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) total[r] = _mm512_fmadd_ps(scale, part[r], total[r]);
  }
  for (int r = 0; r < kRows; ++r) {
    float lanes[kNibbleLanes];
    _mm512_storeu_ps(lanes, total[r]);
    out[r] = sum_of_sixteen(lanes);
  }
}

#endif

template <int kRows>
void dot_nibbles(const NibbleRow& row, float* out) {
#ifdef __x86_64__
  if (vector_level() == VectorLevel::avx512) return dot_nibbles_avx512<kRows>(row, out);
  if (vector_level() == VectorLevel::avx2) return dot_nibbles_avx2<kRows>(row, out);
#endif
  dot_nibbles_baseline<kRows>(row, out);
}

NibbleRow nibble_row(const NibbleMatrix& b, int64_t n) {
  const int64_t blocks = b.blocks();
  const float* const zeros = b.zeros == nullptr ? nullptr : b.zeros + n * blocks;
  return {blocks, b.block_size / kNibbleUnit, b.codes + n * b.row_step() / 2, b.scales + n * blocks, zeros};
}

using NibbleDot = void (*)(const NibbleRow& row, float* out);
constexpr int64_t kRowsAtOnce = 4;  // their sums stay in registers
constexpr NibbleDot kNibbleDots[kRowsAtOnce] = {dot_nibbles<1>, dot_nibbles<2>, dot_nibbles<3>, dot_nibbles<4>};

}  // namespace

void lay_out_units(int64_t m, int64_t k, const float* a, int64_t step, float* out) {
  parallel_for(m, k, [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* const target = out + row * step;
      std::fill_n(target, step, 0.0F);
      for (int64_t i = 0; i < k; ++i) {
        const int64_t place = i % kNibbleUnit;
        target[i - place + place % 2 * kNibbleLanes + place / 2] = a[row * k + i];
      }
    }
  });
}

void multiply_nibbles(int64_t m, const float* left, const NibbleMatrix& b, float* y) {
  const int64_t step = b.row_step();
  parallel_for(b.n, step * m / 8 + 1, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      NibbleRow row = nibble_row(b, n);
      row.left_step = step;
      for (int64_t first = 0; first < m; first += kRowsAtOnce) {
        const int64_t rows = std::min(kRowsAtOnce, m - first);
        float sums[kRowsAtOnce];
        row.left = left + first * step;
        kNibbleDots[rows - 1](row, sums);
        for (int64_t r = 0; r < rows; ++r) y[(first + r) * b.n + n] = sums[r];
      }
    }
  });
}

}  // namespace parallax::runtime
