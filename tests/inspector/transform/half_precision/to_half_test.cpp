// SPDX-License-Identifier: Apache-2.0
// Half precision: types everywhere, casts where both types meet, weights that do not fit, bodies and functions.
#include "inspector/transform/half_precision/to_half.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "inspector/exec/executor.h"
#include "inspector/model/link.h"
#include "inspector/tensor/elements.h"
#include "tests/inspector/transform/models.h"

namespace parallax::transform {
namespace {

using testing::model_of_text;

constexpr const char* kHead = R"(ir_version: 9 opset_import { version: 18 } )";

std::string io(const std::string& kind, const std::string& name, int type = 1) {
  return kind + " { name: '" + name + "' type { tensor_type { elem_type: " + std::to_string(type) +
         " shape { dim { dim_value: 4 } } } } } ";
}

HalfConversion converted(const std::string& text, const HalfRequest& request = {}) {
  const auto model = model_of_text(text);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  auto result = to_half(**model, request);
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return std::move(result).take();
}

DType type_of_value(const Graph& graph, const std::string& name) {
  return value_at(graph, graph.find_value(name)).type.dtype;
}

std::vector<double> run(const std::shared_ptr<const Model>& model, std::vector<Value> inputs) {
  const auto executor = testing::executors()("reference").take();
  auto session = executor->prepare(model, {});
  EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.error().message);
  NullObserver observer;
  auto outputs = (*session)->run(inputs, observer);
  EXPECT_TRUE(outputs.ok()) << (outputs.ok() ? "" : outputs.error().message);
  const Tensor& tensor = outputs->front().tensor();
  std::vector<double> numbers(static_cast<size_t>(tensor.element_count()));
  load_doubles(tensor, 0, numbers);
  return numbers;
}

Value floats(DType type, std::vector<double> numbers) {
  Tensor tensor = Tensor::allocate(type, Shape{static_cast<int64_t>(numbers.size())}).take();
  store_doubles(tensor, 0, numbers);
  return Value(std::move(tensor));
}

TEST(ToHalf, ConvertsInputsWeightsAndOutputs) {
  const HalfConversion result = converted(std::string(kHead) + R"(graph { name: 'g'
    node { op_type: 'Mul' input: 'x' input: 'w' output: 'y' }
    initializer { name: 'w' data_type: 1 dims: 4 float_data: [1, 2, 3, 0.5] } )" +
                                          io("input", "x") + io("output", "y") + "}");
  const Graph& graph = result.model->graph;
  EXPECT_EQ(type_of_value(graph, "x"), DType::float16);
  EXPECT_EQ(type_of_value(graph, "y"), DType::float16);
  EXPECT_EQ(graph.initializers.front().tensor.dtype(), DType::float16);
  EXPECT_EQ(result.casts, 0);
  EXPECT_EQ(result.converted, 1);
  EXPECT_EQ(result.weight_bytes * 2, result.weight_bytes_before);
  EXPECT_EQ(run(result.model, {floats(DType::float16, {1, 2, 3, 4})}), (std::vector<double>{1, 4, 9, 2}));
}

TEST(ToHalf, KeepsInputsAndOutputsWithNamesWhereAsked) {
  HalfRequest request;
  request.keep_io = true;
  const HalfConversion result = converted(std::string(kHead) + R"(graph { name: 'g'
    node { op_type: 'Exp' input: 'x' output: 'e' } node { op_type: 'Neg' input: 'e' output: 'y' } )" +
                                              io("input", "x") + io("output", "y") + io("output", "e") + "}",
                                          request);
  const Graph& graph = result.model->graph;
  EXPECT_EQ(value_at(graph, graph.inputs[0]).name, "x");
  EXPECT_EQ(value_at(graph, graph.outputs[0]).name, "y");
  EXPECT_EQ(value_at(graph, graph.outputs[1]).name, "e");
  EXPECT_EQ(graph.output_type(0).dtype, DType::float32);
  EXPECT_EQ(result.casts, 3);
  const auto y = run(result.model, {floats(DType::float32, {0, 1, 0, 0})});
  EXPECT_EQ(y[0], -1);
  EXPECT_NEAR(y[1], -std::exp(1.0), 2e-3);
}

// One cast for a value although two kept nodes read it, and none between kept neighbors or on the way over a move.
TEST(ToHalf, CastsOnceAndOnTheSmallerSideOfMoves) {
  HalfRequest request;
  request.keep = {"pow", "sqrt", "cos"};
  const HalfConversion result =
      converted(std::string(kHead) + R"(graph { name: 'g'
    node { name: 'neg' op_type: 'Neg' input: 'x' output: 'a' }
    node { name: 'pow' op_type: 'Exp' input: 'a' output: 'b' }
    node { name: 'flat' op_type: 'Flatten' input: 'b' output: 'c' }
    node { name: 'sqrt' op_type: 'Sqrt' input: 'c' output: 'd' }
    node { name: 'cos' op_type: 'Cos' input: 'a' output: 'f' }
    node { name: 'wide' op_type: 'Expand' input: 'd' input: 'shape' output: 'h' }
    node { name: 'add' op_type: 'Add' input: 'h' input: 'f' output: 'y' }
    initializer { name: 'shape' data_type: 7 dims: 2 int64_data: [8, 4] } )" +
                    io("input", "x") + "output { name: 'y' type { tensor_type { elem_type: 1 } } } }",
                request);
  const Graph& graph = result.model->graph;
  EXPECT_EQ(result.casts, 3);  // a for both readers, d before it is expanded, f
  EXPECT_EQ(type_of_value(graph, "c"), DType::float32);
  EXPECT_EQ(type_of_value(graph, "h"), DType::float16);
}

TEST(ToHalf, CastsFollowNoCast) {
  HalfRequest request;
  request.keep = {"exp"};
  const HalfConversion result = converted(std::string(kHead) + R"(graph { name: 'g'
    node { name: 'cast' op_type: 'Cast' input: 'i' output: 'a' attribute { name: 'to' type: INT i: 1 } }
    node { name: 'exp' op_type: 'Exp' input: 'a' output: 'b' }
    node { name: 'neg' op_type: 'Neg' input: 'a' output: 'c' }
    node { name: 'half' op_type: 'Cast' input: 'c' output: 'y' attribute { name: 'to' type: INT i: 10 } }
    node { name: 'more' op_type: 'Neg' input: 'y' output: 'z' } )" +
                                              io("input", "i", 7) + io("output", "b") + io("output", "z", 10) + "}",
                                          request);
  const Graph& graph = result.model->graph;
  for (const Node& node : graph.nodes) {
    if (node.op_type != "Cast") continue;
    const NodeId producer = value_at(graph, node.inputs.front()).producer;
    EXPECT_TRUE(producer == kNoNode || graph.nodes[static_cast<size_t>(producer)].op_type != "Cast") << node.name;
  }
  EXPECT_EQ(result.casts, 3);  // i to both types, b to an output; the Cast to float16 has nothing left to do
}

TEST(ToHalf, StoresAWeightOfBothTypesOnceAndInFloat32) {
  HalfRequest request;
  request.keep = {"kept"};
  const HalfConversion result = converted(std::string(kHead) + R"(graph { name: 'g'
    node { name: 'kept' op_type: 'Mul' input: 'x' input: 'w' output: 'a' }
    node { name: 'half' op_type: 'Mul' input: 'a' input: 'w' output: 'y' }
    initializer { name: 'w' data_type: 1 dims: 4 float_data: [1.0001, 2, 3, 0.5] } )" +
                                              io("input", "x") + io("output", "y") + "}",
                                          request);
  ASSERT_EQ(result.model->graph.initializers.size(), 1U);
  EXPECT_EQ(result.model->graph.initializers.front().tensor.dtype(), DType::float32);
  ASSERT_EQ(result.kept_weights.size(), 1U);
  EXPECT_EQ(result.kept_weights.front().reason, "is read by 'kept', which computes in float32");
}

TEST(ToHalf, NeverClampsAWeightBeyondTheRange) {
  const std::string text = std::string(kHead) + R"(graph { name: 'g'
    node { name: 'mul' op_type: 'Mul' input: 'x' input: 'w' output: 'a' }
    node { name: 'div' op_type: 'Div' input: 'a' input: 'c' output: 'y' }
    node { name: 'big' op_type: 'Constant' output: 'c' attribute { name: 'value_float' type: FLOAT f: 1e6 } }
    initializer { name: 'w' data_type: 1 dims: 4 float_data: [1e6, 2, 3, 0.5] } )" +
                           io("input", "x") + io("output", "y") + "}";
  const HalfConversion result = converted(text);
  EXPECT_EQ(result.kept, 2);
  ASSERT_EQ(result.kept_weights.size(), 2U);
  EXPECT_EQ(result.kept_weights.front().reason, "holds 1e+06, and the largest float16 is 65504");
  EXPECT_EQ(run(result.model, {floats(DType::float16, {2, 0, 0, 0})}).front(), 2);
  HalfRequest brain;
  brain.to = DType::bfloat16;
  EXPECT_TRUE(converted(text, brain).kept_weights.empty());
}

TEST(ToHalf, ConvertsBodiesStatesAndFunctions) {
  const auto model = model_of_text(testing::kNestedModel).take();
  const auto before = run(model, {floats(DType::float32, {1, 2})});
  for (const bool keeps : {false, true}) {
    HalfRequest request;
    if (keeps) request.keep = {"loop.body[*]//bend.call//square", "weigh"};
    auto result = to_half(*model, request);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->casts > 0, keeps);
    const auto after = run(result->model, {floats(DType::float16, {1, 2})});
    ASSERT_EQ(after.size(), before.size());
    for (size_t i = 0; i < after.size(); ++i) EXPECT_NEAR(after[i], before[i], 2e-3 * std::abs(before[i]));
    const Graph& graph = result->model->graph;
    const Graph& body = *bodies_of(graph.nodes[static_cast<size_t>(graph.find_node("loop"))]).at(0);
    EXPECT_EQ(type_of_value(body, "next"), DType::float16);
  }
}

TEST(ToHalf, LeavesOperatorsWithoutTheTypeInFloat32) {
  const HalfConversion result =
      converted(std::string("ir_version: 9 opset_import { version: 13 } ") + R"(graph { name: 'g'
    node { op_type: 'Neg' input: 'x' output: 'a' }
    node { name: 'quantize' op_type: 'QuantizeLinear' input: 'a' input: 's' input: 'z' output: 'q' }
    node { name: 'dequantize' op_type: 'DequantizeLinear' input: 'q' input: 's' input: 'z' output: 'y' }
    initializer { name: 's' data_type: 1 float_data: 0.5 } initializer { name: 'z' data_type: 2 int32_data: 3 } )" +
                io("input", "x") + io("output", "y") + "}");
  EXPECT_EQ(result.without_half, (std::vector<std::string>{"quantize", "dequantize"}));
  EXPECT_EQ(result.casts, 2);
}

TEST(ToHalf, KeepsScalesOfAResizeAndFillsWithTheNewType) {
  const HalfConversion result =
      converted(std::string(kHead) + R"(graph { name: 'g'
    node { op_type: 'Resize' input: 'x' input: 'roi' input: 'scales' output: 'r' }
    node { op_type: 'Shape' input: 'r' output: 's' }
    node { op_type: 'ConstantOfShape' input: 's' output: 'f' }
    node { op_type: 'Add' input: 'r' input: 'f' output: 'y' }
    initializer { name: 'roi' data_type: 1 dims: 0 } initializer { name: 'scales' data_type: 1 dims: 1 float_data: 2 } )" +
                io("input", "x") + "output { name: 'y' type { tensor_type { elem_type: 1 } } } }");
  EXPECT_EQ(result.casts, 0);
  EXPECT_EQ(type_of_value(result.model->graph, "scales"), DType::float32);
  EXPECT_EQ(type_of_value(result.model->graph, "f"), DType::float16);
}

TEST(ToHalf, LeavesOtherFloatsAlone) {
  const HalfConversion result = converted(std::string(kHead) + R"(graph { name: 'g'
    node { op_type: 'Neg' input: 'd' output: 'e' }
    node { op_type: 'Cast' input: 'x' output: 'c' attribute { name: 'to' type: INT i: 11 } }
    node { op_type: 'Add' input: 'e' input: 'c' output: 'y' } )" +
                                          io("input", "d", 11) + io("input", "x") + io("output", "y", 11) + "}");
  EXPECT_EQ(type_of_value(result.model->graph, "y"), DType::float64);
  EXPECT_EQ(type_of_value(result.model->graph, "x"), DType::float16);
  EXPECT_EQ(result.casts, 1);
}

TEST(ToHalf, RefusesUnknownNodesAndOldOperatorSets) {
  const std::string graph = R"(graph { name: 'g' node { name: 'n' op_type: 'Neg' input: 'x' output: 'y' } )" +
                            io("input", "x") + io("output", "y") + "}";
  HalfRequest request;
  request.keep = {"m*"};
  const auto unknown = to_half(*model_of_text(kHead + graph).take(), request);
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().code, ErrorCode::usage);
  HalfRequest brain;
  brain.to = DType::bfloat16;
  const auto old = to_half(*model_of_text("ir_version: 7 opset_import { version: 12 } " + graph).take(), brain);
  ASSERT_FALSE(old.ok());
  EXPECT_EQ(old.error().code, ErrorCode::unsupported);
}

TEST(ToHalf, DefersLargeWeightsToTheExport) {
  const testing::Folder folder("defer");
  Tensor weight = Tensor::allocate(DType::float32, Shape{1024, 513}).take();
  for (size_t i = 0; i < weight.mutable_as<float>().size(); ++i) weight.mutable_as<float>()[i] = 0.25F * float(i % 977);
  auto model = copy_model(*model_of_text(std::string(kHead) + R"(graph { name: 'g'
    node { op_type: 'Add' input: 'x' input: 'w' output: 'y' } initializer { name: 'w' data_type: 1 dims: 0 } )" +
                                         "input { name: 'x' type { tensor_type { elem_type: 1 } } } "
                                         "output { name: 'y' type { tensor_type { elem_type: 1 } } } }")
                               .take());
  model->graph.initializers.front().tensor = weight;
  model->graph.values[static_cast<size_t>(model->graph.find_value("w"))].type = TypeInfo::tensor(DType::float32);
  for (const size_t threshold : {size_t{1024}, size_t{1} << 30}) {
    HalfRequest request;
    request.defer_weights = true;
    auto result = to_half(*model, request);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->deferred.size(), 1U);
    ExportOptions options;
    options.external_threshold_bytes = threshold;
    options.deferred = result->deferred;
    const Status written = export_model(*result->model, folder.file("m.onnx"), options);
    ASSERT_TRUE(written.ok()) << written.error().message;
    const auto read = import_model(folder.file("m.onnx"));
    ASSERT_TRUE(read.ok()) << read.error().message;
    const Tensor& narrow = (*read)->graph.initializers.front().tensor;
    ASSERT_EQ(narrow.dtype(), DType::float16);
    for (const int64_t i : {int64_t{0}, int64_t{976}, int64_t{1024} * 513 - 1})
      EXPECT_EQ(element_as_double(narrow, i), 0.25 * static_cast<double>(i % 977));
  }
}

}  // namespace
}  // namespace parallax::transform
