// Columns spread over threads; each sum runs along k in one order.
#include "runtime/device/gemm_kernels.h"

#include <algorithm>

#include "inspector/base/thread_pool.h"
#include "runtime/device/multiversion.h"
#include "runtime/device/rows.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kStripColumns = 4096;  // of float sums: long runs of each row of b, sums in the nearest caches
constexpr int64_t kDepths = 8;           // rows of b walked at once: their sums are loaded and stored once
constexpr int64_t kSharedColumns = 512;  // of kDepths rows of b, which stay near while each row of a reads them

float dot(const float* a, const float* b, int64_t count) {
  float result = 0;
  vectorised(0, count, [a, b, &result](int64_t begin, int64_t end) {
    float lanes[kLanes] = {};
    const int64_t whole = end / kLanes * kLanes;
    for (int64_t i = begin; i < whole; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
    }
    for (int64_t lane = 0; lane < end - whole; ++lane) lanes[lane] += a[whole + lane] * b[whole + lane];
    for (int64_t width = kLanes / 2; width > 0; width /= 2) {
      for (int64_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
    }
    result = lanes[0];
  });
  return result;
}

float scaled(float sum, float alpha, float beta, float old) {
  return beta == 0.0F ? alpha * sum : alpha * sum + beta * old;
}

// sums[i] += factors[0] * values[i] + ... + factors[kDepths - 1] * values[(kDepths - 1) * n + i], one after the other.
void add_depths(const float* factors, const float* values, int64_t n, int64_t count, float* sums) {
  vectorised(0, count, [=](int64_t begin, int64_t end) {
    float local[kDepths];
    for (int64_t depth = 0; depth < kDepths; ++depth) local[depth] = factors[depth];
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) {
      float sum = sums[i];
      for (int64_t depth = 0; depth < kDepths; ++depth) sum += local[depth] * values[depth * n + i];
      sums[i] = sum;
    }
  });
}

void add_depth(float factor, const float* values, int64_t count, float* sums) {
  vectorised(0, count, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) sums[i] += factor * values[i];
  });
}

void few_rows_strip(int64_t m, int64_t n, int64_t k, const float* a, const float* b, float alpha, float beta, float* c,
                    int64_t column, int64_t count) {
  alignas(64) float sums[kFewRows][kStripColumns];
  for (int64_t row = 0; row < m; ++row) std::fill_n(sums[row], count, 0.0F);
  const int64_t whole = k / kDepths * kDepths;
  const int64_t step = m == 1 ? count : kSharedColumns;
  for (int64_t depth = 0; depth < whole; depth += kDepths) {
    const float* values = b + depth * n + column;
    for (int64_t first = 0; first < count; first += step) {
      const int64_t width = std::min(step, count - first);
      for (int64_t row = 0; row < m; ++row)
        add_depths(a + row * k + depth, values + first, n, width, sums[row] + first);
    }
  }
  for (int64_t depth = whole; depth < k; ++depth) {
    for (int64_t row = 0; row < m; ++row) add_depth(a[row * k + depth], b + depth * n + column, count, sums[row]);
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
  const int64_t share = (n / thread_count() + 63) / 64 * 64;
  const int64_t strip_columns = std::clamp<int64_t>(share, kSharedColumns, kStripColumns);
  const int64_t strips = (n + strip_columns - 1) / strip_columns;
  parallel_for(strips, m * k * std::min(n, strip_columns) / 8 + 1, [&](int64_t begin, int64_t end) {
    for (int64_t strip = begin; strip < end; ++strip) {
      const int64_t column = strip * strip_columns;
      few_rows_strip(m, n, k, a, b, alpha, beta, c, column, std::min(strip_columns, n - column));
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
