// Quantised products whose weights are constant go other ways than those whose are not: both give the same bits.
#include <cstring>

#include <gtest/gtest.h>

#include "inspector/model/opset_registry.h"
#include "runtime/device/buffer_pool.h"
#include "runtime/ops/table.h"
#include "tests/runtime/device/random_values.h"

namespace parallax::runtime {
namespace constant_codes_test {

Tensor codes(DType dtype, const Shape& shape, uint32_t seed) {
  const bool is_signed = dtype == DType::int8;
  const auto numbers = random_values<double>(shape.element_count(), seed, is_signed ? -128 : 0, is_signed ? 128 : 256);
  Tensor tensor = Tensor::allocate(dtype, shape).take();
  for (size_t i = 0; i < numbers.size(); ++i)
    tensor.storage().get()[i] = static_cast<std::byte>(static_cast<int64_t>(numbers[i]));
  return tensor;
}

Tensor code(DType dtype, int value) {
  Tensor tensor = Tensor::allocate(dtype, Shape{}).take();
  *tensor.storage().get() = static_cast<std::byte>(value);
  return tensor;
}

Tensor scales(int64_t count) { return Tensor::vector<float>(random_values<float>(count, 9, 0.001, 0.002)); }

struct Attributes {
  int64_t pad = 0, stride = 1, group = 1;
};

// The output where input 3 (or 1) and its parameters are weights, or where nothing is.
Tensor run(const std::string& op_type, const std::vector<Value>& inputs, size_t weights, const Attributes* attributes,
           bool is_constant) {
  Node node;
  node.op_type = node.display_name = op_type;
  node.opset_version = 10;
  node.schema = OpsetRegistry::standard().find("", op_type, 10);
  const auto add = [&](const std::string& name, AttributeType type) -> Attribute& {
    Attribute& attribute = node.attributes.emplace_back();
    attribute.name = name;
    attribute.type = type;
    return attribute;
  };
  if (attributes != nullptr) {
    add("pads", AttributeType::ints).value = std::vector<int64_t>(4, attributes->pad);
    add("strides", AttributeType::ints).value = std::vector<int64_t>(2, attributes->stride);
    add("group", AttributeType::int_).value = attributes->group;
  }
  std::vector<OpInput> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    node.inputs.push_back(static_cast<ValueId>(i));
    given.push_back({&inputs[i], is_constant && i >= weights, false});
  }
  node.outputs.push_back(static_cast<ValueId>(inputs.size()));
  Queue<Cpu> queue(BufferPool::create({.poison = true}));
  OpContext<Cpu> op(node, given, 0, queue);
  const DType types[] = {inputs[0].tensor().dtype()};
  const Status ran = find_kernel<Cpu>(node, types).take()->run(op);
  EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error().message);
  return op.take_outputs().at(0).tensor();
}

void expect_same(const std::string& op_type, const std::vector<Value>& inputs, size_t weights,
                 const Attributes* attributes) {
  const Tensor first = run(op_type, inputs, weights, attributes, false);
  const Tensor second = run(op_type, inputs, weights, attributes, true);
  ASSERT_EQ(first.size_bytes(), second.size_bytes());
  EXPECT_EQ(std::memcmp(first.view().data, second.view().data, first.size_bytes()), 0)
      << op_type << ", " << name_of(inputs[0].tensor().dtype());
}

constexpr DType kTypes[] = {DType::uint8, DType::int8};

TEST(ConstantCodes, ConvolutionsHaveTheBitsOfThoseThatChange) {
  struct Case {
    int64_t channels, filters, size;
    Attributes attributes;
  };
  for (const Case& each : {Case{20, 24, 3, {1, 1, 1}}, Case{3, 70, 3, {1, 2, 1}}, Case{32, 48, 1, {0, 1, 1}},
                           Case{70, 70, 3, {1, 2, 70}}, Case{40, 40, 5, {2, 1, 40}}, Case{32, 64, 3, {1, 1, 2}}}) {
    for (const DType dtype : kTypes) {
      const int64_t group = each.attributes.group;
      const Tensor x = codes(dtype, Shape{2, each.channels, 13, 18}, 1);
      const Tensor w = codes(DType::int8, Shape{each.filters, each.channels / group, each.size, each.size}, 2);
      Tensor bias = Tensor::allocate(DType::int32, Shape{each.filters}).take();
      for (int64_t i = 0; i < each.filters; ++i)
        reinterpret_cast<int32_t*>(bias.storage().get())[i] = static_cast<int32_t>(i * 500 - 9000);
      for (const int64_t count : {int64_t{1}, each.filters}) {
        const Tensor scale = count == 1 ? Tensor::scalar<float>(0.0013F) : scales(count);
        expect_same("QLinearConv",
                    {x, Tensor::scalar<float>(0.02F), code(dtype, 7), w, scale, code(DType::int8, 0),
                     Tensor::scalar<float>(0.015F), code(dtype, 30), bias},
                    3, &each.attributes);
      }
      expect_same("ConvInteger", {x, w, code(dtype, 7), code(DType::int8, 0)}, 1, &each.attributes);
    }
  }
}

TEST(ConstantCodes, MatricesHaveTheBitsOfThoseThatChange) {
  for (const DType dtype : kTypes) {
    for (const int64_t rows : {1, 33}) {
      const Tensor a = codes(dtype, Shape{2, rows, 75}, 3), b = codes(DType::int8, Shape{75, 90}, 4);
      for (const int64_t count : {1, 90}) {
        const Tensor scale = count == 1 ? Tensor::scalar<float>(0.0013F) : scales(count);
        expect_same("QLinearMatMul",
                    {a, Tensor::scalar<float>(0.02F), code(dtype, 7), b, scale, code(DType::int8, -4),
                     Tensor::scalar<float>(0.02F), code(dtype, 30)},
                    3, nullptr);
      }
      expect_same("MatMulInteger", {a, b, code(dtype, 7), code(DType::int8, -4)}, 1, nullptr);
    }
  }
}

}  // namespace constant_codes_test
}  // namespace parallax::runtime
