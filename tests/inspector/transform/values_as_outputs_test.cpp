// SPDX-License-Identifier: Apache-2.0
// The outputs of a model that gives back its values hold what an observer of the model sees, in bodies and calls, too.
#include "inspector/transform/values_as_outputs.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "inspector/model/io/export.h"
#include "inspector/model/link.h"
#include "tests/inspector/transform/models.h"

namespace parallax::transform {
namespace {

using testing::kNestedModel;
using testing::model_of_text;
using Values = std::map<std::string, Value>;
using Names = std::vector<std::string>;

// ---- Models as text ----

std::string tensor_type(int type, const std::string& dims) {
  return "type { tensor_type { elem_type: " + std::to_string(type) + " shape { " + dims + " } } } ";
}
std::string vector_of(const std::string& name) {
  return "{ name: '" + name + "' " + tensor_type(1, "dim { dim_param: 'n' }") + "} ";
}
std::string scalar_of(const std::string& name, int type) {
  return "{ name: '" + name + "' " + tensor_type(type, "") + "} ";
}
std::string node(const std::string& op, const Names& inputs, const Names& outputs, const std::string& rest = "") {
  std::string text = "node { op_type: '" + op + "' name: '" + outputs.front() + "_node' ";
  for (const std::string& name : inputs) text += "input: '" + name + "' ";
  for (const std::string& name : outputs) text += "output: '" + name + "' ";
  return text + rest + "} ";
}
std::string body(const std::string& attribute, const std::string& graph) {
  return "attribute { name: '" + attribute + "' type: GRAPH g { name: '" + attribute + "' " + graph + "} } ";
}
std::string model(const std::string& graph, int opset) {
  return "ir_version: 8 opset_import { domain: '' version: " + std::to_string(opset) + " } graph { name: 'main' " +
         "initializer { name: 'three' data_type: 7 int64_data: 3 } initializer { name: 'two' data_type: 7 int64_data: "
         "2 } "
         "initializer { name: 'go' data_type: 9 int32_data: 1 } input " +
         vector_of("x") + graph + "} ";
}

// An If on `condition`: in its branch one runs a Loop of `i` iterations, in the other it multiplies.
std::string branches(const std::string& condition) {
  const std::string inner = "input " + scalar_of("j", 7) + "input " + scalar_of("inner_on", 9) + "input " +
                            vector_of("inner_state") + node("Identity", {"inner_on"}, {"inner_still"}) +
                            node("Add", {"inner_state", "shifted"}, {"inner_sum"}) + "output " +
                            scalar_of("inner_still", 9) + "output " + vector_of("inner_sum");
  return node("If", {condition}, {"chosen"},
              body("then_branch", node("Loop", {"i", "go", "state"}, {"then_sum"}, body("body", inner)) + "output " +
                                      vector_of("then_sum")) +
                  body("else_branch",
                       node("Mul", {"state", "state"}, {"squared"}) +
                           node("ReduceSum", {"squared"}, {"total"}, "attribute { name: 'keepdims' type: INT i: 0 } ") +
                           node("Add", {"squared", "total"}, {"else_sum"}) + "output " + vector_of("else_sum")));
}

// A Loop of three iterations whose body decides by its iteration number, grows a value, and holds an If.
std::string loop_of_branches(int opset) {
  const std::string loop_body =
      "input " + scalar_of("i", 7) + "input " + scalar_of("on", 9) + "input " + vector_of("state") +
      node("Equal", {"i", "two"}, {"is_last"}) + branches("is_last") + node("Identity", {"on"}, {"still"}) +
      node("Concat", {"chosen", "state"}, {"longer"}, "attribute { name: 'axis' type: INT i: 0 } ") +
      node("Range", {"zero", "i", "one"}, {"growing"}) + "output " + scalar_of("still", 9) + "output " +
      vector_of("chosen");
  return model(
      "initializer { name: 'zero' data_type: 7 int64_data: 0 } initializer { name: 'one' data_type: 7 int64_data: 1 "
      "} " +
          node("Neg", {"x"}, {"shifted"}) + node("Loop", {"three", "go", "shifted"}, {"y"}, body("body", loop_body)) +
          "output " + vector_of("y"),
      opset);
}

// A Loop of three iterations that holds another of as many iterations as its number says.
std::string loop_in_loop(int opset) {
  const std::string inner = "input " + scalar_of("j", 7) + "input " + scalar_of("inner_on", 9) + "input " +
                            vector_of("inner_state") + node("Identity", {"inner_on"}, {"inner_still"}) +
                            node("Add", {"inner_state", "x"}, {"inner_sum"}) + "output " + scalar_of("inner_still", 9) +
                            "output " + vector_of("inner_sum");
  const std::string outer =
      "input " + scalar_of("i", 7) + "input " + scalar_of("on", 9) + "input " + vector_of("state") +
      node("Identity", {"on"}, {"still"}) + node("Loop", {"i", "go", "state"}, {"summed"}, body("body", inner)) +
      node("Mul", {"summed", "x"}, {"next"}) + "output " + scalar_of("still", 9) + "output " + vector_of("next");
  return model(node("Loop", {"three", "go", "x"}, {"y"}, body("body", outer)) + "output " + vector_of("y"), opset);
}

std::string scan_in_branch() {
  const std::string scan_body = "input " + scalar_of("carried", 1) + "input " + scalar_of("item", 1) +
                                node("Add", {"carried", "item"}, {"sum"}) + node("Mul", {"sum", "item"}, {"product"}) +
                                "output " + scalar_of("sum", 1) + "output " + scalar_of("product", 1);
  return model(node("ReduceSum", {"x"}, {"first"}, "attribute { name: 'keepdims' type: INT i: 0 } ") +
                   node("Greater", {"first", "first"}, {"condition"}) +
                   node("If", {"condition"}, {"y"},
                        body("then_branch", node("Abs", {"x"}, {"absolute"}) + "output " + vector_of("absolute")) +
                            body("else_branch", node("Scan", {"first", "x"}, {"last", "scanned"},
                                                     "attribute { name: 'num_scan_inputs' type: INT i: 1 } " +
                                                         body("body", scan_body)) +
                                                    "output " + vector_of("scanned"))) +
                   "output " + vector_of("y"),
               15);
}

// ---- Observed values, and those of outputs ----

class Recorder final : public Observer {
 public:
  CaptureLevel wants(const ValueInfo& value_info) override {
    const bool is_wanted = value_info.role == ValueInfo::Role::node_output ||
                           (value_info.role == ValueInfo::Role::input && !value_info.scope.empty());
    return is_wanted ? CaptureLevel::all : CaptureLevel::none;
  }
  Status observe(const Observation& observation) override {
    values[observation.path()] = observation.value;
    return {};
  }
  Values values;
};

Result<std::vector<Value>> run(const std::shared_ptr<const Model>& model, const std::vector<Value>& inputs,
                               Observer& observer) {
  const auto executor = make_executor("reference");
  if (!executor.ok()) return executor.error();
  const auto session = PX_TRY((*executor)->prepare(model, {}));
  return session->run(inputs, observer);
}

// One step of a tensor along its first axis.
Tensor slice(const Tensor& tensor, int64_t at) {
  const Shape shape(tensor.shape().dims().subspan(1));
  Tensor part = Tensor::allocate(tensor.dtype(), shape).take();
  std::memcpy(part.mutable_data(), tensor.view().data + static_cast<size_t>(at) * part.size_bytes(), part.size_bytes());
  return part;
}

std::string with_number(std::string path, int64_t number) {
  return path.replace(path.find("[*]"), 3, "[" + std::to_string(number) + "]");
}

// Puts numbers for the iterations that are leading axes.
void unstack(const Tensor& tensor, int axes, const std::string& path, Values& found) {
  if (axes == 0) {
    found[path] = tensor;
    return;
  }
  for (int64_t at = 0; at < tensor.shape()[0]; ++at) unstack(slice(tensor, at), axes - 1, with_number(path, at), found);
}

class Outputs {
 public:
  Outputs(const Graph& graph, const std::vector<Value>& values) {
    for (size_t index = 0; index < values.size(); ++index)
      by_name_[value_at(graph, graph.outputs[index]).name] = values[index];
  }

  void add(const ExposedValue& layout, Values& found) const {
    const Value& value = by_name_.at(layout.output);
    const size_t count = layout.is_sequence ? value.sequence().items.size() : 1;
    for (size_t at = 0; at < count; ++at) {
      std::string path = layout.path;
      if (layout.is_sequence) {
        for (const int64_t number : item(layout.index, at).as<int64_t>()) path = with_number(path, number);
      }
      if (!ran(layout, at)) continue;
      if (layout.is_sequence) {
        unstack(item(layout.output, at), layout.stacked_axes, path, found);
      } else if (value.is_tensor()) {
        unstack(value.tensor(), layout.stacked_axes, path, found);
      } else {
        found[path] = value;
      }
    }
  }

 private:
  Tensor item(const std::string& name, size_t at) const {
    const Value& value = by_name_.at(name);
    return value.is_tensor() ? value.tensor() : value.sequence().items[at].tensor();
  }
  bool ran(const ExposedValue& layout, size_t at) const {
    return std::ranges::all_of(layout.branches, [&](const BranchFlag& branch) {
      const Tensor flag = item(branch.output, at);
      return flag.element_count() == 1 && flag.as<int64_t>()[0] == branch.taken;
    });
  }
  std::map<std::string, Value> by_name_;
};

void expect_observed_values(const std::shared_ptr<const Model>& source, const std::vector<Value>& inputs,
                            const Names& left_out = {}) {
  Recorder recorder;
  const auto plain = run(source, inputs, recorder);
  ASSERT_TRUE(plain.ok()) << plain.error().message;
  const auto exposed = values_as_outputs(*source);
  ASSERT_TRUE(exposed.ok()) << exposed.error().message;
  const auto bytes = export_model_bytes(*exposed->model);
  ASSERT_TRUE(bytes.ok()) << bytes.error().message;
  const auto again = import_model(std::as_bytes(std::span(*bytes)), "", "exported");
  ASSERT_TRUE(again.ok()) << again.error().message;
  NullObserver nobody;
  const auto outputs = run(*again, inputs, nobody);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;

  Values found;
  const Outputs held((*again)->graph, *outputs);
  for (const ExposedValue& layout : exposed->values) held.add(layout, found);
  for (const auto& [path, value] : recorder.values) {
    const bool is_left_out =
        std::ranges::any_of(left_out, [&, &text = path](const std::string& one) { return text.starts_with(one); });
    EXPECT_EQ(found.contains(path), !is_left_out) << path;
    if (is_left_out || !found.contains(path)) continue;
    ASSERT_EQ(value.is_tensor(), found[path].is_tensor()) << path;
    if (!value.is_tensor()) continue;
    EXPECT_EQ(value.tensor().shape(), found[path].tensor().shape()) << path;
    EXPECT_TRUE(std::ranges::equal(value.tensor().view().bytes(), found[path].tensor().view().bytes())) << path;
  }
  for (const auto& [path, value] : found) EXPECT_TRUE(recorder.values.contains(path)) << path << " was not computed";
}

void expect_observed_values(const std::string& text, const Names& left_out = {}) {
  const auto source = model_of_text(text);
  ASSERT_TRUE(source.ok()) << source.error().message;
  const std::array<float, 3> x = {0.5F, -1.0F, 2.0F};
  expect_observed_values(*source, {Value(Tensor::vector<float>(x))}, left_out);
}

TEST(ValuesAsOutputs, HoldsValuesOfLoopsAndOfCallsInThem) { expect_observed_values(kNestedModel); }

TEST(ValuesAsOutputs, HoldsIterationsWhoseShapesDifferAndBranchesInThem) {
  expect_observed_values(loop_of_branches(16));
}

TEST(ValuesAsOutputs, CountsTheIterationsOfALoopInALoop) { expect_observed_values(loop_in_loop(17)); }

TEST(ValuesAsOutputs, StacksIterationsWhereALoopCarriesNoSequences) {
  expect_observed_values(loop_in_loop(12), {"y_node.body[1]//summed_node.body", "y_node.body[2]//summed_node.body"});
}

TEST(ValuesAsOutputs, HoldsAScanOfTheBranchThatRan) { expect_observed_values(scan_in_branch()); }

TEST(ValuesAsOutputs, LeavesOutALoopThatNoSequenceCanLeave) {
  expect_observed_values(loop_of_branches(13), {"y_node.body[2]//chosen_node.then//then_sum_node.body"});
}

TEST(ValuesAsOutputs, GivesTheShapesInsteadWhereTheyAloneAreWanted) {
  const auto source = model_of_text(loop_of_branches(16));
  ASSERT_TRUE(source.ok());
  const Names paths = {"y_node.body[*]//growing"};
  ValuesAsOutputsOptions options;
  options.shapes_only = true;
  const auto exposed = values_as_outputs(**source, paths, options);
  ASSERT_TRUE(exposed.ok()) << exposed.error().message;
  NullObserver nobody;
  const std::array<float, 1> x = {1.0F};
  const auto outputs = run(exposed->model, {Value(Tensor::vector<float>(x))}, nobody);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message;
  ASSERT_EQ(exposed->values.size(), 1U);
  const Graph& graph = exposed->model->graph;
  const ValueId id = graph.find_value(exposed->values[0].output);
  const auto at = static_cast<size_t>(std::ranges::find(graph.outputs, id) - graph.outputs.begin());
  ASSERT_EQ((*outputs)[at].sequence().items.size(), 3U);
  for (size_t iteration = 0; iteration < 3; ++iteration)
    EXPECT_EQ((*outputs)[at].sequence().items[iteration].tensor().as<int64_t>()[0], static_cast<int64_t>(iteration));
}

TEST(ValuesAsOutputs, AddsOnlyTheValuesThatAreNamed) {
  const auto source = model_of_text(kNestedModel);
  ASSERT_TRUE(source.ok());
  const Names paths = {"shifted", "loop.body[1]//bend.call//clipped"};
  const auto exposed = values_as_outputs(**source, paths);
  ASSERT_TRUE(exposed.ok()) << exposed.error().message;
  Names names;
  for (const ExposedValue& value : exposed->values) names.push_back(value.path);
  EXPECT_EQ(names, Names({"shifted", "loop.body[*]//bend.call//clipped"}));
  EXPECT_EQ(exposed->model->graph.outputs.size(), 5U);  // y, z, these two, and the iteration numbers
}

TEST(ValuesAsOutputs, NamesPathsSimilarToAnUnknownOne) {
  const auto source = model_of_text(kNestedModel);
  ASSERT_TRUE(source.ok());
  const Names paths = {"loop.body[0]//weighted"};
  const auto exposed = values_as_outputs(**source, paths);
  ASSERT_FALSE(exposed.ok());
  EXPECT_EQ(exposed.error().code, ErrorCode::usage);
  EXPECT_NE(exposed.error().message.find("did you mean 'loop.body[*]//weighed'"), std::string::npos)
      << exposed.error().message;
}

TEST(ValuesAsOutputs, LeavesTheModelAsItWas) {
  const auto source = model_of_text(kNestedModel);
  ASSERT_TRUE(source.ok());
  const auto before = export_model_bytes(**source);
  ASSERT_TRUE(values_as_outputs(**source).ok());
  EXPECT_EQ(*before, *export_model_bytes(**source));
}

class OfSample : public ::testing::TestWithParam<const char*> {};

TEST_P(OfSample, ValuesAsOutputsGiveWhatIsObserved) {
  const std::string folder = testing::sample(GetParam());
  const auto source = import_model(folder + "/model.onnx");
  ASSERT_TRUE(source.ok()) << source.error().message;
  std::vector<Value> inputs;
  for (size_t index = 0; index < (*source)->graph.inputs.size(); ++index) {
    const auto value = read_value_file(folder + "/test_data_set_0/input_" + std::to_string(index) + ".pb");
    ASSERT_TRUE(value.ok()) << value.error().message;
    inputs.push_back(value->value);
  }
  expect_observed_values(*source, inputs);
}

INSTANTIATE_TEST_SUITE_P(Samples, OfSample, ::testing::Values("greedy_decoder", "scan_filter", "recurrent", "cnn"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace parallax::transform
