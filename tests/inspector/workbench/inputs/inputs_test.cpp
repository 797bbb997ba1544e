// SPDX-License-Identifier: Apache-2.0
// Generated inputs suit their use, are reproducible, and obey --shape, --dim and --range.
#include "inspector/workbench/inputs/inputs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "inspector/dump/tensor_files/npy.h"
#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

std::shared_ptr<const Model> model_of(std::string_view text) {
  auto model = import_model(std::as_bytes(std::span(text)), "", "test model");
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.take();
}

// ids [batch, sequence] -> Gather in a table of 10 rows; mask -> Cast to bool; x normal.
constexpr std::string_view kEmbedding = R"(
ir_version: 8
opset_import { domain: "" version: 17 }
graph {
  name: "g"
  node { input: "table" input: "ids" output: "rows" op_type: "Gather" }
  node { input: "attention_mask" output: "m" op_type: "Cast" attribute { name: "to" type: INT i: 9 } }
  node { input: "m" input: "x" input: "rows" output: "y" op_type: "Where" }
  initializer { name: "table" data_type: 1 dims: 10 dims: 2 float_data: [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19] }
  input { name: "ids" type { tensor_type { elem_type: 7 shape { dim { dim_param: "batch" } dim { dim_param: "sequence" } } } } }
  input { name: "attention_mask" type { tensor_type { elem_type: 7 shape { dim { dim_param: "batch" } dim { dim_param: "sequence" } dim { dim_value: 1 } } } } }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "batch" } dim { dim_param: "sequence" } dim { dim_value: 2 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 } } }
}
)";

TEST(Inputs, SuitTheirUse) {
  const auto model = model_of(kEmbedding);
  InputRequest request;
  request.dims["sequence"] = 500;
  const InputSet set = make_inputs(*model, request).take();
  ASSERT_EQ(set.values.size(), 3U);
  const auto ids = to_int64s(set.values[0].tensor());
  EXPECT_EQ(*std::min_element(ids.begin(), ids.end()), 0);
  EXPECT_EQ(*std::max_element(ids.begin(), ids.end()), 9);
  for (int64_t element : to_int64s(set.values[1].tensor())) EXPECT_TRUE(element == 0 || element == 1);
  double sum = 0;
  double squares = 0;
  for (float element : set.values[2].tensor().as<float>()) {
    sum += static_cast<double>(element);
    squares += static_cast<double>(element) * static_cast<double>(element);
  }
  EXPECT_NEAR(sum / 1000, 0, 0.15);
  EXPECT_NEAR(squares / 1000, 1, 0.2);
  EXPECT_EQ(set.values[0].tensor().shape()[1], 500);
  EXPECT_EQ(set.notes.size(), 3U);
  EXPECT_NE(set.notes[0].find("table"), std::string::npos) << set.notes[0];
}

// The elements generated for input "i", of `dtype` and `dims`, of one node that reads it together with x [4,1,6].
std::vector<int64_t> generated(const std::string& node, int dtype, const std::vector<int64_t>& dims,
                               uint64_t seed = 0) {
  std::string shape;
  for (const int64_t dim : dims) shape += "dim { dim_value: " + std::to_string(dim) + " } ";
  const auto model = model_of(R"(ir_version: 8 opset_import { version: 18 } graph { name: "g" node { )" + node +
                              R"( output: "y" }
    input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } dim { dim_value: 1 } dim { dim_value: 6 } } } } }
    input { name: "n" type { tensor_type { elem_type: 7 shape { dim { dim_value: 64 } } } } }
    input { name: "s" type { sequence_type { elem_type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } } }
    input { name: "i" type { tensor_type { elem_type: )" +
                              std::to_string(dtype) + " shape { " + shape + R"( } } } } output { name: "y" } })");
  InputRequest request;
  request.seed = seed;
  auto set = make_inputs(*model, request);
  EXPECT_TRUE(set.ok()) << node;
  return set.ok() ? to_int64s(set->values.back().tensor()) : std::vector<int64_t>();
}

// By their names, and the same each time: equal data would hide that one is read instead of the other.
TEST(Inputs, OfOneTypeDiffer) {
  const auto model = model_of(R"(ir_version: 8 opset_import { version: 18 } graph { name: "g"
    node { op_type: "SequenceInsert" input: "s" input: "a" output: "t" }
    node { op_type: "SequenceInsert" input: "t" input: "b" output: "y" }
    input { name: "a" type { tensor_type { elem_type: 8 shape { dim { dim_value: 2 } } } } }
    input { name: "b" type { tensor_type { elem_type: 8 shape { dim { dim_value: 2 } } } } }
    input { name: "s" type { sequence_type { elem_type { tensor_type { elem_type: 8 shape { dim { dim_value: 2 } } } } } } }
    output { name: "y" } })");
  const auto set = make_inputs(*model, {});
  ASSERT_TRUE(set.ok()) << set.error().message;
  const auto texts_of = [](const Value& value) {
    const auto texts = value.tensor().as<std::string>();
    return std::vector<std::string>(texts.begin(), texts.end());
  };
  const std::vector<Value>& items = set->values[2].sequence().items;
  ASSERT_EQ(items.size(), 2U);
  std::set<std::string> all;
  for (const Value& value : {set->values[0], set->values[1], items[0], items[1]}) {
    for (const std::string& text : texts_of(value)) all.insert(text);
  }
  EXPECT_EQ(all.size(), 8U);
  EXPECT_EQ(texts_of(set->values[0]), texts_of(make_inputs(*model, {})->values[0]));
}

TEST(Inputs, AreWithinWhatTheirReaderTakes) {
  using Elements = std::vector<int64_t>;
  const std::string x_i = R"( input: "x" input: "i")";
  const std::string axis_2 = R"( attribute { name: "axis" type: INT i: 2 })";
  EXPECT_EQ(generated("op_type: \"ScatterND\"" + x_i + " input: \"x\"", 7, {3, 1}), (Elements{0, 1, 2}));
  EXPECT_EQ(generated("op_type: \"ScatterND\"" + x_i + " input: \"x\"", 7, {2, 2}), (Elements{0, 0, 0, 0}));
  EXPECT_EQ(generated("op_type: \"ScatterElements\"" + x_i + " input: \"x\"", 7, {2, 1, 2}), (Elements{0, 0, 1, 1}));
  EXPECT_EQ(generated("op_type: \"ScatterElements\"" + x_i + " input: \"x\"" + axis_2, 7, {2, 1, 2}),
            (Elements{0, 1, 0, 1}));
  EXPECT_EQ(generated("op_type: \"Squeeze\"" + x_i, 7, {1}), (Elements{1}));
  EXPECT_EQ(generated("op_type: \"ReduceSum\"" + x_i, 7, {3}), (Elements{0, 1, 2}));
  EXPECT_EQ(generated("op_type: \"Split\"" + x_i + axis_2, 7, {4}), (Elements{3, 1, 1, 1}));
  EXPECT_EQ(generated(R"(op_type: "Resize" input: "x" input: "" input: "i")", 1, {3}), (Elements{1, 1, 2}));
  EXPECT_EQ(generated(R"(op_type: "Resize" input: "x" input: "" input: "" input: "i")", 7, {3}), (Elements{4, 1, 12}));
  const struct {
    std::string node;
    int64_t low, high;
  } ranges[] = {{R"(op_type: "Div" input: "n" input: "i")", 1, 9},
                {R"(op_type: "Mod" input: "n" input: "i")", 1, 9},
                {"op_type: \"NegativeLogLikelihoodLoss\"" + x_i, 0, 0},
                {R"(op_type: "SequenceAt" input: "s" input: "i")", 0, 1},
                {"op_type: \"GatherND\"" + x_i, 0, 0}};
  for (const auto& range : ranges) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      for (const int64_t element : generated(range.node, 7, {8, 3}, seed)) {
        EXPECT_GE(element, range.low) << range.node << " with seed " << seed;
        EXPECT_LE(element, range.high) << range.node << " with seed " << seed;
      }
    }
  }
}

// One column of two goes to each encoder; a text is cut into words.
TEST(Inputs, OfEncodersAreWhatTheseKnow) {
  const auto model = model_of(R"(
ir_version: 8
opset_import { domain: "" version: 17 }
opset_import { domain: "ai.onnx.ml" version: 3 }
opset_import { domain: "com.microsoft" version: 1 }
graph {
  name: "g"
  initializer { name: "one" data_type: 7 dims: 1 int64_data: 1 }
  initializer { name: "zero" data_type: 7 dims: 1 int64_data: 0 }
  node { input: "pair" input: "zero" output: "first" op_type: "ArrayFeatureExtractor" domain: "ai.onnx.ml" }
  node { input: "pair" input: "one" output: "second" op_type: "Gather" attribute { name: "axis" type: INT i: 1 } }
  node { input: "first" output: "y1" op_type: "OneHotEncoder" domain: "ai.onnx.ml"
         attribute { name: "zeros" type: INT i: 0 } attribute { name: "cats_strings" type: STRINGS strings: "a" strings: "b" } }
  node { input: "second" output: "y2" op_type: "LabelEncoder" domain: "ai.onnx.ml"
         attribute { name: "keys_strings" type: STRINGS strings: "c" } attribute { name: "values_int64s" type: INTS ints: 5 } }
  node { input: "code" output: "y3" op_type: "OneHotEncoder" domain: "ai.onnx.ml"
         attribute { name: "zeros" type: INT i: 0 } attribute { name: "cats_int64s" type: INTS ints: 70 ints: 90 } }
  node { input: "prose" output: "words" op_type: "Tokenizer" domain: "com.microsoft" attribute { name: "mark" type: INT i: 0 }
         attribute { name: "mincharnum" type: INT i: 1 } attribute { name: "pad_value" type: STRING s: "#" }
         attribute { name: "separators" type: STRINGS strings: " " } }
  node { input: "words" output: "y4" op_type: "TfIdfVectorizer" attribute { name: "mode" type: STRING s: "TF" }
         attribute { name: "max_gram_length" type: INT i: 1 } attribute { name: "min_gram_length" type: INT i: 1 }
         attribute { name: "max_skip_count" type: INT i: 0 } attribute { name: "ngram_counts" type: INTS ints: 0 }
         attribute { name: "ngram_indexes" type: INTS ints: 0 ints: 1 } attribute { name: "pool_strings" type: STRINGS strings: "red" strings: "blue" } }
  input { name: "pair" type { tensor_type { elem_type: 8 shape { dim { dim_param: "n" } dim { dim_value: 2 } } } } }
  input { name: "code" type { tensor_type { elem_type: 1 shape { dim { dim_param: "n" } } } } }
  input { name: "prose" type { tensor_type { elem_type: 8 shape { dim { dim_value: 2 } } } } }
  output { name: "y1" type { tensor_type { elem_type: 1 } } }
  output { name: "y2" type { tensor_type { elem_type: 7 } } }
  output { name: "y3" type { tensor_type { elem_type: 1 } } }
  output { name: "y4" type { tensor_type { elem_type: 1 } } }
}
)");
  InputRequest request;
  request.dims["n"] = 40;
  const InputSet set = make_inputs(*model, request).take();
  const auto pair = set.values[0].tensor().as<std::string>();
  for (size_t index = 0; index < pair.size(); index += 2) {
    EXPECT_TRUE(pair[index] == "a" || pair[index] == "b") << pair[index];
    EXPECT_EQ(pair[index + 1], "c");
  }
  EXPECT_EQ(std::ranges::count(pair, "a") + std::ranges::count(pair, "b"), 40);
  EXPECT_GT(std::ranges::count(pair, "b"), 0);
  const auto code = set.values[1].tensor().as<float>();
  EXPECT_EQ(std::ranges::count(code, 70.0F) + std::ranges::count(code, 90.0F), 40);
  for (const std::string& text : set.values[2].tensor().as<std::string>()) {
    EXPECT_EQ(std::ranges::count(text, ' '), 2) << text;
    EXPECT_TRUE(text.starts_with("red") || text.starts_with("blue")) << text;
  }
  EXPECT_NE(set.notes[0].find("from \"a\", \"b\"; \"c\" (what 'OneHotEncoder_2' knows)"), std::string::npos)
      << set.notes[0];
}

TEST(Inputs, AreReproducibleAndDependOnTheSeed) {
  const auto model = model_of(kEmbedding);
  InputRequest request;
  const auto first = make_inputs(*model, request).take();
  const auto again = make_inputs(*model, request).take();
  request.seed = 1;
  const auto other = make_inputs(*model, request).take();
  const auto values = [](const InputSet& set) {
    const auto span = set.values[2].tensor().as<float>();
    return std::vector<float>(span.begin(), span.end());
  };
  EXPECT_EQ(values(first), values(again));
  EXPECT_NE(values(first), values(other));
}

TEST(Inputs, ShapesAndRangesAreObeyed) {
  const auto model = model_of(kEmbedding);
  InputRequest request;
  request.shapes["x"] = {2, 5, 2};
  request.ranges["x"] = {3, 4};
  const auto set = make_inputs(*model, request).take();
  EXPECT_EQ(set.values[0].tensor().shape(), (Shape{2, 5}));
  for (float element : set.values[2].tensor().as<float>()) EXPECT_TRUE(element >= 3 && element <= 4);
}

TEST(Inputs, WhatIsReadIsNotContradicted) {
  const auto model = model_of(kEmbedding);
  const std::string file = testing::TempDir() + "inputs_test_ids.npy";
  ASSERT_TRUE(write_npy(file, Tensor::from<int64_t>({2, 3}, std::vector<int64_t>{0, 1, 2, 3, 4, 5})).ok());
  InputRequest request;
  request.files = {{"ids", file}};
  request.shapes["ids"] = {2, 3};
  request.dims["sequence"] = 3;
  request.ranges["ids"] = {0, 1};
  const auto same = make_inputs(*model, request);
  ASSERT_TRUE(same.ok()) << same.error().message;
  EXPECT_NE(same->notes[0].find("--range is not used"), std::string::npos) << same->notes[0];
  EXPECT_EQ(same->values[2].tensor().shape(), (Shape{2, 3, 2}));
  request.shapes["ids"] = {2, 4};
  EXPECT_EQ(make_inputs(*model, request).error().code, ErrorCode::usage);
  request.shapes.clear();
  request.dims["sequence"] = 4;
  const Error error = make_inputs(*model, request).error();
  EXPECT_EQ(error.code, ErrorCode::usage);
  EXPECT_NE(error.message.find("--dim sequence=4"), std::string::npos) << error.message;
  std::filesystem::remove(file);
}

TEST(Inputs, UnknownNamesAreUsageErrorsThatListTheKnownOnes) {
  const auto model = model_of(kEmbedding);
  InputRequest shape;
  shape.shapes["nope"] = {1};
  InputRequest dim;
  dim.dims["nope"] = 1;
  InputRequest file;
  file.files.emplace_back("nope", "f.npy");
  for (const InputRequest& request : {shape, dim, file}) {
    const auto set = make_inputs(*model, request);
    ASSERT_FALSE(set.ok());
    EXPECT_EQ(set.error().code, ErrorCode::usage);
    EXPECT_NE(set.error().message.find("nope"), std::string::npos);
  }
}

Tensor floats_of_shape(Shape shape) {
  Tensor tensor = Tensor::zeros(DType::float32, shape).take();
  if (tensor.element_count() > 0) tensor.mutable_as<float>()[0] = 42;
  return tensor;
}

TEST(Inputs, InMemoryComeBeforeGeneratedOnesAndGiveThemTheirSizes) {
  const auto model = model_of(kEmbedding);
  InputRequest request;
  request.values["x"] = Value(floats_of_shape(Shape{2, 5, 2}));
  const auto set = make_inputs(*model, request);
  ASSERT_TRUE(set.ok()) << set.error().message;
  EXPECT_EQ(set->values[2].tensor().as<float>()[0], 42);
  EXPECT_EQ(set->values[0].tensor().shape(), (Shape{2, 5}));
  EXPECT_EQ(set->notes.size(), 2U);
}

TEST(Inputs, InMemoryAreCheckedAsFilesAre) {
  const auto model = model_of(kEmbedding);
  InputRequest request;
  request.values["z"] = Value(floats_of_shape(Shape{1}));
  EXPECT_EQ(
      make_inputs(*model, request).error().message,
      "the mapping of inputs names 'z', which is no input of the model (its inputs: 'ids', 'attention_mask', 'x')");
  request.values = {{"x", Value(floats_of_shape(Shape{2, 5, 2}))}};
  request.shapes["x"] = {1, 5, 2};
  EXPECT_EQ(make_inputs(*model, request).error().message,
            "--shape x=1x5x2, but input 'x' is given as an array with shape [2,5,2]: leave one of the two out");
}

}  // namespace
}  // namespace parallax
