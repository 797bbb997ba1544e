// SPDX-License-Identifier: Apache-2.0
// Numbers are widened in registers for up to four rows at once; for many rows a panel is widened once for all of them.
#include "runtime/device/cpu/products/stored_panels.h"

#include <algorithm>
#include <cstring>

#include "inspector/base/check.h"
#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/products/float_panels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define PX_STORED __attribute__((target("avx2,fma,f16c")))
#define PX_STORED_INLINE __attribute__((target("avx2,fma,f16c"), always_inline)) inline
#endif

#if defined(__clang__)
#define PX_UNROLLED _Pragma("unroll")
#else
#define PX_UNROLLED _Pragma("GCC unroll 8")
#endif

namespace parallax::runtime {
namespace {

constexpr int64_t kStoredWidth = kFloatPanelColumns;
constexpr int64_t kMostStoredRows = 8;  // beyond, a panel is widened once

int64_t stored_panel_count(int64_t n) { return (n + kStoredWidth - 1) / kStoredWidth; }

template <class T>
void pack_elements(StoredPanels& panels, const std::byte* b, int64_t row_step, int64_t column_step) {
  const int64_t n = panels.n, k = panels.k;
  auto* const target = reinterpret_cast<T*>(panels.numbers.data());
  parallel_for(stored_panel_count(n), kStoredWidth * k, [=](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int64_t column = panel * kStoredWidth, columns = std::min(kStoredWidth, n - column);
      T* const to = target + column * k;
      if (columns < kStoredWidth) std::fill_n(to, kStoredWidth * k, T{0});
      const auto element = [&](int64_t i, int64_t j) {
        T value;
        std::memcpy(&value, b + (i * row_step + (column + j) * column_step) * static_cast<int64_t>(sizeof(T)),
                    sizeof(T));
        return value;
      };
      if (column_step == 1) {
        for (int64_t i = 0; i < k; ++i)
          std::memcpy(to + i * kStoredWidth, b + (i * row_step + column) * static_cast<int64_t>(sizeof(T)),
                      static_cast<size_t>(columns) * sizeof(T));
      } else {
        for (int64_t j = 0; j < columns; ++j) {
          for (int64_t i = 0; i < k; ++i) to[i * kStoredWidth + j] = element(i, j);
        }
      }
    }
  });
}

}  // namespace

StoredPanels pack_stored_panels(DType dtype, int64_t n, int64_t k, const std::byte* b, int64_t row_step,
                                int64_t column_step) {
  const auto size = static_cast<int64_t>(byte_size(dtype, 1));
  StoredPanels made{dtype, n, k, AlignedBytes::of_weights(stored_panel_count(n) * kStoredWidth * k * size)};
  if (size == 1) {
    pack_elements<uint8_t>(made, b, row_step, column_step);
  } else {
    pack_elements<uint16_t>(made, b, row_step, column_step);
  }
  return made;
}

#if defined(__x86_64__)

// Every processor with AVX2 and FMA has F16C.
bool has_stored_panels(DType dtype) {
  return has_float_panels() && (dtype == DType::float16 || dtype == DType::bfloat16 || dtype == DType::int8);
}

namespace {

constexpr int64_t kStoredLanes = 8;
constexpr size_t kStoredVectors = kStoredWidth / kStoredLanes;

// Eight numbers of a type as floats.
struct Float16Numbers {
  using Type = uint16_t;
  PX_STORED_INLINE static __m256 load(const Type* from) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  }
};
struct Bfloat16Numbers {
  using Type = uint16_t;
  PX_STORED_INLINE static __m256 load(const Type* from) {
    const __m128i eight = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(eight), 16));
  }
};
struct Int8Numbers {
  using Type = int8_t;
  PX_STORED_INLINE static __m256 load(const Type* from) {
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
  }
};

// c [kRows, kPanels * 24] = a times panels next to each other. Their sums are eleven or twelve vectors, which hide how
// long an addition takes; a single row reads four panels, each in a stream of its own.
template <class Numbers, size_t kRows, size_t kPanels>
PX_STORED void multiply_stored(const float* a, int64_t k, const typename Numbers::Type* panels, float* c) {
  const int64_t step = k * kStoredWidth;
  __m256 sums[kRows][kPanels][kStoredVectors];
  PX_UNROLLED
  for (auto& of_row : sums) {
    PX_UNROLLED
    for (auto& of_panel : of_row) {
      PX_UNROLLED
      for (auto& sum : of_panel) sum = _mm256_setzero_ps();
    }
  }
  for (int64_t at = 0; at < k; ++at) {
    __m256 factors[kRows];
    PX_UNROLLED
    for (size_t row = 0; row < kRows; ++row) factors[row] = _mm256_broadcast_ss(a + static_cast<int64_t>(row) * k + at);
    PX_UNROLLED
    for (size_t panel = 0; panel < kPanels; ++panel) {
      const auto* const line = panels + static_cast<int64_t>(panel) * step + at * kStoredWidth;
      PX_UNROLLED
      for (size_t v = 0; v < kStoredVectors; ++v) {
        const __m256 numbers = Numbers::load(line + v * kStoredLanes);
        PX_UNROLLED
        for (size_t row = 0; row < kRows; ++row)
          sums[row][panel][v] = _mm256_fmadd_ps(factors[row], numbers, sums[row][panel][v]);
      }
    }
  }
  PX_UNROLLED
  for (size_t row = 0; row < kRows; ++row) {
    PX_UNROLLED
    for (size_t panel = 0; panel < kPanels; ++panel) {
      PX_UNROLLED
      for (size_t v = 0; v < kStoredVectors; ++v)
        _mm256_storeu_ps(c + ((row * kPanels + panel) * kStoredVectors + v) * kStoredLanes, sums[row][panel][v]);
    }
  }
}

constexpr int64_t kMostRowsAtOnce = 4;
constexpr int64_t kMostPanelsAtOnce = 4;

// Panels [begin, end) for up to four rows, kPanels at a time and then the rest.
template <class Numbers, size_t kRows, size_t kPanels>
void multiply_panels(const float* a, const StoredPanels& b, int64_t begin, int64_t end, float* c) {
  alignas(32) float sums[kRows * kPanels * kStoredWidth];
  const auto* const numbers = reinterpret_cast<const typename Numbers::Type*>(b.numbers.data());
  constexpr auto kAtOnce = static_cast<int64_t>(kPanels);
  for (; begin + kAtOnce <= end; begin += kAtOnce) {
    const int64_t column = begin * kStoredWidth, columns = std::min(kAtOnce * kStoredWidth, b.n - column);
    multiply_stored<Numbers, kRows, kPanels>(a, b.k, numbers + column * b.k, sums);
    for (int64_t row = 0; row < static_cast<int64_t>(kRows); ++row)
      std::copy_n(sums + row * kAtOnce * kStoredWidth, columns, c + row * b.n + column);
  }
  if constexpr (kPanels > 1) multiply_panels<Numbers, kRows, 1>(a, b, begin, end, c);
}

template <class Numbers>
void multiply_few_rows(int64_t m, const float* a, const StoredPanels& b, float* c) {
  constexpr int64_t kBytesPerNanosecond = 8;  // that one thread reads from memory
  const auto bytes = static_cast<int64_t>(sizeof(typename Numbers::Type)) * b.k * kStoredWidth;
  const int64_t groups = (stored_panel_count(b.n) + kMostPanelsAtOnce - 1) / kMostPanelsAtOnce;
  parallel_for(groups, kMostPanelsAtOnce * bytes * std::max<int64_t>(1, m / 2) / kBytesPerNanosecond + 1,
               [&](int64_t first, int64_t last) {
                 for (int64_t group = first; group < last; ++group) {
                   const int64_t begin = group * kMostPanelsAtOnce;
                   const int64_t end = std::min(begin + kMostPanelsAtOnce, stored_panel_count(b.n));
                   for (int64_t row = 0; row < m; row += kMostRowsAtOnce) {
                     const float* const left = a + row * b.k;
                     float* const out = c + row * b.n;
                     const int64_t rows = std::min(kMostRowsAtOnce, m - row);
                     if (rows == 1) multiply_panels<Numbers, 1, 4>(left, b, begin, end, out);
                     if (rows == 2) multiply_panels<Numbers, 2, 2>(left, b, begin, end, out);
                     if (rows == 3) multiply_panels<Numbers, 3, 1>(left, b, begin, end, out);
                     if (rows == 4) multiply_panels<Numbers, 4, 1>(left, b, begin, end, out);
                   }
                 }
               });
}

template <class Numbers>
PX_STORED void widen(const StoredPanels& b, int64_t panel, float* out) {
  const int64_t count = b.k * kStoredWidth;
  const auto* const from = reinterpret_cast<const typename Numbers::Type*>(b.numbers.data()) + panel * count;
  for (int64_t i = 0; i < count; i += kStoredLanes) _mm256_storeu_ps(out + i, Numbers::load(from + i));
}

template <class Numbers>
void multiply_many_rows(int64_t m, const float* a, const StoredPanels& b, float* c) {
  PanelRows rows;
  rows.count = m;
  rows.depth = rows.step = b.k;
  rows.base = a;
  parallel_for(stored_panel_count(b.n), m * b.k * kStoredWidth / 32 + 1, [&](int64_t begin, int64_t end) {
    auto wide = AlignedFloats::of_task(b.k * kStoredWidth);
    for (int64_t panel = begin; panel < end; ++panel) {
      widen<Numbers>(b, panel, wide.data());
      multiply_float_panel(rows, b.n, panel * kStoredWidth, wide.data(), c);
    }
  });
}

template <class Numbers>
void multiply_numbers(int64_t m, const float* a, const StoredPanels& b, float* c) {
  return m <= kMostStoredRows ? multiply_few_rows<Numbers>(m, a, b, c) : multiply_many_rows<Numbers>(m, a, b, c);
}

}  // namespace

void multiply_stored_panels(int64_t m, const float* a, const StoredPanels& b, float* c) {
  PX_CHECK(b.k > 0);
  if (b.dtype == DType::float16) return multiply_numbers<Float16Numbers>(m, a, b, c);
  if (b.dtype == DType::bfloat16) return multiply_numbers<Bfloat16Numbers>(m, a, b, c);
  PX_CHECK(b.dtype == DType::int8);
  multiply_numbers<Int8Numbers>(m, a, b, c);
}

#else

bool has_stored_panels(DType) { return false; }
void multiply_stored_panels(int64_t, const float*, const StoredPanels& b, float*) {
  PX_CHECK(has_stored_panels(b.dtype));
}

#endif

}  // namespace parallax::runtime
