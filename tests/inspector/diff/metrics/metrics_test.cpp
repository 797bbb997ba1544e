// SPDX-License-Identifier: Apache-2.0
// Metrics against a plain long-double computation, on every instruction set, for every kind of element.
#include "inspector/diff/metrics/metrics.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/base/cpu_features.h"
#include "inspector/base/thread_pool.h"
#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

std::vector<VectorLevel> supported_levels() {
  std::vector<VectorLevel> levels;
  for (const VectorLevel level : {VectorLevel::avx512, VectorLevel::avx2, VectorLevel::baseline}) {
    if (level <= vector_level()) levels.push_back(level);
  }
  return levels;
}

Tensor of_doubles(DType dtype, const std::vector<double>& values) {
  Tensor tensor = Tensor::allocate(dtype, Shape{static_cast<int64_t>(values.size())}).take();
  store_doubles(tensor, 0, values);
  return tensor;
}

// The definitions of the contract, element by element.
Metrics plain_metrics(const TensorView& a, const TensorView& b, const Tolerance& tolerance) {
  const FloatLimits limits = float_limits(a.dtype);
  Metrics expected;
  expected.count = a.element_count();
  long double abs = 0, dd = 0, aa = 0, bb = 0, ab = 0, pairs = 0;
  int64_t worst = 0;
  for (int64_t index = 0; index < expected.count; ++index) {
    const double x = element_as_double(a, index), y = element_as_double(b, index);
    expected.nan_a += std::isnan(x), expected.nan_b += std::isnan(y);
    expected.inf_a += std::isinf(x), expected.inf_b += std::isinf(y);
    double d = std::abs(x - y), severity = kInf;
    if (std::isfinite(x) && std::isfinite(y)) {
      abs += d, dd += static_cast<long double>(d) * d, aa += static_cast<long double>(x) * x;
      bb += static_cast<long double>(y) * y, ab += static_cast<long double>(x) * y, pairs += 1;
      const double bound = tolerance.atol + tolerance.rtol * std::abs(x);
      severity = d == 0 ? 0 : d / bound;
      const double larger = std::max(std::abs(x), std::abs(y));
      const double unit = larger < limits.min_normal ? limits.min_normal * limits.epsilon
                                                     : std::ldexp(limits.epsilon, std::ilogb(larger));
      if (d > 0) expected.max_rel = std::max(expected.max_rel, d / std::abs(x));
      expected.max_ulp = std::max(expected.max_ulp, d / unit);
    } else if (x == y || (std::isnan(x) && std::isnan(y))) {
      d = severity = 0;
    } else {
      d = expected.max_rel = expected.max_ulp = kInf;
    }
    expected.max_abs = std::max(expected.max_abs, d);
    expected.mismatches += severity > 1;
    if (severity > expected.severity) expected.severity = severity, worst = index;
  }
  expected.worst_index = {worst};
  expected.mean_abs = static_cast<double>(abs / pairs);
  expected.rmse = static_cast<double>(std::sqrt(dd / pairs));
  expected.rms_a = static_cast<double>(std::sqrt(aa / pairs));
  expected.rel_l2 = dd == 0 ? 0 : static_cast<double>(std::sqrt(dd / aa));
  expected.cosine = static_cast<double>(ab / std::sqrt(aa) / std::sqrt(bb));
  return expected;
}

// Within `bound` of each other, relatively; equal when not finite.
void expect_near(double actual, double expected, double bound) {
  if (std::isfinite(expected)) {
    EXPECT_NEAR(actual, expected, bound * std::abs(expected));
  } else {
    EXPECT_EQ(actual, expected);
  }
}

// Counts, maxima and the worst index exactly; sums within what the kernels promise for the type.
void expect_same(const Metrics& actual, const Metrics& expected, DType dtype) {
  EXPECT_EQ(actual.count, expected.count);
  EXPECT_EQ(actual.max_abs, expected.max_abs);
  EXPECT_EQ(actual.max_rel, expected.max_rel);
  EXPECT_EQ(actual.max_ulp, expected.max_ulp);
  EXPECT_EQ(actual.severity, expected.severity);
  EXPECT_EQ(actual.mismatches, expected.mismatches);
  EXPECT_EQ(actual.worst_index, expected.worst_index);
  EXPECT_EQ(actual.nan_a, expected.nan_a);
  EXPECT_EQ(actual.nan_b, expected.nan_b);
  EXPECT_EQ(actual.inf_a, expected.inf_a);
  EXPECT_EQ(actual.inf_b, expected.inf_b);
  const bool in_double = dtype == DType::float64 || actual.count <= 16384;
  const double bound = in_double ? 0x1p-52 * static_cast<double>(actual.count + 8) : 0x1p-19;
  expect_near(actual.mean_abs, expected.mean_abs, bound);
  expect_near(actual.rmse, expected.rmse, bound);
  expect_near(actual.rms_a, expected.rms_a, bound);
  expect_near(actual.rel_l2, expected.rel_l2, bound);
  EXPECT_NEAR(actual.cosine, expected.cosine, 4 * bound);
}

void expect_bits(double actual, double expected) {
  EXPECT_EQ(std::bit_cast<uint64_t>(actual), std::bit_cast<uint64_t>(expected));
}

void expect_identical(const Metrics& actual, const Metrics& expected) {
  EXPECT_EQ(actual.mismatches, expected.mismatches);
  EXPECT_EQ(actual.worst_index, expected.worst_index);
  expect_bits(actual.severity, expected.severity);
  expect_bits(actual.max_abs, expected.max_abs);
  expect_bits(actual.mean_abs, expected.mean_abs);
  expect_bits(actual.rmse, expected.rmse);
  expect_bits(actual.rel_l2, expected.rel_l2);
  expect_bits(actual.cosine, expected.cosine);
  expect_bits(actual.snr_db, expected.snr_db);
  expect_bits(actual.worst_a, expected.worst_a);
  expect_bits(actual.worst_b, expected.worst_b);
}

struct Case {
  DType dtype;
  int64_t count;
  double noise;  // relative
  int specials;  // every how many elements a NaN or infinity stands in a, b or both; 0 none
  double scale;
};

std::pair<Tensor, Tensor> make_pair(const Case& test) {
  std::mt19937 random(static_cast<unsigned>(test.count) * 31U + static_cast<unsigned>(test.dtype));
  std::normal_distribution<double> normal;
  std::vector<double> a, b;
  for (int64_t index = 0; index < test.count; ++index) {
    const double x = index % 7 == 3 ? 0 : test.scale * normal(random);
    a.push_back(x);
    b.push_back(
        index % 5 == 0 ? x : x * (1 + test.noise * normal(random)) + (index % 11 == 0 ? test.noise * test.scale : 0));
    if (test.specials == 0 || index % test.specials != 0) continue;
    const double specials[] = {kNaN, kInf, -kInf};
    a.back() = specials[index / test.specials % 3];
    b.back() = index / test.specials % 4 == 1 ? 1.0 : specials[index / test.specials % 5 % 3];
  }
  return {of_doubles(test.dtype, a), of_doubles(test.dtype, b)};
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype :
       {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::float8e5m2, DType::float8e4m3fn}) {
    const double noise = 4 * float_limits(dtype).epsilon;
    for (const int64_t count : {1, 15, 16, 17, 100, 2048, 5000, 70001}) all.push_back({dtype, count, noise, 0, 1});
    if (dtype != DType::float8e4m3fn) all.push_back({dtype, 6000, noise, 37, 1});
  }
  for (const int64_t count : {9000, 40000}) {
    all.push_back({DType::float32, count, 1e-6, 0, 1e-40});  // subnormal numbers
    all.push_back({DType::float32, count, 1e-6, 0, 1e38});   // next to overflow
    all.push_back({DType::float32, count, 1e-6, 2999, 1});
    all.push_back({DType::float32, count, 1e-6, 0, 1e-14});  // squares of differences below float
  }
  all.push_back({DType::float64, 9000, 1e-14, 0, 1e200});  // squares beyond double
  all.push_back({DType::float64, 9000, 1e-14, 0, 1e-310});
  all.push_back({DType::float32, 9000, 10, 0, 1});  // nothing alike
  return all;
}

TEST(Metrics, AgreeWithTheDefinitionsOnEveryInstructionSet) {
  const auto levels = supported_levels();
  for (const Case& test : cases()) {
    const auto [a, b] = make_pair(test);
    const double epsilon = float_limits(test.dtype).epsilon;
    for (const Tolerance tolerance :
         {Tolerance{8 * epsilon, epsilon * test.scale}, Tolerance{1e-3 * epsilon, 0}, Tolerance{1, 1}}) {
      const Metrics expected = plain_metrics(a, b, tolerance);
      std::optional<Metrics> first;
      for (const VectorLevel level : levels) {
        SCOPED_TRACE(std::string(name_of(level)) + " " + std::string(name_of(test.dtype)) + " count " +
                     std::to_string(test.count) + " scale " + std::to_string(test.scale) + " rtol " +
                     std::to_string(tolerance.rtol));
        set_vector_level_for_tests(level);
        const Metrics actual = compare_views(a, b, tolerance);
        expect_same(actual, expected, test.dtype);
        if (first.has_value()) expect_identical(actual, *first);
        first = actual;
      }
    }
  }
  set_vector_level_for_tests(levels.front());
}

TEST(Metrics, HistogramCountsEveryElementOnEveryInstructionSet) {
  const auto levels = supported_levels();
  for (const Case& test : cases()) {
    const auto [a, b] = make_pair(test);
    DifferenceHistogram expected{};
    const bool wide = test.dtype == DType::float64 || test.count <= 16384;  // summed in double
    for (int64_t index = 0; index < test.count; ++index) {
      const double x = element_as_double(a, index), y = element_as_double(b, index);
      const double d = wide ? std::abs(x - y) : std::abs(static_cast<double>(static_cast<float>(x - y)));
      size_t bucket = 0;
      if (!std::isfinite(x) || !std::isfinite(y))
        bucket = 65;
      else if (std::isinf(d))
        bucket = 64;
      else if (d > 0)
        bucket = static_cast<size_t>(std::clamp(std::ilogb(d) + 49, 1, 64));
      ++expected[bucket];
    }
    for (const VectorLevel level : levels) {
      SCOPED_TRACE(std::string(name_of(level)) + " " + std::string(name_of(test.dtype)) + " count " +
                   std::to_string(test.count));
      set_vector_level_for_tests(level);
      DifferenceHistogram histogram;
      const Metrics with = compare_views(a, b, {1e-5, 1e-6}, &histogram);
      EXPECT_EQ(histogram, expected);
      expect_identical(with, compare_views(a, b, {1e-5, 1e-6}));
    }
  }
  set_vector_level_for_tests(levels.front());
}

TEST(Metrics, DoNotDependOnTheNumberOfThreads) {
  const auto [a, b] = make_pair({DType::float32, 5'000'000, 1e-6, 0, 1});
  set_thread_count(1);
  const Metrics alone = compare_views(a, b, {1e-6, 1e-7});
  set_thread_count(4);
  const Metrics together = compare_views(a, b, {1e-6, 1e-7});
  set_thread_count(0);
  EXPECT_GT(alone.mismatches, 0);
  expect_identical(together, alone);
}

TEST(Metrics, FirstOfEquallyBadElementsIsTheWorst) {
  std::vector<double> a(3'000'000, 1.0), b(3'000'000, 1.0);
  a[17] = 2;
  for (const size_t index : {size_t{2'500'000}, size_t{1'200'000}, size_t{1'200'001}}) b[index] = 1.5;
  const Metrics metrics = compare_views(of_doubles(DType::float32, a), of_doubles(DType::float32, b), {0, 0.25});
  EXPECT_EQ(metrics.severity, 4);  // at 17: |2 - 1| / 0.25
  EXPECT_EQ(metrics.worst_index, std::vector<int64_t>{17});
  EXPECT_EQ(metrics.mismatches, 4);
  a[17] = 1;
  const Metrics tie = compare_views(of_doubles(DType::float32, a), of_doubles(DType::float32, b), {0, 0.25});
  EXPECT_EQ(tie.severity, 2);
  EXPECT_EQ(tie.worst_index, std::vector<int64_t>{1'200'000});
}

TEST(Metrics, SpecialValuesByClass) {
  const Tensor a = of_doubles(DType::float32, {kNaN, kInf, -kInf, 1, 2});
  const Metrics same = compare_views(a, a, {0, 0});
  EXPECT_EQ(same.severity, 0);
  EXPECT_EQ(same.mismatches, 0);
  EXPECT_EQ(same.nan_a, 1);
  EXPECT_EQ(same.inf_b, 2);
  EXPECT_EQ(same.snr_db, kInf);
  const Metrics other = compare_views(a, of_doubles(DType::float32, {kNaN, -kInf, -kInf, kNaN, 2}), {1, 1});
  EXPECT_EQ(other.severity, kInf);
  EXPECT_EQ(other.mismatches, 2);
  EXPECT_EQ(other.worst_index, std::vector<int64_t>{1});
  EXPECT_EQ(other.rmse, 0);  // of the finite pair alone
}

TEST(Metrics, ZeroBoundsGiveZeroOrInfinity) {
  const Metrics equal =
      compare_views(of_doubles(DType::float32, {0, 3}), of_doubles(DType::float32, {-0.0, 3}), {0, 0});
  EXPECT_EQ(equal.severity, 0);
  const Metrics differ =
      compare_views(of_doubles(DType::float32, {0, 3}), of_doubles(DType::float32, {1e-30, 3}), {1, 0});
  EXPECT_EQ(differ.severity, kInf);
  EXPECT_EQ(differ.max_rel, kInf);
}

TEST(Metrics, IntegersAreExactBeyondDouble) {
  const int64_t big = (int64_t{1} << 62) + 1;
  const std::vector<int64_t> a = {big, 5, std::numeric_limits<int64_t>::min()},
                             b = {big + 1, 5, std::numeric_limits<int64_t>::max()};
  const Metrics metrics = compare_views(Tensor::vector<int64_t>(a), Tensor::vector<int64_t>(b), {1, 1e30});
  EXPECT_EQ(metrics.mismatches, 2);
  EXPECT_EQ(metrics.severity, kInf);
  EXPECT_EQ(metrics.worst_index, std::vector<int64_t>{0});
  EXPECT_EQ(metrics.max_abs, 0x1p64);
  ASSERT_TRUE(metrics.worst_integers.has_value());
  EXPECT_EQ(metrics.worst_integers->a, big);
  EXPECT_EQ(metrics.worst_integers->b, big + 1);
  EXPECT_FALSE(metrics.worst_integers->is_unsigned);
  EXPECT_EQ(compare_views(Tensor::vector<int64_t>(a), Tensor::vector<int64_t>(a), {0, 0}).severity, 0);
}

TEST(Metrics, PackedIntegersBoolStringsAndComplex) {
  Tensor a = Tensor::zeros(DType::int4, Shape{3, 3}).take(), b = Tensor::zeros(DType::int4, Shape{3, 3}).take();
  store_int64s(b, 5, std::vector<int64_t>{-8});
  const Metrics packed = compare_views(a, b, {});
  EXPECT_EQ(packed.worst_index, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(packed.max_abs, 8);
  EXPECT_TRUE(packed.all_zero_a);
  EXPECT_FALSE(packed.all_equal_b);

  const std::vector<std::string> words = {"a", "b"}, others = {"a", "c"};
  const Metrics text = compare_views(Tensor::vector<std::string>(words), Tensor::vector<std::string>(others), {});
  EXPECT_EQ(text.mismatches, 1);
  EXPECT_EQ(text.severity, kInf);
  EXPECT_EQ(text.worst_index, std::vector<int64_t>{1});
  EXPECT_EQ(compare_views(Tensor::vector<std::string>(words), Tensor::vector<std::string>(words), {}).severity, 0);

  const std::vector<std::complex<float>> c = {{1, 2}, {3, 4}}, d = {{1, 2}, {3, 4.5F}};
  const Metrics complex =
      compare_views(Tensor::vector<std::complex<float>>(c), Tensor::vector<std::complex<float>>(d), {0, 0.25});
  EXPECT_EQ(complex.severity, 2);
  EXPECT_EQ(complex.worst_index, std::vector<int64_t>{1});
  EXPECT_EQ(complex.max_abs, 0.5);
}

TEST(Metrics, KnowConstantTensors) {
  const std::vector<double> mixed = {0.0, -0.0, 0.0}, nans = {kNaN, kNaN}, others = {1, 2};
  EXPECT_TRUE(compare_views(of_doubles(DType::float32, mixed), of_doubles(DType::float32, mixed), {}).all_zero_a);
  EXPECT_TRUE(compare_views(of_doubles(DType::float32, nans), of_doubles(DType::float32, nans), {}).all_equal_b);
  EXPECT_FALSE(compare_views(of_doubles(DType::float32, nans), of_doubles(DType::float32, nans), {}).all_zero_b);
  EXPECT_FALSE(compare_views(of_doubles(DType::float16, others), of_doubles(DType::float16, others), {}).all_equal_a);
}

TEST(Metrics, EmptyAndScalarTensors) {
  const Metrics empty = compare_views(Tensor::zeros(DType::float32, Shape{0, 4}).take(),
                                      Tensor::zeros(DType::float32, Shape{0, 4}).take(), {});
  EXPECT_EQ(empty.count, 0);
  EXPECT_EQ(empty.severity, 0);
  EXPECT_TRUE(empty.worst_index.empty());
  const Metrics scalar = compare_views(Tensor::scalar(2.0F), Tensor::scalar(3.0F), {0, 1});
  EXPECT_EQ(scalar.severity, 1);
  EXPECT_EQ(scalar.mismatches, 0);  // 1 is the limit
  EXPECT_EQ(scalar.worst_b, 3);
}

}  // namespace
}  // namespace parallax
