// SPDX-License-Identifier: Apache-2.0
// Model-local functions: which one a node calls, in which operator set its body stands, and what a call binds.
#include <gtest/gtest.h>

#include "inspector/model/link.h"
#include "tests/inspector/model/model_files.h"

namespace parallax {
namespace {

constexpr const char* kModel = R"(
ir_version: 10
graph {
  input { name: 'x' type { tensor_type { elem_type: 1 } } } output { name: 'y' type { tensor_type { elem_type: 1 } } }
  node { input: 'x' output: 'a' op_type: 'F' domain: 'my' attribute { name: 'alpha' f: 0.5 type: FLOAT } }
  node { input: 'a' output: 'b' op_type: 'F' domain: 'my' overload: 'two' }
  node { input: 'b' output: 'y' op_type: 'Relu' }
}
opset_import { domain: '' version: 20 } opset_import { domain: 'my' version: 1 }
functions { name: 'F' domain: 'my' input: 'p' output: 'q' attribute: 'alpha' attribute_proto { name: 'axis' i: 3 type: INT }
  opset_import { domain: '' version: 12 }
  node { input: 'p' output: 'e' op_type: 'Elu' attribute { name: 'alpha' ref_attr_name: 'alpha' type: FLOAT } }
  node { output: 'c' op_type: 'Constant' attribute { name: 'value' type: TENSOR t { data_type: 9 int32_data: 1 } } }
  node { input: 'c' output: 'q' op_type: 'If'
    attribute { name: 'then_branch' type: GRAPH g { output { name: 's' }
      node { input: 'e' output: 's' op_type: 'Softmax' attribute { name: 'axis' ref_attr_name: 'axis' type: INT } } } }
    attribute { name: 'else_branch' type: GRAPH g { output { name: 't' } node { input: 'e' output: 't' op_type: 'Neg' } } } } }
functions { name: 'F' domain: 'my' overload: 'two' input: 'p' output: 'q' opset_import { domain: '' version: 20 }
  node { input: 'p' output: 'q' op_type: 'Neg' } }
)";

const Attribute* attribute_of(const Graph& graph, size_t node, const char* name) {
  return find_attribute(graph.nodes.at(node), name);
}

const Graph& then_branch(const Graph& graph, size_t node) {
  return *std::get<std::shared_ptr<Graph>>(attribute_of(graph, node, "then_branch")->value);
}

TEST(Functions, CallsFindTheirOverload) {
  const auto model = model_from_text(kModel);
  ASSERT_EQ(model->functions.size(), 2u);
  EXPECT_EQ(model->graph.nodes[0].function, model->functions[0].get());
  EXPECT_EQ(model->graph.nodes[1].function, model->functions[1].get());
  EXPECT_EQ(model->graph.nodes[2].function, nullptr);
  EXPECT_EQ(versioned_op_name(model->graph.nodes[0]), "my.F");
}

TEST(Functions, BodiesStandInTheirOwnOperatorSets) {
  const auto model = model_from_text(kModel);
  const Graph& body = model->functions[0]->body;
  EXPECT_EQ(versioned_op_name(then_branch(body, 2).nodes[0]), "Softmax-11");
  EXPECT_EQ(model->opset_version("ai.onnx"), 20);
  EXPECT_EQ(model->opset_version("my"), 1);
  EXPECT_EQ(model->opset_version("other"), 0);
}

TEST(Functions, BindingTakesTheCallsAttributesThenTheDefaults) {
  const auto model = model_from_text(kModel);
  const Function& function = *model->functions[0];
  const auto bound = bind_function(function, model->graph.nodes[0]);
  const Attribute* alpha = attribute_of(*bound, 0, "alpha");
  ASSERT_NE(alpha, nullptr);
  EXPECT_EQ(std::get<float>(alpha->value), 0.5f);
  EXPECT_EQ(alpha->ref_attr_name, "");
  const Attribute* axis = attribute_of(then_branch(*bound, 2), 0, "axis");
  ASSERT_NE(axis, nullptr);
  EXPECT_EQ(std::get<int64_t>(axis->value), 3);
}

TEST(Functions, AnAttributeWithNeitherIsLeftOut) {
  const auto model = model_from_text(kModel);
  const Node call;
  const auto bound = bind_function(*model->functions[0], call);
  EXPECT_EQ(attribute_of(*bound, 0, "alpha"), nullptr);
}

TEST(Functions, BindingLeavesTheFunctionAsItWas) {
  const auto model = model_from_text(kModel);
  const Function& function = *model->functions[0];
  const auto bound = bind_function(function, model->graph.nodes[0]);
  EXPECT_EQ(attribute_of(function.body, 0, "alpha")->ref_attr_name, "alpha");
  EXPECT_EQ(attribute_of(then_branch(function.body, 2), 0, "axis")->ref_attr_name, "axis");
  const auto tensor_of = [](const Graph& graph) {
    return std::get<StoredTensor>(attribute_of(graph, 1, "value")->value).tensor.view().data;
  };
  EXPECT_EQ(tensor_of(*bound), tensor_of(function.body));  // constants are shared
}

TEST(CopyModel, SharesWeightsButNothingThatCanBeChanged) {
  const auto model = model_from_text(kModel);
  const auto copy = copy_model(*model);
  EXPECT_EQ(copy->graph.nodes[0].function, copy->functions[0].get());
  Function& function = *copy->functions[0];
  function.body.nodes[0].op_type = "Relu";
  auto& branch = std::get<std::shared_ptr<Graph>>(function.body.nodes[2].attributes[0].value);
  branch->nodes[0].op_type = "Relu";
  EXPECT_EQ(model->functions[0]->body.nodes[0].op_type, "Elu");
  EXPECT_EQ(then_branch(model->functions[0]->body, 2).nodes[0].op_type, "Softmax");
  const auto constant_of = [](const Model& owner) {
    const Attribute* value = attribute_of(owner.functions[0]->body, 1, "value");
    return std::get<StoredTensor>(value->value).tensor.view().data;
  };
  EXPECT_EQ(constant_of(*copy), constant_of(*model));
  EXPECT_NE(model_sha256(*copy), model_sha256(*model));
}

// A model may bring its own definition of a standard operator.
TEST(Functions, AFunctionHidesAnOperatorOfItsName) {
  const auto model = model_from_text(R"(graph {
      input { name: 'x' type { tensor_type { elem_type: 1 } } } output { name: 'y' type { tensor_type { elem_type: 1 } } }
      node { input: 'x' output: 'y' op_type: 'Relu' domain: 'ai.onnx' } }
    functions { name: 'Relu' input: 'p' output: 'q' opset_import { version: 20 } node { input: 'p' output: 'q' op_type: 'Neg' } }
    opset_import { version: 20 })");
  ASSERT_EQ(model->functions.size(), 1u);
  EXPECT_EQ(model->graph.nodes[0].function, model->functions[0].get());
  EXPECT_EQ(model->graph.nodes[0].schema, nullptr);
}

// `count` functions F0, F1, ...; each calls the next one `calls` times, the last one an operator.
std::string chain_of_functions(int count, int calls) {
  std::string text =
      "ir_version: 10 opset_import { version: 20 } opset_import { domain: 'my' version: 1 } graph { name: 'g' "
      "input { name: 'x' type { tensor_type { elem_type: 1 } } } output { name: 'y' type { tensor_type { elem_type: 1 "
      "} "
      "} } node { input: 'x' output: 'y' op_type: 'F0' domain: 'my' } }\n";
  for (int index = 0; index < count; ++index) {
    const bool last = index + 1 == count;
    const std::string op = last ? "op_type: 'Relu'" : "op_type: 'F" + std::to_string(index + 1) + "' domain: 'my'";
    text += "functions { name: 'F" + std::to_string(index) + "' domain: 'my' input: 'v0' output: 'v" +
            std::to_string(calls) + "' opset_import { version: 20 } opset_import { domain: 'my' version: 1 }";
    for (int call = 0; call < calls; ++call) {
      text += " node { input: 'v" + std::to_string(call) + "' output: 'v" + std::to_string(call + 1) + "' " + op + " }";
    }
    text += " }\n";
  }
  return text;
}

TEST(Functions, CallsNestAndExpandWithinLimits) {
  EXPECT_EQ(import_error(chain_of_functions(200, 1)), "");
  EXPECT_EQ(import_error(chain_of_functions(10, 2)), "");
  EXPECT_EQ(import_error(chain_of_functions(10'000, 1)),
            "'test.textproto': function 'F256' is called through more than 256 others");
  EXPECT_EQ(import_error(chain_of_functions(40, 2)),
            "'test.textproto': calls of functions expand to more than 10000000 nodes");
}

}  // namespace
}  // namespace parallax
