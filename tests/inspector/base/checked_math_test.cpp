// SPDX-License-Identifier: Apache-2.0
// Size arithmetic never wraps.
#include "inspector/base/checked_math.h"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace parallax {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(CheckedMath, SumsAndProductsUpToTheLimit) {
  EXPECT_EQ(checked_add(kMax - 1, 1), kMax);
  EXPECT_EQ(checked_add(kMax, 1), std::nullopt);
  EXPECT_EQ(checked_mul(int64_t{1} << 31, int64_t{1} << 31), int64_t{1} << 62);
  EXPECT_EQ(checked_mul(int64_t{1} << 32, int64_t{1} << 31), std::nullopt);
  EXPECT_EQ(checked_mul(std::numeric_limits<int64_t>::min(), -1), std::nullopt);
}

TEST(CheckedMath, ProductOfAZeroIsZeroWhereverItStands) {
  const int64_t huge = int64_t{1} << 40;
  EXPECT_EQ(checked_product(std::vector<int64_t>{huge, huge, 0}), 0);
  EXPECT_EQ(checked_product(std::vector<int64_t>{0, huge, huge}), 0);
  EXPECT_EQ(checked_product(std::vector<int64_t>{huge, huge, 4}), std::nullopt);
  EXPECT_EQ(checked_product(std::vector<int64_t>{}), 1);
  EXPECT_EQ(checked_product(std::vector<int64_t>{2, 3, 5}), 30);
}

TEST(CheckedMath, AProductThatWrapsBackIntoRangeIsStillAnOverflow) {
  EXPECT_EQ(checked_product(std::vector<int64_t>{int64_t{1} << 62, 4, 6}), std::nullopt);
}

}  // namespace
}  // namespace parallax
