// SPDX-License-Identifier: Apache-2.0
// Statistics: right, the same with every instruction set and any number of threads, and changed by a permutation.
#include "inspector/dump/statistics/statistics.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "inspector/base/crc32c.h"
#include "inspector/base/thread_pool.h"
#include "inspector/dump/statistics/statistics_kernel.h"
#include "inspector/dump/statistics/statistics_write.h"
#include "inspector/tensor/elements.h"
#include "tests/inspector/dump/support.h"

namespace parallax::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

Tensor normal_floats(int64_t count, uint64_t seed, double mean = 0, double deviation = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(mean, deviation);
  Tensor tensor = Tensor::zeros(DType::float32, {count}).take();
  for (float& value : tensor.mutable_as<float>()) value = static_cast<float>(normal(random));
  return tensor;
}

// The definitions, by the book: two passes in long double.
TensorStatistics by_definition(const TensorView& view) {
  const int64_t count = view.element_count();
  std::vector<double> values(static_cast<size_t>(count));
  load_doubles(view, 0, values);
  TensorStatistics s;
  s.count = count;
  s.min = std::numeric_limits<double>::infinity();
  s.max = -s.min;
  long double sum = 0;
  long double squares = 0;
  int64_t finite = 0;
  for (const double x : values) {
    s.nan += std::isnan(x);
    s.positive_inf += std::isinf(x) && x > 0;
    s.negative_inf += std::isinf(x) && x < 0;
    s.zeros += x == 0;
    if (!std::isnan(x)) {
      s.min = std::min(s.min, x);
      s.max = std::max(s.max, x);
    }
    if (!std::isfinite(x)) continue;
    ++finite;
    sum += x;
    squares += static_cast<long double>(x) * x;
  }
  const long double mean = sum / finite;
  long double centered = 0;
  for (const double x : values) {
    if (std::isfinite(x)) centered += (x - mean) * (x - mean);
  }
  s.mean = static_cast<double>(mean);
  s.std = static_cast<double>(std::sqrt(centered / finite));
  s.l2 = static_cast<double>(std::sqrt(squares));
  return s;
}

void expect_close(const TensorStatistics& actual, const TensorStatistics& expected) {
  EXPECT_EQ(actual.count, expected.count);
  EXPECT_EQ(actual.min, expected.min);
  EXPECT_EQ(actual.max, expected.max);
  EXPECT_EQ(actual.zeros, expected.zeros);
  EXPECT_EQ(actual.nan, expected.nan);
  EXPECT_EQ(actual.positive_inf, expected.positive_inf);
  EXPECT_EQ(actual.negative_inf, expected.negative_inf);
  EXPECT_NEAR(actual.mean, expected.mean, 1e-12 * expected.l2);
  EXPECT_NEAR(actual.std, expected.std, 1e-7 * expected.std);
  EXPECT_NEAR(actual.l2, expected.l2, 1e-12 * expected.l2);
}

TEST(Statistics, AgreeWithTheirDefinitionsForEveryNumericType) {
  for (const DTypeInfo& info : all_dtypes()) {
    if (info.kind == DTypeKind::string || info.kind == DTypeKind::complex) continue;
    for (const int64_t count : {1, 63, 64, 65, 1000, 40000}) {
      SCOPED_TRACE(std::string(info.name) + " " + std::to_string(count));
      Tensor tensor = Tensor::zeros(info.dtype, {count}).take();
      const Tensor values = normal_floats(count, 7, 1, 3);
      std::vector<double> doubles(static_cast<size_t>(count));
      load_doubles(values, 0, doubles);
      const double most = info.bits <= 2 ? 1 : 7;
      for (double& x : doubles) {
        if (info.kind != DTypeKind::floating)
          x = std::clamp(std::round(x), info.kind == DTypeKind::signed_integer ? -2.0 : 0.0, most);
        if (info.kind == DTypeKind::signed_integer && info.bits == 2) x = std::min(x, 1.0);
        if (info.dtype == DType::float8e8m0) x = std::abs(x) + 1;
      }
      store_doubles(tensor, 0, doubles);
      expect_close(compute_statistics(tensor), by_definition(tensor));
    }
  }
}

TEST(Statistics, CountNumbersThatAreNotFiniteByClass) {
  Tensor tensor = normal_floats(70000, 3);
  const auto values = tensor.mutable_as<float>();
  for (const size_t index : {0U, 100U, 20000U, 69999U}) values[index] = kNaN;
  for (const size_t index : {5U, 64U, 30000U}) values[index] = kInfinity;
  for (const size_t index : {6U, 69998U}) values[index] = -kInfinity;
  values[7] = -0.0F;
  const TensorStatistics statistics = compute_statistics(tensor);
  EXPECT_EQ(statistics.nan, 4);
  EXPECT_EQ(statistics.positive_inf, 3);
  EXPECT_EQ(statistics.negative_inf, 2);
  EXPECT_EQ(statistics.zeros, 1);
  expect_close(statistics, by_definition(tensor));
}

TEST(Statistics, NothingFiniteAndNothingAtAll) {
  const TensorStatistics nan = compute_statistics(Tensor::from<float>({2}, std::vector<float>{kNaN, kNaN}));
  EXPECT_TRUE(std::isnan(nan.min) && std::isnan(nan.max) && std::isnan(nan.mean) && std::isnan(nan.std));
  const TensorStatistics infinite = compute_statistics(Tensor::from<float>({2}, std::vector<float>{kInfinity, kNaN}));
  EXPECT_EQ(infinite.min, kInfinity);
  EXPECT_TRUE(std::isnan(infinite.mean));
  const TensorStatistics empty = compute_statistics(Tensor::zeros(DType::float32, {0}).take());
  EXPECT_EQ(empty.count, 0);
  EXPECT_TRUE(std::isnan(empty.min) && std::isnan(empty.mean));
}

TEST(Statistics, ASmallSpreadAroundALargeMeanIsSeen) {
  const Tensor far = normal_floats(100000, 1, 1e6, 0.5);
  expect_close(compute_statistics(far), by_definition(far));
  const Tensor constant = Tensor::from<float>({50000}, std::vector<float>(50000, 0.1F));
  EXPECT_LT(compute_statistics(constant).std, 1e-12);
}

TEST(Statistics, SquaresBeyondTheRangeOfNumbersAreNoSmallSpread) {
  const double largest = std::numeric_limits<double>::max();
  const TensorStatistics three = compute_statistics(Tensor::vector<double>(std::vector<double>{1e308, -1e308, 1e308}));
  EXPECT_DOUBLE_EQ(three.mean, 1e308 / 3);
  EXPECT_DOUBLE_EQ(three.std, 1e308 * (std::sqrt(8.0) / 3));
  EXPECT_DOUBLE_EQ(three.l2, 1e308 * std::sqrt(3.0));
  const TensorStatistics two = compute_statistics(Tensor::vector<double>(
      std::vector<double>{largest, largest, std::nan(""), std::numeric_limits<double>::infinity()}));
  EXPECT_EQ(two.mean, largest);
  EXPECT_EQ(two.std, 0);
  EXPECT_EQ(two.nan + two.positive_inf, 2);
}

TEST(Statistics, ComplexNumbersAreTwiceAsManyRealOnes) {
  const TensorStatistics statistics =
      compute_statistics(Tensor::from<std::complex<float>>({2}, std::vector<std::complex<float>>{{1, -4}, {0, 2}}));
  EXPECT_EQ(statistics.count, 4);
  EXPECT_EQ(statistics.min, -4);
  EXPECT_EQ(statistics.zeros, 1);
}

enum class ChunkUse : uint8_t { summed, checked, copied };

// The kernel of one level over a chunk; what it copied must be the chunk and nothing after it, and a CRC that
// it took that of the chunk's whole groups.
dump::ChunkStatistics run_kernel(VectorLevel level, dump::NumberFormat format, const std::byte* data, int64_t count,
                                 ChunkUse use) {
  constexpr std::byte kUntouched{0xA5};
  const size_t size = static_cast<size_t>(count) * (format == dump::NumberFormat::float64   ? 8
                                                    : format == dump::NumberFormat::float32 ? 4
                                                                                            : 2);
  std::vector<std::byte> buffer(size + 2 * dump::kCopyAlignment, kUntouched);
  void* aligned = buffer.data();
  size_t room = buffer.size();
  std::align(dump::kCopyAlignment, size, aligned, room);
  auto* const target = static_cast<std::byte*>(aligned);
  dump::ChunkStatistics out{};
  dump::GroupsCrc crc;
  dump::chunk_kernel(level)(format, data, count, 3 * dump::kChunkElements, use == ChunkUse::copied ? target : nullptr,
                            out, use == ChunkUse::summed ? nullptr : &crc);
  if (crc.is_taken) {
    EXPECT_NE(use, ChunkUse::summed);
    const size_t group_bytes = size / static_cast<size_t>(count) * static_cast<size_t>(count / 64 * 64);
    EXPECT_EQ(crc.part_bytes * dump::GroupsCrc::kParts, group_bytes);
    uint32_t joined = 0;
    for (const uint32_t part : crc.parts) joined = crc32c_joined(joined, part, crc.part_bytes);
    EXPECT_EQ(joined, crc32c(data, group_bytes)) << "count " << count;
  }
  if (use == ChunkUse::copied) {
    EXPECT_EQ(std::memcmp(target, data, size), 0) << "level " << static_cast<int>(level) << " count " << count;
    EXPECT_EQ(target[size], kUntouched) << "level " << static_cast<int>(level) << " count " << count;
  }
  return out;
}

bool same_chunks(const dump::ChunkStatistics& a, const dump::ChunkStatistics& b) {
  return same_number(a.sum, b.sum) && same_number(a.sum_of_squares, b.sum_of_squares) &&
         same_number(a.centered_squares, b.centered_squares) && same_number(a.min, b.min) &&
         same_number(a.max, b.max) && a.nan == b.nan && a.zeros == b.zeros && a.positive_inf == b.positive_inf &&
         a.negative_inf == b.negative_inf && a.count == b.count &&
         std::ranges::equal(a.projections, b.projections, same_number);
}

TEST(Statistics, AllInstructionSetsGiveTheSameBits) {
  using namespace dump;
  int compared = 0;
  for (const int64_t count : {int64_t{1}, int64_t{63}, int64_t{64}, int64_t{130}, int64_t{5000}, kChunkElements}) {
    for (const bool has_nan : {false, true}) {
      Tensor tensor =
          random_tensor(DType::float64, {count}, static_cast<uint64_t>(count));  // random bits, read as each format
      if (!has_nan)
        std::ranges::copy(normal_floats(2 * count, 9).as<float>(), reinterpret_cast<float*>(tensor.mutable_data()));
      for (const NumberFormat format :
           {NumberFormat::float64, NumberFormat::float32, NumberFormat::float16, NumberFormat::bfloat16}) {
        const std::byte* data = tensor.view().data;
        const ChunkStatistics portable = run_kernel(VectorLevel::baseline, format, data, count, ChunkUse::summed);
        EXPECT_TRUE(same_chunks(portable, run_kernel(VectorLevel::baseline, format, data, count, ChunkUse::copied)));
        for (const VectorLevel level : {VectorLevel::avx2, VectorLevel::avx512}) {
          if (level > vector_level()) continue;
          for (const ChunkUse use : {ChunkUse::summed, ChunkUse::checked, ChunkUse::copied}) {
            EXPECT_TRUE(same_chunks(portable, run_kernel(level, format, data, count, use)))
                << "format " << static_cast<int>(format) << " level " << name_of(level) << " count " << count;
            ++compared;
          }
        }
      }
    }
  }
  if (compared == 0) GTEST_SKIP() << "this CPU has neither AVX2 nor AVX-512";
}

// Every float16 there is, so that subnormal ones and NaNs meet each way of widening.
TEST(Statistics, AllInstructionSetsWidenEveryHalfAlike) {
  using namespace dump;
  std::vector<uint16_t> float16s(1 << 16);
  std::iota(float16s.begin(), float16s.end(), uint16_t{0});
  for (size_t begin = 0; begin < float16s.size(); begin += 64) {
    const auto* data = reinterpret_cast<const std::byte*>(float16s.data() + begin);
    const ChunkStatistics portable =
        run_kernel(VectorLevel::baseline, NumberFormat::float16, data, 64, ChunkUse::summed);
    for (const VectorLevel level : {VectorLevel::avx2, VectorLevel::avx512}) {
      if (level > vector_level()) continue;
      ASSERT_TRUE(same_chunks(portable, run_kernel(level, NumberFormat::float16, data, 64, ChunkUse::summed))) << begin;
    }
  }
}

TEST(Statistics, ThreadsDoNotChangeThemAndCopiesAreExact) {
  const Tensor tensor = normal_floats(1000003, 5);
  set_thread_count(1);
  const TensorStatistics alone = compute_statistics(tensor);
  for (const int threads : {2, 5}) {
    set_thread_count(threads);
    Tensor copy = Tensor::zeros(DType::float32, tensor.shape()).take();
    const CheckedCopy checked = copy_with_statistics(tensor, copy.mutable_data());
    EXPECT_TRUE(same_statistics(checked.statistics, alone));
    EXPECT_EQ(checked.crc, crc32c(tensor.view().data, tensor.size_bytes()));
    EXPECT_TRUE(same_bits(copy, tensor));
  }
  set_thread_count(0);
}

TEST(Statistics, ZerosOfBothSignsGiveOneExtreme) {
  for (size_t location = 0; location < 130; ++location) {
    std::vector<float> numbers(130, 0.0F);
    numbers[location] = -0.0F;
    for (const float other : {0.0F, 1.0F, -1.0F}) {
      numbers[(location + 3) % 130] = other;
      const TensorStatistics seen = compute_statistics(Tensor::vector<float>(numbers));
      EXPECT_FALSE(seen.min == 0 && std::signbit(seen.min)) << location << " " << other;
      EXPECT_FALSE(seen.max == 0 && std::signbit(seen.max)) << location << " " << other;
    }
  }
}

TEST(Statistics, EveryTypeIsCopiedExactly) {
  for (const DTypeInfo& info : all_dtypes()) {
    if (info.kind == DTypeKind::string) continue;
    for (const int64_t count : {3, 300001}) {
      const Tensor tensor = random_tensor(info.dtype, {count}, 4);
      Tensor copy = Tensor::zeros(info.dtype, {count}).take();
      const uint32_t crc = copy_with_statistics(tensor, copy.mutable_data()).crc;
      EXPECT_EQ(crc, crc32c(tensor.view().data, tensor.size_bytes())) << info.name << count;
      EXPECT_TRUE(same_bits(copy, tensor)) << info.name << count;
    }
  }
}

Tensor texts_of(std::vector<std::string> texts) {
  Tensor tensor = Tensor::zeros(DType::string, {static_cast<int64_t>(texts.size())}).take();
  std::ranges::copy(texts, tensor.mutable_as<std::string>().begin());
  return tensor;
}

TEST(Statistics, TextsAreToldApartByTheirProjections) {
  const auto projections = [](const Tensor& tensor) { return compute_statistics(tensor).projections; };
  const Tensor texts = texts_of({"one", "two", ""});
  EXPECT_EQ(projections(texts), projections(texts_of({"one", "two", ""})));
  EXPECT_NE(projections(texts), projections(texts_of({"one", "Two", ""})));
  EXPECT_NE(projections(texts), projections(texts_of({"two", "one", ""})));
  EXPECT_NE(projections(texts_of({""})), decltype(TensorStatistics::projections){});
  EXPECT_EQ(compute_statistics(texts).count, 3);
  EXPECT_TRUE(std::isnan(compute_statistics(texts).min));
}

TEST(Statistics, ThoseOfASequenceAreOfAllItsElements) {
  const Tensor first = normal_floats(40000, 1), second = normal_floats(100, 2, 3);
  Tensor whole = Tensor::zeros(DType::float32, {40100}).take();
  std::ranges::copy(first.as<float>(), whole.mutable_as<float>().begin());
  std::ranges::copy(second.as<float>(), whole.mutable_as<float>().begin() + 40000);
  const auto sequence_of = [](std::vector<Value> items) {
    SequenceValue sequence;
    sequence.items = std::move(items);
    return Value(std::move(sequence));
  };
  const TensorStatistics joined = value_statistics(sequence_of({Value(first), Value(second)}));
  const TensorStatistics expected = compute_statistics(whole);
  EXPECT_EQ(joined.count, expected.count);
  EXPECT_EQ(joined.min, expected.min);
  EXPECT_EQ(joined.max, expected.max);
  EXPECT_NEAR(joined.mean, expected.mean, 1e-12);
  EXPECT_NEAR(joined.std, expected.std, 1e-12);
  EXPECT_NEAR(joined.l2, expected.l2, 1e-9);
  const TensorStatistics permuted = value_statistics(sequence_of({Value(second), Value(first)}));
  EXPECT_NE(permuted.projections, joined.projections);
  const TensorStatistics texts = value_statistics(sequence_of({Value(texts_of({"one"})), Value(texts_of({"two"}))}));
  EXPECT_TRUE(std::isnan(texts.min) && std::isnan(texts.mean));
  EXPECT_EQ(value_statistics(sequence_of({})).count, 0);
}

TEST(Statistics, WhatIsWrittenPartByPartIsTheSameAsTheCopy) {
  for (const DTypeInfo& info : all_dtypes()) {
    if (info.kind == DTypeKind::string) continue;
    for (const int64_t count : {0, 3, 2500001}) {  // the last in several parts
      const Tensor tensor = random_tensor(info.dtype, {count}, 4);
      Tensor copy = Tensor::zeros(info.dtype, {count}).take();
      size_t end = 0;
      const auto written =
          write_with_statistics(tensor, [&](uint64_t offset, std::span<const std::byte> part) -> Status {
            EXPECT_EQ(offset, end);
            std::ranges::copy(part, copy.mutable_data() + offset);
            end += part.size();
            return {};
          });
      ASSERT_OK(written);
      EXPECT_EQ(end, tensor.size_bytes()) << info.name << count;
      EXPECT_TRUE(same_bits(copy, tensor)) << info.name << count;
      EXPECT_EQ(written->crc, crc32c(tensor.view().data, tensor.size_bytes())) << info.name << count;
      EXPECT_TRUE(same_statistics(written->statistics, compute_statistics(tensor))) << info.name << count;
    }
  }
}

TEST(Statistics, AWriterThatFailsEndsThePass) {
  const Tensor tensor = normal_floats(3000000, 5);
  int calls = 0;
  const auto written = write_with_statistics(tensor, [&](uint64_t, std::span<const std::byte>) -> Status {
    ++calls;
    return io_error("no more");
  });
  ASSERT_FALSE(written.ok());
  EXPECT_EQ(written.error().message, "no more");
  EXPECT_EQ(calls, 1);
}

TEST(Statistics, FewElementsOfABundleHaveTheSameSigns) {
  std::map<std::vector<double>, std::vector<size_t>> locations;
  for (size_t location = 0; location < 512; ++location) {
    std::vector<float> values(1024, 0.0F);
    values[512 + location] = 1;
    const TensorStatistics statistics = compute_statistics(Tensor::from<float>({1024}, values));
    for (const double projection : statistics.projections) EXPECT_EQ(std::abs(projection), 1);
    locations[{statistics.projections.begin(), statistics.projections.end()}].push_back(location);
  }
  EXPECT_EQ(locations.size(), 128U);
  for (const auto& [signs, same] : locations) {
    ASSERT_EQ(same.size(), 4U);
    for (const size_t a : same) {
      for (const size_t b : same) {
        if (a == b) continue;
        EXPECT_NE(a / 64, b / 64) << "of one group";
        EXPECT_NE(a / 8 % 8, b / 8 % 8) << "rows of one number";
        EXPECT_NE(b, a / 8 % 8 * 64 + a / 64 * 8 + a % 8) << "groups and rows exchanged";
      }
    }
  }
}

// The formula of chunk_statistics.h, element by element.
TEST(Statistics, ProjectionsFollowTheirFormula) {
  for (const int64_t count : {1, 63, 64, 130, 300, 511, 512, 1000, 16384, 20000}) {
    const Tensor tensor = normal_floats(count, 21);
    std::array<double, kProjectionCount> expected{};
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double x = tensor.as<float>()[static_cast<size_t>(i)];
      const auto group = static_cast<int>(i / 64 % 8), row = static_cast<int>(i / 8 % 8),
                 lane = static_cast<int>(i % 8);
      sum += x;
      for (int k = 0; k < 8; ++k) {
        const double sign = (statistics::bundle_sign_bits(i / 512) >> k & 1U) != 0 ? -1 : 1;
        expected[static_cast<size_t>(k)] += sign * statistics::group_sign(group) * statistics::lane_sign(k, lane) *
                                            statistics::row_sign(k, statistics::row_index(group, row)) * x;
      }
    }
    const TensorStatistics statistics = compute_statistics(tensor);
    for (size_t k = 0; k < kProjectionCount; ++k)
      EXPECT_NEAR(statistics.projections[k], expected[k], 1e-9) << count << " elements, projection " << k;
    EXPECT_NEAR(statistics.mean * static_cast<double>(count), sum, 1e-9) << count;
  }
}

TEST(Statistics, APermutationChangesTheProjections) {
  const Tensor tensor = normal_floats(4096, 11);
  const TensorStatistics original = compute_statistics(tensor);
  Tensor transposed = Tensor::zeros(DType::float32, {4096}).take();
  for (size_t row = 0; row < 64; ++row) {
    for (size_t column = 0; column < 64; ++column)
      transposed.mutable_as<float>()[column * 64 + row] = tensor.as<float>()[row * 64 + column];
  }
  const TensorStatistics changed = compute_statistics(transposed);
  EXPECT_EQ(changed.min, original.min);
  EXPECT_NEAR(changed.l2, original.l2, 1e-12 * original.l2);
  for (size_t k = 0; k < kProjectionCount; ++k)
    EXPECT_GT(std::abs(changed.projections[k] - original.projections[k]), 1e-3) << k;
}

}  // namespace
}  // namespace parallax::test
