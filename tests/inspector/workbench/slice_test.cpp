// SPDX-License-Identifier: Apache-2.0
// Slices: numpy's basic indexing, on whole and packed elements.
#include "inspector/workbench/slice.h"

#include <numeric>

#include <gtest/gtest.h>

#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

Tensor counting(const Shape& shape) {
  std::vector<int64_t> values(static_cast<size_t>(shape.element_count()));
  std::iota(values.begin(), values.end(), 0);
  return Tensor::from<int64_t>(shape, values);
}

std::pair<Shape, std::vector<int64_t>> sliced(const Tensor& tensor, std::string_view text) {
  const Tensor result = take_slice(tensor, parse_slice(text, tensor.shape()).take()).take();
  return {result.shape(), to_int64s(result)};
}

TEST(Slice, FollowsNumpy) {
  const Tensor tensor = counting(Shape{2, 3, 4});
  using Expected = std::pair<Shape, std::vector<int64_t>>;
  EXPECT_EQ(sliced(tensor, "0,:,3:5"), Expected(Shape{3, 1}, {3, 7, 11}));
  EXPECT_EQ(sliced(tensor, "1,2,3"), Expected(Shape{}, {23}));
  EXPECT_EQ(sliced(tensor, "-1,-1,-1"), Expected(Shape{}, {23}));
  EXPECT_EQ(sliced(tensor, "...,0"), Expected(Shape{2, 3}, {0, 4, 8, 12, 16, 20}));
  EXPECT_EQ(sliced(tensor, "1"), Expected(Shape{3, 4}, {12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(sliced(tensor, "0,0,::2"), Expected(Shape{2}, {0, 2}));
  EXPECT_EQ(sliced(tensor, "0,0,::-1"), Expected(Shape{4}, {3, 2, 1, 0}));
  EXPECT_EQ(sliced(tensor, "0,0,3:0:-2"), Expected(Shape{2}, {3, 1}));
  EXPECT_EQ(sliced(tensor, "0,0,-2:"), Expected(Shape{2}, {2, 3}));
  EXPECT_EQ(sliced(tensor, "0,0,5:9"), Expected(Shape{0}, {}));
  EXPECT_EQ(sliced(tensor, "0,1:2,1"), Expected(Shape{1}, {5}));
}

TEST(Slice, PackedElements) {
  Tensor tensor = Tensor::zeros(DType::int4, Shape{5}).take();
  store_int64s(tensor, 0, std::vector<int64_t>{-3, -2, -1, 0, 7});
  EXPECT_EQ(sliced(tensor, "1::3").second, (std::vector<int64_t>{-2, 7}));
}

TEST(Slice, RefusesWhatIsNoSlice) {
  const Shape shape{2, 3};
  for (const char* text : {"2", "0,0,0", "a", "0,:::", ",", "::0", "0,1:x", "-3", "0,,"}) {
    const auto slices = parse_slice(text, shape);
    ASSERT_FALSE(slices.ok()) << text;
    EXPECT_EQ(slices.error().code, ErrorCode::usage);
  }
}

}  // namespace
}  // namespace parallax
