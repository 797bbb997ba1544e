// SPDX-License-Identifier: Apache-2.0
// How fast two tensors are compared with all metrics, against a plain read of the same two arrays in the same run.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "inspector/base/thread_pool.h"
#include "inspector/diff/metrics/metrics.h"
#include "inspector/tensor/elements.h"

using namespace parallax;

namespace {

constexpr int64_t kElements = int64_t{64} << 20;  // far beyond any cache
constexpr int kRounds = 9;

using Vector = uint64_t __attribute__((vector_size(64)));

// Reads both arrays whole and does next to nothing with them: four independent chains of the widest vectors at hand.
__attribute__((target_clones("avx512f", "avx2", "default"))) uint64_t read_range(const Vector* a, const Vector* b,
                                                                                 int64_t begin, int64_t end) {
  Vector sums[4] = {};
  for (int64_t index = begin; index + 2 <= end; index += 2) {
    sums[0] |= a[index];
    sums[1] |= b[index];
    sums[2] |= a[index + 1];
    sums[3] |= b[index + 1];
  }
  const Vector all = sums[0] | sums[1] | sums[2] | sums[3];
  uint64_t total = 0;
  for (int lane = 0; lane < 8; ++lane) total |= all[lane];
  return total;
}

uint64_t read_two_streams(const Tensor& a, const Tensor& b) {
  const auto* x = reinterpret_cast<const Vector*>(a.view().data);
  const auto* y = reinterpret_cast<const Vector*>(b.view().data);
  std::atomic<uint64_t> total{0};
  parallel_for(static_cast<int64_t>(a.size_bytes() / sizeof(Vector)), 8,
               [&](int64_t begin, int64_t end) { total += read_range(x, y, begin, end); });
  return total;
}

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void fill_pair(Tensor& a, Tensor& b, double noise) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  constexpr size_t kPeriod = 1U << 20;
  std::vector<double> values(kPeriod), shifts(kPeriod - 1);  // periods without a common divisor: no pair repeats soon
  for (double& value : values) value = normal(random);
  for (double& shift : shifts) shift = 1 + noise * normal(random);
  std::vector<double> shifted(kPeriod);
  for (int64_t begin = 0; begin < a.element_count(); begin += int64_t{kPeriod}) {
    for (size_t index = 0; index < kPeriod; ++index)
      shifted[index] = values[index] * shifts[(static_cast<size_t>(begin) + index) % shifts.size()];
    store_doubles(a, begin, values);
    store_doubles(b, begin, shifted);
  }
}

void report(const char* title, const Tensor& a, const Tensor& b, const Tolerance& tolerance) {
  std::vector<double> read, plain, histogram;
  uint64_t sink = 0;
  Metrics metrics;
  DifferenceHistogram buckets;
  for (int round = 0; round < kRounds; ++round) {
    read.push_back(seconds_of([&] { sink += read_two_streams(a, b); }));
    plain.push_back(seconds_of([&] { metrics = compare_views(a, b, tolerance); }));
    histogram.push_back(seconds_of([&] { metrics = compare_views(a, b, tolerance, &buckets); }));
  }
  const double bytes = 2.0 * static_cast<double>(a.size_bytes());
  std::printf(
      "%-10s %d thread(s), %-8s severity %8.3g | read %5.1f GB/s | diff %5.1f GB/s ratio %.2f | with histogram %5.1f "
      "GB/s ratio %.2f%s\n",
      title, thread_count(), std::string(metrics_instruction_set()).c_str(), metrics.severity,
      bytes / median(read) * 1e-9, bytes / median(plain) * 1e-9, median(read) / median(plain),
      bytes / median(histogram) * 1e-9, median(read) / median(histogram), sink == 1 ? " " : "");
}

}  // namespace

// diff_bench [element type]: ratios are wanted at 0.8 without and 0.4 with histogram. PARALLAX_ISA lowers the
// instruction set.
int main(int argc, char** argv) {
  const std::optional<DType> dtype = dtype_from_name(argc > 1 ? argv[1] : "float32");
  if (!dtype.has_value() || !is_floating(*dtype)) {
    std::fprintf(stderr, "diff_bench: '%s' is no floating-point element type, such as float16\n", argv[1]);
    return 2;
  }
  Tensor a = Tensor::allocate(*dtype, Shape{kElements}).take();
  Tensor b = Tensor::allocate(*dtype, Shape{kElements}).take();
  const double step = *dtype == DType::float16 || *dtype == DType::bfloat16 ? 1e-3 : 1e-7;
  fill_pair(a, b, step);
  for (const int threads : {1, 0}) {
    set_thread_count(threads);
    report("healthy", a, b, {100 * step, 10 * step});
    report("diverged", a, b, {step / 10, step / 100});
  }
  return 0;
}
