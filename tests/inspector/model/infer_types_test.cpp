// SPDX-License-Identifier: Apache-2.0
// Tests of inference through whole graphs: data flow of shapes, named dimensions, bodies, functions, declarations,
// problems.
#include "inspector/model/shape_inference/infer_types.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/model/io/import.h"
#include "tests/inspector/model/graph_builder.h"
#include "tests/inspector/model/model_files.h"

namespace parallax {
namespace {

using testing::GraphBuilder;

std::string inferred(const Model& model, const std::string& value) {
  return to_string(infer_types(model).type_of(model.graph, model.graph.find_value(value)));
}
std::string inferred(const GraphBuilder& builder, const std::string& value) { return inferred(builder.model(), value); }

Attribute::Value ints(std::vector<int64_t> values) { return values; }

TEST(InferTypes, FollowsShapesThroughArithmetic) {
  // The nodes that exporters write for x.view(b, s, heads, -1).transpose(1, 2).
  GraphBuilder builder(20);
  builder.input("x", "float32[batch,seq,64]").number("zero", 0).number("one", 1).numbers("axis", {0});
  builder.numbers("heads", {8}).numbers("rest", {-1});
  builder.node("Shape", {"x"}, {"shape"});
  builder.node("Gather", {"shape", "zero"}, {"b"}).node("Gather", {"shape", "one"}, {"s"});
  builder.node("Unsqueeze", {"b", "axis"}, {"b1"}).node("Unsqueeze", {"s", "axis"}, {"s1"});
  builder.node("Concat", {"b1", "s1", "heads", "rest"}, {"target"}, {{"axis", int64_t{0}}});
  builder.node("Reshape", {"x", "target"}, {"split"});
  builder.node("Transpose", {"split"}, {"y"}, {{"perm", ints({0, 2, 1, 3})}});
  EXPECT_EQ(inferred(builder, "split"), "float32[batch,seq,8,8]");
  EXPECT_EQ(inferred(builder, "y"), "float32[batch,8,seq,8]");
}

TEST(InferTypes, FollowsTheWayExportersExpand) {
  // Expand to Where(target == -1, 1, target), target = Concat(batch, -1, 8).
  GraphBuilder builder(20);
  builder.input("x", "float32[1,1,8]").input("ids", "int64[batch,seq]");
  builder.numbers("minus", {-1}).numbers("eight", {8}).numbers("ones", {1, 1, 1}).numbers("all_minus", {-1, -1, -1});
  builder.node("Shape", {"ids"}, {"batch"}, {{"start", int64_t{0}}, {"end", int64_t{1}}});
  builder.node("Concat", {"batch", "minus", "eight"}, {"target"}, {{"axis", int64_t{0}}});
  builder.node("Equal", {"target", "all_minus"}, {"is_minus"}).node("Where", {"is_minus", "ones", "target"}, {"sizes"});
  builder.node("Expand", {"x", "sizes"}, {"y"});
  EXPECT_EQ(inferred(builder, "y"), "float32[batch,1,8]");
}

TEST(InferTypes, AddsAndCancelsNamedDimensions) {
  GraphBuilder builder(20);
  builder.input("past", "float32[b,8,past,16]").input("now", "float32[b,8,seq,16]").numbers("flat", {-1, 128});
  builder.node("Concat", {"past", "now"}, {"all"}, {{"axis", int64_t{2}}});
  builder.node("Reshape", {"all", "flat"}, {"rows"});
  builder.node("Shape", {"all"}, {"shape"}).numbers("two", {2}).numbers("three", {3}).numbers("long", {INT64_MAX});
  builder.node("Shape", {"past"}, {"past_shape"});
  builder.node("Slice", {"past_shape", "two", "three"}, {"begin"})
      .node("Slice", {"all", "begin", "long", "two"}, {"tail"});
  EXPECT_EQ(inferred(builder, "all"), "float32[b,8,past + seq,16]");
  EXPECT_EQ(inferred(builder, "rows"), "float32[b*past + b*seq,128]");
  EXPECT_EQ(inferred(builder, "tail"), "float32[b,8,seq,16]");
}

TEST(InferTypes, KeepsQuietWhenItCannotBeSure) {
  GraphBuilder builder(20);
  builder.input("x", "float32[n,8]")
      .input("unknown", "int64[2]")
      .input("rankless", "float32")
      .input("start", "int64[1]");
  builder.numbers("one", {1}).numbers("long", {INT64_MAX}).numbers("zero", {0});
  builder.node("Reshape", {"x", "unknown"}, {"reshaped"}).node("Add", {"x", "rankless"}, {"sum"});
  builder.node("Slice", {"x", "start", "long", "zero"}, {"from_start"})
      .node("Slice", {"x", "one", "long", "zero"}, {"tail"});
  builder.node("NonZero", {"x"}, {"found"}).node("Squeeze", {"x"}, {"squeezed"});
  EXPECT_EQ(inferred(builder, "reshaped"), "float32[?,?]");
  EXPECT_EQ(inferred(builder, "sum"), "float32");
  EXPECT_EQ(inferred(builder, "from_start"), "float32[?,8]");
  EXPECT_EQ(inferred(builder, "tail"), "float32[?,8]");  // n may be 0
  EXPECT_EQ(inferred(builder, "found"), "int64[2,?]");
  EXPECT_EQ(inferred(builder, "squeezed"), "float32");  // n may be 1
}

TEST(InferTypes, MergesWhatTheFileDeclares) {
  GraphBuilder builder(20);
  builder.input("x", "float32[n,?,4]").input("y", "float32[n,?,4]");
  builder.node("Add", {"x", "y"}, {"sum"}).declare("sum", "float32[batch,seq,?]");
  builder.node("Relu", {"sum"}, {"out"});
  EXPECT_EQ(inferred(builder, "out"), "float32[batch,seq,4]");
}

TEST(InferTypes, ReportsDeclarationsThatDoNotHold) {
  GraphBuilder builder(20);
  builder.input("x", "float32[2,3]").node("Relu", {"x"}, {"y"}).declare("y", "float32[2,4]");
  builder.node("Shape", {"y"}, {"s"}).declare("s", "float32[2]");
  const Model model = builder.model();
  const auto problems = infer_types(model).problems;
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_EQ(problems[0].kind, TypeProblem::Kind::shape);
  EXPECT_EQ(problems[0].node, 0);
  EXPECT_EQ(problems[0].message, "value 'y' is declared as float32[2,4], but the node computes float32[2,3]");
  EXPECT_EQ(problems[1].kind, TypeProblem::Kind::type);
  EXPECT_EQ(problems[1].message, "value 's' is declared as float32[2], but the node computes int64[2]");
}

TEST(InferTypes, ReportsTypeConflicts) {
  GraphBuilder builder(20);
  builder.input("x", "float32[2]").input("i", "int64[2]").node("Relu", {"x"}, {"a"}).node("Add", {"a", "i"}, {"b"});
  const Model model = builder.model();
  const auto problems = infer_types(model).problems;
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].node, 1);
  EXPECT_EQ(problems[0].message,
            "input 0 ('a') is float32 and input 1 ('i') is int64, but Add-14 wants one type for both (T)");
}

TEST(InferTypes, JoinsTheBranchesOfIf) {
  GraphBuilder then_branch(20), else_branch(20), builder(20);
  then_branch.outer("x").node("Relu", {"x"}, {"t"}).output("t");
  else_branch.outer("x").numbers("axis", {0}).node("ReduceSum", {"x", "axis"}, {"e"}).output("e");
  const auto then_body = then_branch.body();
  builder.input("c", "bool[]").input("x", "float32[n,4]");
  builder.node("If", {"c"}, {"y"}, {{"then_branch", then_body}, {"else_branch", else_branch.body()}});
  const Model model = builder.model();
  EXPECT_EQ(inferred(model, "y"), "float32[?,4]");
  const ModelTypes types = infer_types(model);
  EXPECT_EQ(to_string(types.type_of(*then_body, then_body->find_value("t"))), "float32[n,4]");
}

TEST(InferTypes, FindsWhatHoldsInEveryIterationOfALoop) {
  GraphBuilder body(20), builder(20);
  body.input("i").input("go").input("state").input("grown").outer("step");
  body.node("Identity", {"go"}, {"go_on"}).node("Add", {"state", "step"}, {"next"});
  body.node("Concat", {"grown", "step"}, {"longer"}, {{"axis", int64_t{0}}}).node("Relu", {"next"}, {"scanned"});
  body.output("go_on").output("next").output("longer").output("scanned");
  builder.number("trips", 5)
      .input("state", "float32[n,3]")
      .input("grown", "float32[2,3]")
      .input("step", "float32[1,3]");
  builder.node("Loop", {"trips", "", "state", "grown"}, {"last", "all", "scans"}, {{"body", body.body()}});
  EXPECT_EQ(inferred(builder, "last"), "float32[n,3]");
  EXPECT_EQ(inferred(builder, "all"), "float32[?,3]");
  EXPECT_EQ(inferred(builder, "scans"), "float32[5,n,3]");
}

TEST(InferTypes, ALoopThatMayEndEarlyHasUnknownLength) {
  GraphBuilder body(20), builder(20);
  body.input("i").input("go").input("state").number("three", 3);
  body.node("Less", {"i", "three"}, {"go_on"}).node("Relu", {"state"}, {"next"});
  body.output("go_on").output("next").output("next");
  builder.number("trips", 5).input("state", "float32[n]");
  builder.node("Loop", {"trips", "", "state"}, {"last", "scans"}, {{"body", body.body()}});
  EXPECT_EQ(inferred(builder, "scans"), "float32[?,n]");
}

TEST(InferTypes, StacksTheResultsOfScan) {
  GraphBuilder body(20), builder(20);
  body.input("sum").input("row").node("Add", {"sum", "row"}, {"next"}).node("Identity", {"next"}, {"out"});
  body.output("next").output("out");
  builder.input("zero", "float32[b,4]").input("rows", "float32[b,t,4]");
  builder.node("Scan", {"zero", "rows"}, {"total", "partial"},
               {{"body", body.body()},
                {"num_scan_inputs", int64_t{1}},
                {"scan_input_axes", ints({1})},
                {"scan_output_axes", ints({1})}});
  EXPECT_EQ(inferred(builder, "total"), "float32[b,4]");
  EXPECT_EQ(inferred(builder, "partial"), "float32[b,t,4]");
}

TEST(InferTypes, FollowsSequences) {
  GraphBuilder builder(20);
  builder.input("a", "float32[n,3]").input("b", "float32[m,3]").number("zero", 0);
  builder.node("SequenceConstruct", {"a", "b"}, {"s"}).node("SequenceAt", {"s", "zero"}, {"e"});
  builder.node("ConcatFromSequence", {"s"}, {"c"}, {{"axis", int64_t{0}}}).node("SequenceLength", {"s"}, {"l"});
  EXPECT_EQ(inferred(builder, "s"), "seq(float32[?,3])");
  EXPECT_EQ(inferred(builder, "e"), "float32[?,3]");
  EXPECT_EQ(inferred(builder, "c"), "float32[?,3]");
  EXPECT_EQ(inferred(builder, "l"), "int64[]");
}

TEST(InferTypes, KnowsContributedOperators) {
  GraphBuilder builder(20);
  builder.input("x", "float32[b,s,64]").input("w", "float32[128,64]").input("g", "float32[64]");
  builder.input("packed", "uint8[96,2,16]").input("scales", "float32[192]").input("qkv", "float32[b,s,96]");
  builder.node("com.microsoft.FusedMatMul", {"x", "w"}, {"m"}, {{"transB", int64_t{1}}});
  builder.node("com.microsoft.SkipLayerNormalization", {"x", "x", "g"}, {"n", "", "", "sum"});
  builder.node("com.microsoft.MatMulNBits", {"x", "packed", "scales"}, {"q"},
               {{"K", int64_t{64}}, {"N", int64_t{96}}, {"bits", int64_t{4}}, {"block_size", int64_t{32}}});
  EXPECT_EQ(inferred(builder, "m"), "float32[b,s,128]");
  EXPECT_EQ(inferred(builder, "sum"), "float32[b,s,64]");
  EXPECT_EQ(inferred(builder, "q"), "float32[b,s,96]");
}

TEST(InferTypes, FollowsCallsOfModelLocalFunctions) {
  const auto model = model_from_text(R"(
    ir_version: 10 opset_import { version: 20 } opset_import { domain: "my" version: 1 }
    graph { name: "g"
      node { op_type: "Twice" domain: "my" input: "x" output: "y" attribute { name: "a" type: INT i: 1 } }
      input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_param: "n" } dim { dim_value: 3 } } } } }
      output { name: "y" } }
    functions { name: "Twice" domain: "my" input: "p" output: "r" attribute: "a" opset_import { version: 20 }
      node { op_type: "Concat" input: "p" input: "p" output: "r" attribute { name: "axis" type: INT ref_attr_name: "a" } } })");
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(inferred(*model, "y"), "float32[n,6]");
}

TEST(InferTypes, ImportRefusesTypeConflictsAndFillsInTypes) {
  const std::string head =
      "graph { input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_param: 'n' } } } } } "
      "node { input: 'x' output: 's' op_type: 'Shape' name: 'shape' } ";
  const std::string sum =
      "node { input: 'x' input: 's' output: 'y' op_type: 'Add' name: 'sum' } output { name: 'y' } }";
  EXPECT_NE(import_error(head + sum)
                .find("node 'sum' (Add-14): input 0 ('x') is float32 and input 1 ('s') is int64, but "
                      "Add-14 wants one type for both"),
            std::string::npos);
  EXPECT_NE(import_error(head + "output { name: 's' type { tensor_type { elem_type: 1 } } } }")
                .find("node 'shape' (Shape-19): value 's' is declared as float32, but the node computes int64[1]"),
            std::string::npos);
  const auto model = model_from_text(head + "node { input: 's' output: 't' op_type: 'Neg' } output { name: 't' } }");
  ASSERT_NE(model, nullptr);
  const auto type_in_graph = [&](const std::string& name) {
    return to_string(model->graph.values[static_cast<size_t>(model->graph.find_value(name))].type);
  };
  EXPECT_EQ(type_in_graph("s"), "int64[1]");
  EXPECT_EQ(type_in_graph("t"), "?");  // an output stays as the file has it
  EXPECT_EQ(inferred(*model, "t"), "int64[1]");
}

TEST(InferTypes, SurvivesEveryOperatorOnNonsense) {
  // Any operator, given inputs of unknown, scalar, large and negative make, must neither crash nor hang.
  for (const OpSchema& schema : OpsetRegistry::standard().all()) {
    for (const std::string_view type :
         {"", "int64[]", "float32[0]", "int64[3]", "float32[a,b,?,9223372036854775807]"}) {
      GraphBuilder builder(schema.domain == "ai.onnx" ? schema.since_version : 20);
      std::vector<std::string> inputs, outputs;
      for (size_t index = 0; index < schema.inputs.size() + 1; ++index) {
        inputs.push_back("x" + std::to_string(index));
        if (index % 2 == 1 && type == "int64[3]") {
          builder.numbers(inputs.back(), {INT64_MIN, -1, INT64_MAX});
        } else {
          builder.input(inputs.back(), type);
        }
      }
      for (size_t index = 0; index < schema.outputs.size() + 1; ++index) outputs.push_back("y" + std::to_string(index));
      std::vector<std::pair<std::string, Attribute::Value>> attributes;
      for (const AttributeSchema& attribute : schema.attributes) {
        const std::string name(attribute.name);
        if (attribute.type == AttributeType::int_) attributes.emplace_back(name, INT64_MIN);
        if (attribute.type == AttributeType::ints)
          attributes.emplace_back(name, ints({INT64_MIN, INT64_MAX, -1, 0, 1}));
      }
      const std::string prefix = schema.domain == "ai.onnx" ? "" : std::string(schema.domain) + ".";
      builder.node(prefix + std::string(schema.name), inputs, outputs, attributes);
      EXPECT_FALSE(inferred(builder, "y0").empty()) << schema.versioned_name();
    }
  }
}

// ---- The node suite of libonnx-testdata: declared outputs there are what the operators give -------------------------

// True where the inferred type contradicts the declared one.
bool contradicts(const TypeInfo& inferred, const TypeInfo& declared) {
  if (inferred.kind == TypeInfo::Kind::unknown) return false;
  if (inferred.kind != declared.kind || inferred.dtype != declared.dtype) return true;
  if (!inferred.dims || !declared.dims) return false;
  if (inferred.dims->size() != declared.dims->size()) return true;
  for (size_t axis = 0; axis < declared.dims->size(); ++axis) {
    const Dim &ours = (*inferred.dims)[axis], &theirs = (*declared.dims)[axis];
    if (ours.is_known() && theirs.is_known() && ours.value != theirs.value) return true;
  }
  return false;
}

bool is_complete(const TypeInfo& type) {
  if (type.kind != TypeInfo::Kind::tensor) return type.kind != TypeInfo::Kind::unknown;
  return type.dims && std::ranges::all_of(*type.dims, &Dim::is_known);
}

TEST(InferTypes, NeverContradictsTheNodeSuite) {
  const auto files = files_below("/usr/share/libonnx-testdata/data/node", "model.onnx");
  ASSERT_GT(files.size(), 900U) << "install libonnx-testdata";
  size_t outputs = 0, complete = 0;
  for (const std::string& file : files) {
    auto imported = import_model(file, {.checks = ModelChecks::none});
    ASSERT_TRUE(imported.ok()) << file;
    Model model = *imported.value();
    std::vector<TypeInfo> declared;
    for (const ValueId output : model.graph.outputs) {
      ValueDef& value = model.graph.values[static_cast<size_t>(output)];
      declared.push_back(value.input_index >= 0 ? value.type : std::exchange(value.type, TypeInfo{}));
    }
    const ModelTypes types = infer_types(model);
    for (const TypeProblem& problem : types.problems) ADD_FAILURE() << file << ": " << problem.message;
    for (size_t index = 0; index < declared.size(); ++index) {
      const TypeInfo& type = types.type_of(model.graph, model.graph.outputs[index]);
      EXPECT_FALSE(contradicts(type, declared[index]))
          << file << ": " << to_string(type) << " instead of " << to_string(declared[index]);
      outputs += 1;
      complete += is_complete(type) ? 1 : 0;
    }
  }
  RecordProperty("outputs", static_cast<int>(outputs));
  RecordProperty("complete", static_cast<int>(complete));
  EXPECT_GE(complete * 100, outputs * 70) << complete << " of " << outputs;
}

}  // namespace
}  // namespace parallax
