// SPDX-License-Identifier: Apache-2.0
// Types, shapes, tensors and values: sizes that cannot overflow, payloads that are aligned and shared.
#include "inspector/tensor/tensor.h"

#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "inspector/tensor/value.h"

namespace parallax {
namespace {

TEST(DTypes, NamesAndNumbersAreUniqueAndReadBack) {
  std::set<std::string_view> names;
  EXPECT_EQ(all_dtypes().size(), static_cast<size_t>(kDTypeCount - 1));
  for (const DTypeInfo& info : all_dtypes()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(dtype_from_name(info.name), info.dtype);
    EXPECT_EQ(dtype_from_name(info.onnx_name), info.dtype);
    EXPECT_EQ(dtype_from_number(static_cast<int64_t>(info.dtype)), info.dtype);
  }
  EXPECT_EQ(dtype_from_number(0), std::nullopt);
  EXPECT_EQ(dtype_from_number(kDTypeCount), std::nullopt);
  EXPECT_EQ(dtype_from_number(257), std::nullopt) << "257 is 1 in eight bits";
  EXPECT_EQ(dtype_from_name("float128"), std::nullopt);
}

TEST(DTypes, PackedSizesRoundUp) {
  EXPECT_EQ(byte_size(DType::int4, 0), 0U);
  EXPECT_EQ(byte_size(DType::int4, 3), 2U);
  EXPECT_EQ(byte_size(DType::uint2, 5), 2U);
  EXPECT_EQ(byte_size(DType::bool_, 5), 5U);
  EXPECT_EQ(byte_size(DType::complex128, 3), 48U);
}

TEST(Shapes, UntrustedDimensionsAreChecked) {
  const auto refused = [](std::vector<int64_t> dims) { return !Shape::create(dims).ok(); };
  EXPECT_TRUE(refused({-1}));
  EXPECT_TRUE(refused({int64_t{1} << 40, int64_t{1} << 40}));
  EXPECT_TRUE(refused({int64_t{1} << 62, 4, 6}));
  EXPECT_TRUE(refused(std::vector<int64_t>(Shape::kMaxRank + 1, 1)));
  EXPECT_FALSE(refused({}));
  EXPECT_FALSE(refused({int64_t{1} << 40, 0, int64_t{1} << 16})) << "no element at all";
  EXPECT_TRUE(refused({int64_t{1} << 40, 0, int64_t{1} << 40})) << "strides would not be in range";
  EXPECT_FALSE(refused(std::vector<int64_t>(Shape::kMaxRank, 1)));
}

TEST(Shapes, CountAndText) {
  EXPECT_EQ((Shape{2, 3, 4}).element_count(), 24);
  EXPECT_EQ((Shape{2, 0}).element_count(), 0);
  EXPECT_EQ(Shape{}.element_count(), 1);
  EXPECT_EQ((Shape{2, 3}).to_string(), "[2,3]");
  EXPECT_EQ(Shape{}.to_string(), "[]");
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 1}));
}

TEST(Tensors, PayloadsAreAligned) {
  for (const DTypeInfo& info : all_dtypes()) {
    if (info.kind == DTypeKind::string) continue;  // read one by one, never by vectors
    const Tensor tensor = Tensor::zeros(info.dtype, Shape{3, 5}).take();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.view().data) % Tensor::kAlignment, 0U) << info.name;
    EXPECT_EQ(tensor.size_bytes(), byte_size(info.dtype, 15)) << info.name;
  }
}

TEST(Tensors, MemoryThatIsNotThereIsAnError) {
  const Result<Tensor> tensor = Tensor::allocate(DType::float64, Shape{int64_t{1} << 55});
  ASSERT_FALSE(tensor.ok());
  EXPECT_EQ(tensor.error().code, ErrorCode::out_of_memory);
}

TEST(Tensors, CopiesShareAndClonesDoNot) {
  const std::vector<float> values = {1, 2, 3, 4};
  const Tensor tensor = Tensor::vector<float>(values);
  const std::vector<Tensor> copies(2, tensor);
  const Tensor reshaped = tensor.reshaped(Shape{2, 2});
  const Tensor clone = tensor.clone().take();
  EXPECT_EQ(copies[1].view().data, tensor.view().data);
  EXPECT_EQ(reshaped.view().data, tensor.view().data);
  EXPECT_EQ(reshaped.shape(), (Shape{2, 2}));
  EXPECT_NE(clone.view().data, tensor.view().data);
  EXPECT_EQ(clone.as<float>()[3], 4);
}

TEST(Tensors, StringsAreClonedDeeply) {
  const std::vector<std::string> words = {"a word that is too long for a short string", ""};
  const Tensor clone = Tensor::vector<std::string>(words).clone().take();
  EXPECT_EQ(clone.as<std::string>()[0], words[0]);
}

TEST(TensorsDeathTest, ReadingAsAnotherTypeStops) {
  const Tensor tensor = Tensor::scalar(1.0F);
  EXPECT_DEATH((void)tensor.as<int32_t>(), "");
  EXPECT_DEATH((void)tensor.reshaped(Shape{2}), "");
}

TEST(Values, TypeAndBytesOfNestedValues) {
  const Tensor tensor = Tensor::zeros(DType::float32, Shape{2, 3}).take();
  const Value sequence = SequenceValue{TypeInfo::tensor(DType::float32), {Value(tensor), Value(tensor)}};
  EXPECT_EQ(to_string(type_of(Value(tensor))), "float32[2,3]");
  EXPECT_EQ(type_of(sequence).kind, TypeInfo::Kind::sequence);
  EXPECT_EQ(payload_bytes(sequence), 48U);
  EXPECT_EQ(payload_bytes(Value()), 0U);
  EXPECT_TRUE(Value().is_absent());
}

TEST(Values, TypesAsText) {
  TypeInfo type = TypeInfo::tensor(DType::float32);
  EXPECT_EQ(to_string(type), "float32") << "of unknown rank";
  type.dims = std::vector<Dim>{{-1, "batch"}, {3, ""}, {-1, ""}};
  EXPECT_EQ(to_string(type), "float32[batch,3,?]");
  EXPECT_EQ(to_string(TypeInfo::sequence(type)), "seq(float32[batch,3,?])");
}

}  // namespace
}  // namespace parallax
