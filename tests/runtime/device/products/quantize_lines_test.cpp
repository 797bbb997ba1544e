// SPDX-License-Identifier: Apache-2.0
// Lines of quantized values against the definition in double, at all special numbers: ties, bounds, NaN, infinities.
#include "runtime/device/cpu/products/quantize_lines.h"

#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "runtime/device/cpu/buffer_pool.h"

namespace parallax::runtime {
namespace quantize_lines_test {

constexpr int64_t kCount = 24 * 40;

std::vector<float> specials() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> x{0.0F,  -0.0F,  kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(),
                       3e38F, -3e38F, 1e-42F};
  for (int half = -300; half < 300; ++half) x.push_back(static_cast<float>(half) * 0.25F);
  std::mt19937 engine(1);
  std::normal_distribution<float> draw(0, 40);
  while (x.size() < kCount) x.push_back(draw(engine));
  return x;
}

template <class T>
T clamped(double number, double zero) {
  const double low = std::numeric_limits<T>::lowest(), high = std::numeric_limits<T>::max();
  return static_cast<T>(std::clamp(std::nearbyint(number) + zero, low, high));
}

template <class T>
void check(DType dtype, int64_t inner, size_t lines) {
  Queue<Cpu> queue(BufferPool::create({}));
  const std::vector<float> x = specials();
  QuantizedLines parameters{kCount, inner, {}, {}};
  for (size_t line = 0; line < lines; ++line) {
    parameters.scales.push_back(0.5F + 0.125F * static_cast<float>(line));
    parameters.zeros.push_back(std::is_signed_v<T> ? static_cast<float>(line) - 7 : static_cast<float>(line) * 3);
  }
  ASSERT_TRUE(suits_lines(dtype, parameters));
  std::vector<T> quantized(kCount);
  std::vector<float> back(kCount);
  quantize_lines(queue, parameters, x.data(), dtype, reinterpret_cast<std::byte*>(quantized.data()));
  dequantize_lines(queue, parameters, dtype, reinterpret_cast<const std::byte*>(quantized.data()), back.data());
  std::vector<int64_t> sums(kCount);
  std::vector<T> again(kCount);
  for (size_t i = 0; i < kCount; ++i) sums[i] = static_cast<int64_t>(i * i) - 300000;
  requantize_lines(queue, parameters, sums.data(), dtype, reinterpret_cast<std::byte*>(again.data()));
  for (size_t i = 0; i < kCount; ++i) {
    const size_t line = i / static_cast<size_t>(inner) % lines;
    const float scale = parameters.scales[line], zero = parameters.zeros[line];
    const double number = x[i] != x[i] ? 0.0 : static_cast<double>(x[i] / scale);
    const T expected = clamped<T>(number, static_cast<double>(zero));
    EXPECT_EQ(quantized[i], expected) << x[i] << " by " << scale << " + " << zero;
    EXPECT_EQ(back[i], (static_cast<float>(expected) - zero) * scale) << i;
    EXPECT_EQ(again[i], clamped<T>(static_cast<double>(static_cast<float>(sums[i]) * scale), static_cast<double>(zero)))
        << sums[i];
  }
}

TEST(QuantizeLines, FollowTheDefinition) {
  for (const auto& [inner, lines] : {std::pair{kCount, size_t{1}}, {int64_t{40}, 24}, {int64_t{1}, 24}}) {
    check<uint8_t>(DType::uint8, inner, lines);
    check<int8_t>(DType::int8, inner, lines);
    check<uint16_t>(DType::uint16, inner, lines);
    check<int16_t>(DType::int16, inner, lines);
  }
}

TEST(QuantizeLines, OthersAreLeftToTheGeneralCase) {
  EXPECT_FALSE(suits_lines(DType::int4, {8, 8, {1.0F}, {0.0F}}));
  EXPECT_FALSE(suits_lines(DType::int64, {8, 8, {1.0F}, {0.0F}}));
  EXPECT_FALSE(suits_lines(DType::int8, {8, 2, {1.0F, 2.0F}, {0.0F, 0.0F}}));
}

}  // namespace quantize_lines_test
}  // namespace parallax::runtime
