// SPDX-License-Identifier: Apache-2.0
// Loops and branches in their corners: models in text form, small enough that the answer stands in the comment above
// each.
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/models/program.h"

namespace parallax::end_to_end {
namespace {

std::string value_info(const std::string& kind, const std::string& name, int element_type, bool scalar = true) {
  return kind + " { name: '" + name + "' type { tensor_type { elem_type: " + std::to_string(element_type) +
         (scalar ? " shape {}" : " shape { dim {} }") + " } } }\n";
}

std::string int_scalar(const std::string& name, int value) {
  return "initializer { name: '" + name + "' data_type: 7 int64_data: " + std::to_string(value) + " }\n";
}

std::string node(const std::string& op, const std::string& name, const std::string& fields) {
  return "node { op_type: '" + op + "' name: '" + name + "' " + fields + " }\n";
}

std::string model_text(const std::string& graph) {
  return "ir_version: 8\nopset_import { version: 17 }\ngraph {\nname: 'g'\n" + graph + "}\n";
}

std::string write_text(const ScratchFolder& folder, const std::string& name, const std::string& text) {
  const std::string path = folder.file(name);
  std::ofstream(path) << text;
  return path;
}

constexpr int kInt64 = 7;
constexpr int kBool = 9;

// carried(i + 1) = carried(i) * (i + 1) from 1; the scan output collects the products.
std::string factorial_body(const std::string& condition) {
  return "g { name: 'body' " + value_info("input", "i", kInt64) + value_info("input", "go", kBool) +
         value_info("input", "product_in", kInt64) + "initializer { name: 'one_inside' data_type: 7 int64_data: 1 }\n" +
         node("Add", "next", "input: 'i' input: 'one_inside' output: 'factor'") +
         node("Mul", "multiply", "input: 'product_in' input: 'factor' output: 'product_out'") +
         node("Identity", "emit", "input: 'product_out' output: 'emitted'") + condition +
         value_info("output", "go_on", kBool) + value_info("output", "product_out", kInt64) +
         value_info("output", "emitted", kInt64) + "}";
}

std::string loop_model(const std::string& trip_count_name, int trip_count, const std::string& condition) {
  return model_text(int_scalar("trips", trip_count) + int_scalar("start", 1) + int_scalar("limit", 100) +
                    "initializer { name: 'truth' data_type: 9 int32_data: 1 }\n" +
                    node("Loop", "count",
                         "input: '" + trip_count_name +
                             "' input: 'truth' input: 'start' output: 'last' output: 'all' "
                             "attribute { name: 'body' type: GRAPH " +
                             factorial_body(condition) + " }") +
                    node("Identity", "finish", "input: 'last' output: 'answer'") +
                    value_info("output", "answer", kInt64) + value_info("output", "all", kInt64, false));
}

const std::string kGoOn = node("Identity", "go_on", "input: 'go' output: 'go_on'");
const std::string kBelowLimit = node("Less", "below", "input: 'product_out' input: 'limit' output: 'go_on'");

nlohmann::json output(const Answer& answer, const std::string& name) {
  for (const nlohmann::json& entry : answer.document.at("outputs")) {
    if (entry.at("name") == name) return entry;
  }
  return nullptr;
}

class ControlFlow : public testing::TestWithParam<const char*> {
 protected:
  Answer run(const std::string& text) {
    const std::string path = write_text(folder_, "model.textproto", text);
    Answer answer = run_json({"run", path, "--with", GetParam()});
    EXPECT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.messages;
    return answer;
  }

  ScratchFolder folder_;
};

// 5! = 120, after the products 1, 2, 6, 24, 120.
TEST_P(ControlFlow, ALoopRunsItsTripCount) {
  const Answer answer = run(loop_model("trips", 5, kGoOn));
  EXPECT_EQ(output(answer, "answer").at("stats").at("max"), 120);
  EXPECT_EQ(output(answer, "all").at("shape"), nlohmann::json::array({5}));
  EXPECT_EQ(output(answer, "all").at("stats").at("min"), 1);
}

// No iteration: the carried value is handed through, the scan output has length 0.
TEST_P(ControlFlow, ALoopMayRunZeroTimes) {
  const Answer answer = run(loop_model("trips", 0, kGoOn));
  EXPECT_EQ(output(answer, "answer").at("stats").at("max"), 1);
  EXPECT_EQ(output(answer, "all").at("shape"), nlohmann::json::array({0}));
}

// Without a trip count the condition ends it: 120 is the first product that is not below 100.
TEST_P(ControlFlow, ALoopWithoutTripCountEndsByItsCondition) {
  const Answer answer = run(loop_model("", 0, kBelowLimit));
  EXPECT_EQ(output(answer, "answer").at("stats").at("max"), 120);
  EXPECT_EQ(output(answer, "all").at("shape"), nlohmann::json::array({5}));
}

// The condition is false from the start, whatever the trip count says.
TEST_P(ControlFlow, AFalseConditionEndsALoopBeforeItBegins) {
  std::string text = loop_model("trips", 5, kGoOn);
  text.replace(text.find("int32_data: 1"), 13, "int32_data: 0");
  EXPECT_EQ(output(run(text), "answer").at("stats").at("max"), 1);
}

INSTANTIATE_TEST_SUITE_P(Executors, ControlFlow, testing::Values("reference", "cpu"),
                         [](const testing::TestParamInfo<const char*>& parameter) { return parameter.param; });

// An outer loop of 3 around an inner one of 2; the If in the inner body adds 10 in even outer steps and 1 in odd ones:
// 0 -> 20 -> 22 -> 42.
std::string nested_model() {
  const std::string branches =
      "attribute { name: 'then_branch' type: GRAPH g { name: 'then' initializer { name: 'ten' data_type: 7 int64_data: "
      "10 }\n" +
      node("Add", "add_ten", "input: 'inner_in' input: 'ten' output: 'plus_ten'") +
      value_info("output", "plus_ten", kInt64) +
      "} } attribute { name: 'else_branch' type: GRAPH g { name: 'else' initializer { name: 'unit' data_type: 7 "
      "int64_data: 1 }\n" +
      node("Add", "add_one", "input: 'inner_in' input: 'unit' output: 'plus_one'") +
      value_info("output", "plus_one", kInt64) + "} }";
  const std::string inner = "g { name: 'inner' " + value_info("input", "j", kInt64) +
                            value_info("input", "inner_go", kBool) + value_info("input", "inner_in", kInt64) +
                            node("If", "choose", "input: 'is_even' output: 'inner_out' " + branches) +
                            node("Identity", "inner_go_on", "input: 'inner_go' output: 'inner_go_on'") +
                            value_info("output", "inner_go_on", kBool) + value_info("output", "inner_out", kInt64) +
                            "}";
  const std::string outer =
      "g { name: 'outer' " + value_info("input", "i", kInt64) + value_info("input", "go", kBool) +
      value_info("input", "sum_in", kInt64) + node("Mod", "parity", "input: 'i' input: 'two' output: 'remainder'") +
      node("Equal", "even", "input: 'remainder' input: 'zero' output: 'is_even'") +
      node("Loop", "twice",
           "input: 'two' input: 'go' input: 'sum_in' output: 'sum_out' attribute { name: 'body' type: GRAPH " + inner +
               " }") +
      node("Identity", "go_on", "input: 'go' output: 'go_on'") + value_info("output", "go_on", kBool) +
      value_info("output", "sum_out", kInt64) + "}";
  return model_text(int_scalar("three", 3) + int_scalar("two", 2) + int_scalar("zero", 0) +
                    node("Loop", "thrice",
                         "input: 'three' input: '' input: 'zero' output: 'sum' attribute { name: 'body' type: GRAPH " +
                             outer + " }") +
                    node("Identity", "finish", "input: 'sum' output: 'answer'") +
                    value_info("output", "answer", kInt64));
}

TEST_P(ControlFlow, LoopsNest) { EXPECT_EQ(output(run(nested_model()), "answer").at("stats").at("max"), 42); }

TEST(NestedLoops, HoldEveryIterationOfEveryLevel) {
  const ScratchFolder folder;
  const std::string path = write_text(folder, "nested.textproto", nested_model());
  const Answer answer = run_json({"run", path, "--with", "reference,cpu", "--observe-all"});
  ASSERT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.messages;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 2; ++j) {
      const std::string frame = "thrice.body[" + std::to_string(i) + "]//twice.body[" + std::to_string(j) + "]//";
      const bool even = i % 2 == 0;
      EXPECT_FALSE(value_at(answer.document, frame + "inner_out").is_null()) << frame;
      EXPECT_EQ(value_at(answer.document, frame + "choose.then//plus_ten").is_null(), !even) << frame;
      EXPECT_EQ(value_at(answer.document, frame + "choose.else//plus_one").is_null(), even) << frame;
    }
  }
}

// A constant inside the branch of a loop in a loop, off by one: the fault is named where it stands, in the first step
// that gets there.
TEST(NestedLoops, AFaultInsideIsNamedWhereItIs) {
  const ScratchFolder folder;
  const std::string good = write_text(folder, "good.textproto", nested_model());
  std::string text = nested_model();
  const std::string unit = "'unit' data_type: 7 int64_data: 1";
  text.replace(text.find(unit), unit.size(), "'unit' data_type: 7 int64_data: 2");
  const std::string faulty = write_text(folder, "faulty.textproto", text);
  const Answer answer = run_json({"run", good, "--against", faulty});
  ASSERT_EQ(answer.exit_code, 1) << answer.command << "\n" << answer.messages;
  const nlohmann::json& first = answer.document.at("first_divergence");
  EXPECT_EQ(first.at("node"), "add_one") << answer.command;
  EXPECT_EQ(first.at("path"), "thrice.body[1]//twice.body[0]//choose.else//unit") << answer.command;
}

}  // namespace
}  // namespace parallax::end_to_end
