// SPDX-License-Identifier: Apache-2.0
// Two decoders as one: each weight once by content, names that mean two things told apart, both branches as before.
#include "inspector/transform/merge_decoders.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "inspector/exec/executor.h"
#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "inspector/transform/graph_building.h"
#include "tests/inspector/transform/models.h"

namespace parallax::transform {
namespace {

using testing::model_of_text;

std::string floats(const std::string& name, const std::string& dims) {
  std::string shape;
  for (size_t begin = 0; begin < dims.size();) {
    const size_t end = std::min(dims.find(',', begin), dims.size());
    const std::string dim = dims.substr(begin, end - begin);
    const bool is_number = dim.find_first_not_of("0123456789") == std::string::npos;
    shape += is_number ? "dim { dim_value: " + dim + " } " : "dim { dim_param: '" + dim + "' } ";
    begin = end + 1;
  }
  return "name: '" + name + "' type { tensor_type { elem_type: 1 shape { " + shape + " } } }";
}

std::string decoder(const std::string& graph, const std::string& more = "", int opset = 20) {
  return "ir_version: 10 opset_import { version: " + std::to_string(opset) + " } graph { name: 'g' " + graph + " } " +
         more;
}

// logits = x * w + s, present.0.key = x * k, present.0.encoder.key = e * w. `h` is a weight here, a result in kLater.
const std::string kZeros =
    "data_type: 1 dims: 32 float_data: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "
    "0, 0, 0, 0, 0, 0]";

const std::string kFirstGraph = "initializer { name: 'n' " + kZeros +
                                " } node { op_type: 'ReduceMax' input: 'n' output: 'zero' "
                                "attribute { name: 'keepdims' i: 0 type: INT } } node { op_type: 'Add' input: 'sum' "
                                "input: 'zero' output: 'logits' } "
                                "initializer { name: 'w' data_type: 1 dims: 1 float_data: 2 } "
                                "initializer { name: 'k' data_type: 1 dims: 1 float_data: 3 } "
                                "initializer { name: 'h' data_type: 1 dims: 1 float_data: 7 } "
                                "node { op_type: 'Mul' input: 'x' input: 'w' output: 'scaled' } "
                                "node { op_type: 'Add' input: 'scaled' input: 'h' output: 'sum' } "
                                "node { op_type: 'Mul' input: 'x' input: 'k' output: 'present.0.key' } "
                                "node { op_type: 'Mul' input: 'e' input: 'w' output: 'present.0.encoder.key' } "
                                "input { " +
                                floats("x", "batch,sequence") + " } input { " + floats("e", "batch,states") +
                                " } "
                                "output { " +
                                floats("logits", "batch,sequence") + " } output { " +
                                floats("present.0.key", "batch,sequence") + " } output { " +
                                floats("present.0.encoder.key", "batch,states") + " }";

// Gives no present.0.encoder.key; `w` is another weight, `v` the one that kFirst calls `w`.
const std::string kLaterGraph =
    "initializer { name: 'big' " + kZeros +
    " } node { op_type: 'ReduceMax' input: 'big' output: 'n' "
    "attribute { name: 'keepdims' i: 0 type: INT } } node { op_type: 'Add' input: 'sum' input: 'n' output: 'logits' } "
    "initializer { name: 'v' data_type: 1 dims: 1 float_data: 2 } "
    "initializer { name: 'w' data_type: 1 dims: 1 float_data: 5 } "
    "node { op_type: 'Mul' input: 'x' input: 'v' output: 'h' } "
    "node { op_type: 'Add' input: 'h' input: 'w' output: 'sum' } "
    "node { op_type: 'Concat' input: 'past_key_values.0.key' input: 'x' output: 'present.0.key' "
    "attribute { name: 'axis' i: 1 type: INT } } "
    "input { " +
    floats("x", "batch,1") + " } input { " + floats("past_key_values.0.key", "batch,past") + " } input { " +
    floats("past_key_values.0.encoder.key", "batch,states") + " } input { " + floats("unused", "batch,states") +
    " } "
    "output { " +
    floats("logits", "batch,1") + " } output { " + floats("present.0.key", "batch,total") + " }";

std::shared_ptr<const Model> model_of(const std::string& text) {
  auto model = model_of_text(text);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.ok() ? model.take() : nullptr;
}

Result<MergedDecoders> merged(const std::string& first, const std::string& later,
                              const std::string& condition = "use_cache_branch") {
  return merge_decoders(*model_of(first), *model_of(later), condition);
}

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const ValueId id : graph.inputs) names.push_back(value_at(graph, id).name);
  return names;
}

Tensor row(std::vector<float> values) {
  return Tensor::from<float>(Shape{1, static_cast<int64_t>(values.size())}, values);
}

std::vector<Value> outputs_of(const std::shared_ptr<const Model>& model, const std::string& executor,
                              const std::map<std::string, Tensor>& inputs) {
  std::vector<Value> values;
  for (const ValueId id : model->graph.inputs) values.emplace_back(inputs.at(value_at(model->graph, id).name));
  const auto made = testing::executors()(executor).take();
  auto session = made->prepare(model, {});
  EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.error().message);
  NullObserver observer;
  auto outputs = (*session)->run(values, observer);
  EXPECT_TRUE(outputs.ok()) << (outputs.ok() ? "" : outputs.error().message);
  return outputs.ok() ? outputs.take() : std::vector<Value>{};
}

std::vector<float> numbers(const Value& value) {
  const auto elements = value.tensor().as<float>();
  return {elements.begin(), elements.end()};
}

TEST(MergeDecoders, StoresEachWeightOnceByContent) {
  const auto result = merged(decoder(kFirstGraph), decoder(kLaterGraph));
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Graph& graph = result->model->graph;
  ASSERT_EQ(graph.initializers.size(), 5U);  // zeros, 2, 3, 5, 7
  EXPECT_EQ(graph.initializers[0].name, "big");
  EXPECT_EQ(result->weights.shared, 2);
  EXPECT_EQ(result->weights.only_first, 2);
  EXPECT_EQ(result->weights.only_second, 1);
  EXPECT_EQ(result->weights.merged_bytes, 128 + 4 * 4);
  EXPECT_EQ(result->passed_through, std::vector<std::string>{"present.0.encoder.key"});
  EXPECT_EQ(input_names(graph), (std::vector<std::string>{"x", "past_key_values.0.key", "past_key_values.0.encoder.key",
                                                          "unused", "e", "use_cache_branch"}));
  EXPECT_TRUE(check_model(*result->model).empty());
}

TEST(MergeDecoders, BothBranchesComputeWhatTheirModelsDo) {
  const auto result = merged(decoder(kFirstGraph), decoder(kLaterGraph));
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Tensor empty = Tensor::zeros(DType::float32, Shape{1, 0}).take();
  for (const std::string executor : {"reference", "cpu"}) {
    std::map<std::string, Tensor> inputs{{"x", row({1, 2})},
                                         {"past_key_values.0.key", empty},
                                         {"past_key_values.0.encoder.key", empty},
                                         {"unused", empty},
                                         {"e", row({4, 5, 6})}};
    inputs["use_cache_branch"] = Tensor::from<bool>(Shape{1}, std::array<bool, 1>{false});
    auto outputs = outputs_of(result->model, executor, inputs);
    ASSERT_EQ(outputs.size(), 3U);
    EXPECT_EQ(numbers(outputs[0]), (std::vector<float>{9, 11}));
    EXPECT_EQ(numbers(outputs[1]), (std::vector<float>{3, 6}));
    EXPECT_EQ(numbers(outputs[2]), (std::vector<float>{8, 10, 12}));
    inputs["x"] = row({1});
    inputs["past_key_values.0.key"] = row({3, 6});
    inputs["past_key_values.0.encoder.key"] = row({8, 10, 12});
    inputs["use_cache_branch"] = Tensor::from<bool>(Shape{1}, std::array<bool, 1>{true});
    outputs = outputs_of(result->model, executor, inputs);
    ASSERT_EQ(outputs.size(), 3U);
    EXPECT_EQ(numbers(outputs[0]), (std::vector<float>{7}));
    EXPECT_EQ(numbers(outputs[1]), (std::vector<float>{3, 6, 1}));
    EXPECT_EQ(numbers(outputs[2]), (std::vector<float>{8, 10, 12}));
  }
}

TEST(MergeDecoders, TiesNoDimensionOfACacheToOtherInputs) {
  const auto result = merged(decoder(kFirstGraph), decoder(kLaterGraph));
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Graph& graph = result->model->graph;
  const auto type = [&](const char* name) { return to_string(value_at(graph, graph.find_value(name)).type); };
  EXPECT_EQ(type("x"), "float32[batch,sequence]");
  EXPECT_EQ(type("past_key_values.0.key"), "float32[batch,past]");
  EXPECT_NE(type("past_key_values.0.encoder.key"), type("e"));
  EXPECT_EQ(type("use_cache_branch"), "bool[1]");
}

TEST(MergeDecoders, SurvivesWritingAndReading) {
  const auto result = merged(decoder(kFirstGraph), decoder(kLaterGraph));
  ASSERT_TRUE(result.ok()) << result.error().message;
  const testing::Folder folder("merge");
  ASSERT_TRUE(export_model(*result->model, folder.file("merged.onnx")).ok());
  const auto read = import_model(folder.file("merged.onnx"));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ((*read)->graph.nodes.size(), 1U);
}

TEST(MergeDecoders, RenamesFunctionsOfOneName) {
  const auto with_function = [](const std::string& op) {
    return "opset_import { domain: 'own' version: 1 } functions { domain: 'own' name: 'f' input: 'a' output: 'b' "
           "opset_import { version: 20 } node { op_type: '" +
           op + "' input: 'a' output: 'b' } }";
  };
  const std::string graph = "node { op_type: 'f' domain: 'own' input: 'x' output: 'y' } input { " + floats("x", "n") +
                            " } output { " + floats("y", "n") + " }";
  const std::string past = " input { " + floats("past", "n") + " }";
  const auto result =
      merged(decoder(graph, with_function("Neg")), decoder(graph + past, with_function("Exp")), "later");
  ASSERT_TRUE(result.ok()) << result.error().message;
  ASSERT_EQ(result->model->functions.size(), 2U);
  EXPECT_NE(result->model->functions[0]->name, result->model->functions[1]->name);
  for (const bool later : {false, true}) {
    const auto outputs = outputs_of(result->model, "reference",
                                    {{"x", Tensor::from<float>(Shape{1}, std::array<float, 1>{0})},
                                     {"past", Tensor::from<float>(Shape{1}, std::array<float, 1>{0})},
                                     {"later", Tensor::from<bool>(Shape{1}, std::array<bool, 1>{later})}});
    ASSERT_EQ(outputs.size(), 1U);
    EXPECT_EQ(numbers(outputs[0]), std::vector<float>{later ? 1.0F : -0.0F});
  }
}

TEST(MergeDecoders, RenamesValuesOfBodiesThatHideAnInput) {
  // The body of `first` computes a value named like the cache of `later`.
  const std::string body =
      "type: GRAPH g { name: 'b' node { op_type: 'Neg' input: 'x' output: 'past' } "
      "node { op_type: 'Abs' input: 'past' output: 'r' } output { name: 'r' } } }";
  const std::string first =
      "initializer { name: 'c' data_type: 9 int32_data: 1 } node { op_type: 'If' input: 'c' "
      "output: 'y' attribute { name: 'then_branch' " +
      body + " attribute { name: 'else_branch' " + body + " } input { " + floats("x", "n") + " } output { " +
      floats("y", "n") + " }";
  const std::string later = "node { op_type: 'Add' input: 'x' input: 'past' output: 'y' } input { " + floats("x", "n") +
                            " } input { " + floats("past", "n") + " } output { " + floats("y", "n") + " }";
  const auto result = merged(decoder(first), decoder(later));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_TRUE(std::ranges::any_of(result->renamed,
                                  [](const RenamedItem& item) { return item.kind == "value" && item.from == "past"; }));
}

void expect_refusal(const Result<MergedDecoders>& result, ErrorCode code, const std::string& words) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, code);
  EXPECT_NE(result.error().message.find(words), std::string::npos) << result.error().message;
}

TEST(MergeDecoders, RefusesWhatDoesNotFitTogether) {
  expect_refusal(merged(decoder(kFirstGraph, "", 20), decoder(kLaterGraph, "", 18)), ErrorCode::unsupported,
                 "ai.onnx of opset 20");
  expect_refusal(merged(decoder(kFirstGraph), decoder(kLaterGraph), "x"), ErrorCode::usage, "is an input");
  expect_refusal(merged(decoder(kLaterGraph), decoder(kFirstGraph)), ErrorCode::usage, "Swap the models");
  expect_refusal(merged(decoder(kFirstGraph), decoder(kFirstGraph)), ErrorCode::usage, "one model given twice");
  expect_refusal(merged(decoder(kLaterGraph), decoder(kLaterGraph)), ErrorCode::usage, "one model given twice");
  const std::string other = "node { op_type: 'Neg' input: 'x' output: 'logits' } input { " + floats("x", "batch,1") +
                            " } input { " + floats("past", "batch,1") + " } output { " + floats("logits", "batch,1") +
                            " }";
  expect_refusal(merged(decoder(kFirstGraph), decoder(other)), ErrorCode::unsupported, "'present.0.key'");
}

}  // namespace
}  // namespace parallax::transform
