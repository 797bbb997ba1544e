// SPDX-License-Identifier: Apache-2.0
// Int8 products and convolutions on panels equal those of the loops, as sums and as quantized values, in either order
// of axes.
#include "runtime/device/cpu/products/int8_conv.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/products/conv_loops.h"
#include "runtime/device/cpu/products/gemm_kernels.h"
#include "runtime/device/cpu/products/int8_panels.h"
#include "tests/runtime/device/products/conv_cases.h"

namespace parallax::runtime {
namespace int8_conv_test {

struct Numbers {
  std::vector<std::byte> bytes;
  std::vector<int64_t> numbers;
  QuantizedValues quantized;
  Numbers(int64_t count, bool is_signed, int32_t zero, unsigned seed)
      : bytes(static_cast<size_t>(count)), quantized{bytes.data(), is_signed, zero, true} {
    std::mt19937 engine(seed);
    const int lowest = is_signed ? -128 : 0;
    for (std::byte& byte : bytes) {
      const int value = lowest + static_cast<int>(engine() % 256);
      byte = static_cast<std::byte>(value);
      numbers.push_back(value - zero);
    }
  }
};

std::vector<float> scales_of(int64_t count) {
  std::vector<float> scales;
  for (int64_t i = 0; i < count; ++i) scales.push_back(0.0007F + 0.00003F * static_cast<float>(i % 13));
  return scales;
}

// The definition, for one sum.
int64_t quantized_sum(int64_t sum, float scale, float zero, bool is_signed) {
  const double low = is_signed ? -128 : 0;
  const double value = std::nearbyint(static_cast<double>(static_cast<float>(sum) * scale)) + static_cast<double>(zero);
  return static_cast<int64_t>(std::min(std::max(value, low), low + 255));
}

int64_t read(const std::byte* data, DType dtype, int64_t i) {
  if (dtype == DType::int32) return reinterpret_cast<const int32_t*>(data)[i];
  return dtype == DType::int8 ? reinterpret_cast<const int8_t*>(data)[i] : reinterpret_cast<const uint8_t*>(data)[i];
}

constexpr DType kResults[] = {DType::int32, DType::uint8, DType::int8};

Int8Result result_of(std::vector<std::byte>& to, DType dtype, int64_t count, int64_t columns, const int64_t* bias) {
  to.assign(static_cast<size_t>(count * 4), std::byte{0x55});
  Int8Result result{to.data(), dtype, {}, 0, bias};
  if (dtype != DType::int32) {
    result.scales = scales_of(columns);
    result.zero = dtype == DType::int8 ? -3 : 101;
  }
  return result;
}

// `expected` are the sums, whose column is i / inner % columns.
void expect_results(const std::vector<std::byte>& got, const Int8Result& result, const std::vector<int64_t>& expected,
                    int64_t inner, int64_t columns) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const size_t column = i / static_cast<size_t>(inner) % static_cast<size_t>(columns);
    const int64_t wanted = result.dtype == DType::int32 ? expected[i]
                                                        : quantized_sum(expected[i], result.scales[column], result.zero,
                                                                        result.dtype == DType::int8);
    ASSERT_EQ(read(got.data(), result.dtype, static_cast<int64_t>(i)), wanted) << "element " << i;
  }
}

TEST(Int8Conv, MatricesEqualTheLoops) {
  if (!has_int8_panels()) GTEST_SKIP() << "this processor has no products of bytes on panels";
  Queue<Cpu> queue(BufferPool::create({}));
  for (const auto& [m, n, k] : {std::tuple{1, 70, 33}, std::tuple{7, 16, 64}, std::tuple{200, 130, 21}}) {
    for (const bool a_signed : {false, true}) {
      for (const auto& [b_signed, b_zero] : {std::pair{true, 0}, std::pair{true, -7}, std::pair{false, 100}}) {
        const Numbers a(int64_t{2} * m * k, a_signed, a_signed ? -5 : 77, 1), b(int64_t{k} * n, b_signed, b_zero, 2);
        std::vector<int64_t> bias;
        for (int64_t i = 0; i < n; ++i) bias.push_back(i * 1000 - 9000);
        GemmProblem problem;
        problem.m = m;
        problem.n = n;
        problem.k = k;
        problem.a_offsets = {0, int64_t{m} * k};
        problem.b_offsets = {0, 0};
        ASSERT_TRUE(suits_int8_panels(problem, b.quantized));
        std::vector<int64_t> expected(static_cast<size_t>(2 * m * n));
        for (int64_t i = 0; i < 2; ++i)
          gemm_integers(m, n, k, a.numbers.data() + i * m * k, b.numbers.data(), expected.data() + i * m * n);
        for (size_t i = 0; i < expected.size(); ++i) expected[i] += bias[i % static_cast<size_t>(n)];
        for (const DType dtype : kResults) {
          std::vector<std::byte> got;
          const Int8Result result = result_of(got, dtype, int64_t{2} * m * n, n, bias.data());
          ASSERT_TRUE(gemm(queue, problem, a.quantized, b.quantized, result).ok());
          expect_results(got, result, expected, 1, n);
        }
      }
    }
  }
}

// clang-format off
const std::vector<ConvCase> kConvolutions = {
    {"plain", 2, 16, 20, 1, {11, 19}, {3, 3}, {2, 1}, {1, 1}, {1, 2}, {1, 0}},
    {"few_channels", 2, 3, 70, 1, {11, 19}, {3, 3}, {2, 1}, {1, 1}, {1, 2}, {1, 0}},
    {"groups", 2, 24, 64, 4, {11, 19}, {3, 3}, {2, 1}, {1, 1}, {1, 2}, {1, 0}},
    {"depthwise", 2, 80, 80, 80, {11, 19}, {3, 3}, {2, 1}, {1, 1}, {1, 2}, {1, 0}},
    {"dilated", 2, 8, 8, 1, {11, 19}, {5, 2}, {1, 2}, {2, 3}, {4, 3}, {4, 0}},
    {"dilated_depthwise", 2, 30, 30, 30, {11, 19}, {5, 2}, {1, 2}, {2, 3}, {4, 3}, {4, 0}},
    {"dilated_groups", 2, 8, 34, 2, {11, 19}, {5, 2}, {1, 2}, {2, 3}, {4, 3}, {4, 0}},
    {"pointwise", 2, 20, 24, 1, {11, 19}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},
    {"one_axis", 2, 12, 12, 1, {40}, {4}, {1}, {1}, {2}, {1}},
    {"one_axis_depthwise", 2, 70, 70, 70, {40}, {4}, {1}, {1}, {2}, {1}},
    {"volume", 2, 6, 32, 2, {4, 5, 6}, {2, 3, 1}, {1, 1, 3}, {2, 1, 1}, {1, 0, 2}, {0, 2, 0}},
};
// clang-format on

// The numbers with the channels last, and back.
std::vector<std::byte> permuted(const std::vector<std::byte>& from, int64_t size, int64_t batch, int64_t rows,
                                int64_t columns) {
  std::vector<std::byte> to(from.size());
  for (int64_t i = 0; i < batch * rows * columns; ++i) {
    const int64_t row = i / columns % rows, column = i % columns, sample = i / columns / rows;
    std::copy_n(from.begin() + i * size, size, to.begin() + ((sample * columns + column) * rows + row) * size);
  }
  return to;
}

void expect_conv(const ConvProblem& given, bool x_signed, bool filters_signed, int32_t filters_zero) {
  Queue<Cpu> queue(BufferPool::create({}));
  ConvProblem problem = given;
  const int64_t in = product(problem.in_spatial), locations = product(problem.out_spatial);
  const int64_t taps = problem.in_channels / problem.groups * product(problem.kernel);
  Numbers x(problem.batch * problem.in_channels * in, x_signed, x_signed ? -5 : 77, 3);
  const Numbers filters(problem.out_channels * taps, filters_signed, filters_zero, 4);
  if (!suits_int8_panels(problem, filters.quantized)) {
    EXPECT_EQ(problem.groups, problem.in_channels);  // one filter a channel, whose numbers leave int8
    return;
  }
  std::vector<int64_t> bias;
  for (int64_t i = 0; i < problem.out_channels; ++i) bias.push_back(i * 100 - 2000);
  std::vector<int64_t> expected(static_cast<size_t>(problem.batch * problem.out_channels * locations));
  conv_loops(problem, x.numbers.data(), filters.numbers.data(), bias.data(), expected.data());
  for (const bool last : {false, true}) {
    problem.x_channels_last = problem.y_channels_last = last;
    const std::vector<std::byte> bytes =
        last ? permuted(x.bytes, 1, problem.batch, problem.in_channels, in) : std::vector<std::byte>(x.bytes);
    QuantizedValues quantized = x.quantized;
    quantized.data = bytes.data();
    for (const DType dtype : kResults) {
      std::vector<std::byte> got;
      const auto count = static_cast<int64_t>(expected.size());
      const Int8Result result = result_of(got, dtype, count, problem.out_channels, bias.data());
      ASSERT_TRUE(conv(queue, problem, quantized, filters.quantized, result).ok());
      const int64_t size = dtype == DType::int32 ? 4 : 1;
      got.resize(static_cast<size_t>(count * size));
      expect_results(last ? permuted(got, size, problem.batch, locations, problem.out_channels) : got, result, expected,
                     locations, problem.out_channels);
    }
  }
}

TEST(Int8Conv, ConvolutionsEqualTheLoops) {
  if (!has_int8_panels()) GTEST_SKIP() << "this processor has no products of bytes on panels";
  for (const ConvCase& each : kConvolutions) {
    for (const bool x_signed : {false, true}) {
      for (const auto& [filters_signed, zero] : {std::pair{true, 0}, std::pair{true, 9}, std::pair{false, 128}}) {
        SCOPED_TRACE(testing::Message() << each << ", " << x_signed << filters_signed << zero);
        expect_conv(problem_of(each), x_signed, filters_signed, zero);
      }
    }
  }
}

}  // namespace int8_conv_test
}  // namespace parallax::runtime
