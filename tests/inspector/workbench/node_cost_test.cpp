// SPDX-License-Identifier: Apache-2.0
// The work of nodes, against the arithmetic of their definitions done by hand.
#include "inspector/workbench/node_cost.h"

#include <gtest/gtest.h>

namespace parallax {
namespace {

TypeInfo floats(std::initializer_list<int64_t> dims) {
  TypeInfo type = TypeInfo::tensor(DType::float32);
  type.dims.emplace();
  for (const int64_t size : dims) type.dims->push_back({size, ""});
  return type;
}

NodeCost cost(const char* op, std::vector<TypeInfo> inputs, std::vector<TypeInfo> outputs,
              std::vector<Attribute> attributes = {}) {
  Node node;
  node.op_type = op;
  node.attributes = std::move(attributes);
  return cost_of_node(node, inputs, outputs);
}

Attribute flag(const char* name) {
  Attribute attribute;
  attribute.name = name;
  attribute.type = AttributeType::int_;
  attribute.value = int64_t{1};
  return attribute;
}

TEST(NodeCost, CountsProductsTwice) {
  EXPECT_EQ(cost("MatMul", {floats({2, 3, 5}), floats({5, 7})}, {floats({2, 3, 7})}).flops, 2 * 2 * 3 * 7 * 5);
  EXPECT_EQ(cost("Gemm", {floats({5, 3}), floats({5, 7})}, {floats({3, 7})}, {flag("transA")}).flops, 2 * 3 * 7 * 5);
  EXPECT_EQ(cost("Conv", {floats({1, 4, 8, 8}), floats({6, 2, 3, 3})}, {floats({1, 6, 6, 6})}).flops,
            2 * 216 * (2 * 3 * 3));
  EXPECT_EQ(cost("ConvTranspose", {floats({1, 4, 8, 8}), floats({4, 2, 3, 3})}, {floats({1, 2, 10, 10})}).flops,
            2 * 256 * (2 * 3 * 3));
}

TEST(NodeCost, CountsBytesOfAllArguments) {
  EXPECT_EQ(cost("MatMul", {floats({3, 5}), floats({5, 7})}, {floats({3, 7})}).bytes, 4 * (15 + 35 + 21));
  EXPECT_EQ(cost("Clip", {floats({8}), TypeInfo(), floats({})}, {floats({8})}).bytes, 4 * (8 + 1 + 8));
}

TEST(NodeCost, MovingCostsNoArithmetic) {
  const NodeCost moved = cost("Transpose", {floats({3, 5})}, {floats({5, 3})});
  EXPECT_EQ(moved.flops, 0);
  EXPECT_EQ(moved.bytes, 120);
  EXPECT_EQ(cost("Add", {floats({3, 5}), floats({5})}, {floats({3, 5})}).flops, 15);
}

TEST(NodeCost, UnknownShapesCountNothing) {
  TypeInfo open = floats({3, 5});
  (*open.dims)[0] = {-1, "batch"};
  EXPECT_EQ(cost("Relu", {open}, {open}).bytes, 0);
  EXPECT_EQ(cost("Relu", {open}, {open}).flops, 0);
}

}  // namespace
}  // namespace parallax
