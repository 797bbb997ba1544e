// SPDX-License-Identifier: Apache-2.0
// Requirements on every Executor: one suite, run on each executor this build has.
#include <cmath>

#include <gtest/gtest.h>

#include "inspector/base/thread_pool.h"
#include "inspector/exec/executor_names.h"
#include "inspector/executors/make_executor.h"
#include "inspector/model/io/import.h"
#include "inspector/tensor/elements.h"
#include "tests/inspector/executors/recording_observer.h"

namespace parallax {
namespace {

// y = (x + c) * 2 by If/Loop and a local function:
//   s = Add(x, c); t = Twice(s); l = Loop(3, true, t){ l_next = Add(l_in, c) }; y = If(cond){ Neg(l) } else {
//   Identity(l) }
constexpr std::string_view kModel = R"(
ir_version: 8
opset_import { domain: "" version: 17 }
opset_import { domain: "local" version: 1 }
graph {
  name: "main"
  node { input: "x" input: "c" output: "s" name: "add" op_type: "Add" }
  node { input: "s" output: "t" name: "twice" op_type: "Twice" domain: "local" }
  node { input: "trips" input: "go" input: "t" output: "l" output: "scan" name: "loop" op_type: "Loop"
    attribute { name: "body" type: GRAPH g { name: "body"
      node { input: "l_in" input: "c" output: "l_next" op_type: "Add" }
      node { input: "l_next" output: "scan_out" op_type: "Identity" }
      node { input: "go_in" output: "go_out" op_type: "Identity" }
      input { name: "i" type { tensor_type { elem_type: 7 shape { } } } }
      input { name: "go_in" type { tensor_type { elem_type: 9 shape { } } } }
      input { name: "l_in" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
      output { name: "go_out" type { tensor_type { elem_type: 9 } } }
      output { name: "l_next" type { tensor_type { elem_type: 1 } } }
      output { name: "scan_out" type { tensor_type { elem_type: 1 } } } } } }
  node { input: "cond" output: "y" name: "if" op_type: "If"
    attribute { name: "then_branch" type: GRAPH g { name: "then"
      node { input: "l" output: "then_y" op_type: "Neg" }
      output { name: "then_y" type { tensor_type { elem_type: 1 } } } } }
    attribute { name: "else_branch" type: GRAPH g { name: "else"
      node { input: "l" output: "else_y" op_type: "Abs" }
      output { name: "else_y" type { tensor_type { elem_type: 1 } } } } } }
  initializer { name: "c" data_type: 1 dims: 2 float_data: [0.5, 1.5] }
  initializer { name: "trips" data_type: 7 int64_data: [3] }
  initializer { name: "go" data_type: 9 int32_data: [1] }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
  input { name: "cond" type { tensor_type { elem_type: 9 shape { } } } }
  output { name: "y" type { tensor_type { elem_type: 1 } } }
  output { name: "scan" type { tensor_type { elem_type: 1 } } }
}
functions { domain: "local" name: "Twice" input: "a" output: "b"
  opset_import { domain: "" version: 17 }
  node { input: "a" input: "a" output: "b" op_type: "Add" } }
)";

std::shared_ptr<const Model> read_model(std::string_view text) {
  auto model = import_model(std::as_bytes(std::span(text)), "", "test model");
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.ok() ? model.take() : nullptr;
}

std::vector<double> doubles(const Value& value) {
  std::vector<double> result(static_cast<size_t>(value.tensor().element_count()));
  load_doubles(value.tensor(), 0, result);
  return result;
}

std::vector<Value> inputs(float first, float second, bool condition) {
  const float x[] = {first, second};
  return {Tensor::vector<float>(x), Tensor::scalar(condition)};
}

using Doubles = std::vector<double>;

class Conformance : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto made = make_executor(GetParam());
    if (!made.ok()) GTEST_SKIP() << made.error().message;
    executor_ = *made;
    model_ = read_model(kModel);
    ASSERT_NE(model_, nullptr);
    options_.observe_all = true;
  }

  std::unique_ptr<Session> prepare() {
    auto session = executor_->prepare(model_, options_);
    EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.error().message);
    return session.ok() ? session.take() : nullptr;
  }

  std::shared_ptr<Executor> executor_;
  std::shared_ptr<const Model> model_;
  RunOptions options_;
};

TEST_P(Conformance, ComputesTheModel) {
  const auto session = prepare();
  NullObserver observer;
  auto outputs = session->run(inputs(1, -2, true), observer);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  ASSERT_EQ(outputs->size(), 2U);
  EXPECT_EQ(doubles((*outputs)[0]), (Doubles{-4.5, -3.5}));  // -((1+0.5)*2 + 3*0.5), -((-2+1.5)*2 + 3*1.5)
  EXPECT_EQ(doubles((*outputs)[1]), (Doubles{3.5, 0.5, 4, 2, 4.5, 3.5}));
  EXPECT_EQ((*outputs)[1].tensor().shape(), (Shape{3, 2}));
}

TEST_P(Conformance, NamesEveryValueByItsPath) {
  const auto session = prepare();
  RecordingObserver observer;
  ASSERT_TRUE(session->run(inputs(1, -2, false), observer, {"", 4}).ok());
  EXPECT_TRUE(observer.saw("begin_call 4"));
  for (const char* path : {"x", "cond", "c", "s", "twice.call//b", "t", "loop.body[0]//l_next", "loop.body[1]//l_next",
                           "loop.body[2]//scan_out", "loop.body[2]//i", "l", "scan", "if.else//else_y", "y"}) {
    EXPECT_TRUE(observer.saw(std::string("observe step[4]//") + path)) << path;
  }
  EXPECT_FALSE(observer.saw("observe step[4]//if.then//then_y"));
  EXPECT_FALSE(observer.saw("observe step[4]//loop.body[3]//l_next"));
  EXPECT_EQ(doubles(observer.values.at("step[4]//loop.body[1]//l_next")), (Doubles{4, 2}));
  EXPECT_EQ(doubles(observer.values.at("step[4]//loop.body[2]//i")), (Doubles{2}));
}

TEST_P(Conformance, EventsComeInOrder) {
  const auto session = prepare();
  RecordingObserver observer;
  ASSERT_TRUE(session->run(inputs(1, -2, true), observer).ok());
  EXPECT_EQ(observer.events.front(), "begin_call -1");
  EXPECT_EQ(observer.events.back(), "end_call");
  EXPECT_FALSE(observer.asked_after_events);
  const char* order[] = {"observe s",
                         "enter twice.call",
                         "observe twice.call//b",
                         "leave twice.call",
                         "observe t",
                         "enter loop.body[0]",
                         "observe loop.body[0]//l_next",
                         "leave loop.body[0]",
                         "enter loop.body[1]",
                         "leave loop.body[2]",
                         "observe l",
                         "enter if.then",
                         "observe if.then//then_y",
                         "leave if.then",
                         "observe y"};
  int64_t last = 0;
  for (const char* event : order) {
    EXPECT_GT(observer.location(event), last) << event;
    last = observer.location(event);
  }
}

TEST_P(Conformance, AsksAnObserverOncePerValueAndShowsOnlyWantedOnes) {
  const auto session = prepare();
  RecordingObserver observer;
  observer.unwanted = {"s", "l_next"};
  for (int run = 1; run <= 2; ++run) {
    observer.events.clear();
    ASSERT_TRUE(session->run(inputs(1, -2, true), observer).ok());
    EXPECT_FALSE(observer.asked_after_events);
    for (const auto& [id, times] : observer.asked) EXPECT_EQ(times, 1) << id;
    EXPECT_TRUE(observer.values.contains("t")) << run;
    EXPECT_FALSE(observer.values.contains("s")) << run;
    EXPECT_FALSE(observer.values.contains("loop.body[0]//l_next")) << run;
    observer.values.clear();
  }
  EXPECT_EQ(static_cast<size_t>(observer.asked.rbegin()->first) + 1, observer.asked.size());  // ids are dense

  RecordingObserver another;
  another.unwanted = {"t"};
  ASSERT_TRUE(session->run(inputs(1, -2, true), another).ok());
  EXPECT_EQ(another.asked.size(), observer.asked.size());
  EXPECT_FALSE(another.values.contains("t"));
  EXPECT_TRUE(another.values.contains("s"));
}

TEST_P(Conformance, ObservedValuesKeepTheirContents) {
  const auto session = prepare();
  RecordingObserver first;
  RecordingObserver second;
  ASSERT_TRUE(session->run(inputs(1, -2, true), first).ok());
  std::map<std::string, Value> copies;
  // A value is valid until observe() returns; one whose payload is kept must not be written again while it is held.
  const Doubles outputs_before = doubles(first.values.at("y"));
  ASSERT_TRUE(session->run(inputs(10, 20, true), second).ok());
  EXPECT_EQ(doubles(first.values.at("y")), outputs_before);
  EXPECT_EQ(doubles(second.values.at("s")), (Doubles{10.5, 21.5}));
}

TEST_P(Conformance, OutputsOutliveTheSession) {
  std::vector<Value> outputs;
  {
    const auto session = prepare();
    NullObserver observer;
    outputs = session->run(inputs(1, -2, true), observer).take();
    ASSERT_TRUE(session->run(inputs(5, 5, true), observer).ok());
  }
  EXPECT_EQ(doubles(outputs[0]), (Doubles{-4.5, -3.5}));
}

TEST_P(Conformance, OverridesReachReadersAndObservers) {
  if (is_foreign_executor(GetParam()))
    GTEST_SKIP() << "no value within a program of its own can be replaced: FOREIGN.md makes that a usage error";
  const float other[] = {100, 200};
  const bool is_double = std::string(GetParam()) == "reference:double";
  const double wide[] = {100, 200};
  const Value replacement = is_double ? Value(Tensor::vector<double>(wide)) : Value(Tensor::vector<float>(other));
  options_.overrides["loop.body[1]//l_next"] = replacement;
  const auto session = prepare();
  RecordingObserver observer;
  const auto outputs = session->run(inputs(1, -2, true), observer).take();
  EXPECT_EQ(doubles(outputs[0]), (Doubles{-100.5, -201.5}));
  EXPECT_EQ(doubles(observer.values.at("loop.body[1]//l_next")), (Doubles{100, 200}));
  EXPECT_EQ(doubles(observer.values.at("loop.body[0]//l_next")), (Doubles{3.5, 0.5}));
}

TEST_P(Conformance, AnUnknownOverrideIsAUsageError) {
  options_.overrides["no_such_value"] = Value(Tensor::scalar(1.0F));
  auto session = executor_->prepare(model_, options_);
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().code, ErrorCode::usage);
  EXPECT_NE(session.error().message.find("no_such_value"), std::string::npos);
}

TEST_P(Conformance, CancelStopsTheRun) {
  const auto session = prepare();
  options_.cancel.cancel();
  NullObserver observer;
  const auto outputs = session->run(inputs(1, -2, true), observer);
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code, ErrorCode::cancelled);
}

TEST_P(Conformance, AnObserversErrorStopsTheRun) {
  const auto session = prepare();
  RecordingObserver observer;
  observer.stop_at = "t";
  const auto outputs = session->run(inputs(1, -2, true), observer);
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code, ErrorCode::io);
  EXPECT_FALSE(observer.values.contains("y"));
}

TEST_P(Conformance, WrongInputsAreNamed) {
  const auto session = prepare();
  NullObserver observer;
  auto missing = inputs(1, 2, true);
  missing.pop_back();
  auto wrong_type = inputs(1, 2, true);
  wrong_type[0] = Tensor::scalar(int64_t{1});
  auto wrong_shape = inputs(1, 2, true);
  const float three[] = {1, 2, 3};
  wrong_shape[0] = Tensor::vector<float>(three);
  for (const auto& values : {missing, wrong_type, wrong_shape}) {
    const auto outputs = session->run(values, observer);
    ASSERT_FALSE(outputs.ok());
    EXPECT_EQ(outputs.error().code, ErrorCode::usage);
  }
  EXPECT_TRUE(session->run(inputs(1, 2, true), observer).ok());
}

// Gather with an index beyond its table fails at run time: the node is named, what came before has been observed.
TEST_P(Conformance, AFailingNodeIsNamed) {
  model_ = read_model(R"(
ir_version: 8 opset_import { domain: "" version: 17 }
graph { name: "g"
  node { input: "x" output: "r" op_type: "Neg" }
  node { input: "r" input: "at" output: "y" name: "pick" op_type: "Gather" }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
  input { name: "at" type { tensor_type { elem_type: 7 shape { dim { dim_value: 1 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 } } } })");
  const auto session = prepare();
  const float x[] = {1, 2};
  const int64_t at[] = {7};
  RecordingObserver observer;
  const auto outputs =
      session->run(std::vector<Value>{Tensor::vector<float>(x), Tensor::vector<int64_t>(at)}, observer);
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code, ErrorCode::execution);
  EXPECT_EQ(outputs.error().node, "pick");
  EXPECT_EQ(outputs.error().op, "Gather-13");
  EXPECT_TRUE(observer.saw("failed pick"));
  EXPECT_TRUE(observer.saw("observe r"));
}

TEST_P(Conformance, AnInitializerServesAsDefaultOfAnInput) {
  model_ = read_model(R"(
ir_version: 8 opset_import { domain: "" version: 17 }
graph { name: "g"
  node { input: "x" input: "w" output: "y" op_type: "Mul" }
  initializer { name: "w" data_type: 1 dims: 1 float_data: [3] }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "n" } } } } }
  input { name: "w" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 } } } })");
  const auto session = prepare();
  const float x[] = {1, 2};
  const float w[] = {10};
  NullObserver observer;
  EXPECT_EQ(doubles(session->run(std::vector<Value>{Tensor::vector<float>(x), Value()}, observer).take()[0]),
            (Doubles{3, 6}));
  EXPECT_EQ(
      doubles(session->run(std::vector<Value>{Tensor::vector<float>(x), Tensor::vector<float>(w)}, observer).take()[0]),
      (Doubles{10, 20}));
}

TEST_P(Conformance, TheNumberOfThreadsDoesNotChangeABit) {
  model_ = read_model(R"(
ir_version: 8 opset_import { domain: "" version: 17 }
graph { name: "g"
  node { input: "x" input: "x" output: "p" op_type: "MatMul" }
  node { input: "p" output: "e" op_type: "Softmax" }
  node { input: "e" output: "y" op_type: "ReduceMean" attribute { name: "axes" type: INTS ints: 0 } }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "n" } dim { dim_param: "n" } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 } } } })");
  Tensor x = Tensor::allocate(DType::float32, Shape{96, 96}).take();
  double seed = 0.1;
  for (float& element : x.mutable_as<float>()) {
    seed = seed * 997 - std::floor(seed * 997);
    element = static_cast<float>(seed - 0.5);
  }
  std::vector<Doubles> results;
  for (int threads : {1, 2, 5}) {
    set_thread_count(threads);
    const auto session = prepare();
    NullObserver observer;
    results.push_back(doubles(session->run(std::vector<Value>{x}, observer).take()[0]));
  }
  set_thread_count(0);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

INSTANTIATE_TEST_SUITE_P(Executors, Conformance,
                         testing::Values("reference", "reference:double", "cpu", "cuda",
                                         "cmd:" PX_RUNNER " --observes"),
                         [](const auto& test) {
                           std::string name = is_foreign_executor(test.param) ? "program" : test.param;
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

}  // namespace
}  // namespace parallax
