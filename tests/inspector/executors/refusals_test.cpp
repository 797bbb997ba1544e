// SPDX-License-Identifier: Apache-2.0
// Agreement of the executors on more than numbers: the requests that they refuse, with which code, and the empty
// operands that they accept. Empty operands run on one thread, where no count of tasks hides a division by their
// number.
#include <gtest/gtest.h>

#include "inspector/base/thread_pool.h"
#include "inspector/executors/make_executor.h"
#include "inspector/model/io/import.h"
#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

struct Refused {
  const char* name;
  int opset;
  const char* graph;  // its inputs, if any, are floats of fixed shapes
  ErrorCode code;
  const char* message;  // a part of it
};

void PrintTo(const Refused& refused, std::ostream* stream) { *stream << refused.name; }

std::string constant(const std::string& name, const std::vector<int64_t>& dims) {
  int64_t count = 1;
  std::string text = "initializer { name: '" + name + "' data_type: 1";
  for (int64_t dim : dims) {
    text += " dims: " + std::to_string(dim);
    count *= dim;
  }
  for (int64_t i = 0; i < count; ++i) text += " float_data: 0.5";
  return text + " } ";
}

Result<std::vector<Value>> run_graph(const char* executor, int opset, const std::string& graph) {
  const std::string text = "ir_version: 8 opset_import { version: " + std::to_string(opset) +
                           " } graph { name: 'g' output { name: 'y' } " + graph + " }";
  const auto model = PX_TRY(import_model(std::as_bytes(std::span(text)), "", "test model"));
  const auto made = PX_TRY(make_executor(executor));
  const auto session = PX_TRY(made->prepare(model, {}));
  NullObserver observer;
  return session->run({}, observer);
}

const Refused kRefused[] = {
    {"HiddenSize", 14,
     "node { op_type: 'RNN' name: 'n' input: 'x' input: 'w' input: 'r' output: 'y' "
     "attribute { name: 'hidden_size' i: 5 type: INT } }",
     ErrorCode::execution, "5"},
    {"HiddenSizeLeast", 14,
     "node { op_type: 'RNN' name: 'n' input: 'x' input: 'w' input: 'r' output: 'y' "
     "attribute { name: 'hidden_size' i: -9223372036854775808 type: INT } }",
     ErrorCode::execution, "'hidden_size' is -9223372036854775808"},
    {"AttentionLength", 24,
     "node { op_type: 'Attention' name: 'n' input: 'image' input: 'image' input: 'image' input: '' input: '' input: '' "
     "input: 'length' output: 'y' } initializer { name: 'length' data_type: 7 dims: 1 int64_data: 5 } ",
     ErrorCode::execution, "a length in nonpad_kv_seqlen is 5; it must be in [0, 4]"},
    {"Activation", 14,
     "node { op_type: 'RNN' name: 'n' input: 'x' input: 'w' input: 'r' output: 'y' "
     "attribute { name: 'activations' strings: 'Foo' type: STRINGS } }",
     ErrorCode::unsupported, "activation 'Foo'"},
    {"LrnSize", 13,
     "node { op_type: 'LRN' name: 'n' input: 'image' output: 'y' attribute { name: 'size' i: 0 type: INT } }",
     ErrorCode::execution, "it must be 1 or more"},
    {"NegativePad", 12,
     "node { op_type: 'MaxPool' name: 'n' input: 'image' output: 'y' "
     "attribute { name: 'kernel_shape' ints: 2 ints: 2 type: INTS } "
     "attribute { name: 'pads' ints: -1 ints: 0 ints: 0 ints: 0 type: INTS } }",
     ErrorCode::execution, "is -1; it must be in [0"},
    {"FarPads", 13,
     "node { op_type: 'Pad' name: 'n' input: 'row' input: 'pads' output: 'y' } "
     "initializer { name: 'row' data_type: 1 dims: 2 float_data: 1 float_data: 2 } "
     "initializer { name: 'pads' data_type: 7 dims: 2 int64_data: -9223372036854775808 int64_data: "
     "-9223372036854775808 } ",
     ErrorCode::execution, "be at most 1099511627776"},
    {"ResizeFar", 18,
     "node { op_type: 'Resize' name: 'n' input: 'image' input: '' input: '' input: 'sizes' output: 'y' "
     "attribute { name: 'keep_aspect_ratio_policy' s: 'not_smaller' type: STRING } } "
     "initializer { name: 'sizes' data_type: 7 dims: 4 int64_data: 1 int64_data: 1 int64_data: 4 "
     "int64_data: 9223372036854775807 } ",
     ErrorCode::execution, "be below 2^62"},
    {"SplitParts", 13,
     "node { op_type: 'Split' name: 'n' input: 'row' input: 'parts' output: 'y' output: 'z' } "
     "initializer { name: 'row' data_type: 1 dims: 2 float_data: 1 float_data: 2 } "
     "initializer { name: 'parts' data_type: 7 dims: 2 int64_data: 9223372036854775807 int64_data: 3 } ",
     ErrorCode::execution, "9223372036854775807"},
    {"MelBegins", 17,
     "node { op_type: 'MelWeightMatrix' name: 'n' input: 'four' input: 'four' input: 'four' input: 'low' input: 'high' "
     "output: 'y' } initializer { name: 'four' data_type: 7 int64_data: 4 } "
     "initializer { name: 'low' data_type: 1 float_data: -800 } initializer { name: 'high' data_type: 1 float_data: 1 "
     "} ",
     ErrorCode::execution, "above -700, where mel begins"},
    {"HotDepth", 11,
     "node { op_type: 'OneHot' name: 'n' input: 'at' input: 'depth' input: 'ends' output: 'y' } "
     "initializer { name: 'at' data_type: 7 dims: 1 int64_data: 0 } "
     "initializer { name: 'depth' data_type: 1 float_data: 1e30 } "
     "initializer { name: 'ends' data_type: 1 dims: 2 float_data: 0 float_data: 1 } ",
     ErrorCode::execution, "be 0 or more and below 1e15"},
    {"UnpoolStride", 11,
     "node { op_type: 'MaxUnpool' name: 'n' input: 'image' input: 'at' output: 'y' "
     "attribute { name: 'kernel_shape' ints: 2 ints: 2 type: INTS } "
     "attribute { name: 'strides' ints: 1 ints: 9223372036854775807 type: INTS } } "
     "initializer { name: 'at' data_type: 7 dims: 1 dims: 1 dims: 4 dims: 4 "
     "int64_data: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] } ",
     ErrorCode::execution, "is 9223372036854775807; it must be in [1, 2147483648]"},
    {"RoiCorner", 11,
     "node { op_type: 'MaxRoiPool' name: 'n' input: 'image' input: 'rois' output: 'y' "
     "attribute { name: 'pooled_shape' ints: 2 ints: 2 type: INTS } "
     "attribute { name: 'spatial_scale' f: 2 type: FLOAT } } "
     "initializer { name: 'rois' data_type: 1 dims: 1 dims: 5 float_data: [0, 0, 0, 3, 1e30] } ",
     ErrorCode::execution, "below 2^62 after 'spatial_scale' (2)"},
    {"ScanInputs", 13,
     "node { op_type: 'Scan' name: 'n' input: 'w' output: 'y' "
     "attribute { name: 'num_scan_inputs' i: -9223372036854775808 type: INT } "
     "attribute { name: 'body' type: GRAPH g { name: 'b' input { name: 's' } "
     "node { op_type: 'Identity' input: 's' output: 'o' } output { name: 'o' } } } }",
     ErrorCode::execution, "attribute 'num_scan_inputs' is -9223372036854775808; it must be in [1, 1]"},
    {"SoftmaxAxis", 11,
     "node { op_type: 'Softmax' name: 'n' input: 'w' output: 'y' attribute { name: 'axis' i: 3 type: INT } }",
     ErrorCode::execution, "the axis is 3; it must be in [-3, 3)"},
};

const char* const kExecutors[] = {"reference", "cpu", "cuda"};

class Refusals : public testing::TestWithParam<std::tuple<const char*, Refused>> {};

TEST_P(Refusals, AreTheSame) {
  const auto& [executor, refused] = GetParam();
  if (const auto made = make_executor(executor); !made.ok()) GTEST_SKIP() << made.error().message;
  const std::string stored =
      constant("x", {2, 1, 2}) + constant("w", {1, 2, 2}) + constant("r", {1, 2, 2}) + constant("image", {1, 1, 4, 4});
  const auto outputs = run_graph(executor, refused.opset, refused.graph + stored);
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code, refused.code) << outputs.error().message;
  EXPECT_NE(outputs.error().message.find(refused.message), std::string::npos) << outputs.error().message;
}

INSTANTIATE_TEST_SUITE_P(Executors, Refusals,
                         testing::Combine(testing::ValuesIn(kExecutors), testing::ValuesIn(kRefused)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param).name;
                         });

class EmptyOperands : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto made = make_executor(GetParam()); !made.ok()) GTEST_SKIP() << made.error().message;
    set_thread_count(1);
  }
  void TearDown() override { set_thread_count(0); }

  void expect_shape(const std::string& graph, const Shape& shape, double element = 0) {
    const auto outputs = run_graph(GetParam(), 13, graph);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    const Tensor& y = outputs->front().tensor();
    EXPECT_EQ(y.shape(), shape);
    std::vector<double> elements(static_cast<size_t>(y.element_count()));
    load_doubles(y, 0, elements);
    for (double each : elements) EXPECT_EQ(each, element);
  }
};

std::string product(const std::string& op, const std::string& more = "") {
  return "node { op_type: '" + op + "' input: 'a' input: 'b' output: 'y' " + more + " } ";
}

TEST_P(EmptyOperands, ProductsHaveNoColumns) {
  expect_shape(product("MatMul") + constant("a", {2, 3}) + constant("b", {3, 0}), {2, 0});
  expect_shape(product("Gemm") + constant("a", {2, 3}) + constant("b", {3, 0}), {2, 0});
  expect_shape(product("MatMul") + constant("a", {2, 0}) + constant("b", {0, 3}), {2, 3});
}

TEST_P(EmptyOperands, ConvolutionsHaveNoChannelsOrElements) {
  expect_shape(product("Conv") + constant("a", {1, 2, 4}) + constant("b", {0, 2, 3}), {1, 0, 2});
  expect_shape(product("ConvTranspose") + constant("a", {1, 2, 4}) + constant("b", {2, 0, 3}), {1, 0, 6});
  expect_shape(product("ConvTranspose", "attribute { name: 'pads' ints: 1 ints: 1 type: INTS }") +
                   constant("a", {1, 1, 1}) + constant("b", {1, 1, 2}),
               {1, 1, 0});
  expect_shape("node { op_type: 'Conv' input: 'a' input: 'b' input: 'c' output: 'y' } " + constant("a", {1, 0, 4}) +
                   constant("b", {2, 0, 3}) + constant("c", {2}),
               {1, 2, 2}, 0.5);
}

TEST_P(EmptyOperands, AScanOutputOfNoIterationHasTheShapeOfTheBody) {
  expect_shape(
      std::string(
          "node { op_type: 'Loop' input: 'trips' input: '' input: 'a' output: '' output: 'y' attribute { name: 'body' "
          "type: GRAPH g { name: 'b' input { name: 'i' } input { name: 'c' } input { name: 's' } "
          "node { op_type: 'Identity' input: 'c' output: 'c2' } node { op_type: 'Identity' input: 's' output: 's2' } "
          "node { op_type: 'Transpose' input: 's' output: 'o' } "
          "output { name: 'c2' } output { name: 's2' } output { name: 'o' } } } } ") +
          "initializer { name: 'trips' data_type: 7 int64_data: 0 } " + constant("a", {2, 3}),
      {0, 3, 2});
}

TEST_P(EmptyOperands, TheLogarithmOfNoIntegersIsTheLeast) {
  expect_shape(
      "node { op_type: 'ReduceLogSum' input: 'a' output: 'y' attribute { name: 'axes' ints: 1 type: INTS } "
      "attribute { name: 'keepdims' i: 0 type: INT } } initializer { name: 'a' data_type: 7 dims: 2 dims: 0 } ",
      {2}, -9223372036854775808.0);
}

TEST_P(EmptyOperands, AConstantMayBeSparse) {
  const auto outputs = run_graph(
      GetParam(), 13,
      "node { op_type: 'Constant' output: 'y' attribute { name: 'sparse_value' type: SPARSE_TENSOR sparse_tensor { "
      "values { data_type: 1 dims: 2 float_data: 2 float_data: 3 } indices { data_type: 7 dims: 2 int64_data: 1 "
      "int64_data: 3 } dims: 2 dims: 2 } } }");
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  std::vector<double> elements(4);
  load_doubles(outputs->front().tensor(), 0, elements);
  EXPECT_EQ(elements, (std::vector<double>{0, 2, 0, 3}));
}

INSTANTIATE_TEST_SUITE_P(Executors, EmptyOperands, testing::ValuesIn(kExecutors),
                         [](const auto& test) { return std::string(test.param); });

TEST(Refusals, OptionsAreRefusedWithoutAModel) {
  RunOptions tf32, keeps_casts, no_pattern;
  tf32.tf32 = true;
  keeps_casts.keep_casts = true;
  no_pattern.rewrite.changes = {{"nothing", true}};
  for (const char* name : {"reference", "cpu"}) {
    const auto executor = make_executor(name).take();
    EXPECT_TRUE(executor->check_options({}).ok()) << name;
    for (const RunOptions& options : {tf32, no_pattern}) {
      const Status refused = executor->check_options(options);
      ASSERT_FALSE(refused.ok()) << name;
      EXPECT_EQ(refused.error().code, ErrorCode::usage) << name;
    }
  }
  EXPECT_FALSE(make_executor("cpu").take()->check_options(keeps_casts).ok());
}

}  // namespace
}  // namespace parallax
