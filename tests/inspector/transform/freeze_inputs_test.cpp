// SPDX-License-Identifier: Apache-2.0
// Inputs made initializers: they share memory, stand where the inputs stood, and types after them are exact.
#include "inspector/transform/freeze_inputs.h"

#include <array>

#include <gtest/gtest.h>

#include "inspector/model/io/import.h"
#include "tests/inspector/transform/models.h"

namespace parallax::transform {
namespace {

using testing::model_of_text;

constexpr const char* kProduct = R"(
ir_version: 3 opset_import { version: 18 }
graph { name: 'g'
  node { op_type: 'MatMul' input: 'x' input: 'w' output: 'y' }
  node { op_type: 'Add' input: 'y' input: 'b' output: 'z' }
  input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_param: 'n' } dim { dim_value: 3 } } } } }
  input { name: 'w' type { tensor_type { elem_type: 1 shape { dim { dim_value: 3 } dim { dim_param: 'k' } } } } }
  input { name: 'b' type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } } } } }
  initializer { name: 'b' data_type: 1 dims: 1 float_data: 5 }
  output { name: 'z' type { tensor_type { elem_type: 1 } } } })";

Tensor filled(const Shape& shape, float value) {
  Tensor tensor = Tensor::allocate(DType::float32, shape).take();
  for (float& element : tensor.mutable_as<float>()) element = value;
  return tensor;
}

TEST(FreezeInputs, SharesMemoryAndLeavesTheOtherInputs) {
  const auto model = model_of_text(kProduct).take();
  const Tensor weight = filled(Shape{3, 2}, 1);
  const auto frozen = freeze_inputs(*model, {{"w", weight}});
  ASSERT_TRUE(frozen.ok()) << frozen.error().message;
  const Graph& graph = (*frozen)->graph;
  ASSERT_EQ(graph.inputs.size(), 2U);
  EXPECT_EQ(value_at(graph, graph.inputs[0]).name, "x");
  EXPECT_EQ(value_at(graph, graph.inputs[1]).input_index, 1);
  const ValueDef& value = value_at(graph, graph.find_value("w"));
  EXPECT_EQ(value.input_index, -1);
  ASSERT_GE(value.initializer_index, 0);
  EXPECT_EQ(graph.initializers[static_cast<size_t>(value.initializer_index)].tensor.view().data, weight.view().data);
  EXPECT_EQ(to_string(graph.output_type(0)), "float32[n,2]");
  EXPECT_GE((*frozen)->ir_version, 4);
  EXPECT_EQ(model->graph.inputs.size(), 3U);
  EXPECT_TRUE(check_model(**frozen).empty());
}

TEST(FreezeInputs, ReplacesADefault) {
  const auto frozen = freeze_inputs(*model_of_text(kProduct).take(), {{"b", filled(Shape{1}, 9)}});
  ASSERT_TRUE(frozen.ok()) << frozen.error().message;
  const Graph& graph = (*frozen)->graph;
  ASSERT_EQ(graph.initializers.size(), 1U);
  EXPECT_EQ(graph.initializers[0].tensor.as<float>()[0], 9);
  EXPECT_EQ(value_at(graph, graph.find_value("b")).input_index, -1);
}

TEST(FreezeInputs, RefusesUnknownNamesAndShapesThatDoNotFit) {
  const auto model = model_of_text(kProduct).take();
  const auto unknown = freeze_inputs(*model, {{"v", filled(Shape{1}, 0)}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message, "the model has no input 'v' (inputs: x, w, b)");
  const auto output = freeze_inputs(*model, {{"z", filled(Shape{1}, 0)}});
  EXPECT_FALSE(output.ok());
  const auto misfit = freeze_inputs(*model, {{"w", filled(Shape{2, 2}, 0)}});
  ASSERT_FALSE(misfit.ok());
  EXPECT_EQ(misfit.error().message, "input 'w' is given float32[2,2]; it must be float32[3,k]");
  const auto type = freeze_inputs(*model, {{"b", Tensor::vector<int64_t>(std::array<int64_t, 1>{1})}});
  ASSERT_FALSE(type.ok());
  EXPECT_EQ(type.error().code, ErrorCode::usage);
}

}  // namespace
}  // namespace parallax::transform
