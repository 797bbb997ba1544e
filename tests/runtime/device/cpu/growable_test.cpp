// SPDX-License-Identifier: Apache-2.0
// Tensors in buffers with room along one axis.
#include "runtime/device/cpu/growable.h"

#include <numeric>

#include <gtest/gtest.h>

#include "runtime/device/cpu/buffer_pool.h"

namespace parallax::runtime {
namespace {

// first, first + 1, ...
Tensor counted(const Shape& shape, int32_t first) {
  std::vector<int32_t> values(static_cast<size_t>(shape.element_count()));
  std::iota(values.begin(), values.end(), first);
  return Tensor::from<int32_t>(shape, values);
}

std::vector<int32_t> numbers(const Tensor& tensor) {
  const auto values = tensor.as<int32_t>();
  return {values.begin(), values.end()};
}

class Growable : public testing::Test {
 protected:
  Tensor appended(const Tensor& to, const Tensor& more) {
    return append(queue_, opened(to), more.shape()[1], {more.view().data, row_major_strides(more.shape()), 0}).take();
  }
  std::vector<int32_t> filled_part(const Tensor& growable) { return numbers(without_room(queue_, growable).take()); }

  Queue<Cpu> queue_{BufferPool::create({true})};
};

TEST_F(Growable, IsAppendedToInPlace) {
  const Tensor held = with_capacity(queue_, counted(Shape{2, 2, 1}, 0), 1, 4).take();
  EXPECT_EQ(capacity_of(held), 4);
  EXPECT_FALSE(is_open(held));
  EXPECT_TRUE(is_open(opened(held)));
  EXPECT_EQ(element_strides(held), (Ints{4, 1, 1}));
  const Tensor more = appended(held, counted(Shape{2, 1, 1}, 10));
  EXPECT_EQ(more.shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(more.storage(), held.storage());
  EXPECT_EQ(filled_part(more), (std::vector<int32_t>{0, 1, 10, 2, 3, 11}));
  EXPECT_EQ(filled_part(held), (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST_F(Growable, CapacityDoubles) {
  Tensor held = with_capacity(queue_, counted(Shape{1, 0, 2}, 0), 1, 0).take();
  std::vector<int64_t> capacities;
  std::vector<int32_t> expected;
  for (int32_t step = 0; step < 9; ++step) {
    held = appended(held, counted(Shape{1, 1, 2}, 10 * step));
    expected.insert(expected.end(), {10 * step, 10 * step + 1});
    capacities.push_back(capacity_of(held));
  }
  EXPECT_EQ(capacities, (std::vector<int64_t>{1, 2, 4, 4, 8, 8, 8, 8, 16}));
  EXPECT_EQ(filled_part(held), expected);
}

TEST_F(Growable, RowsAreTaken) {
  const Tensor held = with_capacity(queue_, counted(Shape{3, 2}, 0), 1, 5).take();
  const Tensor taken =
      take_growable_rows(queue_, std::span(&held, 1), std::array<int32_t, 4>{2, 2, 0, 1}).take().front();
  EXPECT_EQ(taken.shape(), (Shape{4, 2}));
  EXPECT_EQ(capacity_of(taken), 5);
  EXPECT_EQ(filled_part(taken), (std::vector<int32_t>{4, 5, 4, 5, 0, 1, 2, 3}));
}

TEST_F(Growable, IsRefilledInPlace) {
  Tensor held = with_capacity(queue_, counted(Shape{2, 1}, 0), 1, 5).take();
  const auto* const memory = held.view().data;
  held = refilled(queue_, std::move(held), counted(Shape{2, 4}, 30)).take();
  EXPECT_EQ(held.view().data, memory);
  EXPECT_EQ(capacity_of(held), 5);
  EXPECT_EQ(filled_part(held), (std::vector<int32_t>{30, 31, 32, 33, 34, 35, 36, 37}));
  const Tensor also = held;  // someone else holds it
  const Tensor other = refilled(queue_, held, counted(Shape{2, 1}, 50)).take();
  EXPECT_NE(other.view().data, memory);
  EXPECT_EQ(filled_part(other), (std::vector<int32_t>{50, 51}));
  EXPECT_EQ(filled_part(also)[0], 30);
  const Tensor longer = refilled(queue_, other, counted(Shape{2, 7}, 0)).take();
  EXPECT_EQ(capacity_of(longer), 7);
}

TEST_F(Growable, ManyLieInOnePiece) {
  const std::vector<GrowableShape> shapes{{DType::int32, Shape{1, 0}, 1, 3}, {DType::int32, Shape{2, 0}, 1, 4}};
  const std::vector<Tensor> made = make_growable(queue_, shapes).take();
  ASSERT_EQ(made.size(), 2U);
  EXPECT_EQ(made[1].view().data - made[0].view().data, 256);
  const Tensor first = appended(made[0], counted(Shape{1, 3}, 0)), second = appended(made[1], counted(Shape{2, 4}, 10));
  EXPECT_EQ(filled_part(first), (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(filled_part(second), (std::vector<int32_t>{10, 11, 12, 13, 14, 15, 16, 17}));
}

TEST_F(Growable, CapacityHasALimit) {
  const auto made = with_capacity(queue_, counted(Shape{1, 1}, 0), 1, int64_t{1} << 31);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::out_of_memory);
}

}  // namespace
}  // namespace parallax::runtime
