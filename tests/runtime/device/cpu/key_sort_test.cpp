// SPDX-License-Identifier: Apache-2.0
// The order by keys is that of comparisons: all types, both orders, few and all of a row, with values that are equal,
// not numbers, infinite, and zeros of both signs.
#include <cmath>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "runtime/device/cpu/sort.h"

namespace parallax::runtime::key_sort_test {
namespace {

template <class C>
std::vector<C> numbers(int64_t count, uint32_t kinds) {
  std::mt19937 random(static_cast<uint32_t>(count) + kinds);
  std::vector<C> values;
  for (int64_t i = 0; i < count; ++i) {
    const auto drawn = static_cast<int64_t>(random() % kinds) - (std::is_unsigned_v<C> ? 0 : kinds / 2);
    values.push_back(static_cast<C>(drawn));
    if constexpr (std::is_floating_point_v<C>) {
      if (random() % 50 == 0) values.back() = std::numeric_limits<C>::quiet_NaN();
      if (random() % 60 == 0) values.back() = -std::numeric_limits<C>::quiet_NaN();
      if (random() % 70 == 0) values.back() = std::numeric_limits<C>::infinity() * (random() % 2 == 0 ? 1 : -1);
      if (random() % 80 == 0) values.back() = -C(0);
    } else if (random() % 40 == 0) {
      values.back() = random() % 2 == 0 ? std::numeric_limits<C>::max() : std::numeric_limits<C>::lowest();
    }
  }
  return values;
}

template <class C>
class KeySortOf : public testing::Test {};
using Arithmetics = testing::Types<float, double, int64_t, uint64_t>;
TYPED_TEST_SUITE(KeySortOf, Arithmetics);

TYPED_TEST(KeySortOf, GivesTheIndicesOfComparing) {
  for (const bool largest : {false, true}) {
    const TopFirst before{largest};
    KeySort<TypeParam> by_keys(before.number_order());
    sort_detail::CompareSort<TypeParam, TopFirst> by_comparing(before);
    for (const int64_t length : {1, 15, 16, 17, 100, 255, 256, 1000, 4099}) {
      for (const uint32_t kinds : {1U, 5U, 300U, 1U << 20}) {
        const std::vector<TypeParam> row = numbers<TypeParam>(length, kinds);
        for (const int64_t k : {int64_t{0}, int64_t{1}, length / 20, length / 8, length / 2, length}) {
          if (k > length) continue;
          std::vector<int64_t> got(static_cast<size_t>(k), -1), wanted(static_cast<size_t>(k), -2);
          by_keys(row.data(), length, k, got.data());
          by_comparing(row.data(), length, k, wanted.data());
          ASSERT_EQ(got, wanted) << length << " of " << kinds << " kinds, first " << k;
        }
      }
    }
  }
}

TEST(KeySort, TakesRowsWhoseIndicesFitWithAKey) {
  EXPECT_TRUE(KeySort<float>::takes(int64_t{UINT32_MAX}));
  EXPECT_FALSE(KeySort<float>::takes(int64_t{UINT32_MAX} + 1));
  EXPECT_TRUE(KeySort<double>::takes(int64_t{UINT32_MAX} + 1));
}

}  // namespace
}  // namespace parallax::runtime::key_sort_test
