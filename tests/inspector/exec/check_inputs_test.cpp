// SPDX-License-Identifier: Apache-2.0
// The inputs that a session takes: types, ranks, sizes, and sizes that a name ties together.
#include <gtest/gtest.h>

#include "inspector/exec/executor.h"
#include "inspector/model/io/import.h"

namespace parallax {
namespace {

std::shared_ptr<const Model> two_inputs() {
  const std::string text = R"(ir_version: 8 opset_import { version: 17 } graph { name: "g"
    node { input: "x" input: "past" output: "y" op_type: "Add" }
    input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "length" } dim { dim_value: 2 } } } } }
    input { name: "past" type { tensor_type { elem_type: 1 shape { dim { dim_param: "length" } } } } }
    output { name: "y" type { tensor_type { elem_type: 1 } } } })";
  return import_model(std::as_bytes(std::span(text)), "", "test model").take();
}

Value zeros(const Shape& shape, DType dtype = DType::float32) { return Tensor::zeros(dtype, shape).take(); }

std::string problem_of(const std::vector<Value>& inputs) {
  const Status checked = check_inputs(two_inputs()->graph, inputs);
  return checked.ok() ? "" : checked.error().message;
}

TEST(CheckInputs, SizesOfOneNameAgree) {
  EXPECT_EQ(problem_of({zeros({3, 2}), zeros({3})}), "");
  EXPECT_NE(problem_of({zeros({3, 2}), zeros({4})}).find("dimension 'length' was 3 in input 'x'"), std::string::npos);
}

// The past of a first step, which its branch does not read.
TEST(CheckInputs, AnEmptyTensorAgreesWithAnySize) {
  EXPECT_EQ(problem_of({zeros({3, 2}), zeros({0})}), "");
  EXPECT_EQ(problem_of({zeros({0, 2}), zeros({4})}), "");
}

TEST(CheckInputs, TypesRanksAndFixedSizesAreHeld) {
  EXPECT_NE(problem_of({zeros({3, 2}, DType::float64), zeros({3})}), "");
  EXPECT_NE(problem_of({zeros({3}), zeros({3})}).find("rank 1 is wrong"), std::string::npos);
  EXPECT_NE(problem_of({zeros({3, 0}), zeros({3})}).find("dimension 1 is wrong"), std::string::npos);
  EXPECT_NE(problem_of({zeros({3, 2})}).find("has 2 inputs, got 1"), std::string::npos);
}

}  // namespace
}  // namespace parallax
