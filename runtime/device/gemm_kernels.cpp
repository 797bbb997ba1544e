// Columns spread over threads; each sum runs along k in one order.
#include "runtime/device/gemm_kernels.h"

#include <algorithm>

#include "inspector/base/thread_pool.h"
#include "runtime/device/multiversion.h"
#include "runtime/device/rows.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kStripColumns = 2048;  // of float sums: long runs of each row of b, sums in the nearest caches
constexpr int64_t kDepths = 4;           // rows of b walked at once: their sums are loaded and stored once

float dot(const float* a, const float* b, int64_t count) {
  float lanes[kLanes] = {};
  const int64_t whole = count / kLanes * kLanes;
  vectorised(0, whole, [a, b, &lanes](int64_t begin, int64_t end) {
    float local[kLanes] = {};
    for (int64_t i = begin; i < end; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) local[lane] += a[i + lane] * b[i + lane];
    }
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = local[lane];
  });
  for (int64_t i = whole; i < count; ++i) lanes[i - whole] += a[i] * b[i];
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

float scaled(float sum, float alpha, float beta, float old) {
  return beta == 0.0F ? alpha * sum : alpha * sum + beta * old;
}

void few_rows_strip(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float alpha, float beta, float* c,
                    int64_t column, int64_t count) {
  alignas(64) float sums[kFewRows][kStripColumns];
  for (int64_t row = 0; row < m; ++row) std::fill_n(sums[row], count, 0.0F);
  const int64_t whole = k / kDepths * kDepths;
  for (int64_t depth = 0; depth < whole; depth += kDepths) {
    const float* values = b + depth * n + column;
    for (int64_t row = 0; row < m; ++row) {
      const float* factors = a + row * k + depth;
      float* target = sums[row];
      vectorised(0, count, [=](int64_t begin, int64_t end) {
        const float f0 = factors[0], f1 = factors[1], f2 = factors[2], f3 = factors[3];
        PX_INDEPENDENT_ITERATIONS
        for (int64_t i = begin; i < end; ++i) {
          float sum = target[i] + f0 * values[i];
          sum += f1 * values[n + i];
          sum += f2 * values[2 * n + i];
          target[i] = sum + f3 * values[3 * n + i];
        }
      });
    }
  }
  for (int64_t depth = whole; depth < k; ++depth) {
    const float* values = b + depth * n + column;
    for (int64_t row = 0; row < m; ++row) {
      const float factor = a[row * k + depth];
      float* target = sums[row];
      vectorised(0, count, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) target[i] += factor * values[i];
      });
    }
  }
  for (int64_t row = 0; row < m; ++row) {
    float* out = c + row * n + column;
    for (int64_t i = 0; i < count; ++i) out[i] = scaled(sums[row][i], alpha, beta, out[i]);
  }
}

}  // namespace

void gemm_few_rows(int64_t m, int64_t n, int64_t k, const float* a, const float* b, bool transpose_b, float alpha,
                   float beta, float* c) {
  if (transpose_b) {
    parallel_for(n, m * k / 4 + 1, [&](int64_t begin, int64_t end) {
      for (int64_t column = begin; column < end; ++column) {
        for (int64_t row = 0; row < m; ++row) {
          float& out = c[row * n + column];
          out = scaled(dot(a + row * k, b + column * k, k), alpha, beta, out);
        }
      }
    });
    return;
  }
  const int64_t strips = (n + kStripColumns - 1) / kStripColumns;
  parallel_for(strips, m * k * std::min(n, kStripColumns) / 8 + 1, [&](int64_t begin, int64_t end) {
    for (int64_t strip = begin; strip < end; ++strip) {
      const int64_t column = strip * kStripColumns;
      few_rows_strip(m, n, k, a, b, alpha, beta, c, column, std::min(kStripColumns, n - column));
    }
  });
}

void gemm_integers(int64_t m, int64_t n, int64_t k, const int64_t* a, const int64_t* b, int64_t* c) {
  parallel_for(m, n * k, [=](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      uint64_t* out = reinterpret_cast<uint64_t*>(c) + row * n;  // unsigned: wraps where signed would be undefined
      std::fill_n(out, n, uint64_t{0});
      for (int64_t depth = 0; depth < k; ++depth) {
        const uint64_t factor = static_cast<uint64_t>(a[row * k + depth]);
        const uint64_t* values = reinterpret_cast<const uint64_t*>(b) + depth * n;
        vectorised(0, n, [=](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) out[i] += factor * values[i];
        });
      }
    }
  });
}

}  // namespace parallax::runtime
