// SPDX-License-Identifier: Apache-2.0
// Nodes between two captured values are judged as one: the one that explains the result is named, or the last, with its
// operator, and what is known of the other ones.
#include "inspector/diff/localize/node_group.h"

#include <algorithm>

#include "inspector/diff/localize/node_judge.h"
#include "inspector/dump/convert/convert.h"
#include "inspector/dump/tensor_files/npy.h"
#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "inspector/workbench/blame.h"
#include "tests/inspector/diff/dump_fixture.h"
#include "tests/inspector/executors/recording_observer.h"

namespace parallax {
namespace node_group_test {

using diff::CapturedSide;
using diff::NodeGroup;
using diff::NodeInstance;
using testing::finished_model;
using testing::GraphBuilder;
using testing::sines;

struct Attention {
  int64_t axis = 2;
  float scale = 0.5F;
  bool is_transposed = true;
  std::string last = "MatMul";
};

// softmax((x * x' + bias) * scale) * x, as an exporter writes one operator, and what reads it.
GraphBuilder attention(const Attention& how) {
  GraphBuilder builder(21);
  builder.input("x", "float32[2,4,4]").initializer("scale", Tensor::scalar(how.scale));
  builder.initializer("bias", sines({4}, 1, 1.3));
  const auto of_operator = [&] {
    builder.last_node().metadata = {
        {"namespace", ": m.Net/block: m.Block/sdpa: aten.scaled_dot_product_attention.default"}};
  };
  builder.node("Transpose", {"x"}, {"xt"},
               {{"perm", how.is_transposed ? std::vector<int64_t>{0, 2, 1} : std::vector<int64_t>{0, 1, 2}}});
  of_operator();
  builder.node("MatMul", {"x", "xt"}, {"scores"});
  of_operator();
  builder.node("Add", {"scores", "bias"}, {"biased"});
  of_operator();
  builder.node("Mul", {"biased", "scale"}, {"scaled"});
  of_operator();
  builder.node("Softmax", {"scaled"}, {"weights"}, {{"axis", how.axis}});
  of_operator();
  builder.node(how.last, {"weights", "x"}, {"attention"});
  of_operator();
  builder.node("Tanh", {"attention"}, {"y"});
  builder.last_node().metadata = {{"namespace", ": m.Net/tanh: aten.tanh.default"}};
  return builder.output("y");
}

class Groups : public testing::DumpTest {
 protected:
  // The run of `right`, of which only `captured` is known, as an import under the graph of `exported`, next to a run of
  // `exported` itself.
  Comparison blame(const GraphBuilder& right, const GraphBuilder& exported, const std::vector<std::string>& captured) {
    const std::string file = (folder_ / "model.onnx").string(), a = (folder_ / "a.plx").string();
    EXPECT_TRUE(export_model(*finished_model(exported), file).ok());
    RecordingObserver values;
    const auto reference = make_executor("reference").take();
    const auto session = reference->prepare(finished_model(right), {}).take();
    EXPECT_TRUE(session->run(std::vector<Value>{x_}, values).ok());
    std::vector<NamedValue> kept;
    for (const std::string& name : captured) kept.push_back({name, values.values.at(name)});
    EXPECT_TRUE(write_npz((folder_ / "values.npz").string(), kept).ok());
    EXPECT_TRUE(import_dump({(folder_ / "values.npz").string(), file, ""}, a).ok());
    const std::string b = run_of(import_model(file).take());
    Comparison comparison = compare_dumps(*DumpReader::open(a).take(), *DumpReader::open(b).take(), {}, {}).take();
    EXPECT_TRUE(blame_files(a, b, {}, make_executor, comparison).ok());
    return comparison;
  }

  std::string run_of(const std::shared_ptr<const Model>& model) {
    const std::string path = (folder_ / "b.plx").string();
    const auto executor = make_executor("reference").take();
    const auto writer = DumpWriter::create(path, {}).take();
    EXPECT_TRUE(writer->begin_run(describe_run(*executor, {}, model)).ok());
    EXPECT_TRUE(executor->prepare(model, {}).take()->run(std::vector<Value>{x_}, *writer).ok());
    EXPECT_TRUE(writer->end_run(true).ok());
    EXPECT_TRUE(writer->finish().ok());
    return path;
  }

  Tensor x_ = sines({2, 4, 4}, 1.5, 0.7);
};

const std::vector<std::string> kEnds = {"x", "attention", "y"};

TEST_F(Groups, ARightGroupRaisesNoAlarm) {
  const Comparison comparison = blame(attention({}), attention({}), kEnds);
  EXPECT_EQ(comparison.verdict, OverallVerdict::pass);
  EXPECT_TRUE(comparison.causes.empty());
}

TEST_F(Groups, AWrongGroupIsNamedByTheNodeThatExplainsItAndItsOperator) {
  Attention wrong;
  wrong.axis = 1;
  const Comparison comparison = blame(attention({}), attention(wrong), kEnds);
  ASSERT_EQ(comparison.causes.size(), 1U);
  const Cause& cause = comparison.causes[0];
  EXPECT_EQ(cause.node, "Softmax_4");
  EXPECT_EQ(cause.node_b, "Softmax_4");
  EXPECT_EQ(cause.path, "attention");
  EXPECT_EQ(cause.side, Side::a);
  EXPECT_EQ(cause.source_operator, "aten.scaled_dot_product_attention.default");
  EXPECT_EQ(cause.source_module, "block");
  EXPECT_EQ(cause.group,
            (std::vector<std::string>{"Transpose_0", "MatMul_1", "Add_2", "Mul_3", "Softmax_4", "MatMul_5"}));
  EXPECT_TRUE(
      cause.why.starts_with("by its node 'Softmax_4' (Softmax): the group's result is what axis=2 gives; the node "
                            "has axis=1"))
      << cause.why;
}

// Four columns of weights in int4, dequantized by blocks of two rows, and the product of activations with them.
GraphBuilder quantized_product(bool rounds_activations) {
  GraphBuilder builder(21);
  builder.input("x", "float32[2,4,4]");
  Tensor weight = Tensor::allocate(DType::int8, Shape{4, 4}).take();
  int next = -7;
  for (int8_t& element : weight.mutable_as<int8_t>()) element = static_cast<int8_t>(next += next > 5 ? -11 : 3);
  builder.initializer("w", weight).initializer("scales", sines({2, 4}, 0.1, 0.7));
  std::string read = "x";
  if (rounds_activations) {  // the largest of each two of a row to 127
    builder.numbers("pairs", {2, 4, 2, 2}).numbers("rows", {2, 4, 4}).numbers("last", {-1});
    builder.initializer("steps", Tensor::scalar(127.0F));
    builder.node("Reshape", {"x", "pairs"}, {"blocks"}).node("Abs", {"blocks"}, {"sizes"});
    builder.node("ReduceMax", {"sizes", "last"}, {"largest"}).node("Div", {"largest", "steps"}, {"step"});
    builder.node("Div", {"blocks", "step"}, {"scaled"}).node("Round", {"scaled"}, {"whole"});
    builder.node("Mul", {"whole", "step"}, {"back"}).node("Reshape", {"back", "rows"}, {"rounded"});
    read = "rounded";
  }
  builder.node("DequantizeLinear", {"w", "scales"}, {"floats"}, {{"axis", int64_t{0}}, {"block_size", int64_t{2}}});
  builder.node("MatMul", {read, "floats"}, {"product"}).initializer("bias", sines({4}, 1, 0.3));
  return builder.node("Add", {"product", "bias"}, {"y"}).output("y");
}

TEST_F(Groups, ActivationsRoundedToInt8AreSaidAndNoNarrowFloats) {
  const Comparison comparison = blame(quantized_product(true), quantized_product(false), {"x", "y"});
  ASSERT_EQ(comparison.causes.size(), 1U);
  const Cause& cause = comparison.causes[0];
  EXPECT_EQ(cause.op, "MatMul");
  EXPECT_NE(cause.why.find("the group's result is what 'x' rounded to int8 by blocks of 2 gives"), std::string::npos)
      << cause.why;
  EXPECT_EQ(cause.why.find("bfloat16"), std::string::npos) << cause.why;
}

// ArgMax of signs, of which many are equal: of these the first, the last, or the third.
GraphBuilder chosen(int64_t takes_last, bool prefers_third) {
  GraphBuilder builder(17);
  builder.input("x", "float32[2,4,4]").node("Sign", {"x"}, {"signs"});
  builder.initializer("third", Tensor::vector<float>(std::vector<float>{0, 0, 0.01F, 0}));
  if (prefers_third) builder.node("Add", {"signs", "third"}, {"preferred"});
  builder.node("ArgMax", {prefers_third ? "preferred" : "signs"}, {"y"},
               {{"axis", int64_t{2}}, {"keepdims", int64_t{0}}, {"select_last_index", takes_last}});
  return builder.output("y");
}

TEST_F(Groups, AnotherOfEqualElementsIsSaid) {
  const std::vector<std::string> all = {"x", "signs", "y"};
  EXPECT_EQ(blame(chosen(1, false), chosen(0, false), all).causes.at(0).why,
            "its result is what select_last_index=1 gives; the node has select_last_index=0");
  const Cause cause = blame(chosen(0, true), chosen(0, false), all).causes.at(0);
  EXPECT_TRUE(cause.why.starts_with("it takes equal elements in another order than the specification does: at ["))
      << cause.why;
  EXPECT_NE(cause.why.find("it chose index 2 instead of "), std::string::npos) << cause.why;
}

GraphBuilder normalized(float epsilon) {
  GraphBuilder builder(17);
  builder.input("x", "float32[2,4,4]").initializer("weight", sines({4}, 1, 0.9));
  builder.node("LayerNormalization", {"x", "weight"}, {"y"}, {{"axis", int64_t{-1}}, {"epsilon", epsilon}});
  return builder.output("y");
}

TEST_F(Groups, NumbersThatCannotBeToldApartAreNotClaimed) {
  const std::string one = blame(normalized(1e-3F), normalized(0.1F), {"x", "y"}).causes.at(0).why;
  EXPECT_EQ(one, "its result is what epsilon=0.001 gives; the node has epsilon=0.1");
  const std::string several = blame(normalized(1e-9F), normalized(0.1F), {"x", "y"}).causes.at(0).why;
  EXPECT_TRUE(several.starts_with("its result is what epsilon from 0 to 1e-0")) << several;
  EXPECT_TRUE(several.ends_with(" gives, which cannot be told apart here; the node has epsilon=0.1")) << several;
}

TEST_F(Groups, AConstantWithinTheGroupIsFound) {
  Attention wrong;
  wrong.scale = 0.31F;
  const Cause cause = blame(attention({}), attention(wrong), kEnds).causes.at(0);
  EXPECT_TRUE(
      cause.why.starts_with("by its node 'Mul_3' (Mul): the group's result is what 'scale'=0.5 gives; the node has "
                            "'scale'=0.31"))
      << cause.why;
}

TEST_F(Groups, ANodeThatShouldNotBeThereIsFound) {
  GraphBuilder right(21), wrong(21);
  for (GraphBuilder* builder : {&right, &wrong}) {
    builder->input("x", "float32[2,4,4]");
    if (builder == &right) builder->node("Identity", {"x"}, {"inner"});
    if (builder == &wrong) builder->node("Sigmoid", {"x"}, {"inner"});
    builder->node("Softmax", {"inner"}, {"y"}, {{"axis", int64_t{2}}}).output("y");
  }
  const Cause cause = blame(right, wrong, {"x", "y"}).causes.at(0);
  EXPECT_TRUE(cause.why.starts_with(
      "by its node 'Sigmoid_0' (Sigmoid): the group's result is what 'x' gives without this node"))
      << cause.why;
}

TEST_F(Groups, WhatIsCapturedIsJudgedAlone) {
  Attention wrong;
  wrong.axis = 1;
  const Cause cause =
      blame(attention({}), attention(wrong), {"x", "xt", "scores", "biased", "scaled", "weights", "attention", "y"})
          .causes.at(0);
  EXPECT_EQ(cause.node, "Softmax_4");
  EXPECT_TRUE(cause.group.empty());
  EXPECT_EQ(cause.why, "its result is what axis=2 gives; the node has axis=1");
}

// A number that no table holds, and the integers that an operator reads as an input.
TEST_F(Groups, OtherNumbersAndIntegersAreFitted) {
  const auto reduced = [](std::vector<int64_t> axes, float slope) {
    GraphBuilder builder(21);
    builder.input("x", "float32[2,4,4]").numbers("axes", axes);
    builder.node("LeakyRelu", {"x"}, {"bent"}, {{"alpha", slope}});
    builder.node("ReduceSum", {"bent", "axes"}, {"y"}, {{"keepdims", int64_t{1}}});
    return builder.output("y");
  };
  EXPECT_EQ(blame(reduced({1}, 0.2F), reduced({2}, 0.2F), {"x", "bent", "y"}).causes.at(0).why,
            "its result is what 'axes'=[1] gives; the node has 'axes'=[2]");
  EXPECT_EQ(blame(reduced({1}, 0.37F), reduced({1}, 0.2F), {"x", "bent", "y"}).causes.at(0).why,
            "its result is what alpha=0.37 gives; the node has alpha=0.2");
  const auto gathered = [](int64_t index) {
    GraphBuilder builder(21);
    builder.input("x", "float32[2,4,4]").numbers("at", {index, 0});
    builder.node("Gather", {"x", "at"}, {"y"}, {{"axis", int64_t{1}}});
    return builder.output("y");
  };
  EXPECT_EQ(blame(gathered(3), gathered(1), {"x", "y"}).causes.at(0).why,
            "its result is what 'at'=[3,0] gives; the node has 'at'=[1,0]");
}

TEST_F(Groups, RunAgainWithTheirOwnResultsTheyRepeatTheOracle) {
  const auto model = finished_model(attention({}));
  const ValueTable value_infos = ValueTable::build(model).take();
  BlameSide side;
  DumpWriterOptions options;
  options.only = {"x", "attention"};
  side.dump = run_into_dump(model, "only.plx", x_, "reference", options);
  const CapturedSide captured(side, model, make_executor("reference:double").take());
  const NodeInstance root{&value_infos.main(), 5, ""};
  const auto computed = captured.compute(root).take();
  const auto group = NodeGroup::around(captured, root, computed).take();
  ASSERT_NE(group, nullptr);
  ASSERT_EQ(group->members().size(), 6U);
  const Value usual = computed.outputs.at(0);
  const auto of_member = group->members()[4].inputs.at(0).value;  // what the Softmax reads
  const auto again = group->run_from(3, {of_member}).take();
  EXPECT_EQ(diff::distance_between(usual, again.at(0), {}).severity, 0);
  const auto nudged = group->run_nudged(1, 2).take();
  const auto distance = diff::distance_between(usual, nudged.at(0), {}).metrics;
  ASSERT_TRUE(distance.has_value());
  EXPECT_GT(distance->max_abs, 0);
  EXPECT_LT(distance->max_abs, 1e-5);
  const auto single = captured.compute({&value_infos.main(), 0, ""}).take();
  EXPECT_EQ(NodeGroup::around(captured, {&value_infos.main(), 0, ""}, single).take(), nullptr);
}

}  // namespace node_group_test
}  // namespace parallax
