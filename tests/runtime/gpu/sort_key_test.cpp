// SPDX-License-Identifier: Apache-2.0
// Keys of radix sorts against the comparator that they stand in for: all values of the narrow types, and those of the
// wide ones where something changes.
#include "runtime/device/cpu/rows/sort_key.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/gpu/library_rows.h"

namespace parallax::runtime::sort_key_test {
namespace {

constexpr NumberOrder kOrders[] = {NumberOrder::ascending, NumberOrder::descending};

// The value of a storage type for comparators.
template <class S>
auto number_of(S value) {
  if constexpr (std::is_same_v<S, double> || std::is_same_v<S, uint64_t>)
    return value;
  else if constexpr (std::is_integral_v<S>)
    return storage::from_storage<int64_t>(value);
  else
    return storage::from_storage<float>(value);
}

// Before at any position: equal numbers are neither before nor after.
template <class S>
bool is_before(NumberOrder order, S a, S b) {
  return TopFirst{order == NumberOrder::descending}(number_of(a), 0, number_of(b), 0);
}

template <class S>
bool sort_key_less(S a, S b, NumberOrder order) {
  return gpu::sort_key(a, order) < gpu::sort_key(b, order);
}

template <class S>
S of_bits(uint32_t bits) {
  if constexpr (std::is_same_v<S, bool>)
    return bits != 0;
  else if constexpr (std::is_integral_v<S>)
    return static_cast<S>(bits);
  else
    return S{static_cast<uint16_t>(bits)};
}

template <class S>
class NarrowKeys : public testing::Test {};
using Narrow = testing::Types<bool, int8_t, uint8_t, int16_t, uint16_t, Float16, BFloat16>;
TYPED_TEST_SUITE(NarrowKeys, Narrow);

// In the comparator's order each key is as large as the one before where the values are equal, else larger: so it is
// for any two then.
TYPED_TEST(NarrowKeys, StandAsTheComparatorHasAllValues) {
  const uint32_t count = std::is_same_v<TypeParam, bool> ? 2 : uint32_t{1} << (sizeof(TypeParam) * 8);
  std::vector<TypeParam> values;
  for (uint32_t bits = 0; bits < count; ++bits) values.push_back(of_bits<TypeParam>(bits));
  for (const NumberOrder order : kOrders) {
    std::vector<uint32_t> by_number(values.size());
    std::iota(by_number.begin(), by_number.end(), 0U);
    std::ranges::stable_sort(by_number,
                             [&](uint32_t a, uint32_t b) { return is_before<TypeParam>(order, values[a], values[b]); });
    for (size_t i = 1; i < by_number.size(); ++i) {
      const TypeParam last = values[by_number[i - 1]], next = values[by_number[i]];
      ASSERT_EQ(sort_key_less(last, next, order), is_before(order, last, next))
          << "bits " << by_number[i - 1] << " and " << by_number[i];
      ASSERT_FALSE(sort_key_less(next, last, order)) << "bits " << by_number[i - 1] << " and " << by_number[i];
    }
  }
}

template <class S>
std::vector<S> edges() {
  using Limits = std::numeric_limits<S>;
  std::vector<S> values{0, 1, 2, Limits::max(), static_cast<S>(Limits::max() - 1), Limits::lowest()};
  if constexpr (std::is_floating_point_v<S>) {
    using Bits = std::conditional_t<sizeof(S) == 8, uint64_t, uint32_t>;
    const Bits infinity = std::bit_cast<Bits>(Limits::infinity());
    for (const Bits bits : {Bits{0}, Bits{1}, Bits{2}, std::bit_cast<Bits>(Limits::min()) - 1,
                            std::bit_cast<Bits>(Limits::min()), std::bit_cast<Bits>(S(1)) - 1, infinity - 1, infinity,
                            infinity + 1, std::bit_cast<Bits>(Limits::quiet_NaN()), static_cast<Bits>(~Bits{0} >> 1)}) {
      values.push_back(std::bit_cast<S>(bits));
      values.push_back(std::bit_cast<S>(static_cast<Bits>(bits | Bits{1} << (sizeof(S) * 8 - 1))));
    }
  } else {
    for (const int shift : {7, 8, 15, 16, 31, 32, 62}) {
      if (shift >= Limits::digits) continue;
      const S power = static_cast<S>(S{1} << shift);
      for (const S value : {power, static_cast<S>(power - 1)}) {
        values.push_back(value);
        values.push_back(static_cast<S>(S{0} - value));
      }
    }
  }
  return values;
}

template <class S>
class WideKeys : public testing::Test {};
using Wide = testing::Types<int32_t, uint32_t, int64_t, uint64_t, float, double>;
TYPED_TEST_SUITE(WideKeys, Wide);

TYPED_TEST(WideKeys, StandAsTheComparatorHasEdges) {
  const std::vector<TypeParam> values = edges<TypeParam>();
  for (const NumberOrder order : kOrders) {
    for (size_t a = 0; a < values.size(); ++a) {
      for (size_t b = 0; b < values.size(); ++b) {
        ASSERT_EQ(sort_key_less(values[a], values[b], order), is_before(order, values[a], values[b]))
            << "edges " << a << " and " << b << ": " << +values[a] << ", " << +values[b];
      }
    }
  }
}

TEST(SortKeys, HaveAsManyBitsAsTheirType) {
  EXPECT_EQ(gpu::key_bits(DType::bool_), 8);
  EXPECT_EQ(gpu::key_bits(DType::bfloat16), 16);
  EXPECT_EQ(gpu::key_bits(DType::float32), 32);
  EXPECT_EQ(gpu::key_bits(DType::uint64), 64);
  EXPECT_EQ(gpu::key_bits(DType::string), 0);
}

struct ByRemainder {
  bool operator()(int64_t a, int64_t, int64_t b, int64_t) const { return a % 7 < b % 7; }
};
static_assert(gpu::OrdersNumbers<TopFirst>);
static_assert(!gpu::OrdersNumbers<ByRemainder>, "what does not say its order is never sorted by keys");

TEST(SortWay, FollowsFromRowsAndTheirLength) {
  using gpu::SortWay;
  EXPECT_EQ(gpu::sort_way(1, 1), SortWay::in_blocks);
  EXPECT_EQ(gpu::sort_way(4096, 1024), SortWay::in_blocks);
  EXPECT_EQ(gpu::sort_way(1, gpu::kMostInBlock), SortWay::in_blocks);
  EXPECT_EQ(gpu::sort_way(1, gpu::kMostInBlock + 1), SortWay::by_segments);
  EXPECT_EQ(gpu::sort_way(1, 2 * gpu::kMostInBlock), SortWay::row_by_row);
  EXPECT_EQ(gpu::sort_way(16, 20000), SortWay::by_segments);
  EXPECT_EQ(gpu::sort_way(4, 20000), SortWay::row_by_row);
  EXPECT_EQ(gpu::sort_way(1, 1000000), SortWay::row_by_row);
  EXPECT_EQ(gpu::sort_way(4096, 50257), SortWay::by_segments);
  EXPECT_EQ(gpu::sort_way(100000, gpu::kFillsDevice), SortWay::row_by_row);
}

TEST(RunningSums, OfFewLongRowsGoToTheLibrary) {
  EXPECT_TRUE(gpu::is_run_by_library(2, 8192));
  EXPECT_FALSE(gpu::is_run_by_library(1000, 8192));
  EXPECT_FALSE(gpu::is_run_by_library(1, 1000));
  EXPECT_TRUE(gpu::is_run_by_library(1, INT32_MAX));
  EXPECT_FALSE(gpu::is_run_by_library(1, int64_t{1} << 31)) << "more than older CUBs can count";
}

}  // namespace
}  // namespace parallax::runtime::sort_key_test
