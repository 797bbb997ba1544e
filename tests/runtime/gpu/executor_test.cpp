// SPDX-License-Identifier: Apache-2.0
// Work of the GPU devices' executors around their kernels, on the emulated one: the devices of values, the observers'
// view, control flow, memory, and errors that name their node.
#include <map>

#include <gtest/gtest.h>

#include "runtime/plan/runtime.h"
#include "tests/runtime/emulated/emulated_executor.h"
#include "tests/runtime/emulated/emulation.h"
#include "tests/runtime/model_text.h"
#include "tests/runtime/plan/attention_graphs.h"

namespace parallax::executor_test {
namespace {

using model_text::node;
using model_text::value;

std::shared_ptr<const Model> model_of(const std::string& graph) { return model_text::model_of(graph, 21); }

constexpr int kInt64 = 7;

std::string integers(const std::string& name, const std::vector<int64_t>& values) {
  std::string text = "initializer { name: \"" + name + "\" data_type: 7 dims: " + std::to_string(values.size());
  for (int64_t each : values) text += " int64_data: " + std::to_string(each);
  return text + " } ";
}
Value floats(const Shape& shape, const std::vector<float>& values) { return Tensor::from<float>(shape, values); }

// Keeps every value by path; all of them must be on the host.
class Recorder : public Observer {
 public:
  CaptureLevel wants(const ValueInfo&) override { return CaptureLevel::all; }
  Status node_failed(const NodeLocation& value_info, const FrameStack&, const Error&) override {
    return failed.push_back(std::string(value_info.node)), Status{};
  }
  Status observe(const Observation& seen) override {
    if (seen.value.is_tensor()) values[seen.path()] = seen.value.tensor().clone().take();
    return {};
  }
  std::vector<float> at(const std::string& path) const {
    const auto found = values.find(path);
    if (found == values.end()) return {};
    return {found->second.as<float>().begin(), found->second.as<float>().end()};
  }
  std::map<std::string, Tensor> values;
  std::vector<std::string> failed;
};

struct Ran {
  Recorder recorder;
  Result<std::vector<Value>> outputs = std::vector<Value>{};
};

Ran run(const std::shared_ptr<const Model>& model, const std::vector<Value>& inputs, const RunOptions& options = {}) {
  Ran ran;
  const auto executor = tests::make_emulated_executor();
  auto session = executor->prepare(model, options);
  if (!session.ok()) {
    ran.outputs = std::move(session).error();
    return ran;
  }
  ran.outputs = (*session)->run(inputs, ran.recorder);
  return ran;
}

std::vector<float> first_output(const Ran& ran) {
  if (!ran.outputs.ok()) return {};
  const auto values = (*ran.outputs)[0].tensor().as<float>();
  return {values.begin(), values.end()};
}

TEST(GpuExecutor, ComputesAndShowsEveryValueOnTheHost) {
  const auto model = model_of(node("MatMul", {"x", "x"}, {"a"}) + node("Relu", {"a"}, {"b"}) +
                              node("Softmax", {"b"}, {"y"}, "attribute { name: \"axis\" i: 0 type: INT }") +
                              value("input", "x") + value("output", "y"));
  const Ran ran = run(model, {floats({2, 2}, {1, 2, -3, 0})});
  ASSERT_TRUE(ran.outputs.ok()) << ran.outputs.error().message;
  EXPECT_EQ(ran.recorder.at("a"), (std::vector<float>{-5, 2, -3, -6}));
  EXPECT_EQ(ran.recorder.at("b"), (std::vector<float>{0, 2, 0, 0}));
  const std::vector<float> y = first_output(ran);
  ASSERT_EQ(y.size(), 4U);
  EXPECT_NEAR(y[0], 0.5F, 1e-6F);
  EXPECT_NEAR(y[1], 0.880797F, 1e-5F);
  EXPECT_EQ(ran.recorder.at("y"), y);
}

// The products, and the pass that scales, hides and softens between them, on operands packed where they have to be.
TEST(GpuExecutor, AttentionAsOneNode) {
  for (const auto& graph : attention_graphs::small_graphs()) {
    const auto model = attention_graphs::model_of(graph);
    ASSERT_NE(model, nullptr);
    std::vector<std::vector<float>> results;
    for (const bool fuses : {false, true}) {
      RunOptions options;
      options.rewrite.base = RewriteChoice::Base::none;
      if (fuses) options.rewrite.changes = {{"attention", true}};
      const Ran ran = run(model, attention_graphs::inputs_of(graph), options);
      ASSERT_TRUE(ran.outputs.ok()) << ran.outputs.error().message;
      EXPECT_EQ(ran.recorder.values.contains("p"), !fuses);
      results.push_back(first_output(ran));
    }
    ASSERT_EQ(results[0].size(), results[1].size());
    for (size_t i = 0; i < results[0].size(); ++i) EXPECT_NEAR(results[0][i], results[1][i], 1e-6F) << graph.text;
  }
}

// Shape -> Gather -> Concat -> Reshape: no kernel of the device takes part but that of Neg.
TEST(GpuExecutor, ShapeArithmeticStaysOnTheHost) {
  const auto model = model_of(node("Shape", {"x"}, {"s"}) + node("Gather", {"s", "zero"}, {"n"}) +
                              node("Concat", {"n", "minus_one"}, {"t"}, "attribute { name: \"axis\" i: 0 type: INT }") +
                              node("Reshape", {"x", "t"}, {"r"}) + node("Neg", {"r"}, {"y"}) + integers("zero", {0}) +
                              integers("minus_one", {-1}) + value("input", "x") + value("output", "y"));
  const int64_t launched_before = runtime::emulation::launch_count();
  const Ran ran = run(model, {floats({2, 1, 2}, {1, 2, 3, 4})});
  ASSERT_TRUE(ran.outputs.ok()) << ran.outputs.error().message;
  EXPECT_EQ((*ran.outputs)[0].tensor().shape(), (Shape{2, 2}));
  EXPECT_EQ(first_output(ran), (std::vector<float>{-1, -2, -3, -4}));
  EXPECT_EQ(runtime::emulation::launch_count() - launched_before, 1) << "Gather of a shape ran on the device";
}

// A shape that is an input of the graph is on the device and is read from there.
TEST(GpuExecutor, ReadsShapesFromTheDevice) {
  const auto model =
      model_of(node("Neg", {"t"}, {"u"}) + node("Neg", {"u"}, {"v"}) + node("Reshape", {"x", "v"}, {"y"}) +
               value("input", "x") + value("input", "t", kInt64) + value("output", "y"));
  const int64_t dims[] = {4, 1};
  const Ran ran = run(model, {floats({2, 2}, {1, 2, 3, 4}), Tensor::vector<int64_t>(dims)});
  ASSERT_TRUE(ran.outputs.ok()) << ran.outputs.error().message;
  EXPECT_EQ((*ran.outputs)[0].tensor().shape(), (Shape{4, 1}));
}

TEST(GpuExecutor, NamesTheNodeOfABadIndex) {
  const auto model = model_of(node("Gather", {"x", "i"}, {"y"}, "name: \"pick\"") + value("input", "x") +
                              value("input", "i", kInt64) + value("output", "y"));
  const int64_t indices[] = {0, 5, 1};
  const Ran ran = run(model, {floats({2, 2}, {1, 2, 3, 4}), Tensor::vector<int64_t>(indices)});
  ASSERT_FALSE(ran.outputs.ok());
  EXPECT_NE(ran.outputs.error().message.find("an index is 5; it must be in [-2, 2)"), std::string::npos)
      << ran.outputs.error().message;
  EXPECT_EQ(ran.recorder.failed, (std::vector<std::string>{"pick"}));
}

TEST(GpuExecutor, NamesATokenThatHasNoScore) {
  const std::string more = "domain: \"com.microsoft\" attribute { name: \"ngram_size\" i: 2 type: INT }";
  const std::string text =
      "ir_version: 10 opset_import { version: 21 } opset_import { domain: \"com.microsoft\" version: 1 } " +
      ("graph { name: \"g\" " + node("NGramRepeatBlock", {"ids", "x"}, {"y"}, more)) + value("input", "ids", kInt64) +
      value("input", "x") + value("output", "y") + "}";
  const auto model = import_model(std::as_bytes(std::span(text)), "", "test");
  ASSERT_TRUE(model.ok()) << model.error().message;
  const int64_t tokens[] = {0, 3, 1, 1, 9, 1};  // 9 comes after 1, as the end of the second row does
  const Value ids = Tensor::from<int64_t>(Shape{2, 3}, tokens);
  const Ran ran = run(*model, {ids, floats({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})});
  ASSERT_FALSE(ran.outputs.ok());
  EXPECT_NE(ran.outputs.error().message.find("a token of input_ids is 9; it must be in [0, 4)"), std::string::npos)
      << ran.outputs.error().message;
}

// Kernels of GPUs know no floats of 8 bits.
std::string cast(const std::string& x, const std::string& y, DType to) {
  const std::string number = std::to_string(static_cast<int>(to));
  return node("Cast", {x}, {y}, "attribute { name: \"to\" i: " + number + " type: INT }");
}

TEST(GpuExecutor, AnOperatorWithoutAKernelIsUnsupported) {
  const auto model = model_of(cast("x", "narrow", DType::int4) + node("Transpose", {"narrow"}, {"transposed"}) +
                              cast("transposed", "y", DType::float32) + value("input", "x") + value("output", "y"));
  const Ran ran = run(model, {floats({2, 2}, {1, 2, 3, 4})});
  ASSERT_FALSE(ran.outputs.ok());
  EXPECT_EQ(ran.outputs.error().code, ErrorCode::unsupported);
  EXPECT_NE(ran.outputs.error().message.find("--fallback=reference"), std::string::npos);
}

TEST(GpuExecutor, TheHostCanRunWhatTheDeviceCannot) {
  const auto model = model_of(node("Neg", {"x"}, {"a"}) + cast("a", "narrow", DType::int4) +
                              node("Transpose", {"narrow"}, {"transposed"}) + cast("transposed", "b", DType::float32) +
                              node("Neg", {"b"}, {"y"}) + value("input", "x") + value("output", "y"));
  RunOptions options;
  options.fallback = make_cpu_executor();
  const Ran ran = run(model, {floats({2, 2}, {1.1F, 2, 3, 4})}, options);
  ASSERT_TRUE(ran.outputs.ok()) << ran.outputs.error().message;
  EXPECT_EQ(first_output(ran), (std::vector<float>{1, 3, 2, 4}));
}

TEST(GpuExecutor, OverridesStandInForDeviceValues) {
  const auto model =
      model_of(node("Neg", {"x"}, {"a"}) + node("Neg", {"a"}, {"y"}) + value("input", "x") + value("output", "y"));
  RunOptions options;
  options.overrides["a"] = floats({2}, {10, 20});
  const Ran ran = run(model, {floats({2}, {1, 2})}, options);
  ASSERT_TRUE(ran.outputs.ok()) << ran.outputs.error().message;
  EXPECT_EQ(first_output(ran), (std::vector<float>{-10, -20}));
}

TEST(GpuExecutor, GivesBackAllMemory) {
  const int64_t before = runtime::emulation::live_bytes();
  const auto model = model_of(node("Softmax", {"x"}, {"a"}) + node("MatMul", {"a", "a"}, {"y"}) + value("input", "x") +
                              value("output", "y"));
  ASSERT_TRUE(run(model, {floats({2, 2}, {1, 2, 3, 4})}).outputs.ok());
  EXPECT_EQ(runtime::emulation::live_bytes(), before);
}

TEST(GpuExecutor, KeepsToAMemoryLimit) {
  const auto model =
      model_of(node("Softmax", {"x"}, {"y"}, "name: \"large\"") + value("input", "x") + value("output", "y"));
  RunOptions options;
  options.memory_limit_bytes = 6000;
  const Ran ran = run(model, {floats({1024}, std::vector<float>(1024, 1.0F))}, options);
  ASSERT_FALSE(ran.outputs.ok());
  EXPECT_EQ(ran.outputs.error().code, ErrorCode::out_of_memory);
}

}  // namespace
}  // namespace parallax::executor_test
