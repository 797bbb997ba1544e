// SPDX-License-Identifier: Apache-2.0
// Error pictures show where the errors are, and count every finite element.
#include "inspector/diff/compare/error_picture.h"

#include <limits>
#include <numeric>

#include <gtest/gtest.h>

namespace parallax {
namespace {

constexpr float kNoNumber = std::numeric_limits<float>::quiet_NaN();

Value floats(const Shape& shape, std::vector<float> values) { return Value(Tensor::from<float>(shape, values)); }

TEST(ErrorPicture, HasACellForEachElementOfASmallTensor) {
  const auto picture = make_error_picture(floats({2, 1, 3}, {0, 1, 2, 3, kNoNumber, 5}),
                                          floats({2, 1, 3}, {0, 1.5F, 2, 3, kNoNumber, kNoNumber}));
  ASSERT_TRUE(picture.has_value());
  EXPECT_EQ(picture->rows, 2);
  EXPECT_EQ(picture->columns, 3);
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(picture->errors, (std::vector<double>{0, 0.5, 0, 0, 0, inf}));
  EXPECT_EQ(std::accumulate(picture->histogram_a.begin(), picture->histogram_a.end(), int64_t{0}), 5);
  EXPECT_EQ(std::accumulate(picture->histogram_b.begin(), picture->histogram_b.end(), int64_t{0}), 4);
  EXPECT_EQ(picture->low, 0);
  EXPECT_EQ(picture->high, 5);
}

TEST(ErrorPicture, CoversAllOfALargeTensor) {
  const int64_t rows = 1000, columns = 701;
  std::vector<float> a(static_cast<size_t>(rows * columns), 1.0F);
  std::vector<float> b = a;
  b[static_cast<size_t>(999 * columns + 700)] = 3.0F;  // the last element
  b[static_cast<size_t>(500 * columns)] = 0.75F;       // left, half way down
  const auto picture = make_error_picture(floats({10, 100, columns}, a), floats({10, 100, columns}, b));
  ASSERT_TRUE(picture.has_value());
  EXPECT_EQ(picture->rows, ErrorPicture::kMaxRows);
  EXPECT_EQ(picture->columns, ErrorPicture::kMaxColumns);
  EXPECT_EQ(picture->errors.back(), 2.0);
  EXPECT_EQ(picture->errors[static_cast<size_t>(24 * picture->columns)], 0.25);
  EXPECT_EQ(std::accumulate(picture->errors.begin(), picture->errors.end(), 0.0), 2.25);
}

TEST(ErrorPicture, NothingToShow) {
  EXPECT_FALSE(make_error_picture(floats({0, 3}, {}), floats({0, 3}, {})).has_value());
  EXPECT_FALSE(make_error_picture(floats({3}, {1, 2, 3}), floats({1, 3}, {1, 2, 3})).has_value());
  EXPECT_FALSE(make_error_picture(Value(), floats({1}, {1})).has_value());
}

TEST(PictureGallery, KeepsTheFirstAndTheWorst) {
  PictureGallery gallery(true);
  const Value a = floats({1}, {0}), b = floats({1}, {1});
  int made = 0;
  for (int index = 0; index < 100; ++index) {
    ValueComparison value;
    value.verdict = index % 2 == 0 ? Verdict::diverged : Verdict::pass;
    value.severity = index == 90 ? 1e6 : 100 - index;
    gallery.consider(a, b, value);
    if (value.verdict == Verdict::pass) {
      EXPECT_EQ(value.picture, nullptr);
    }
    if (index == 0 || index == 90) {
      EXPECT_NE(value.picture, nullptr) << index;
    }
    made += value.picture != nullptr ? 1 : 0;
  }
  EXPECT_EQ(made, 9);
}

TEST(PictureGallery, MakesNothingThatIsNotWanted) {
  PictureGallery gallery(false);
  ValueComparison value;
  value.verdict = Verdict::diverged;
  value.severity = 10;
  gallery.consider(floats({1}, {0}), floats({1}, {1}), value);
  EXPECT_EQ(value.picture, nullptr);
}

}  // namespace
}  // namespace parallax
