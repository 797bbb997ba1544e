// SPDX-License-Identifier: Apache-2.0
// Tests of arithmetic on named dimensions.
#include "inspector/model/shape_inference/dim_expression.h"

#include <cstdint>
#include <string>

#include <gtest/gtest.h>

namespace parallax {
namespace {

DimExpression named(std::string_view text) { return DimExpression::named(text); }

TEST(DimExpression, ReadsTheExpressionsOfExporters) {
  EXPECT_TRUE(same(named("past + sequence"), named("sequence + past")));
  EXPECT_TRUE(same(named("2*(a + b)"), named("2*b + 2 * a")));
  EXPECT_TRUE(same(named("a - b + b"), named("a")));
  EXPECT_EQ(named("seq + 1").text(), "seq + 1");
  EXPECT_EQ(named("floor(h/2) + floor(h/2)").text(), "2*floor(h/2)");
  EXPECT_EQ(named("Max(1, s0) * 2").text(), "2*Max(1, s0)");
}

TEST(DimExpression, TakesAnythingElseAsAName) {
  for (const std::string_view text : {"batch-size", "a/b", "2seq", "a + ", "(a", "unk__0", "a * * b", "floor(h"}) {
    EXPECT_EQ(named(text).text(), text);
    EXPECT_TRUE(named(text).is_known());
  }
  EXPECT_FALSE(named("").is_known());
  EXPECT_FALSE(named(std::string(100000, '(')).is_known());
}

TEST(DimExpression, AddsMultipliesAndDivides) {
  const DimExpression b = named("b"), s = named("s");
  EXPECT_EQ((b * s * 12 * 64).text(), "768*b*s");
  EXPECT_EQ(divide_exactly(b * s * 768, s * 64)->text(), "12*b");
  EXPECT_EQ(divide_exactly(b * s + b, s + 1)->text(), "b");
  EXPECT_FALSE(divide_exactly(b * s + b, s).has_value());
  EXPECT_FALSE(divide_exactly(b, 0).has_value());
  EXPECT_EQ((b - b).number(), 0);
  EXPECT_EQ((b * 0).number(), 0);
  EXPECT_EQ((DimExpression{} * 0).number(), 0);
  EXPECT_FALSE((DimExpression{} + 1).is_known());
  EXPECT_EQ(floor_divide(7, 2).number(), 3);
  EXPECT_EQ(floor_divide(-7, 2).number(), -4);
  EXPECT_EQ(ceil_divide(7, 2).number(), 4);
  EXPECT_EQ((floor_divide(named("h") - 1, 2) + 1).text(), "floor((h - 1)/2) + 1");
  EXPECT_TRUE(same(floor_divide(named("h") - 1, 2), floor_divide(DimExpression(-1) + named("h"), 2)));
}

TEST(DimExpression, OverflowAndGrowthGiveUnknown) {
  EXPECT_FALSE((DimExpression(INT64_MAX) + 1).is_known());
  EXPECT_FALSE((DimExpression(INT64_MIN) * -1).is_known());
  EXPECT_FALSE(floor_divide(INT64_MIN, -1).is_known());
  EXPECT_FALSE((named("a") * INT64_MAX * 2).is_known());
  DimExpression grown = 1;
  for (int factor = 0; factor < 40; ++factor) grown = grown * (named("n" + std::to_string(factor)) + 1);
  EXPECT_FALSE(grown.is_known());
}

TEST(DimExpression, KnowsWhatIsNeverNegative) {
  EXPECT_TRUE(named("a").is_nonnegative());
  EXPECT_TRUE((named("a") + 3).is_nonnegative());
  EXPECT_FALSE((named("a") - 3).is_nonnegative());
  EXPECT_FALSE(DimExpression{}.is_nonnegative());
}

TEST(DimExpression, BecomesADimension) {
  EXPECT_EQ(DimExpression(5).to_dim(), (Dim{5, ""}));
  EXPECT_EQ(named("n").to_dim(), (Dim{-1, "n"}));
  EXPECT_EQ(DimExpression(-5).to_dim(), Dim{});
  EXPECT_EQ(DimExpression{}.to_dim(), Dim{});
}

}  // namespace
}  // namespace parallax
