// SPDX-License-Identifier: Apache-2.0
// The executor "cpu" on small models: values, events, rewrites, control flow, memory, overrides, fallback, errors.
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "reference/reference.h"
#include "runtime/plan/runtime.h"
#include "tests/runtime/model_text.h"

namespace parallax::executor_test {
namespace {

using model_text::model_of;
using model_text::node;
using model_text::value;

Value floats(const std::vector<float>& values) { return Tensor::vector<float>(values); }

// Keeps a copy of every value by path, and every other event as text.
class Recorder : public Observer {
 public:
  CaptureLevel wants(const ValueInfo&) override { return CaptureLevel::all; }
  Status absent(const ValueInfo& value_info, const Absence& absence) override {
    events.push_back("absent " + std::string(value_info.name) + " " + absence.into);
    return {};
  }
  Status enter_body(const NodeLocation&, const Frame& frame) override {
    return events.push_back("enter " + to_string(frame)), Status{};
  }
  Status leave_body(const NodeLocation&, const Frame& frame) override {
    return events.push_back("leave " + to_string(frame)), Status{};
  }
  Status node_failed(const NodeLocation& value_info, const FrameStack&, const Error&) override {
    return events.push_back("failed " + std::string(value_info.node)), Status{};
  }
  Status observe(const Observation& seen) override {
    if (seen.value.is_tensor()) values[seen.path()] = seen.value.tensor().clone().take();
    if (seen.alias_of != nullptr) aliases[seen.path()] = seen.alias_of->name;
    return {};
  }
  std::vector<float> at(const std::string& path) const {
    const auto found = values.find(path);
    if (found == values.end()) return {};
    return {found->second.as<float>().begin(), found->second.as<float>().end()};
  }

  std::map<std::string, Tensor> values;
  std::map<std::string, std::string> aliases;
  std::vector<std::string> events;
};

struct Ran {
  Recorder recorder;
  Result<std::vector<Value>> outputs = std::vector<Value>{};
  SessionStatistics statistics;
};

Ran run(const std::shared_ptr<const Model>& model, const std::vector<Value>& inputs, const RunOptions& options = {}) {
  Ran ran;
  const auto executor = make_cpu_executor({.poison_buffers = true});
  auto session = executor->prepare(model, options);
  if (!session.ok()) {
    ran.outputs = std::move(session).error();
    return ran;
  }
  ran.outputs = (*session)->run(inputs, ran.recorder);
  ran.statistics = (*session)->statistics();
  return ran;
}

TEST(CpuExecutor, ComputesAndShowsEveryValue) {
  const auto model = model_of(node("Add", {"x", "x"}, {"a"}) + node("Relu", {"a"}, {"b"}) + node("Neg", {"b"}, {"y"}) +
                              value("input", "x") + value("output", "y"));
  const Ran ran = run(model, {floats({1, -2})});
  ASSERT_TRUE(ran.outputs.ok()) << ran.outputs.error().message;
  EXPECT_EQ(ran.recorder.at("x"), (std::vector<float>{1, -2}));
  EXPECT_EQ(ran.recorder.at("a"), (std::vector<float>{2, -4}));  // though Relu took over its buffer
  EXPECT_EQ(ran.recorder.at("b"), (std::vector<float>{2, 0}));
  EXPECT_EQ(ran.recorder.at("y"), (std::vector<float>{-2, 0}));
}

// A long random chain with values read again much later: with poisoned buffers any premature reuse shows.
TEST(CpuExecutor, ReusesNoLiveBuffer) {
  std::mt19937 random(3);
  std::string graph;
  std::vector<std::vector<double>> expected{{0.25, -0.5, 1.0}};
  for (int i = 1; i < 150; ++i) {
    const size_t a = random() % static_cast<size_t>(i), b = random() % static_cast<size_t>(i);
    const bool adds = random() % 2 == 0;
    graph += node(adds ? "Add" : "Min", {fmt::format("v{}", a), fmt::format("v{}", b)}, {fmt::format("v{}", i)});
    expected.emplace_back();
    for (size_t k = 0; k < 3; ++k) {
      const float x = static_cast<float>(expected[a][k]), y = static_cast<float>(expected[b][k]);
      expected.back().push_back(static_cast<double>(adds ? x + y : std::min(x, y)));
    }
  }
  const auto model = model_of(graph + value("input", "v0") + value("output", "v149") + value("output", "v75"));
  const auto executor = make_cpu_executor({.poison_buffers = true});
  auto session = executor->prepare(model, {}).take();
  const std::vector<Value> inputs{floats({0.25F, -0.5F, 1.0F})};
  NullObserver nobody;
  std::vector<std::vector<Value>> kept;  // outputs of earlier runs stay as they were
  for (int round = 0; round < 3; ++round) kept.push_back(session->run(inputs, nobody).take());
  session.reset();
  for (const auto& outputs : kept) {
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_EQ(static_cast<double>(outputs[0].tensor().as<float>()[k]), expected[149][k]);
      EXPECT_EQ(static_cast<double>(outputs[1].tensor().as<float>()[k]), expected[75][k]);
    }
  }
}

// Data prepared from a constant are kept for the session; the output of a Constant may not share its buffer with values
// that change.
TEST(CpuExecutor, TellsConstantsFromWhatComesAfterThem) {
  const std::string bytes = "attribute { name: \"value\" type: TENSOR t { data_type: 2 dims: 1 int32_data: ";
  const std::string matrix =
      "attribute { name: \"value\" type: TENSOR t { data_type: 2 dims: 2 dims: 2 int32_data: 1 "
      "int32_data: 2 int32_data: 3 int32_data: 4 } }";
  std::string graph;
  std::string last = "x";
  for (int layer = 0; layer < 4; ++layer) {
    const auto name = [&](const char* base) { return fmt::format("{}{}", base, layer); };
    graph += node("Constant", {}, {name("w")}, matrix) + node("Constant", {}, {name("z")}, bytes + "1 } }");
    graph += node("DynamicQuantizeLinear", {last}, {name("q"), name("s"), name("p")});
    graph += node("MatMulInteger", {name("q"), name("w"), name("p"), name("z")}, {name("m")});
    graph += node("Cast", {name("m")}, {name("c")}, "attribute { name: \"to\" type: INT i: 1 }");
    graph += node("Mul", {name("c"), name("s")}, {name("y")});
    last = name("y");
  }
  const auto model = model_of(graph + value("input", "x") + value("output", last));
  Tensor x = Tensor::allocate(DType::float32, Shape{1, 2}).take(),
         other = Tensor::allocate(DType::float32, {1, 2}).take();
  std::ranges::copy(std::vector<float>{0.5F, -1.25F}, x.mutable_as<float>().begin());
  std::ranges::copy(std::vector<float>{3.0F, 0.125F}, other.mutable_as<float>().begin());
  const auto executor = make_cpu_executor({.poison_buffers = true});
  auto session = executor->prepare(model, {}).take();
  auto oracle = make_reference_executor({})->prepare(model, {}).take();
  for (const Tensor& given : {x, other, x}) {
    NullObserver nobody;
    const std::vector<Value> inputs{Value(given)};
    auto actual = session->run(inputs, nobody), expected = oracle->run(inputs, nobody);
    ASSERT_TRUE(actual.ok() && expected.ok());
    for (size_t k = 0; k < 2; ++k) {
      const float wanted = (*expected)[0].tensor().as<float>()[k];
      EXPECT_NEAR((*actual)[0].tensor().as<float>()[k], wanted, 1e-5 * std::abs(wanted));
    }
  }
}

// The debugger runs a session on one thread, and once more on another.
TEST(CpuExecutor, RunsOnAnotherThreadThanTheLast) {
  const auto model =
      model_of(node("ConvTranspose", {"x", "w"}, {"c"}, "attribute { name: \"strides\" type: INTS ints: 2 ints: 2 }") +
               node("Conv", {"c", "v"}, {"y"}) + value("input", "x") + value("input", "w") + value("input", "v") +
               value("output", "y"));
  const auto random = [](const Shape& shape) {
    std::mt19937 generator(5);
    Tensor tensor = Tensor::allocate(DType::float32, shape).take();
    for (float& element : tensor.mutable_as<float>()) element = static_cast<float>(generator() % 17) - 8;
    return Value(tensor);
  };
  const std::vector<Value> inputs{random({1, 10, 8, 8}), random({10, 6, 3, 3}), random({7, 6, 3, 3})};
  const auto executor = make_cpu_executor({.poison_buffers = true});
  auto session = executor->prepare(model, {}).take();
  std::vector<std::vector<Value>> results(2);
  for (auto& result : results) {
    std::thread([&] {
      NullObserver nobody;
      auto outputs = session->run(inputs, nobody);
      if (outputs.ok()) result = outputs.take();
    }).join();
  }
  ASSERT_EQ(results[0].size(), 1U);
  ASSERT_EQ(results[1].size(), 1U);
  EXPECT_TRUE(std::ranges::equal(results[0][0].tensor().as<float>(), results[1][0].tensor().as<float>()));
}

TEST(CpuExecutor, SaysWhichValuesAreAliases) {
  const auto model = model_of(node("Flatten", {"x"}, {"a"}, "attribute { name: \"axis\" type: INT i: 0 }") +
                              node("Neg", {"a"}, {"y"}) + value("input", "x") + value("output", "y"));
  const Ran ran = run(model, {floats({1, 2})});
  ASSERT_TRUE(ran.outputs.ok());
  EXPECT_EQ(ran.recorder.aliases.at("a"), "x");
  EXPECT_FALSE(ran.recorder.aliases.contains("y"));
}

std::string weight(const std::string& name) {
  return "initializer { name: \"" + name + "\" data_type: 1 dims: 2 float_data: 3 float_data: 4 } ";
}

TEST(CpuExecutor, AnnouncesWhatRewritingRemoves) {
  const auto model =
      model_of(node("Neg", {"w"}, {"a"}) + node("Identity", {"x"}, {"b"}) + node("Add", {"a", "b"}, {"y"}) +
               weight("w") + value("input", "x") + value("output", "y"));
  const Ran plain = run(model, {floats({1, 1})});
  ASSERT_TRUE(plain.outputs.ok());
  EXPECT_EQ(plain.recorder.at("y"), (std::vector<float>{-2, -3}));
  EXPECT_EQ(plain.recorder.events, (std::vector<std::string>{"absent b x", "absent a "}));
  EXPECT_FALSE(plain.recorder.values.contains("a"));
  RunOptions options;
  options.observe_all = true;
  const Ran all = run(model, {floats({1, 1})}, options);
  EXPECT_TRUE(all.recorder.events.empty());
  EXPECT_EQ(all.recorder.at("a"), (std::vector<float>{-3, -4}));
  EXPECT_EQ(all.recorder.at("b"), (std::vector<float>{1, 1}));
}

TEST(CpuExecutor, TellsEachObserverOnceWhatIsAbsent) {
  const auto model =
      model_of(node("Identity", {"x"}, {"b"}) + node("Neg", {"b"}, {"y"}) + value("input", "x") + value("output", "y"));
  const auto session = make_cpu_executor()->prepare(model, {}).take();
  Recorder first, second;
  const std::vector<Value> inputs = {floats({1, 1})};
  const std::vector<std::string> reported = {"absent b x"};
  ASSERT_TRUE(session->run(inputs, first).ok());
  ASSERT_TRUE(session->run(inputs, first).ok());
  EXPECT_EQ(first.events, reported);
  ASSERT_TRUE(session->run(inputs, second).ok());
  EXPECT_EQ(second.events, reported);
}

TEST(CpuExecutor, SwitchesPatternsByName) {
  const auto model =
      model_of(node("Identity", {"x"}, {"b"}) + node("Neg", {"b"}, {"y"}) + value("input", "x") + value("output", "y"));
  RunOptions options;
  options.rewrite.changes = {{"identity", false}};
  EXPECT_TRUE(run(model, {floats({1})}, options).recorder.values.contains("b"));
  options.rewrite.changes = {{"no-such-pattern", true}};
  const Ran ran = run(model, {floats({1})}, options);
  ASSERT_FALSE(ran.outputs.ok());
  EXPECT_EQ(ran.outputs.error().code, ErrorCode::usage);
}

TEST(CpuExecutor, OverridesBeforeAnyReader) {
  const auto model =
      model_of(node("Identity", {"x"}, {"a"}) + node("Neg", {"a"}, {"y"}) + value("input", "x") + value("output", "y"));
  RunOptions options;
  options.overrides["a"] = floats({7});
  const Ran ran = run(model, {floats({1})}, options);
  ASSERT_TRUE(ran.outputs.ok()) << ran.outputs.error().message;
  EXPECT_EQ(ran.recorder.at("a"), std::vector<float>{7});
  EXPECT_EQ(ran.recorder.at("y"), std::vector<float>{-7});
  options.overrides = {{"nothing", floats({7})}};
  EXPECT_EQ(run(model, {floats({1})}, options).outputs.error().code, ErrorCode::usage);
}

// while (i < 3) { v = v + v; scan v }
std::string loop_model() {
  const std::string body = "attribute { name: \"body\" type: GRAPH g { name: \"b\" " + node("Add", {"v", "w"}, {"t"}) +
                           node("Identity", {"c"}, {"c2"}) + node("Identity", {"t"}, {"s"}) + value("input", "i", 7) +
                           value("input", "c", 9) + value("input", "v") + value("output", "c2", 9) +
                           value("output", "t") + value("output", "s") + "} }";
  return "node { name: \"loop\" op_type: \"Loop\" input: \"n\" input: \"\" input: \"x\" output: \"last\" output: "
         "\"all\" " +
         body + " } " + "initializer { name: \"n\" data_type: 7 int64_data: 3 } " + weight("w") + value("input", "x") +
         value("output", "last") + value("output", "all");
}

TEST(CpuExecutor, RunsLoopsWithAllTheirIterations) {
  const Ran ran = run(model_of(loop_model()), {floats({1, 1})});
  ASSERT_TRUE(ran.outputs.ok()) << ran.outputs.error().message;
  EXPECT_EQ(ran.recorder.at("last"), (std::vector<float>{10, 13}));
  EXPECT_EQ(ran.recorder.at("all"), (std::vector<float>{4, 5, 7, 9, 10, 13}));
  EXPECT_EQ(ran.recorder.at("loop.body[1]//t"), (std::vector<float>{7, 9}));
  EXPECT_EQ(ran.recorder.at("loop.body[2]//v"), (std::vector<float>{7, 9}));
  EXPECT_EQ(ran.recorder.events.front(), "enter loop.body[0]");
  EXPECT_EQ(ran.recorder.events.back(), "leave loop.body[2]");
}

TEST(CpuExecutor, FoldsInBodiesWhatDependsOnOuterWeightsAlone) {
  const std::string body = "attribute { name: \"body\" type: GRAPH g { name: \"b\" " + node("Neg", {"w"}, {"m"}) +
                           node("Add", {"v", "m"}, {"t"}) + node("Identity", {"c"}, {"c2"}) + value("input", "i", 7) +
                           value("input", "c", 9) + value("input", "v") + value("output", "c2", 9) +
                           value("output", "t") + "} }";
  const auto model =
      model_of("node { name: \"loop\" op_type: \"Loop\" input: \"n\" input: \"\" input: \"x\" output: \"last\" " +
               body + " } initializer { name: \"n\" data_type: 7 int64_data: 3 } " + weight("w") + value("input", "x") +
               value("output", "last"));
  const Ran folded = run(model, {floats({1, 1})});
  ASSERT_TRUE(folded.outputs.ok()) << folded.outputs.error().message;
  EXPECT_EQ(folded.recorder.at("last"), (std::vector<float>{-8, -11}));
  EXPECT_EQ(std::ranges::count(folded.recorder.events, "absent m "), 1);
  RunOptions options;
  options.overrides["w"] = floats({1, 2});
  const Ran replaced = run(model, {floats({1, 1})}, options);
  ASSERT_TRUE(replaced.outputs.ok()) << replaced.outputs.error().message;
  EXPECT_EQ(replaced.recorder.at("last"), (std::vector<float>{-2, -5}));
}

TEST(CpuExecutor, TellsWhatTheReferenceTells) {
  const auto model = model_of(loop_model());
  RunOptions options;
  options.observe_all = true;
  const Ran ran = run(model, {floats({1, 1})}, options);
  Recorder expected;
  auto session = make_reference_executor(ReferencePrecision::declared)->prepare(model, {}).take();
  const std::vector<Value> inputs{floats({1, 1})};
  ASSERT_TRUE(session->run(inputs, expected).ok());
  EXPECT_EQ(ran.recorder.events, expected.events);
  ASSERT_EQ(ran.recorder.values.size(), expected.values.size());
  for (const auto& [path, tensor] : expected.values) {
    ASSERT_TRUE(ran.recorder.values.contains(path)) << path;
    EXPECT_EQ(ran.recorder.values.at(path).shape(), tensor.shape()) << path;
  }
}

TEST(CpuExecutor, NamesTheNodeThatFails) {
  const auto model = model_of(node("Add", {"x", "z"}, {"y"}, "name: \"sum\"") + value("input", "x") +
                              value("input", "z") + value("output", "y"));
  const Ran ran = run(model, {floats({1, 2}), floats({1, 2, 3})});
  ASSERT_FALSE(ran.outputs.ok());
  EXPECT_EQ(ran.outputs.error().code, ErrorCode::execution);
  EXPECT_EQ(ran.outputs.error().node, "sum");
  EXPECT_EQ(ran.outputs.error().op, "Add-14");
  EXPECT_EQ(ran.recorder.events, std::vector<std::string>{"failed sum"});
  EXPECT_EQ(ran.recorder.values.size(), 2U);  // what was seen before stays
}

std::string random_node() {
  return node("StringNormalizer", {"x"}, {"y"}, "name: \"words\"") +
         value("input", "x", 8, "shape { dim { dim_value: 1 } }") + value("output", "y", 8);
}

TEST(CpuExecutor, RefusesAtPrepareWhatItHasNoKernelFor) {
  const auto session = make_cpu_executor()->prepare(model_of(random_node()), {});
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().code, ErrorCode::unsupported);
  EXPECT_EQ(session.error().node, "words");
  for (const char* part : {"StringNormalizer-10", "cpu", "--fallback=reference"}) {
    EXPECT_NE(session.error().message.find(part), std::string::npos) << session.error().message;
  }
}

TEST(CpuExecutor, RunsSingleNodesElsewhereWhenAsked) {
  RunOptions options;
  options.fallback = make_reference_executor(ReferencePrecision::declared);
  const std::vector<std::string> words{"Word"};
  const Ran ran = run(model_of(random_node()), {Tensor::vector<std::string>(words)}, options);
  ASSERT_TRUE(ran.outputs.ok()) << ran.outputs.error().message;
  EXPECT_EQ((*ran.outputs)[0].tensor().as<std::string>()[0], "Word");
  EXPECT_EQ(ran.statistics.fallback_nodes, std::vector<std::string>{"words"});
  EXPECT_EQ(make_cpu_executor()->settings(options).at("fallback"), "reference");
}

TEST(CpuExecutor, KeepsToItsMemoryLimit) {
  const auto model = model_of(node("Expand", {"x", "shape"}, {"a"}) + node("Neg", {"a"}, {"y"}) +
                              "initializer { name: \"shape\" data_type: 7 dims: 1 int64_data: 1000000 } " +
                              value("input", "x") + value("output", "y"));
  RunOptions options;
  options.memory_limit_bytes = 1'000'000;
  const Ran ran = run(model, {floats({1})}, options);
  ASSERT_FALSE(ran.outputs.ok());
  EXPECT_EQ(ran.outputs.error().code, ErrorCode::out_of_memory);
  EXPECT_EQ(ran.outputs.error().op, "Expand-13");
  options.memory_limit_bytes = 20'000'000;
  const Ran enough = run(model, {floats({1})}, options);
  EXPECT_TRUE(enough.outputs.ok());
  EXPECT_GE(enough.statistics.peak_bytes, 4'000'000);
  EXPECT_LE(enough.statistics.peak_bytes, 20'000'000);
}

TEST(CpuExecutor, StopsWhenCancelled) {
  const auto model = model_of(node("Neg", {"x"}, {"y"}) + value("input", "x") + value("output", "y"));
  RunOptions options;
  options.cancel.cancel();
  const Ran ran = run(model, {floats({1})}, options);
  ASSERT_FALSE(ran.outputs.ok());
  EXPECT_EQ(ran.outputs.error().code, ErrorCode::cancelled);
}

TEST(CpuExecutor, RefusesOptionsItCannotHonor) {
  const auto model = model_of(node("Neg", {"x"}, {"y"}) + value("input", "x") + value("output", "y"));
  RunOptions tf32;
  tf32.tf32 = true;
  EXPECT_EQ(run(model, {floats({1})}, tf32).outputs.error().code, ErrorCode::usage);
  RunOptions casts;
  casts.keep_casts = true;
  EXPECT_EQ(run(model, {floats({1})}, casts).outputs.error().code, ErrorCode::usage);
}

// Products of many lengths share a weight's packed copies: memory must not grow with the number of shapes seen.
TEST(Memory, PackedWeightsServeEveryShape) {
  constexpr int64_t kSide = 128;
  auto model =
      std::make_shared<Model>(*model_of(value("input", "x") + value("output", "y") + node("MatMul", {"x", "w"}, {"y"}) +
                                        "initializer { name: \"w\" data_type: 1 dims: 0 dims: 128 }"));
  Tensor weight = Tensor::zeros(DType::float32, Shape{kSide, kSide}).take();
  for (int64_t i = 0; i < kSide; ++i) weight.mutable_as<float>()[static_cast<size_t>(i * kSide + i)] = 2;
  model->graph.initializers.at(0).tensor = std::move(weight);
  const auto executor = make_cpu_executor({});
  const auto session = executor->prepare(model, {});
  ASSERT_TRUE(session.ok()) << session.error().message;
  NullObserver observer;
  for (int64_t rows = 17; rows < 97; ++rows) {
    Tensor x = Tensor::zeros(DType::float32, Shape{rows, kSide}).take();
    x.mutable_as<float>().back() = 3;
    const std::vector<Value> inputs = {x};
    const auto outputs = (*session)->run(inputs, observer);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    EXPECT_EQ(outputs->at(0).tensor().as<float>().back(), 6) << rows;
  }
  EXPECT_LE((*session)->statistics().weight_bytes, 4 * kSide * kSide * 4);
}

}  // namespace
}  // namespace parallax::executor_test
