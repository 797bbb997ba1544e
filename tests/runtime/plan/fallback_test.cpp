// SPDX-License-Identifier: Apache-2.0
// Nodes run in another executor: sequences and optionals of strings, in bodies too; types that show only in the run;
// and what control flow itself moves of strings and of elements of four bits.
#include <gtest/gtest.h>

#include "reference/reference.h"
#include "runtime/plan/runtime.h"
#include "tests/runtime/model_text.h"
#include "tests/runtime/session_values.h"

namespace parallax::fallback_test {
namespace {

using model_text::model_of;
using model_text::node;
using model_text::value;
using session_values::Recorder;

constexpr int kInt64 = 7, kString = 8, kBool = 9;
constexpr std::string_view kAdvice = "--fallback=reference runs";

using Words = std::vector<std::string>;

Value words(const Words& given) { return Tensor::vector<std::string>(given); }

Words words_of(const Tensor& tensor) {
  EXPECT_EQ(tensor.dtype(), DType::string);
  if (tensor.dtype() != DType::string) return {};
  return {tensor.as<std::string>().begin(), tensor.as<std::string>().end()};
}

std::string integer(const std::string& name, int given) {
  return "attribute { name: \"" + name + "\" type: INT i: " + std::to_string(given) + " } ";
}

std::string number(const std::string& name, int given) {
  return "initializer { name: \"" + name + "\" data_type: 7 int64_data: " + std::to_string(given) + " } ";
}

std::string graph_attribute(const std::string& name, const std::string& graph) {
  return "attribute { name: \"" + name + "\" type: GRAPH g { name: \"" + name + "\" " + graph + "} } ";
}

std::string typed(const std::string& role, const std::string& name, const std::string& type) {
  return role + " { name: \"" + name + "\" type { " + type + " } } ";
}

const std::string kStrings = "sequence_type { elem_type { tensor_type { elem_type: 8 } } }";

struct Ran {
  Recorder seen;
  Result<std::vector<Value>> outputs = std::vector<Value>{};
  std::vector<std::string> elsewhere;
};

Ran run(const std::string& graph, const std::vector<Value>& inputs, bool falls_back) {
  Ran ran;
  RunOptions options;
  if (falls_back) options.fallback = make_reference_executor(ReferencePrecision::declared);
  auto session = make_cpu_executor({.poison_buffers = true})->prepare(model_of(graph, 21), options);
  if (!session.ok()) {
    ran.outputs = std::move(session).error();
    return ran;
  }
  ran.outputs = (*session)->run(inputs, ran.seen);
  if (ran.outputs.ok()) ran.outputs = (*session)->run(inputs, ran.seen);  // the other executor is ready by then
  ran.elsewhere = (*session)->statistics().fallback_nodes;
  return ran;
}

void expect_refusal(const std::string& graph, const std::vector<Value>& inputs, const std::string& node_name) {
  const Ran ran = run(graph, inputs, false);
  ASSERT_FALSE(ran.outputs.ok());
  EXPECT_EQ(ran.outputs.error().code, ErrorCode::unsupported);
  EXPECT_EQ(ran.outputs.error().node, node_name);
  EXPECT_NE(ran.outputs.error().message.find(kAdvice), std::string::npos) << ran.outputs.error().message;
}

void expect_words(const std::string& graph, const std::vector<Value>& inputs, const Words& expected,
                  const std::vector<std::string>& elsewhere) {
  const Ran ran = run(graph, inputs, true);
  ASSERT_TRUE(ran.outputs.ok()) << ran.outputs.error().message;
  EXPECT_EQ(words_of(ran.outputs->at(0).tensor()), expected);
  EXPECT_EQ(ran.elsewhere, elsewhere);
}

TEST(Fallback, JoinsAndCutsSequencesOfStrings) {
  const std::string graph = node("SequenceConstruct", {"a", "b"}, {"s"}) +
                            node("ConcatFromSequence", {"s"}, {"joined"}, "name: \"join\" " + integer("axis", 0)) +
                            node("SplitToSequence", {"joined"}, {"parts"}, "name: \"cut\" " + integer("axis", 0)) +
                            node("SequenceAt", {"parts", "last"}, {"y"}) + number("last", -1) +
                            value("input", "a", kString) + value("input", "b", kString) + value("output", "y", kString);
  const std::vector<Value> inputs{words({"one", "two"}), words({"three"})};
  expect_refusal(graph, inputs, "join");
  expect_words(graph, inputs, {"three"}, {"join", "cut"});
}

TEST(Fallback, JoinsWhatAnOptionalHolds) {
  const std::string graph = node("OptionalGetElement", {"o"}, {"s"}) +
                            node("ConcatFromSequence", {"s"}, {"y"}, "name: \"join\" " + integer("axis", 0)) +
                            typed("input", "o", "optional_type { elem_type { " + kStrings + " } }") +
                            value("output", "y", kString);
  SequenceValue items{TypeInfo::tensor(DType::string), {words({"one"}), words({"two"})}};
  OptionalValue filled{TypeInfo::sequence(items.element_type), {Value(std::move(items))}};
  expect_words(graph, {Value(std::move(filled))}, {"one", "two"}, {"join"});
}

TEST(Fallback, WorksInsideBodies) {
  const std::string inner = node("SequenceConstruct", {"all", "x"}, {"pair"}) +
                            node("ConcatFromSequence", {"pair"}, {"both"}, "name: \"join\" " + integer("axis", 0)) +
                            value("output", "both", kString);
  const std::string other = node("Identity", {"all"}, {"none"}) + value("output", "none", kString);
  const std::string body =
      node("Identity", {"c"}, {"c2"}) + node("Identity", {"x"}, {"row"}) +
      node("If", {"c2"}, {"more"},
           "name: \"choice\" " + graph_attribute("then_branch", inner) + graph_attribute("else_branch", other)) +
      value("input", "i", kInt64) + value("input", "c", kBool) + value("input", "all", kString) +
      value("output", "c2", kBool) + value("output", "more", kString) + value("output", "row", kString);
  const std::string graph =
      node("Loop", {"trips", "", "first"}, {"y", "rows"}, "name: \"loop\" " + graph_attribute("body", body)) +
      number("trips", 2) + value("input", "first", kString) + value("input", "x", kString) +
      value("output", "y", kString) + value("output", "rows", kString);
  const std::vector<Value> inputs{words({"a"}), words({"b", "c"})};
  expect_refusal(graph, inputs, "join");
  const Ran ran = run(graph, inputs, true);
  ASSERT_TRUE(ran.outputs.ok()) << ran.outputs.error().message;
  EXPECT_EQ(words_of(ran.outputs->at(0).tensor()), (Words{"a", "b", "c", "b", "c"}));
  EXPECT_EQ(words_of(ran.outputs->at(1).tensor()), (Words{"b", "c", "b", "c"}));
  EXPECT_EQ(ran.outputs->at(1).tensor().shape(), (Shape{2, 2}));
  EXPECT_EQ(ran.elsewhere, Words{"loop.body[*]//choice.then//join"});
  const auto first = ran.seen.values.find("loop.body[0]//choice.then//both");
  ASSERT_NE(first, ran.seen.values.end());
  EXPECT_EQ(words_of(first->second), (Words{"a", "b", "c"}));
}

// Concat has a kernel for every type but strings, and nothing says before the run what the state is.
TEST(Fallback, TakesTypesThatShowOnlyInTheRun) {
  const std::string body = node("Identity", {"c"}, {"c2"}) +
                           node("Concat", {"all", "all"}, {"more"}, "name: \"twice\" " + integer("axis", 0)) +
                           value("input", "i", kInt64) + value("input", "c", kBool) + "input { name: \"all\" } " +
                           value("output", "c2", kBool) + "output { name: \"more\" } ";
  const std::string graph =
      node("OptionalGetElement", {"o"}, {"x"}) +
      node("Loop", {"trips", "", "x"}, {"y"}, "name: \"loop\" " + graph_attribute("body", body)) + number("trips", 2) +
      typed("input", "o", "optional_type { elem_type { tensor_type { elem_type: 8 } } }") + "output { name: \"y\" } ";
  expect_refusal(graph, {words({"a"})}, "twice");
  expect_words(graph, {words({"a"})}, {"a", "a", "a", "a"}, {"loop.body[*]//twice"});
}

// The other executor's error for the node, not the advice to ask it.
TEST(Fallback, IsNotAdvisedWhereItIsAskedFor) {
  const std::string graph = node("SequenceConstruct", {"a", "b"}, {"s"}) +
                            node("ConcatFromSequence", {"s"}, {"y"}, "name: \"join\" " + integer("axis", 3)) +
                            value("input", "a", kString) + value("input", "b", kString) + value("output", "y", kString);
  const Ran ran = run(graph, {words({"a"}), words({"b"})}, true);
  ASSERT_FALSE(ran.outputs.ok());
  EXPECT_EQ(ran.outputs.error().node, "join");
  EXPECT_EQ(ran.outputs.error().message.find(kAdvice), std::string::npos) << ran.outputs.error().message;
}

// ---- Strings and elements of four bits in control flow, which moves them itself ----

std::string integers(const std::string& name, int given) {
  return "attribute { name: \"" + name + "\" type: INTS ints: " + std::to_string(given) + " } ";
}

TEST(Fallback, IsNotNeededForStringsThatScanMoves) {
  const std::string body =
      node("Identity", {"item"}, {"row"}) + value("input", "item", kString) + value("output", "row", kString);
  const std::string graph = node("Scan", {"x"}, {"y"},
                                 "name: \"scan\" " + graph_attribute("body", body) + integer("num_scan_inputs", 1) +
                                     integers("scan_input_axes", 1) + integers("scan_output_axes", 0) +
                                     integers("scan_output_directions", 1)) +
                            value("input", "x", kString) + value("output", "y", kString);
  const Words given{"00", "01", "02", "10", "11", "12"};
  const Ran ran = run(graph, {Tensor::from<std::string>(Shape{2, 3}, given)}, false);
  ASSERT_TRUE(ran.outputs.ok()) << ran.outputs.error().message;
  EXPECT_EQ(ran.outputs->at(0).tensor().shape(), (Shape{3, 2}));
  EXPECT_EQ(words_of(ran.outputs->at(0).tensor()), (Words{"02", "12", "01", "11", "00", "10"}));
}

TEST(Fallback, IsNotNeededForElementsOfFourBits) {
  constexpr int kInt4 = 22;
  const std::string body = node("Identity", {"c"}, {"c2"}) + node("Add", {"x", "i"}, {"sum"}) +
                           node("Cast", {"sum"}, {"row"}, integer("to", kInt4)) + value("input", "i", kInt64) +
                           value("input", "c", kBool) + value("output", "c2", kBool) + value("output", "row", kInt4);
  const std::string graph = node("Loop", {"trips", ""}, {"rows"}, "name: \"loop\" " + graph_attribute("body", body)) +
                            node("Cast", {"rows"}, {"y"}, integer("to", kInt64)) + number("trips", 3) +
                            value("input", "x", kInt64) + value("output", "y", kInt64);
  const std::vector<int64_t> given{-3, 0, 5};
  const Ran ran = run(graph, {Tensor::vector<int64_t>(given)}, false);
  ASSERT_TRUE(ran.outputs.ok()) << ran.outputs.error().message;
  const auto found = ran.outputs->at(0).tensor().as<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(found.begin(), found.end()), (std::vector<int64_t>{-3, 0, 5, -2, 1, 6, -1, 2, 7}));
}

}  // namespace
}  // namespace parallax::fallback_test
