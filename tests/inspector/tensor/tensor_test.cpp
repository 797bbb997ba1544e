// Shapes, tensors, element access and values.
#include "inspector/tensor/tensor.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "inspector/tensor/elements.h"
#include "inspector/tensor/value.h"

namespace parallax {
namespace {

TEST(Shape, RefusesWhatCannotBe) {
  const std::vector<int64_t> negative = {2, -1};
  EXPECT_FALSE(Shape::create(negative).ok());
  const std::vector<int64_t> huge = {int64_t{1} << 40, int64_t{1} << 40};
  EXPECT_FALSE(Shape::create(huge).ok());
  const std::vector<int64_t> deep(17, 1);
  EXPECT_FALSE(Shape::create(deep).ok());
  const std::vector<int64_t> empty_though_large = {int64_t{1} << 40, 0, int64_t{1} << 40};
  ASSERT_TRUE(Shape::create(empty_though_large).ok());
  EXPECT_EQ(Shape::create(empty_though_large)->element_count(), 0);
  EXPECT_EQ(Shape{}.element_count(), 1);
  EXPECT_EQ((Shape{2, 3}).to_string(), "[2,3]");
}

TEST(DType, NamesInBothSpellings) {
  for (const DTypeInfo& info : all_dtypes()) {
    EXPECT_EQ(dtype_from_name(info.name), info.dtype);
    EXPECT_EQ(dtype_from_name(info.onnx_name), info.dtype);
    EXPECT_EQ(dtype_from_number(static_cast<int>(info.dtype)), info.dtype);
  }
  EXPECT_FALSE(dtype_from_name("float7").has_value());
  EXPECT_FALSE(dtype_from_number(0).has_value());
  EXPECT_FALSE(dtype_from_number(99).has_value());
}

TEST(Tensor, PayloadsAreAlignedAndShared) {
  const Tensor tensor = Tensor::allocate(DType::float32, Shape{3, 5}).take();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.view().data) % Tensor::kAlignment, 0U);
  const Tensor other = tensor.reshaped(Shape{15});
  EXPECT_EQ(other.view().data, tensor.view().data);
  EXPECT_EQ(other.shape(), Shape{15});
}

TEST(Tensor, TooLargeIsAnError) {
  const auto tensor = Tensor::allocate(DType::float64, Shape{int64_t{1} << 50});
  ASSERT_FALSE(tensor.ok());
  EXPECT_EQ(tensor.error().code, ErrorCode::out_of_memory);
}

TEST(Tensor, SubByteTypesArePackedLowBitsFirst) {
  Tensor tensor = Tensor::zeros(DType::int4, Shape{3}).take();
  EXPECT_EQ(tensor.size_bytes(), 2U);
  const std::vector<int64_t> values = {1, -1, -8};
  store_int64s(tensor, 0, values);
  EXPECT_EQ(tensor.as<uint8_t>()[0], 0xF1);
  EXPECT_EQ(tensor.as<uint8_t>()[1], 0x08);
  EXPECT_EQ(to_int64s(tensor), values);
}

class EveryType : public testing::TestWithParam<DType> {};

TEST_P(EveryType, StoresAndLoadsSmallNumbers) {
  if (GetParam() == DType::string) return;
  Tensor tensor = Tensor::zeros(GetParam(), Shape{2, 3}).take();
  const std::vector<double> values = {1, 0, 1, 1, 0, 1};
  const bool has_zero = GetParam() != DType::float8e8m0;
  store_doubles(tensor, 0, values);
  std::vector<double> loaded(6);
  load_doubles(tensor, 0, loaded);
  for (size_t index = 0; index < 6; ++index) {
    if (values[index] != 0 || has_zero) {
      EXPECT_EQ(loaded[index], values[index]);
    }
  }
  EXPECT_EQ(element_as_double(tensor, 3), 1);
}

INSTANTIATE_TEST_SUITE_P(All, EveryType, testing::ValuesIn([] {
                           std::vector<DType> types;
                           for (const DTypeInfo& row : all_dtypes()) types.push_back(row.dtype);
                           return types;
                         }()),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(Elements, PrintAsTheyReadBack) {
  EXPECT_EQ(element_to_string(Tensor::scalar(0.1F), 0), "0.1");
  EXPECT_EQ(element_to_string(Tensor::scalar(0.1), 0), "0.1");
  EXPECT_EQ(element_to_string(Tensor::scalar(-std::numeric_limits<float>::infinity()), 0), "-inf");
  EXPECT_EQ(element_to_string(Tensor::scalar(std::nan("")), 0), "nan");
  EXPECT_EQ(element_to_string(Tensor::scalar(true), 0), "true");
  EXPECT_EQ(element_to_string(Tensor::scalar(std::numeric_limits<uint64_t>::max()), 0), "18446744073709551615");
  EXPECT_EQ(element_to_string(Tensor::scalar(std::complex<float>(1, -2)), 0), "(1,-2)");
  EXPECT_EQ(element_to_string(Tensor::scalar(std::string("hi")), 0), "\"hi\"");
}

TEST(Elements, Int64IsExactBeyondDouble) {
  const Tensor tensor = Tensor::scalar((int64_t{1} << 53) + 1);
  EXPECT_EQ(element_as_int64(tensor, 0), (int64_t{1} << 53) + 1);
}

TEST(Value, TypesAndSizes) {
  SequenceValue sequence{TypeInfo::tensor(DType::float32), {Tensor::scalar(1.0F), Tensor::scalar(2.0F)}};
  const Value value(sequence);
  EXPECT_EQ(to_string(type_of(value)), "seq(float32)");
  EXPECT_EQ(payload_bytes(value), 8U);
  EXPECT_EQ(to_string(type_of(Value(Tensor::scalar(int64_t{1})))), "int64[]");
  EXPECT_TRUE(Value().is_absent());
}

}  // namespace
}  // namespace parallax
