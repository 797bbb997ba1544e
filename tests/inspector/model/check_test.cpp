// SPDX-License-Identifier: Apache-2.0
// Every kind of invalid model is refused with a sentence that names file, node and operator.
#include <gtest/gtest.h>

#include "inspector/base/result.h"
#include "inspector/model/opset/op_schema.h"
#include "tests/inspector/model/model_files.h"

namespace parallax {
namespace {

const std::string kXAndY =
    "input { name: 'x' type { tensor_type { elem_type: 1 } } } output { name: 'y' type { tensor_type { elem_type: 1 } "
    "} } ";

struct BadModel {
  const char* name;
  std::string text;
  std::string message;  // after the file's name
  ErrorCode code = ErrorCode::invalid_model;
};

void PrintTo(const BadModel& model, std::ostream* stream) { *stream << model.name; }

BadModel bad_graph(const char* name, const std::string& graph, std::string message,
                   ErrorCode code = ErrorCode::invalid_model) {
  return {name, "graph { " + kXAndY + graph + " }", std::move(message), code};
}

const std::string kRelu = "node { input: 'x' output: 'y' op_type: 'Relu' name: 'r' } ";

std::vector<BadModel> bad_names() {
  return {
      bad_graph("dangling_input", "node { input: 'gone' output: 'y' op_type: 'Relu' name: 'r' }",
                "node 'r' (Relu-14): reads 'gone', which no input, initializer or node defines"),
      bad_graph("missing_output", "node { input: 'x' output: 'z' op_type: 'Relu' }",
                "value 'y': is a graph output, but nothing computes it"),
      bad_graph("duplicate_value", kRelu + "node { input: 'x' output: 'y' op_type: 'Neg' name: 'n' }",
                "value 'y': is defined twice, by node 'r' and by node 'n'"),
      bad_graph("duplicate_input", kRelu + "input { name: 'x' type { tensor_type { elem_type: 1 } } }",
                "value 'x': is defined twice, by an input and by an input"),
      bad_graph("initializer_and_node", kRelu + "initializer { name: 'y' data_type: 1 float_data: 1 }",
                "value 'y': is defined twice, by an initializer and by node 'r'"),
      bad_graph("cycle",
                "node { input: 'c' output: 'a' op_type: 'Relu' name: 'n1' } node { input: 'a' output: 'b' op_type: "
                "'Relu' name: 'n2' } "
                "node { input: 'b' output: 'c' op_type: 'Relu' name: 'n3' } node { input: 'c' output: 'y' op_type: "
                "'Relu' name: 'n4' }",
                "node 'n2' (Relu-14): is on a cycle of nodes: 'n2', 'n3' and 'n1'"),
      bad_graph("own_output", "node { input: 'y' output: 'y' op_type: 'Relu' name: 'n' }",
                "node 'n' (Relu-14): reads its own output"),
      bad_graph("empty_output_name", kRelu + "output { name: '' }", "graph: a graph output has an empty name"),
      bad_graph("empty_input_name", kRelu + "input { name: '' type { tensor_type { elem_type: 1 } } }",
                "graph: an input has an empty name"),
      bad_graph("untyped_input", kRelu + "input { name: 'u' }", "value 'u': is an input without a type"),
      bad_graph("input_without_dtype", kRelu + "input { name: 'u' type { tensor_type { elem_type: 99 } } }",
                "value 'u': is an input without a known element type"),
      bad_graph("initializer_dtype",
                kRelu + "input { name: 'w' type { tensor_type { elem_type: 7 } } } initializer { name: 'w' data_type: "
                        "1 float_data: 1 }",
                "value 'w': is declared as int64, but its initializer is float32[]"),
      bad_graph("initializer_shape",
                kRelu + "input { name: 'w' type { tensor_type { elem_type: 1 shape { dim { dim_value: 3 } } } } } "
                        "initializer { name: 'w' dims: 1 data_type: 1 float_data: 1 }",
                "value 'w': is declared as float32[3], but its initializer is float32[1]"),
      bad_graph(
          "shadowing",
          "initializer { name: 'c' data_type: 9 int32_data: 1 } node { input: 'c' output: 'y' op_type: 'If' name: 'i' "
          "attribute { name: 'then_branch' type: GRAPH g { node { input: 'x' output: 'x2' op_type: 'Relu' } output { "
          "name: 'x2' } } } "
          "attribute { name: 'else_branch' type: GRAPH g { node { input: 'c' output: 'x' op_type: 'Cast' attribute { "
          "name: 'to' i: 1 type: INT } } output { name: 'x' } } } }",
          "value 'x' in else_branch of node 'i': hides the value of that name that the enclosing graph gets from an "
          "input: one of them needs another name"),
      bad_graph("not_utf8", "node { input: 'x' output: 'y' op_type: 'Relu' name: 'n\\303' }",
                "node 'n\xEF\xBF\xBD' (Relu-14): has a name, operator or domain that is not valid UTF-8"),
  };
}

std::vector<BadModel> bad_nodes() {
  return {
      bad_graph("unknown_operator", "node { input: 'x' output: 'y' op_type: 'Sofmax' name: 's' }",
                "node 's' (Sofmax): no operator 'Sofmax' in domain ai.onnx; did you mean"),
      bad_graph("unknown_domain", "node { input: 'x' output: 'y' op_type: 'Magic' domain: 'org.example' name: 'm' }",
                "node 'm' (org.example.Magic): operator 'Magic': unknown operator domain 'org.example', and the model "
                "defines no "
                "function of that name",
                ErrorCode::unsupported),
      bad_graph("operator_of_another_domain",
                "node { input: 'x' output: 'y' op_type: 'FastGelu' domain: 'org.example' name: 'm' }",
                "node 'm' (org.example.FastGelu): operator 'FastGelu': unknown operator domain 'org.example', and the "
                "model defines no function of that name; did you mean com.microsoft.FastGelu?",
                ErrorCode::unsupported),
      bad_graph("domain_not_imported",
                "node { input: 'x' output: 'y' op_type: 'Normalizer' domain: 'ai.onnx.ml' name: 'm' }",
                "node 'm' (ai.onnx.ml.Normalizer): is an operator of domain 'ai.onnx.ml', whose operator set is not "
                "imported"),
      bad_graph("no_operator", "node { input: 'x' output: 'y' name: 'm' }", "node 'm' (): names no operator"),
      bad_graph("too_many_inputs", "node { input: 'x' input: 'x' output: 'y' op_type: 'Relu' name: 'r' }",
                "node 'r' (Relu-14): has 2 inputs; Relu-14 has 1 input"),
      bad_graph("too_few_inputs", "node { input: 'x' output: 'y' op_type: 'Add' name: 'a' }",
                "node 'a' (Add-14): has 1 input; Add-14 has 2 inputs"),
      bad_graph("too_many_outputs", "node { input: 'x' output: 'y' output: 'z' op_type: 'Relu' name: 'r' }",
                "node 'r' (Relu-14): has 2 outputs; Relu-14 has 1 output"),
      bad_graph("input_left_out", "node { input: '' input: 'x' output: 'y' op_type: 'Add' name: 'a' }",
                "node 'a' (Add-14): leaves out input 0 ('A'), which Add-14 needs"),
      bad_graph("variadic_input_left_out", "node { input: 'x' input: '' output: 'y' op_type: 'Max' name: 'm' }",
                "node 'm' (Max-13): leaves out input 1 ('data_0'), which Max-13 needs"),
      bad_graph("only_variadic_input_left_out", "node { input: '' output: 'y' op_type: 'Sum' name: 's' }",
                "node 's' (Sum-13): leaves out input 0 ('data_0'), which Sum-13 needs"),
      bad_graph("missing_attribute", "node { input: 'x' output: 'y' op_type: 'Concat' name: 'c' }",
                "node 'c' (Concat-13): lacks attribute 'axis', which Concat-13 needs"),
      bad_graph(
          "unknown_attribute",
          "node { input: 'x' output: 'y' op_type: 'Softmax' name: 's' attribute { name: 'axes' i: 1 type: INT } }",
          "node 's' (Softmax-13): has attribute 'axes', which Softmax-13 does not have; it has 'axis'"),
      bad_graph(
          "attribute_type",
          "node { input: 'x' output: 'y' op_type: 'Softmax' name: 's' attribute { name: 'axis' f: 1 type: FLOAT } }",
          "node 's' (Softmax-13): attribute 'axis' is of type float; Softmax-13 wants int"),
      bad_graph("attribute_twice",
                "node { input: 'x' output: 'y' op_type: 'Softmax' name: 's' attribute { name: 'axis' i: 1 type: INT } "
                "attribute { name: 'axis' i: 1 type: INT } }",
                "node 's' (Softmax-13): has attribute 'axis' twice"),
      bad_graph(
          "attribute_of_two_types",
          "node { input: 'x' output: 'y' op_type: 'Softmax' name: 's' attribute { name: 'axis' i: 1 f: 2 type: INT } }",
          "node 's' (Softmax): attribute 'axis': is of type int but holds float; both must agree"),
      bad_graph(
          "graph_attribute_without_graph",
          "node { input: 'x' output: 'y' op_type: 'If' name: 's' attribute { name: 'then_branch' type: GRAPH } }",
          "node 's' (If): attribute 'then_branch': is of type graph but holds none; it must hold a value of its type"),
      bad_graph(
          "reference_outside_function",
          "node { input: 'x' output: 'y' op_type: 'Softmax' name: 's' attribute { name: 'axis' ref_attr_name: 'a' "
          "type: INT } }",
          "node 's' (Softmax-13): attribute 'axis' refers to attribute 'a' of a function, but the node stands in none"),
      bad_graph("deprecated", "node { input: 'x' input: 'x' output: 'y' op_type: 'Upsample' name: 'u' }",
                "node 'u' (Upsample-10): is deprecated: operator set 20 no longer has 'Upsample'"),
  };
}

std::vector<BadModel> bad_bodies() {
  return {
      bad_graph("loop_body",
                "node { input: '' input: '' input: 'x' output: 'y' op_type: 'Loop' name: 'l' attribute { name: 'body' "
                "type: GRAPH g { "
                "input { name: 'i' } input { name: 'c' } output { name: 'c' } } } }",
                "node 'l' (Loop-19): graph 'body' takes 2 inputs, but the node gives it 3"),
      bad_graph("loop_results",
                "node { input: '' input: '' input: 'x' output: 'y' op_type: 'Loop' name: 'l' attribute { name: 'body' "
                "type: GRAPH g { input { name: 'i' } input { name: 'c' } input { name: 'h' } output { name: 'c' } "
                "output { name: 'h' } output { name: 'h' } } } }",
                "node 'l' (Loop-19): graph 'body' has 3 outputs, but the node needs 2"),
      bad_graph(
          "body_node",
          "initializer { name: 'c' data_type: 9 int32_data: 1 } node { input: 'c' output: 'y' op_type: 'If' name: 'i' "
          "attribute { name: 'then_branch' type: GRAPH g { node { input: 'x' output: 'a' op_type: 'Relo' name: 'inner' "
          "} output { name: 'a' } } } "
          "attribute { name: 'else_branch' type: GRAPH g { node { input: 'x' output: 'b' op_type: 'Relu' } output { "
          "name: 'b' } } } }",
          "node 'inner' (Relo) in then_branch of node 'i': no operator 'Relo'"),
  };
}

std::vector<BadModel> bad_models() {
  const std::string graph = "graph { " + kXAndY + kRelu + "} ";
  const std::string call = "graph { " + kXAndY + "node { input: 'x' output: 'y' op_type: 'F' domain: 'my' name: 'f' ";
  const std::string imports = " opset_import { version: 20 } opset_import { domain: 'my' version: 1 } ";
  const std::string function =
      "functions { name: 'F' domain: 'my' input: 'a' output: 'b' opset_import { version: 20 } ";
  return {
      {"no_graph", "ir_version: 8", "holds no graph"},
      {"ir_version_2", "ir_version: 2 " + graph, "model: is of IR version 2; versions 3 to 14 are read",
       ErrorCode::unsupported},
      {"ir_version_99", "ir_version: 99 " + graph, "model: is of IR version 99", ErrorCode::unsupported},
      {"opset_99", graph + "opset_import { version: 99 }",
       "model: imports operator set 99 of domain 'ai.onnx'; this version knows operator sets up to",
       ErrorCode::unsupported},
      {"opset_0", graph + "opset_import { version: 0 }",
       "model: imports operator set 0 of domain 'ai.onnx'; versions begin at 1"},
      {"constant_without_value",
       "graph { " + kXAndY +
           "node { output: 'c' op_type: 'Constant' name: 'c' } "
           "node { input: 'x' input: 'c' output: 'y' op_type: 'Add' } } opset_import { version: 17 }",
       "node 'c' (Constant-13): has 0 values; a Constant has exactly one"},
      {"constant_with_two_values",
       "graph { " + kXAndY +
           "node { output: 'c' op_type: 'Constant' name: 'c' "
           "attribute { name: 'value_float' f: 1 type: FLOAT } attribute { name: 'value_int' i: 1 type: INT } } "
           "node { input: 'x' input: 'c' output: 'y' op_type: 'Add' } } opset_import { version: 17 }",
       "node 'c' (Constant-13): has 2 values; a Constant has exactly one"},
      {"operator_too_new",
       "graph { " + kXAndY + "node { input: 'x' output: 'y' op_type: 'Gelu' name: 'g' } } opset_import { version: 17 }",
       "node 'g' (Gelu): operator 'Gelu' exists in ai.onnx from opset 20 on, but the model imports opset 17"},
      {"layout_of_onnxruntime",
       "graph { " + kXAndY +
           "node { input: 'x' output: 'y' op_type: 'Conv' domain: 'com.microsoft.nchwc' name: 'c' } } opset_import { "
           "version: 17 } opset_import { domain: 'com.microsoft.nchwc' version: 1 }",
       "node 'c' (com.microsoft.nchwc.Conv): operator 'Conv' in domain com.microsoft.nchwc is in a memory layout of "
       "onnxruntime's own",
       ErrorCode::unsupported},
      {"recursion",
       call + "} }" + imports + function + "node { input: 'a' output: 'b' op_type: 'G' domain: 'my' } } " +
           "functions { name: 'G' domain: 'my' input: 'a' output: 'b' node { input: 'a' output: 'b' op_type: 'F' "
           "domain: 'my' } }",
       "function 'F' calls itself: F -> G -> F; functions must not be recursive"},
      {"function_without_body", call + "} }" + imports + function + "}",
       "value 'b' in function 'my.F': is a graph output, but nothing computes it"},
      {"function_twice",
       call + "} }" + imports + function + "node { input: 'a' output: 'b' op_type: 'Relu' } } " + function +
           "node { input: 'a' output: 'b' op_type: 'Relu' } }",
       "model: defines function 'my.F' twice"},
      {"call_with_too_many_inputs",
       call + "input: 'x' } }" + imports + function + "node { input: 'a' output: 'b' op_type: 'Relu' } }",
       "node 'f' (my.F): has 2 inputs, but function 'F' has 1 input"},
      {"call_with_unknown_attribute",
       call + "attribute { name: 'alpha' f: 1 type: FLOAT } } }" + imports + function +
           "node { input: 'a' output: 'b' op_type: 'Relu' } }",
       "node 'f' (my.F): has attribute 'alpha', which function 'F' does not have"},
      {"undeclared_reference",
       call + "} }" + imports + function +
           "node { input: 'a' output: 'b' op_type: 'Elu' name: 'e' attribute { name: 'alpha' ref_attr_name: 'q' type: "
           "FLOAT } } }",
       "node 'e' (Elu-6) in function 'my.F': attribute 'alpha' refers to attribute 'q', which function 'F' does not "
       "declare"},
      {"function_body_dangles",
       call + "} }" + imports + function + "node { input: 'x' output: 'b' op_type: 'Relu' name: 'e' } }",
       "node 'e' (Relu-14) in function 'my.F': reads 'x'"},
      {"unknown_overload",
       call + "overload: 'v2' } }" + imports + function + "node { input: 'a' output: 'b' op_type: 'Relu' } }",
       "node 'f' (my.F): calls overload 'v2' of function 'my.F', which the model does not define"},
  };
}

class Check : public testing::TestWithParam<BadModel> {};

std::vector<BadModel> bad_branches() {
  return {
      {"branches_of_other_types",
       "graph { output { name: 'y' type { tensor_type { elem_type: 1 } } } input { name: 'c' type { tensor_type { "
       "elem_type: 9 } } } node { input: 'c' output: 'y' op_type: 'If' name: 'i' "
       "attribute { name: 'then_branch' type: GRAPH g { node { output: 'a' op_type: 'Constant' attribute { name: "
       "'value_float' f: 1 type: FLOAT } } output { name: 'a' } } } "
       "attribute { name: 'else_branch' type: GRAPH g { node { output: 'b' op_type: 'Constant' attribute { name: "
       "'value_int' i: 1 type: INT } } output { name: 'b' } } } } } opset_import { version: 17 }",
       "node 'i' (If-16): output 0 is float32 in then_branch, but int64 in else_branch"},
  };
}

TEST_P(Check, Refuses) {
  const auto model = import_text(GetParam().text);
  ASSERT_FALSE(model.ok());
  const std::string& message = model.error().message;
  EXPECT_TRUE(message.starts_with("'test.textproto'")) << message;
  EXPECT_NE(message.find(GetParam().message), std::string::npos) << message << "\nexpected: " << GetParam().message;
  EXPECT_EQ(model.error().code, GetParam().code);
}

// Each of them can be looked at, with the same problem among those that were recorded.
TEST_P(Check, Records) {
  ImportOptions lenient;
  lenient.checks = ModelChecks::recorded;
  const auto model = import_text(GetParam().text, lenient);
  if (!model.ok()) {  // no model, or what could not end: functions that call themselves
    EXPECT_TRUE(model.error().message.find("calls itself") != std::string::npos ||
                model.error().message.find("holds no graph") != std::string::npos)
        << model.error().message;
    return;
  }
  std::string found;
  for (const ModelProblem& problem : (*model)->problems) found += problem.where + ": " + problem.message + "\n";
  // While a node is read, its operator's version is not known yet.
  const std::string message = GetParam().message;
  const size_t node = message.find("): ");
  EXPECT_NE(found.find(node == std::string::npos ? message : message.substr(node)), std::string::npos)
      << found << "\nexpected: " << message;
  EXPECT_EQ((*model)->problems.front().code, GetParam().code);
}

std::string name_of_case(const testing::TestParamInfo<BadModel>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Names, Check, testing::ValuesIn(bad_names()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Nodes, Check, testing::ValuesIn(bad_nodes()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Bodies, Check, testing::ValuesIn(bad_bodies()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Branches, Check, testing::ValuesIn(bad_branches()), name_of_case);
INSTANTIATE_TEST_SUITE_P(Models, Check, testing::ValuesIn(bad_models()), name_of_case);

TEST(CheckModel, ListsEveryProblemWithNodeAndOperator) {
  ImportOptions lenient;
  lenient.checks = ModelChecks::none;
  const auto model = import_text("graph { " + kXAndY +
                                     "node { input: 'gone' output: 'a' op_type: 'Relu' name: 'n1' } "
                                     "node { input: 'a' output: 'y' op_type: 'Concat' name: 'n2' } }",
                                 lenient);
  ASSERT_TRUE(model.ok()) << model.error().message;
  const auto problems = check_model(**model);
  ASSERT_EQ(problems.size(), 2u);
  EXPECT_EQ(problems[0].node, "n1");
  EXPECT_EQ(problems[0].op, "Relu-14");
  EXPECT_EQ(problems[1].where, "node 'n2' (Concat-13)");
}

TEST(CheckModel, AcceptsWhatExportersWrite) {
  const auto accepts = [](const std::string& graph) {
    EXPECT_EQ(import_error("graph { " + kXAndY + graph + " }"), "") << graph;
  };
  accepts(kRelu + "node { input: 'x' output: 'z' op_type: 'Relu' name: 'r' }");           // a repeated node name
  accepts(kRelu + "input { name: 'unused' type { tensor_type { elem_type: 1 } } }");      // an unused input
  accepts(kRelu + "output { name: 'y' type { tensor_type { elem_type: 1 } } }");          // an output listed twice
  accepts(kRelu + "output { name: 'x' type { tensor_type { elem_type: 1 } } }");          // an input that is an output
  accepts(kRelu + "value_info { name: 'stale' type { tensor_type { elem_type: 1 } } }");  // a value that is gone
  accepts("node { input: 'x' output: 'y' op_type: 'Relu' attribute { name: '__tool' i: 1 type: INT } }");
  accepts(
      "node { input: '' input: '' input: 'x' output: 'y' op_type: 'Loop' attribute { name: 'body' type: GRAPH g { "
      "input { name: 'i' } input { name: 'c' } input { name: 'v' } output { name: 'c' } output { name: 'v2' } "
      "node { input: 'v' output: 'v2' op_type: 'Neg' } } } }");  // no trip count, no condition
}

// The outputs of the node that has the body, or of a later one, do not exist yet when the body runs: their names are
// free.
TEST(CheckModel, ABodyMayUseTheNameOfALaterValue) {
  const auto error_with = [](const std::string& name, const std::string& before, const std::string& after) {
    const auto branch = [&name](const std::string& which, const std::string& op) {
      return "attribute { name: '" + which + "' type: GRAPH g { node { input: 'x' output: '" + name + "' op_type: '" +
             op + "' } output { name: '" + name + "' } } } ";
    };
    return import_error("graph { " + kXAndY + "initializer { name: 'c' data_type: 9 int32_data: 1 } " + before +
                        "node { input: 'c' output: '" + (after.empty() ? "y" : "o") + "' op_type: 'If' name: 'i' " +
                        branch("then_branch", "Relu") + branch("else_branch", "Neg") + "} " + after + "}");
  };
  const std::string z = "node { input: 'x' output: 'z' op_type: 'Abs' } ";
  EXPECT_EQ(error_with("y", "", ""), "");
  EXPECT_EQ(error_with("y", "", "node { input: 'o' output: 'y' op_type: 'Abs' } "), "");
  EXPECT_NE(error_with("z", z, "").find("value 'z' in then_branch of node 'i': hides the value"), std::string::npos);
}

// Optimizers copy a constant into the branches that read it, and leave its name.
TEST(CheckModel, AcceptsCopiesOfAConstantInBranches) {
  const auto error_with = [](const std::string& number) {
    const auto branch = [](const std::string& name, const std::string& value) {
      return "attribute { name: '" + name +
             "' type: GRAPH g { initializer { name: 'w' data_type: 1 float_data: " + value +
             " } node { input: 'x' input: 'w' output: '" + name + "_y' op_type: 'Add' } output { name: '" + name +
             "_y' } } } ";
    };
    return import_error("graph { " + kXAndY +
                        "initializer { name: 'w' data_type: 1 float_data: 0.5 } initializer { name: 'c' data_type: 9 "
                        "int32_data: 1 } node { input: 'x' input: 'w' output: 'z' op_type: 'Mul' } node { input: 'c' "
                        "output: 'y' op_type: 'If' name: 'i' " +
                        branch("then_branch", "0.5") + branch("else_branch", number) + "} }");
  };
  EXPECT_EQ(error_with("0.5"), "");
  EXPECT_NE(error_with("0.25").find("value 'w' in else_branch of node 'i': hides the value"), std::string::npos);
}

// onnx.proto: nodes bind to "the HIGHEST version in the referenced operator sets".
TEST(CheckModel, TheHighestOfSeveralImportsHolds) {
  for (const std::string order : {"opset_import { version: 11 } opset_import { domain: 'ai.onnx' version: 17 } ",
                                  "opset_import { domain: 'ai.onnx' version: 17 } opset_import { version: 11 } "}) {
    const std::string text =
        "ir_version: 8 " + order + "graph { " + kXAndY + "node { input: 'x' output: 'y' op_type: 'Softmax' } }";
    const auto model = import_model(std::as_bytes(std::span(text)), "", "test");
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ((*model)->graph.nodes[0].schema->since_version, 13);
  }
}

TEST(CheckModel, AFunctionMayHandItsInputsOn) {
  const std::string text =
      "ir_version: 8 opset_import { version: 17 } opset_import { domain: 'my' version: 1 } graph { " + kXAndY +
      "node { input: 'x' output: 'z' op_type: 'F' domain: 'my' } node { input: 'z' output: 'y' "
      "op_type: 'Neg' } } functions { name: 'F' domain: 'my' input: 'a' output: 'a' "
      "opset_import { version: 17 } }";
  const auto model = import_model(std::as_bytes(std::span(text)), "", "test");
  EXPECT_TRUE(model.ok()) << model.error().message;
}

}  // namespace
}  // namespace parallax
