// SPDX-License-Identifier: Apache-2.0
// Pairs of quantized values and lookup tables against the definition in double, for every pair of values.
#include "runtime/device/cpu/int8_pairs.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "runtime/device/cpu/int8_lookup_table.h"

namespace parallax::runtime {
namespace quantized_pairs_test {

constexpr int64_t kAll = 256 * 256;

int64_t number_of(std::byte value, bool is_signed) {
  return is_signed ? static_cast<int64_t>(static_cast<int8_t>(value)) : static_cast<int64_t>(value);
}

int64_t expected_of(const QuantizedPairs& pairs, int64_t a, int64_t b, double low) {
  const double left = (static_cast<double>(a) - pairs.a.zero) * pairs.a.scale;
  const double right = (static_cast<double>(b) - pairs.b.zero) * pairs.b.scale;
  const double real = pairs.is_product ? left * right : left + right;
  return static_cast<int64_t>(std::clamp(std::nearbyint(real / pairs.y.scale) + pairs.y.zero, low, low + 255.0));
}

void expect_pairs(QuantizedPairs pairs, DType dtype) {
  std::vector<std::byte> a(kAll), b(kAll), y(kAll);
  for (size_t i = 0; i < a.size(); ++i) {
    a[i] = static_cast<std::byte>(i / 256);
    b[i] = static_cast<std::byte>(i % 256);
  }
  pairs.count = kAll - 5;
  ASSERT_TRUE(suits_quantized_pairs(pairs));
  combine_quantized(pairs, dtype, a.data(), b.data() + 3, y.data());
  const bool is_signed = dtype == DType::int8;
  for (size_t i = 0; i < static_cast<size_t>(pairs.count); ++i) {
    const std::byte right = pairs.b_is_one ? b[3] : b[i + 3];
    const int64_t wanted =
        expected_of(pairs, number_of(a[i], is_signed), number_of(right, is_signed), is_signed ? -128.0 : 0.0);
    ASSERT_EQ(number_of(y[i], is_signed), wanted) << i << ", " << pairs.is_product << pairs.b_is_one;
  }
}

TEST(QuantizedPairs, AreThoseOfTheDefinitionInDouble) {
  // The first scales make many quotients that are half way, or within float's rounding of it.
  const double scales[][3] = {{static_cast<double>(0.02F), static_cast<double>(0.03F), static_cast<double>(0.03F)},
                              {0.5, 0.25, 1.0},
                              {static_cast<double>(0.0123F), static_cast<double>(0.0007F), static_cast<double>(0.02F)}};
  for (const auto& [a, b, y] : scales) {
    for (const bool is_product : {false, true}) {
      for (const bool b_is_one : {false, true}) {
        expect_pairs({is_product, {a, 3}, {b, 101}, {y, 90}, 0, b_is_one}, DType::uint8);
        expect_pairs({is_product, {a, -3}, {b, 0}, {y, 11}, 0, b_is_one}, DType::int8);
      }
    }
  }
}

TEST(QuantizedPairs, LeaveScalesToOthersThatFloatDoesNotHold) {
  EXPECT_FALSE(suits_quantized_pairs({false, {1, 0}, {1, 0}, {1e-6, 0}, 1, false}));
  EXPECT_FALSE(suits_quantized_pairs({true, {1e-20, 0}, {1e-20, 0}, {1, 0}, 1, false}));
  EXPECT_FALSE(suits_quantized_pairs({false, {std::nan(""), 0}, {1, 0}, {1, 0}, 1, false}));
  EXPECT_FALSE(suits_quantized_pairs({false, {1, 0}, {0, 0}, {1, 0}, 1, false}));
}

TEST(Int8LookupTable, IsLookedUpForEveryQuantizedValue) {
  Int8LookupTable table;
  for (size_t value = 0; value < table.size(); ++value) table[value] = static_cast<uint8_t>(value * 7 + 5);
  std::vector<std::byte> x(1000), y(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::byte>(i * 3);
  look_up_bytes(table, static_cast<int64_t>(x.size()), x.data(), y.data());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(static_cast<uint8_t>(y[i]), table[static_cast<uint8_t>(x[i])]) << i;
}

}  // namespace quantized_pairs_test
}  // namespace parallax::runtime
