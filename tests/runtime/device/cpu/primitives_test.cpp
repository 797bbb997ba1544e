// SPDX-License-Identifier: Apache-2.0
// map, fold_rows, scan_rows, copy, index_map, scatter: each against a plain loop, for several vector widths and thread
// counts.
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/rows/rows.h"
#include "runtime/device/cpu/scatter.h"
#include "tests/runtime/device/random_values.h"

namespace parallax::runtime {
namespace {

Queue<Cpu>& host_queue() {
  static Queue<Cpu> made(BufferPool::create({}));
  return made;
}

template <class T>
Tensor tensor_of(const Shape& shape, const std::vector<T>& values) {
  return Tensor::from<T>(shape, values);
}

struct Minus {
  template <class T>
  T operator()(T a, T b) const {
    return a - b;
  }
};

int64_t broadcast_index(int64_t index, const Ints& dims, const Ints& strides) {
  int64_t offset = 0;
  for (int64_t axis = dims.size() - 1; axis >= 0; --axis) {
    offset += index % dims[axis] * strides[axis];
    index /= dims[axis];
  }
  return offset;
}

TEST(Map, BroadcastsAsNumpy) {
  const std::pair<Shape, Shape> pairs[] = {{{3, 4, 5}, {5}}, {{3, 4, 5}, {4, 1}},   {{3, 1, 5}, {1, 4, 1}},
                                           {{}, {7}},        {{2, 3000}, {3000}},   {{1}, {2, 1}},
                                           {{0, 4}, {4}},    {{5, 1, 1}, {5, 6, 7}}};
  for (const auto& [left, right] : pairs) {
    const Shape shapes[] = {left, right};
    const Shape shape = broadcast_shapes(shapes).take();
    const auto a = random_values<float>(left.element_count(), 1);
    const auto b = random_values<float>(right.element_count(), 2);
    const Tensor x = tensor_of(left, a), y = tensor_of(right, b);
    const Tensor out = host_queue().allocate(DType::float32, shape).take();
    ASSERT_TRUE(map<Numbers>(host_queue(), Minus{}, writable(out), std::array<TensorView, 2>{x.view(), y.view()}).ok());
    const Ints dims(shape);
    for (int64_t i = 0; i < shape.element_count(); ++i) {
      const float expected = a[static_cast<size_t>(broadcast_index(i, dims, broadcast_strides(left, shape)))] -
                             b[static_cast<size_t>(broadcast_index(i, dims, broadcast_strides(right, shape)))];
      ASSERT_EQ(out.as<float>()[static_cast<size_t>(i)], expected) << left.to_string() << right.to_string() << i;
    }
  }
}

TEST(Map, RefusesTypesOutsideItsDomain) {
  const Tensor x = tensor_of<int32_t>({1}, {3});
  const Tensor out = host_queue().allocate(DType::int32, {1}).take();
  const auto status = map<Floats>(host_queue(), Minus{}, writable(out), std::array<TensorView, 2>{x.view(), x.view()});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::unsupported);
}

TEST(Map, WorksInPlace) {
  auto values = random_values<float>(5000, 3);
  Tensor x = tensor_of<float>({5000}, values);
  const MutableView same{x.dtype(), x.shape(), x.storage().get()};
  ASSERT_TRUE(map<Floats>(host_queue(), Minus{}, same, std::array<TensorView, 2>{x.view(), x.view()}).ok());
  for (float value : x.as<float>()) ASSERT_EQ(value, 0.0F);
}

// As a sine: of most numbers by a formula, of a few by the library.
struct MostlyHalved {
  bool is_in_fast_range(float x) const { return std::fabs(x) < 4; }
  float in_fast_range(float x) const { return 0.5F * x; }
  template <class T>
  T operator()(T x) const {
    if constexpr (std::is_same_v<T, float>) return is_in_fast_range(x) ? in_fast_range(x) : x - 1000;
    return x / 2;
  }
};
static_assert(map_detail::HasFastRange<float, MostlyHalved, 1> && !map_detail::HasFastRange<double, MostlyHalved, 1> &&
              !map_detail::HasFastRange<float, Minus, 2>);

TEST(Map, TakesTheBranchOfAFunctorForThoseElementsThatNeedIt) {
  const VectorLevel level_before = vector_level();
  for (const VectorLevel level : {VectorLevel::baseline, level_before}) {
    set_vector_level_for_tests(level);
    auto values = random_values<float>(9000, 3);
    for (float& value : values) value = std::clamp(value, -3.0F, 3.0F);
    values[4500] = 7;
    values[8999] = std::numeric_limits<float>::quiet_NaN();
    Tensor x = tensor_of<float>({9000}, values);
    const MutableView same{x.dtype(), x.shape(), x.storage().get()};
    ASSERT_TRUE(map<Floats>(host_queue(), MostlyHalved{}, same, std::array<TensorView, 1>{x.view()}).ok());
    for (size_t i = 0; i + 1 < values.size(); ++i)
      ASSERT_EQ(x.as<float>()[i], i == 4500 ? -993 : 0.5F * values[i]) << i;
    EXPECT_TRUE(std::isnan(x.as<float>()[8999]));
  }
  set_vector_level_for_tests(level_before);
}

struct Total {
  template <class C>
  C init() const {
    return C(0);
  }
  template <class C>
  C step(C a, C x) const {
    return a + x;
  }
  template <class C>
  C merge(C a, C b) const {
    return a + b;
  }
  template <class C>
  C finish(C a, int64_t) const {
    return a;
  }
};

std::vector<float> totals(const RowLayout& rows, const std::vector<float>& values) {
  const Tensor x = tensor_of<float>({static_cast<int64_t>(values.size())}, values);
  const Tensor out = host_queue().allocate(DType::float32, {rows.row_count()}).take();
  fold_rows<float>(host_queue(), Total{}, rows, writable(out), x.view());
  return {out.as<float>().begin(), out.as<float>().end()};
}

TEST(FoldRows, SumsRowsOfEveryLayout) {
  for (const RowLayout rows :
       {RowLayout{3, 37, 1}, RowLayout{4, 5, 2100}, RowLayout{2, 1, 3}, RowLayout{1, 100'000, 1}, RowLayout{2, 0, 3}}) {
    const auto values = random_values<float>(rows.outer * rows.length * rows.inner, 4);
    const auto sums = totals(rows, values);
    for (int64_t row = 0; row < rows.row_count(); ++row) {
      double expected = 0;
      for (int64_t i = 0; i < rows.length; ++i)
        expected += values[static_cast<size_t>(rows.start(row) + i * rows.inner)];
      ASSERT_NEAR(sums[static_cast<size_t>(row)], expected, 1e-6 * static_cast<double>(rows.length + 1));
    }
  }
}

TEST(FoldRows, HaveTheSameBitsForEveryWidthAndThreadCount) {
  const auto values = random_values<float>(64 * 5003, 5);
  const VectorLevel level_before = vector_level();
  const int threads_before = thread_count();
  const auto expected = totals({64, 5003, 1}, values);
  for (VectorLevel level : {VectorLevel::baseline, VectorLevel::avx2, VectorLevel::avx512}) {
    for (int threads : {1, 3}) {
      set_vector_level_for_tests(level);
      set_thread_count(threads);
      EXPECT_EQ(totals({64, 5003, 1}, values), expected);
    }
  }
  set_vector_level_for_tests(level_before);
  set_thread_count(threads_before);
}

TEST(FoldRows, OfAdjacentShortRowsHaveTheBitsOfEachAlone) {
  for (const int64_t length : {1, 7, 49, 64, 100, 256}) {
    const auto values = random_values<float>(21 * length, 6);
    const auto sums = totals({21, length, 1}, values);
    for (int64_t row = 0; row < 21; ++row) {
      const auto first = values.begin() + row * length;
      EXPECT_EQ(sums[static_cast<size_t>(row)], totals({1, length, 1}, {first, first + length})[0]) << length;
    }
  }
}

TEST(Copy, MovesEveryPermutation) {
  const Ints dims{3, 40, 1, 35};
  const Ints strides = row_major_strides(dims);
  std::vector<int32_t> values(3 * 40 * 35);
  std::iota(values.begin(), values.end(), 0);
  std::vector<int64_t> order{0, 1, 2, 3};
  do {
    Ints walk, from;
    for (int64_t axis : order) {
      walk.push_back(dims[axis]);
      from.push_back(strides[axis]);
    }
    std::vector<int32_t> out(values.size(), -1);
    copy_strided(host_queue(), 4, walk, {reinterpret_cast<std::byte*>(out.data()), row_major_strides(walk), 0},
                 {reinterpret_cast<const std::byte*>(values.data()), from, 0});
    for (int64_t i = 0; i < static_cast<int64_t>(out.size()); ++i) {
      ASSERT_EQ(out[static_cast<size_t>(i)], values[static_cast<size_t>(broadcast_index(i, walk, from))]);
    }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(Copy, WalksBackwardsAndRepeats) {
  const std::vector<double> values{1, 2, 3, 4, 5, 6};
  std::vector<double> out(4, 0.0);
  copy_strided(host_queue(), 8, {2, 2}, {reinterpret_cast<std::byte*>(out.data()), {2, 1}, 0},
               {reinterpret_cast<const std::byte*>(values.data()), {0, -2}, 5});
  EXPECT_EQ(out, (std::vector<double>{6, 4, 6, 4}));
}

TEST(IndexMap, FillsWhereThereIsNoSource) {
  const std::vector<float> values{1, 2, 3, 4};
  const float filling = 9;
  const Tensor out = host_queue().allocate(DType::float32, {3, 2}).take();
  index_map(
      host_queue(), [](int64_t block) { return block == 1 ? -1 : 1 - block / 2; }, writable(out),
      reinterpret_cast<const std::byte*>(values.data()), 2, reinterpret_cast<const std::byte*>(&filling));
  const auto result = out.as<float>();
  EXPECT_EQ(std::vector<float>(result.begin(), result.end()), (std::vector<float>{3, 4, 9, 9, 1, 2}));
}

TEST(Scatter, CombinesRepeatedIndicesInOrder) {
  Tensor out = tensor_of<float>({3}, {1, 1, 1});
  const Tensor updates = tensor_of<float>({3}, {2, 3, 4});
  const auto location = [](int64_t i) { return i == 2 ? 0 : 1; };
  scatter<float>(host_queue(), location, Combine::add, {DType::float32, {3}, out.storage().get()}, updates.view(), 1);
  EXPECT_EQ(std::vector<float>(out.as<float>().begin(), out.as<float>().end()), (std::vector<float>{5, 6, 1}));
  scatter<float>(host_queue(), location, Combine::replace, {DType::float32, {3}, out.storage().get()}, updates.view(),
                 1);
  EXPECT_EQ(std::vector<float>(out.as<float>().begin(), out.as<float>().end()), (std::vector<float>{4, 3, 1}));
}

}  // namespace
}  // namespace parallax::runtime
