// SPDX-License-Identifier: Apache-2.0
// Sessions of the reference: what they run, tell, refuse and hold.
#include <gtest/gtest.h>

#include "inspector/tensor/elements.h"
#include "tests/reference/test_models.h"

namespace parallax::tests {
namespace {

// y = relu(x + w), z = identity(y)
std::shared_ptr<const Model> add_relu() {
  return parse("initializer { name: 'w' data_type: 1 dims: 2 float_data: [1, -10] }\n" +
               node("Add", {"x", "w"}, {"sum"}) + node("Relu", {"sum"}, {"y"}) + node("Identity", {"y"}, {"z"}) +
               value("input", "x", 1, {2}) + value("output", "z", 1, {2}));
}

// total = sum over i < n of (total + scale), each step's total scanned; `scale` comes from outside the body.
std::shared_ptr<const Model> loop() {
  const std::string body = node("Add", {"total_in", "scale"}, {"total_out"}) + node("Identity", {"go_in"}, {"go_out"}) +
                           node("Identity", {"total_out"}, {"scanned"}) + value("input", "i", 7) +
                           value("input", "go_in", 9) + value("input", "total_in", 1) + value("output", "go_out", 9) +
                           value("output", "total_out", 1) + value("output", "scanned", 1);
  return parse(node("Mul", {"start", "start"}, {"scale"}) +
               node("Loop", {"n", "", "start"}, {"total", "all"},
                    "attribute { name: 'body' type: GRAPH g { name: 'b' " + body + "} } ") +
               value("input", "n", 7) + value("input", "start", 1) + value("output", "total", 1) +
               value("output", "all", 1, {-1}));
}

TEST(Session, TellsValuesInExecutionOrder) {
  Recorder seen;
  const auto outputs = run(add_relu(), {floats({2, 3})}, seen);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  EXPECT_EQ(seen.events, (std::vector<std::string>{"begin ", "x", "w", "sum", "y", "z", "end"}));
  EXPECT_EQ(element_as_double((*outputs)[0].tensor(), 0), 3);
  EXPECT_EQ(element_as_double((*outputs)[0].tensor(), 1), 0);
  EXPECT_EQ(seen.aliases, (std::map<std::string, std::string>{{"z", "y"}}));
}

TEST(Session, NamesEveryIterationOfALoop) {
  Recorder seen;
  const auto outputs = run(loop(), {whole(3), Tensor::scalar(2.0F)}, seen);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  EXPECT_EQ(element_as_double((*outputs)[0].tensor(), 0), 14);
  EXPECT_EQ((*outputs)[1].tensor().shape(), Shape({3}));
  EXPECT_EQ(element_as_double((*outputs)[1].tensor(), 1), 10);
  for (int64_t step = 0; step < 3; ++step) {
    const std::string frame = "Loop_of_total.body[" + std::to_string(step) + "]";
    ASSERT_TRUE(seen.values.contains(frame + "//total_out"));
    EXPECT_EQ(element_as_double(seen.values[frame + "//total_out"].tensor(), 0), 2 + 4 * static_cast<double>(step + 1));
    EXPECT_EQ(element_as_double(seen.values[frame + "//i"].tensor(), 0), static_cast<double>(step));
    EXPECT_EQ(std::count(seen.events.begin(), seen.events.end(), "enter " + frame), 1);
    EXPECT_EQ(std::count(seen.events.begin(), seen.events.end(), "leave " + frame), 1);
  }
}

TEST(Session, ALoopWithoutIterationsScansNothing) {
  Recorder seen;
  const auto outputs = run(loop(), {whole(0), Tensor::scalar(2.0F)}, seen);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  EXPECT_EQ(element_as_double((*outputs)[0].tensor(), 0), 2);
  EXPECT_EQ((*outputs)[1].tensor().shape(), Shape({0}));
}

TEST(Session, RunsOnlyTheBranchTaken) {
  const auto branch = [](const std::string& name, const std::string& op) {
    return "attribute { name: '" + name + "' type: GRAPH g { name: 'b' " + node(op, {"x"}, {op + "_out"}) +
           value("output", op + "_out", 1, {2}) + "} } ";
  };
  const auto model = parse(node("If", {"c"}, {"y"}, branch("then_branch", "Neg") + branch("else_branch", "Abs")) +
                           value("input", "c", 9) + value("input", "x", 1, {2}) + value("output", "y", 1, {2}));
  for (bool flag : {true, false}) {
    Recorder seen;
    const auto outputs = run(model, {truth(flag), floats({-1, 2})}, seen);
    ASSERT_TRUE(outputs.ok()) << outputs.error().message;
    EXPECT_EQ(element_as_double((*outputs)[0].tensor(), 1), flag ? -2 : 2);
    EXPECT_EQ(seen.values.contains("If_of_y.then//Neg_out"), flag);
    EXPECT_EQ(seen.values.contains("If_of_y.else//Abs_out"), !flag);
  }
}

TEST(Session, RunsModelLocalFunctions) {
  const std::string function =
      "functions { name: 'scaled' domain: 'my' input: 'a' output: 'b' attribute: 'by' opset_import { version: 17 }\n"
      "node { op_type: 'Constant' output: 'k' attribute { name: 'value_float' ref_attr_name: 'by' type: FLOAT } }\n"
      "node { op_type: 'Mul' input: 'a' input: 'k' output: 'b' } }\nopset_import { domain: 'my' version: 1 }\n";
  const auto model = parse(
      "node { op_type: 'scaled' domain: 'my' name: 'call' input: 'x' output: 'y' attribute { name: 'by' type: FLOAT f: "
      "3 } }\n" +
          value("input", "x", 1, {2}) + value("output", "y", 1, {2}),
      17, function);
  Recorder seen;
  const auto outputs = run(model, {floats({2, 3})}, seen);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  EXPECT_EQ(element_as_double((*outputs)[0].tensor(), 1), 9);
  EXPECT_EQ(element_as_double(seen.values["call.call//k"].tensor(), 0), 3);
}

TEST(Session, ObservesOnlyWhatIsWanted) {
  const auto model = parse(node("Neg", {"x"}, {"unwanted"}) + node("Neg", {"unwanted"}, {"y"}) +
                           value("input", "x", 1, {1}) + value("output", "y", 1, {1}));
  Recorder seen;
  ASSERT_TRUE(run(model, {floats({1})}, seen).ok());
  EXPECT_EQ(seen.events, (std::vector<std::string>{"begin ", "x", "y", "end"}));
  EXPECT_EQ(seen.asked.size(), 3U);
}

TEST(Session, OverridesBeforeReadersAndObserver) {
  RunOptions options;
  options.overrides["sum"] = floats({7, -7});
  Recorder seen;
  const auto outputs = run(add_relu(), {floats({2, 3})}, seen, options);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  EXPECT_EQ(element_as_double(seen.values["sum"].tensor(), 0), 7);
  EXPECT_EQ(element_as_double((*outputs)[0].tensor(), 0), 7);
}

TEST(Session, OverridesOneIteration) {
  RunOptions options;
  options.overrides["Loop_of_total.body[1]//total_out"] = Tensor::scalar(100.0F);
  Recorder seen;
  const auto outputs = run(loop(), {whole(3), Tensor::scalar(2.0F)}, seen, options);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  EXPECT_EQ(element_as_double((*outputs)[0].tensor(), 0), 104);
}

TEST(Session, RefusesOverridesThatNameNothingOrDoNotFit) {
  Recorder seen;
  RunOptions options;
  options.overrides["smu"] = floats({7, -7});
  auto outputs = run(add_relu(), {floats({2, 3})}, seen, options);
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code, ErrorCode::usage);
  options.overrides = {{"sum", whole(1)}};
  outputs = run(add_relu(), {floats({2, 3})}, seen, options);
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code, ErrorCode::usage);
}

TEST(Session, NamesTheNodeThatFails) {
  const auto model = parse(node("Neg", {"x"}, {"n"}) + node("Gather", {"n", "i"}, {"y"}) + value("input", "x", 1, {2}) +
                           value("input", "i", 7) + value("output", "y", 1));
  Recorder seen;
  const auto outputs = run(model, {floats({1, 2}), whole(2)}, seen);
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code, ErrorCode::execution);
  EXPECT_EQ(outputs.error().node, "Gather_of_y");
  EXPECT_EQ(outputs.error().op, "Gather-13");
  EXPECT_EQ(seen.failure, outputs.error().message);
  EXPECT_NE(seen.failure.find("an index is 2; it must be in [-2, 2)"), std::string::npos) << seen.failure;
  EXPECT_EQ(seen.events, (std::vector<std::string>{"begin ", "x", "i", "n", "failed Gather_of_y", "end"}));
}

TEST(Session, PassesOnAnObserversError) {
  Recorder seen;
  seen.fail_at = "sum";
  const auto outputs = run(add_relu(), {floats({2, 3})}, seen);
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code, ErrorCode::io);
  EXPECT_EQ(outputs.error().message, "the observer is full");
  EXPECT_EQ(seen.events, (std::vector<std::string>{"begin ", "x", "w"}));
}

TEST(Session, StopsWhenCancelled) {
  RunOptions options;
  options.cancel.cancel();
  Recorder seen;
  const auto outputs = run(add_relu(), {floats({2, 3})}, seen, options);
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code, ErrorCode::cancelled);
}

TEST(Session, RefusesWrongInputs) {
  Recorder seen;
  for (const std::vector<Value>& inputs : {std::vector<Value>{}, {whole(1)}, {floats({1, 2, 3})}}) {
    const auto outputs = run(add_relu(), inputs, seen);
    ASSERT_FALSE(outputs.ok());
    EXPECT_EQ(outputs.error().code, ErrorCode::usage);
  }
}

TEST(Session, NamesTheFirstNodeWithoutAFunction) {
  const std::string attributes =
      "domain: 'ai.onnx.preview.training' attribute { name: 'xs' type: STRINGS strings: 'x' } "
      "attribute { name: 'y' type: STRING s: 'x' } ";
  const auto model =
      parse(node("Gradient", {"x"}, {"y"}, attributes) + value("input", "x", 1, {2}) + value("output", "y", 1, {2}), 17,
            "opset_import { domain: 'ai.onnx.preview.training' version: 1 }\n");
  const auto session = make_reference_executor(ReferencePrecision::declared)->prepare(model, {});
  ASSERT_FALSE(session.ok());
  EXPECT_EQ(session.error().code, ErrorCode::unsupported);
  EXPECT_EQ(session.error().node, "Gradient_of_y");
  EXPECT_EQ(session.error().op, "Gradient-1");
}

TEST(Session, RefusesOptionsItCannotHonor) {
  RunOptions tf32;
  tf32.tf32 = true;
  RunOptions accumulate;
  accumulate.accumulate = Accumulate::fp32;
  RunOptions pattern;
  pattern.rewrite.changes = {{"attention", true}};
  for (const RunOptions& options : {tf32, accumulate, pattern}) {
    const auto session = make_reference_executor(ReferencePrecision::declared)->prepare(add_relu(), options);
    ASSERT_FALSE(session.ok());
    EXPECT_EQ(session.error().code, ErrorCode::usage);
  }
}

TEST(Session, LetsValuesGoAfterTheirLastReader) {
  std::string nodes = node("Neg", {"x"}, {"v0"});
  for (int index = 1; index < 20; ++index)
    nodes += node("Neg", {"v" + std::to_string(index - 1)}, {"v" + std::to_string(index)});
  const auto model = parse(nodes + value("input", "x", 1, {1000}) + value("output", "v19", 1, {1000}));
  auto session = make_reference_executor(ReferencePrecision::declared)->prepare(model, {}).take();
  NullObserver observer;
  const std::vector<Value> inputs{floats(std::vector<float>(1000, 1.0F))};
  ASSERT_TRUE(session->run(inputs, observer).ok());
  EXPECT_GE(session->statistics().peak_bytes, 2 * 4000);
  EXPECT_LE(session->statistics().peak_bytes, 3 * 4000);
}

TEST(Session, KeepsTheMemoryLimit) {
  RunOptions options;
  options.memory_limit_bytes = 10;
  Recorder seen;
  const auto outputs = run(add_relu(), {floats({2, 3})}, seen, options);
  ASSERT_FALSE(outputs.ok());
  EXPECT_EQ(outputs.error().code, ErrorCode::out_of_memory);
  EXPECT_EQ(outputs.error().node, "Add_of_sum");
}

}  // namespace
}  // namespace parallax::tests
