// SPDX-License-Identifier: Apache-2.0
// Quantized operators whose weights or parameters are constant go other ways than those whose are not: both give the
// same bits.
#include <cstring>

#include <gtest/gtest.h>

#include "inspector/model/opset/opset_registry.h"
#include "runtime/device/cpu/buffer_pool.h"
#include "runtime/device/cpu/weight_cache.h"
#include "runtime/ops/table.h"
#include "tests/runtime/device/random_values.h"

namespace parallax::runtime {
namespace constant_quantized_test {

Tensor random_quantized(DType dtype, const Shape& shape, uint32_t seed) {
  const bool is_signed = dtype == DType::int8;
  const auto numbers = random_values<double>(shape.element_count(), seed, is_signed ? -128 : 0, is_signed ? 128 : 256);
  Tensor tensor = Tensor::allocate(dtype, shape).take();
  for (size_t i = 0; i < numbers.size(); ++i)
    tensor.storage().get()[i] = static_cast<std::byte>(static_cast<int64_t>(numbers[i]));
  return tensor;
}

Tensor zero_point(DType dtype, int value) {
  Tensor tensor = Tensor::allocate(dtype, Shape{}).take();
  *tensor.storage().get() = static_cast<std::byte>(value);
  return tensor;
}

Tensor scales(int64_t count) { return Tensor::vector<float>(random_values<float>(count, 9, 0.001, 0.002)); }

struct Attributes {
  int64_t pad = 0, stride = 1, group = 1;
};

Attribute& add(Node& node, const std::string& name, AttributeType type) {
  Attribute& attribute = node.attributes.emplace_back();
  attribute.name = name;
  attribute.type = type;
  return attribute;
}

// A node of ai.onnx, or of com.microsoft where that has none of the name.
Node node_of(const std::string& op_type, size_t inputs) {
  Node node;
  node.op_type = node.display_name = op_type;
  node.opset_version = 10;
  node.schema = OpsetRegistry::standard().find("", op_type, 10);
  if (node.schema == nullptr) {
    node.domain = "com.microsoft";
    node.opset_version = 1;
    node.schema = OpsetRegistry::standard().find(node.domain, op_type, 1);
  }
  for (size_t i = 0; i < inputs; ++i) node.inputs.push_back(static_cast<ValueId>(i));
  node.outputs.push_back(static_cast<ValueId>(inputs));
  return node;
}

// The output where the inputs from `weights` on never change, or where nothing is a weight.
Tensor run(Queue<Cpu>& queue, const Node& node, const std::vector<Value>& inputs, size_t weights, bool is_constant) {
  std::vector<OpInput> given;
  for (size_t i = 0; i < inputs.size(); ++i) given.push_back({&inputs[i], is_constant && i >= weights, false});
  OpContext<Cpu> op(node, given, 0, queue);
  const DType types[] = {inputs[0].tensor().dtype()};
  const Status ran = find_kernel<Cpu>(node, types).take()->run(op);
  EXPECT_TRUE(ran.ok()) << (ran.ok() ? "" : ran.error().message);
  return op.take_outputs().at(0).tensor();
}

void expect_equal(const Tensor& first, const Tensor& second, const Node& node) {
  ASSERT_EQ(first.size_bytes(), second.size_bytes());
  EXPECT_EQ(std::memcmp(first.view().data, second.view().data, first.size_bytes()), 0)
      << node.op_type << ", " << name_of(first.dtype());
}

void expect_same(const std::string& op_type, const std::vector<Value>& inputs, size_t weights,
                 const Attributes* attributes) {
  Node node = node_of(op_type, inputs.size());
  if (attributes != nullptr) {
    add(node, "pads", AttributeType::ints).value = std::vector<int64_t>(4, attributes->pad);
    add(node, "strides", AttributeType::ints).value = std::vector<int64_t>(2, attributes->stride);
    add(node, "group", AttributeType::int_).value = attributes->group;
  }
  const auto run_anew = [&](bool is_constant) {
    Queue<Cpu> queue(BufferPool::create({.poison = true}));
    return run(queue, node, inputs, weights, is_constant);
  };
  expect_equal(run_anew(false), run_anew(true), node);
}

constexpr DType kTypes[] = {DType::uint8, DType::int8};

TEST(ConstantQuantized, ConvolutionsHaveTheBitsOfThoseThatChange) {
  struct Case {
    int64_t channels, filters, size;
    Attributes attributes;
  };
  for (const Case& each : {Case{20, 24, 3, {1, 1, 1}}, Case{3, 70, 3, {1, 2, 1}}, Case{32, 48, 1, {0, 1, 1}},
                           Case{70, 70, 3, {1, 2, 70}}, Case{40, 40, 5, {2, 1, 40}}, Case{32, 64, 3, {1, 1, 2}}}) {
    for (const DType dtype : kTypes) {
      const int64_t group = each.attributes.group;
      const Tensor x = random_quantized(dtype, Shape{2, each.channels, 13, 18}, 1);
      const Tensor w =
          random_quantized(DType::int8, Shape{each.filters, each.channels / group, each.size, each.size}, 2);
      Tensor bias = Tensor::allocate(DType::int32, Shape{each.filters}).take();
      for (int64_t i = 0; i < each.filters; ++i)
        reinterpret_cast<int32_t*>(bias.storage().get())[i] = static_cast<int32_t>(i * 500 - 9000);
      for (const int64_t count : {int64_t{1}, each.filters}) {
        const Tensor scale = count == 1 ? Tensor::scalar<float>(0.0013F) : scales(count);
        expect_same("QLinearConv",
                    {x, Tensor::scalar<float>(0.02F), zero_point(dtype, 7), w, scale, zero_point(DType::int8, 0),
                     Tensor::scalar<float>(0.015F), zero_point(dtype, 30), bias},
                    3, &each.attributes);
      }
      expect_same("ConvInteger", {x, w, zero_point(dtype, 7), zero_point(DType::int8, 0)}, 1, &each.attributes);
    }
  }
}

TEST(ConstantQuantized, MatricesHaveTheBitsOfThoseThatChange) {
  for (const DType dtype : kTypes) {
    for (const int64_t rows : {1, 33}) {
      const Tensor a = random_quantized(dtype, Shape{2, rows, 75}, 3),
                   b = random_quantized(DType::int8, Shape{75, 90}, 4);
      for (const int64_t count : {1, 90}) {
        const Tensor scale = count == 1 ? Tensor::scalar<float>(0.0013F) : scales(count);
        expect_same("QLinearMatMul",
                    {a, Tensor::scalar<float>(0.02F), zero_point(dtype, 7), b, scale, zero_point(DType::int8, -4),
                     Tensor::scalar<float>(0.02F), zero_point(dtype, 30)},
                    3, nullptr);
      }
      expect_same("MatMulInteger", {a, b, zero_point(dtype, 7), zero_point(DType::int8, -4)}, 1, nullptr);
    }
  }
}

// ---- Functions of one quantized value, which few values evaluate and many look up ----

Tensor quantized_from(DType dtype, int first, int64_t count) {
  Tensor tensor = Tensor::allocate(dtype, Shape{count}).take();
  for (int64_t i = 0; i < count; ++i) tensor.storage().get()[i] = static_cast<std::byte>(first + i);
  return tensor;
}

Node leaky_relu(float alpha) {
  Node node = node_of("QLinearLeakyRelu", 5);
  add(node, "alpha", AttributeType::float_).value = alpha;
  return node;
}

TEST(ConstantQuantized, AllValuesAreTheSameByTableAndWithout) {
  for (const Node& node : {node_of("QLinearSigmoid", 5), leaky_relu(0.3F), leaky_relu(-1.7F)}) {
    for (const DType dtype : kTypes) {
      for (const auto& [x_scale, y_scale] : {std::pair{0.03F, 0.0039F}, std::pair{1.7F, 0.11F}}) {
        Queue<Cpu> queue(BufferPool::create({.poison = true}));
        const std::vector<Value> parameters = {quantized_from(dtype, 0, 256), Tensor::scalar<float>(x_scale),
                                               zero_point(dtype, 7), Tensor::scalar<float>(y_scale),
                                               zero_point(dtype, 30)};
        const Tensor by_table = run(queue, node, parameters, 1, false);
        EXPECT_EQ(queue.weights().bytes(), 0);
        expect_equal(by_table, run(queue, node, parameters, 1, true), node);
        for (const bool is_constant : {false, true}) {
          for (int first = 0; first < 256; first += 64) {
            std::vector<Value> part = parameters;
            part[0] = quantized_from(dtype, first, 64);
            const Tensor few = run(queue, node, part, 1, is_constant);
            EXPECT_EQ(std::memcmp(few.view().data, by_table.view().data + first, 64), 0)
                << node.op_type << ", " << name_of(dtype) << ", from " << first;
          }
        }
        EXPECT_EQ(queue.weights().bytes(), 256);  // made once
      }
    }
  }
}

TEST(ConstantQuantized, NodesThatDifferHaveTablesOfTheirOwn) {
  Queue<Cpu> queue(BufferPool::create({.poison = true}));
  const std::vector<Value> inputs = {quantized_from(DType::uint8, 0, 256), Tensor::scalar<float>(0.03F),
                                     zero_point(DType::uint8, 128), Tensor::scalar<float>(0.02F),
                                     zero_point(DType::uint8, 100)};
  std::vector<Value> coarser = inputs;
  coarser[3] = Tensor::scalar<float>(0.05F);
  const Node sigmoid = node_of("QLinearSigmoid", 5);
  for (const Node& node : {sigmoid, leaky_relu(0.3F), leaky_relu(-1.7F)}) {
    for (const auto& given : {inputs, coarser})
      expect_equal(run(queue, node, given, 1, false), run(queue, node, given, 1, true), node);
  }
  EXPECT_EQ(queue.weights().bytes(), 6 * 256);
}

}  // namespace constant_quantized_test
}  // namespace parallax::runtime
