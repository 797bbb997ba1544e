// SPDX-License-Identifier: Apache-2.0
// Magnitudes first, then conversion, the library's product of each part, and the sums of the parts.
#include "runtime/device/cpu/products/exact_products.h"

#include <algorithm>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/multiversion.h"

namespace parallax::runtime {
namespace {

constexpr double kExactIntegers = 16777216;  // 2^24
constexpr int64_t kLeastWork = 1 << 15;      // multiply-adds, below which the loops are as fast
constexpr int64_t kLeastPart = 32;           // terms of a sum: shorter parts cost more than they save

double magnitude_of(const int64_t* numbers, int64_t count) {
  int64_t least = 0, most = 0;
  vectorized(0, count, [&, numbers](int64_t begin, int64_t end) {
    int64_t low = 0, high = 0;
    for (int64_t i = begin; i < end; ++i) {
      low = numbers[i] < low ? numbers[i] : low;
      high = numbers[i] > high ? numbers[i] : high;
    }
    least = low;
    most = high;
  });
  return std::max(static_cast<double>(most), -static_cast<double>(least));
}

// How many terms a sum of products may have.
int64_t terms_that_fit(double left, double right) {
  return static_cast<int64_t>(std::min(kExactIntegers / std::max(1.0, left * right), kExactIntegers));
}

Result<std::shared_ptr<const float>> floats_of(Queue<Cpu>& queue, const int64_t* numbers, int64_t count) {
  return converted<float>(queue, {DType::int64, Shape{count}, reinterpret_cast<const std::byte*>(numbers), {}}, false);
}

Result<std::shared_ptr<float>> room_for(Queue<Cpu>& queue, int64_t count) {
  const std::shared_ptr<std::byte> memory = PX_TRY(queue.pool().allocate(static_cast<size_t>(count) * sizeof(float)));
  return std::shared_ptr<float>(memory, reinterpret_cast<float*>(memory.get()));
}

// target = or += part.
void take(const float* part, int64_t count, bool is_first, int64_t* target) {
  parallel_for(count, 1, [=](int64_t begin, int64_t end) {
    vectorized(begin, end, [=](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        target[i] = (is_first ? 0 : target[i]) + static_cast<int64_t>(static_cast<int32_t>(part[i]));
    });
  });
}

// The columns [begin, end) of a matrix, as a matrix.
void copy_columns(const int64_t* from, int64_t rows, int64_t columns, int64_t begin, int64_t end, float* to) {
  const int64_t width = end - begin;
  parallel_for(rows, width, [=](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      for (int64_t i = 0; i < width; ++i) to[row * width + i] = static_cast<float>(from[row * columns + begin + i]);
    }
  });
}

}  // namespace

Result<bool> gemm_in_floats(Queue<Cpu>& queue, const GemmProblem& problem, const int64_t* a, const int64_t* b,
                            int64_t* c) {
  const int64_t m = problem.m, n = problem.n, k = problem.k;
  if (m * n * k < kLeastWork) return false;
  double left = 0, right = 0;
  for (int64_t i = 0; i < problem.batch(); ++i) {
    left = std::max(left, magnitude_of(a + problem.a_offsets[i], m * k));
    right = std::max(right, magnitude_of(b + problem.b_offsets[i], k * n));
  }
  const int64_t terms = std::min(k, terms_that_fit(left, right));
  if (terms < std::min(k, kLeastPart)) return false;
  const auto rows = PX_TRY(room_for(queue, m * terms));
  const auto part = PX_TRY(room_for(queue, m * n));
  std::shared_ptr<const float> columns;
  GemmProblem piece;
  piece.m = m;
  piece.n = n;
  for (int64_t i = 0; i < problem.batch(); ++i) {
    if (i == 0 || problem.b_offsets[i] != problem.b_offsets[i - 1])
      columns = PX_TRY(floats_of(queue, b + problem.b_offsets[i], k * n));
    for (int64_t begin = 0; begin < k; begin += terms) {
      piece.k = std::min(terms, k - begin);
      copy_columns(a + problem.a_offsets[i], m, k, begin, begin + piece.k, rows.get());
      PX_TRY(gemm(queue, piece, rows.get(), columns.get() + begin * n, part.get()));
      take(part.get(), m * n, begin == 0, c + i * m * n);
    }
  }
  return true;
}

Result<bool> conv_in_floats(Queue<Cpu>& queue, const ConvProblem& problem, const int64_t* x, const int64_t* filters,
                            const int64_t* bias, int64_t* y) {
  const int64_t taps = product(problem.kernel), locations = product(problem.out_spatial);
  const int64_t in_locations = product(problem.in_spatial), channels = problem.in_channels / problem.groups;
  const int64_t x_count = problem.batch * problem.in_channels * in_locations;
  const int64_t filter_count = problem.out_channels * channels * taps, y_count = problem.out_channels * locations;
  if (problem.batch * y_count * channels * taps < kLeastWork) return false;
  const int64_t terms = terms_that_fit(magnitude_of(x, x_count), magnitude_of(filters, filter_count));
  const int64_t at_once = std::min(channels, terms / taps);  // channels
  const bool is_whole = at_once == channels;
  if (!is_whole && (problem.groups != 1 || at_once * taps < kLeastPart)) return false;
  const auto source = PX_TRY(floats_of(queue, x, x_count));
  const auto weights = PX_TRY(room_for(queue, filter_count));
  const auto part = PX_TRY(room_for(queue, y_count));
  ConvProblem piece = problem;
  piece.filters_are_constant = false;  // these are gone soon
  piece.batch = 1;
  for (int64_t begin = 0; begin < channels; begin += at_once) {
    const int64_t end = std::min(channels, begin + at_once);
    if (!is_whole) piece.in_channels = end - begin;
    copy_columns(filters, problem.out_channels, channels * taps, begin * taps, end * taps, weights.get());
    for (int64_t sample = 0; sample < problem.batch; ++sample) {
      const float* from = source.get() + (sample * problem.in_channels + begin) * in_locations;
      PX_TRY(conv(queue, piece, from, weights.get(), static_cast<const float*>(nullptr), part.get()));
      take(part.get(), y_count, begin == 0, y + sample * y_count);
    }
  }
  for (int64_t line = 0; bias != nullptr && line < problem.batch * problem.out_channels; ++line) {
    for (int64_t i = 0; i < locations; ++i) y[line * locations + i] += bias[line % problem.out_channels];
  }
  return true;
}

}  // namespace parallax::runtime
