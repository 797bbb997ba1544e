// SPDX-License-Identifier: Apache-2.0
// A model after rewriting is as valid as it was before.
#include "inspector/executors/rewrite.h"

#include <gtest/gtest.h>

#include "inspector/model/io/import.h"
#include "inspector/model/shape_inference/infer_types.h"

namespace parallax {
namespace {

// Inference does not know what CumSum computes; once it is folded, the shape of y is known, and is not the declared
// one.
TEST(RewriteModel, DeclaresTheShapesThatItMakesKnown) {
  const std::string_view text =
      "ir_version: 8 opset_import { version: 17 } graph { name: 'g' "
      "node { op_type: 'CumSum' input: 'parts' input: 'axis' output: 'shape' } "
      "node { op_type: 'Reshape' input: 'x' input: 'shape' output: 'y' } "
      "initializer { name: 'parts' data_type: 7 dims: 2 int64_data: 3 int64_data: -1 } "
      "initializer { name: 'axis' data_type: 7 int64_data: 0 } "
      "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 3 } } } } } "
      "output { name: 'y' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_value: 2 } } } } } "
      "}";
  const auto model = import_model(std::as_bytes(std::span(text)), "", "test model");
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto rewritten = rewrite_model(**model, "default");
  ASSERT_TRUE(rewritten.ok()) << rewritten.error().message;
  const Graph& graph = rewritten->model->graph;
  EXPECT_EQ(to_string(value_at(graph, graph.outputs[0]).type), "float32[3,2]");
  EXPECT_EQ(rewritten->corrected_outputs.size(), 1U);
  EXPECT_EQ(to_string(computed_output_types(*rewritten->model)[0]), "float32[3,2]");
}

TEST(RewriteModel, LeavesDeclaredShapesThatMayBeRight) {
  const std::string_view text =
      "ir_version: 8 opset_import { version: 17 } graph { name: 'g' node { op_type: 'Relu' input: 'x' output: 'y' } "
      "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_param: 'batch' } dim { dim_value: 3 } } } "
      "} } "
      "output { name: 'y' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } dim { dim_param: 'n' } } } } "
      "} }";
  const auto model = import_model(std::as_bytes(std::span(text)), "", "test model");
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto rewritten = rewrite_model(**model, "default");
  ASSERT_TRUE(rewritten.ok()) << rewritten.error().message;
  const Graph& graph = rewritten->model->graph;
  EXPECT_EQ(to_string(value_at(graph, graph.outputs[0]).type), "float32[2,n]");
  EXPECT_TRUE(rewritten->corrected_outputs.empty());
}

}  // namespace
}  // namespace parallax
