// SPDX-License-Identifier: Apache-2.0
// The predicted size of a dump, against sizes added up by hand.
#include "inspector/workbench/dump_size.h"

#include <gtest/gtest.h>

#include "inspector/model/io/import.h"

namespace parallax::dump_size_test {
namespace {

TEST(DumpSize, AddsWhatIsKnownUnderTheSizesOfTheInputs) {
  const std::string text = R"(ir_version: 8 opset_import { version: 17 } graph { name: "g"
    node { op_type: "Add" input: "x" input: "w" output: "sum" }
    node { op_type: "Reshape" input: "sum" input: "flat" output: "line" }
    node { op_type: "NonZero" input: "line" output: "indices" }
    input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "n" } dim { dim_value: 4 } } } } }
    initializer { name: "w" data_type: 1 dims: 4 float_data: 1 float_data: 2 float_data: 3 float_data: 4 }
    initializer { name: "flat" data_type: 7 dims: 1 int64_data: -1 }
    output { name: "indices" type { tensor_type { elem_type: 7 shape { dim { dim_value: 1 } dim { } } } } } })";
  const auto model = import_model(std::as_bytes(std::span(text)), "", "test.textproto");
  ASSERT_TRUE(model.ok()) << model.error().message;
  const std::vector<Value> inputs{Value(Tensor::zeros(DType::float32, {3, 4}).take())};
  // x, w, flat and the sum; the reshaped sum is no second payload, and the number of calls is not known.
  EXPECT_EQ(foreseen_payload_bytes((*model)->graph, inputs), 48 + 16 + 8 + 48);
  EXPECT_EQ(foreseen_payload_bytes((*model)->graph, {}), 16 + 8);
}

}  // namespace
}  // namespace parallax::dump_size_test
