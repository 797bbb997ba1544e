// SPDX-License-Identifier: Apache-2.0
// Scan outputs of bodies that run more often than there is room at first, end early, are in reverse order, or change
// their shape; and scan inputs whose slices are in the tensor's own memory.
#include <gtest/gtest.h>

#include "reference/reference.h"
#include "runtime/plan/runtime.h"
#include "tests/runtime/model_text.h"
#include "tests/runtime/session_values.h"

namespace parallax::stack_test {
namespace {

using model_text::model_of;
using model_text::node;
using model_text::value;
using session_values::filled;
using session_values::same;

constexpr int kInt64 = 7, kBool = 9;

std::string body_of(const std::string& graph) {
  return "attribute { name: \"body\" type: GRAPH g { name: \"b\" " + graph + "} } ";
}

std::string number(const std::string& name, int64_t given) {
  return "initializer { name: \"" + name + "\" data_type: 7 int64_data: " + std::to_string(given) + " } ";
}

std::string integers(const std::string& name, int first, int second = -1) {
  const std::string more = second < 0 ? "" : "ints: " + std::to_string(second) + " ";
  return "attribute { name: \"" + name + "\" type: INTS ints: " + std::to_string(first) + " " + more + "} ";
}

// for (i = 0; i < trips && i <= last; ++i) rows[i] = x + i
std::string loop_model(int64_t trips, int64_t last) {
  const std::string body = node("Less", {"i", "last"}, {"goes_on"}) +
                           node("Cast", {"i"}, {"f"}, "attribute { name: \"to\" type: INT i: 1 } ") +
                           node("Add", {"x", "f"}, {"row"}) + value("input", "i", kInt64) + value("input", "c", kBool) +
                           value("output", "goes_on", kBool) + value("output", "row");
  return node("Loop", {"trips", ""}, {"rows"}, body_of(body)) + number("trips", trips) + number("last", last) +
         value("input", "x") + value("output", "rows");
}

// The outputs of `executor`; the same, bit for bit, in three runs: the third has planned memory.
std::vector<Value> outputs_of(Executor& executor, const std::shared_ptr<const Model>& model,
                              const std::vector<Value>& inputs) {
  NullObserver nobody;
  const auto session = executor.prepare(model, {}).take();
  std::vector<Value> outputs = session->run(inputs, nobody).take();
  for (int round = 0; round < 2; ++round) {
    const std::vector<Value> again = session->run(inputs, nobody).take();
    for (size_t index = 0; index < outputs.size(); ++index) EXPECT_TRUE(same(again[index], outputs[index])) << index;
  }
  return outputs;
}

std::vector<Value> expect_as_reference(const std::string& graph, const std::vector<Value>& inputs) {
  const auto model = model_of(graph);
  const auto oracle = make_reference_executor(ReferencePrecision::declared);
  const auto cpu = make_cpu_executor({});
  const auto expected = outputs_of(*oracle, model, inputs);
  auto found = outputs_of(*cpu, model, inputs);
  EXPECT_EQ(found.size(), expected.size());
  for (size_t index = 0; index < expected.size(); ++index) EXPECT_TRUE(same(found[index], expected[index])) << index;
  return found;
}

TEST(Stacks, GrowAndEndEarly) {
  for (const auto& [trips, last, rows] : {std::tuple<int64_t, int64_t, int64_t>{1, 99, 1},
                                          {15, 99, 15},
                                          {16, 99, 16},
                                          {40, 99, 40},
                                          {100, 37, 38},
                                          {int64_t{1} << 60, 32, 33},
                                          {5, 0, 1}}) {
    SCOPED_TRACE(std::to_string(trips) + " trips, the last one " + std::to_string(last));
    const auto outputs = expect_as_reference(loop_model(trips, last), {filled({3}, 1)});
    EXPECT_EQ(outputs[0].tensor().shape(), (Shape{rows, 3}));
  }
}

TEST(Stacks, StandAlongAnyAxisAndTheOtherWayRound) {
  const std::string body = node("Mul", {"state", "item"}, {"next"}) + node("Add", {"next", "item"}, {"row"}) +
                           node("Identity", {"item"}, {"same"}) + value("input", "state") + value("input", "item") +
                           value("output", "next") + value("output", "row") + value("output", "same");
  for (const int input_axis : {0, 1}) {
    for (const int output_axis : {0, 1}) {
      for (const int reversed : {0, 1}) {
        const std::string graph =
            node("Scan", {"x", "items"}, {"end", "rows", "copies"},
                 body_of(body) + "attribute { name: \"num_scan_inputs\" type: INT i: 1 } " +
                     integers("scan_input_axes", input_axis) + integers("scan_input_directions", reversed) +
                     integers("scan_output_axes", output_axis, 1 - output_axis) +
                     integers("scan_output_directions", reversed, 1 - reversed)) +
            value("input", "x") + value("input", "items") + value("output", "end") + value("output", "rows") +
            value("output", "copies");
        SCOPED_TRACE(graph);
        expect_as_reference(graph, {filled({4}, 1), filled(input_axis == 0 ? Shape{21, 4} : Shape{4, 21}, 2)});
      }
    }
  }
}

// Slices of a scan input are parts of it: what a body makes of one must not go into its memory.
TEST(Stacks, LeaveScanInputsAsTheyAre) {
  const std::string body =
      node("Neg", {"item"}, {"a"}) + node("Mul", {"a", "a"}, {"row"}) + value("input", "item") + value("output", "row");
  const std::string graph =
      node("Scan", {"items"}, {"rows"}, body_of(body) + "attribute { name: \"num_scan_inputs\" type: INT i: 1 } ") +
      node("Abs", {"x"}, {"items"}) + node("Sub", {"items", "rows"}, {"y"}) + value("input", "x") +
      value("output", "y");
  expect_as_reference(graph, {filled({20, 5}, 3)});
}

TEST(Stacks, RefuseRowsOfDifferentShapes) {
  const std::string body = node("Range", {"zero", "i", "one"}, {"row"}) + node("Identity", {"c"}, {"c2"}) +
                           value("input", "i", kInt64) + value("input", "c", kBool) + value("output", "c2", kBool) +
                           value("output", "row", kInt64);
  const auto model = model_of(node("Loop", {"trips", ""}, {"rows"}, body_of(body)) + number("trips", 3) +
                              number("zero", 0) + number("one", 1) + value("output", "rows", kInt64));
  NullObserver nobody;
  const auto outputs = make_cpu_executor({})->prepare(model, {}).take()->run({}, nobody);
  ASSERT_FALSE(outputs.ok());
  EXPECT_NE(outputs.error().message.find("it must have the type and shape of the first"), std::string::npos)
      << outputs.error().message;
}

}  // namespace
}  // namespace parallax::stack_test
