// SPDX-License-Identifier: Apache-2.0
// Elements of every type: stores and loads agree, packed types share bytes rightly, text reads back.
#include "inspector/tensor/elements.h"

#include <limits>
#include <numeric>

#include <gtest/gtest.h>

namespace parallax {
namespace {

Tensor zeros(DType dtype, int64_t count) { return Tensor::zeros(dtype, Shape{count}).take(); }

TEST(Elements, EveryNumericTypeStoresAndLoadsSmallNumbers) {
  for (const DTypeInfo& info : all_dtypes()) {
    if (info.kind == DTypeKind::string || info.kind == DTypeKind::boolean) continue;
    Tensor tensor = zeros(info.dtype, 7);
    const std::vector<double> values = {1, 0, 1, 1, 0, 1, 1};
    std::vector<double> expected = values;
    if (info.dtype == DType::float8e8m0) expected = {1, 0x1p-127, 1, 1, 0x1p-127, 1, 1};  // it has no zero
    store_doubles(tensor, 0, values);
    std::vector<double> loaded(7);
    load_doubles(tensor, 0, loaded);
    EXPECT_EQ(loaded, expected) << info.name;
    load_doubles(tensor, 3, std::span(loaded).first(2));
    EXPECT_EQ(loaded[0], expected[3]) << info.name;
    EXPECT_EQ(loaded[1], expected[4]) << info.name;
  }
}

TEST(Elements, IntegersHoldTheirWholeRange) {
  struct Range {
    DType dtype;
    int64_t low;
    int64_t high;
  };
  for (const Range& range :
       {Range{DType::int2, -2, 1}, Range{DType::uint2, 0, 3}, Range{DType::int4, -8, 7}, Range{DType::uint4, 0, 15},
        Range{DType::int8, -128, 127}, Range{DType::uint8, 0, 255}, Range{DType::int16, -32768, 32767},
        Range{DType::uint16, 0, 65535}, Range{DType::int32, -(int64_t{1} << 31), (int64_t{1} << 31) - 1},
        Range{DType::uint32, 0, (int64_t{1} << 32) - 1},
        Range{DType::int64, std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max()}}) {
    Tensor tensor = zeros(range.dtype, 3);
    store_int64s(tensor, 0, std::vector<int64_t>{range.low, range.high, range.low});
    EXPECT_EQ(to_int64s(tensor), (std::vector<int64_t>{range.low, range.high, range.low})) << name_of(range.dtype);
  }
}

TEST(ElementsDeathTest, ANumberThatDoesNotFitAnIntegerIsNeverStored) {
  for (const DType dtype : {DType::int2, DType::uint2, DType::int4, DType::uint4, DType::int8, DType::uint8,
                            DType::int32, DType::int64, DType::uint64}) {
    Tensor tensor = zeros(dtype, 1);
    EXPECT_DEATH(store_doubles(tensor, 0, std::vector<double>{1e30}), "") << name_of(dtype);
  }
  Tensor int4_values = zeros(DType::int4, 1);
  EXPECT_DEATH(store_int64s(int4_values, 0, std::vector<int64_t>{8}), "");
  EXPECT_DEATH(store_int64s(int4_values, 0, std::vector<int64_t>{-9}), "");
}

TEST(Elements, PackedTypesFillBytesFromTheLowBits) {
  Tensor int4_values = zeros(DType::uint4, 3);
  store_int64s(int4_values, 0, std::vector<int64_t>{0x1, 0x2, 0x3});
  EXPECT_EQ(int4_values.as<uint8_t>()[0], 0x21);
  EXPECT_EQ(int4_values.as<uint8_t>()[1], 0x03);
  Tensor pairs = zeros(DType::int2, 5);
  store_int64s(pairs, 0, std::vector<int64_t>{1, -1, 0, -2, 1});
  EXPECT_EQ(pairs.as<uint8_t>()[0], 0b10'00'11'01);
  EXPECT_EQ(pairs.as<uint8_t>()[1], 0b01);
  store_int64s(pairs, 1, std::vector<int64_t>{0});
  EXPECT_EQ(pairs.as<uint8_t>()[0], 0b10'00'00'01) << "neighbors in the byte stay as they were";
}

TEST(Elements, ComplexNumbersKeepBothParts) {
  const std::complex<float> value(1.5F, -2);
  const Tensor tensor = Tensor::scalar(value);
  EXPECT_EQ(element_as_complex(tensor, 0), std::complex<double>(1.5, -2));
  EXPECT_EQ(element_as_double(tensor, 0), 1.5);
  EXPECT_EQ(element_to_string(tensor, 0), "(1.5,-2)");
}

TEST(Elements, FloatsTruncateTowardZeroAsIntegers) {
  const std::vector<float> values = {2.9F, -2.9F};
  const Tensor tensor = Tensor::vector<float>(values);
  EXPECT_EQ(element_as_int64(tensor, 0), 2);
  EXPECT_EQ(element_as_int64(tensor, 1), -2);
  EXPECT_EQ(element_as_int64(Tensor::scalar((int64_t{1} << 53) + 1), 0), (int64_t{1} << 53) + 1) << "not by double";
}

TEST(Elements, TextIsTheShortestThatReadsBack) {
  EXPECT_EQ(element_to_string(Tensor::scalar(0.1F), 0), "0.1");
  EXPECT_EQ(element_to_string(Tensor::scalar(0.1), 0), "0.1");
  EXPECT_EQ(element_to_string(Tensor::scalar(1.0 / 3), 0), "0.3333333333333333");
  EXPECT_EQ(element_to_string(Tensor::scalar(-std::numeric_limits<float>::infinity()), 0), "-inf");
  EXPECT_EQ(element_to_string(Tensor::scalar(std::numeric_limits<float>::quiet_NaN()), 0), "nan");
  EXPECT_EQ(element_to_string(Tensor::scalar(true), 0), "true");
  EXPECT_EQ(element_to_string(Tensor::scalar(std::numeric_limits<uint64_t>::max()), 0), "18446744073709551615");
  EXPECT_EQ(element_to_string(Tensor::scalar(std::string("a b")), 0), "\"a b\"");
}

}  // namespace
}  // namespace parallax
