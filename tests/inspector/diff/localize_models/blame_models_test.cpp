// SPDX-License-Identifier: Apache-2.0
// Two models on the same inputs: the node whose definition differs is named, and what is the same raises no alarm.
#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/diff/diagnose/find_causes.h"
#include "inspector/diff/matching/unmatch.h"
#include "inspector/dump/dump_writer.h"
#include "inspector/executors/make_executor.h"
#include "tests/inspector/diff/dump_fixture.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;
using testing::GraphBuilder;

Tensor numbers(int64_t rows, int64_t columns, float scale) {
  std::vector<float> values;
  for (int64_t index = 0; index < rows * columns; ++index)
    values.push_back(scale * static_cast<float>((index * 7 + 3) % 11 - 5));
  Tensor tensor = Tensor::allocate(DType::float32, Shape{rows, columns}).take();
  std::ranges::copy(values, tensor.mutable_as<float>().begin());
  return tensor;
}

Tensor scalar(DType dtype, double value) {
  Tensor tensor = Tensor::allocate(dtype, Shape{}).take();
  if (dtype == DType::float32) tensor.mutable_as<float>()[0] = static_cast<float>(value);
  if (dtype == DType::int8) tensor.mutable_as<int8_t>()[0] = static_cast<int8_t>(value);
  return tensor;
}

// x -> MatMul, scaled by a ratio of constants -> Split into two -> Tanh of one, Sigmoid of the other -> their
// difference, transposed -> Softmax; a second output rounds it to steps.
struct SmallNetwork {
  float weight_scale = 0.1F;
  std::string activation = "Tanh";
  bool swaps_outputs = false;
  bool swaps_operands = false;
  bool is_inserted = false;
  bool has_identity = false;
  bool swaps_constants = false;  // those that a factor is made of
  bool rounds = false;           // its numbers to steps, before the Softmax
  bool rounds_early = false;     // quantized before the elements are moved, not only after

  std::shared_ptr<const Model> build(const std::string& stem) const {
    GraphBuilder builder(17);
    const auto name = [&](const char* text) { return stem + text; };
    builder.input(name("x"), "float32[3,4]").initializer(name("w"), numbers(4, 6, weight_scale));
    builder.node("MatMul", {name("x"), name("w")}, {name("product")});
    builder.initializer(name("top"), scalar(DType::float32, -1))
        .initializer(name("bottom"), scalar(DType::float32, -0.5));
    const std::vector<std::string> ratio = {name("top"), name("bottom")};
    builder.node("Div", swaps_constants ? std::vector{ratio[1], ratio[0]} : ratio, {name("ratio")});
    builder.node("Abs", {name("ratio")}, {name("factor")});
    builder.node("Mul", {name("product"), name("factor")}, {name("scaled")});
    std::vector<std::string> parts = {name("left"), name("right")};
    if (swaps_outputs) std::swap(parts[0], parts[1]);
    builder.node("Split", {name("scaled")}, parts, {{"axis", int64_t{1}}});
    builder.node(activation, {name("left")}, {name("bent")});
    builder.node("Sigmoid", {name("right")}, {name("squashed")});
    std::string last = name("squashed");
    if (is_inserted) builder.node("Neg", {last}, {name("negative")});
    if (has_identity) builder.node("Identity", {last}, {name("negative")});
    if (is_inserted || has_identity) last = name("negative");
    const std::vector<std::string> operands = {name("bent"), last};
    builder.node("Sub", swaps_operands ? std::vector{operands[1], operands[0]} : operands, {name("difference")});
    builder.initializer(name("step"), scalar(DType::float32, 0.02)).initializer(name("zero"), scalar(DType::int8, 3));
    const auto quantize = [&](const std::string& what, const std::string& made) {
      builder.node("QuantizeLinear", {what, name("step"), name("zero")}, {made + "_steps"});
      builder.node("DequantizeLinear", {made + "_steps", name("step"), name("zero")}, {made});
    };
    if (rounds_early) quantize(name("difference"), name("rough"));
    builder.node("Transpose", {rounds_early ? name("rough") : name("difference")}, {name("transposed")});
    quantize(name("transposed"), name("rounded"));
    builder.node("Softmax", {rounds ? name("rounded") : name("difference")}, {name("y")}, {{"axis", int64_t{-1}}});
    builder.output(name("y"));
    if (!rounds) builder.output(name("transposed"));
    return testing::finished_model(builder);
  }
};

class BlameModels : public testing::DumpTest {
 protected:
  std::shared_ptr<const DumpReader> run(const std::shared_ptr<const Model>& model, const std::string& file,
                                        float input_scale = 0.3F, CaptureLevel level = CaptureLevel::all,
                                        const std::string& with = "reference") {
    DumpWriterOptions options;
    options.level = level;
    return run_into_dump(model, file, numbers(3, 4, input_scale), with, options);
  }

  Comparison blame(const SmallNetwork& a, const SmallNetwork& b, const std::string& stem_of_b) {
    BlameRequest request;
    request.a.model = a.build("");
    request.b.model = b.build(stem_of_b);
    request.a.dump = run(request.a.model, "a.plx");
    request.b.dump = run(request.b.model, "b.plx");
    request.oracle = make_executor("reference:double").take();
    Comparison comparison = compare_dumps(*request.a.dump, *request.b.dump, {}, {}).take();
    EXPECT_TRUE(testing::diagnose(request, comparison).ok());
    return comparison;
  }
};

struct Fault {
  const char* what;
  SmallNetwork b;
  const char* op;    // of the node to be blamed
  const char* says;  // part of the reason
  const char* stem_of_b = "";
};

TEST_F(BlameModels, NamesTheNodeWithAnotherDefinition) {
  const Fault faults[] = {
      {"weight", {.weight_scale = 0.2F}, "MatMul", "2 times A's"},
      {"weight, renamed", {.weight_scale = 0.2F}, "MatMul", "2 times A's", "other_"},
      {"operator", {.activation = "Relu"}, "Relu", "operator is Relu in B and Tanh in A"},
      {"operator, renamed", {.activation = "Relu"}, "Relu", "operator is Relu in B and Tanh in A", "other_"},
      {"operands", {.swaps_operands = true}, "Sub", "operands are swapped"},
      {"outputs", {.swaps_outputs = true}, "Split", "outputs 0 and 1 are swapped"},
      {"inserted", {.is_inserted = true}, "Neg", "B has this Neg node"},
      {"after a constant", {.swaps_constants = true}, "Div", "another constant"},
  };
  for (const Fault& fault : faults) {
    const Comparison comparison = blame({}, fault.b, fault.stem_of_b);
    ASSERT_FALSE(comparison.causes.empty()) << fault.what;
    const Cause& first = comparison.causes.front();
    const std::string expected_op = std::string(fault.op) == "Relu" ? "Tanh" : fault.op;  // A's node is named
    EXPECT_EQ(first.op, expected_op) << fault.what << ": " << first.why;
    EXPECT_NE(first.why.find(fault.says), std::string::npos) << fault.what << ": " << first.why;
    EXPECT_EQ(comparison.causes.size(), 1U) << fault.what << ": " << comparison.causes.back().why;
    EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
  }
}

TEST_F(BlameModels, QuantizedAtAnotherNodeIsTheSame) {
  const Comparison comparison = blame({.rounds = true}, {.rounds = true, .rounds_early = true}, "");
  EXPECT_EQ(comparison.verdict, OverallVerdict::pass);
  EXPECT_TRUE(comparison.causes.empty());
  const auto permuted = std::ranges::find(comparison.values, "transposed", &ValueComparison::path);
  ASSERT_NE(permuted, comparison.values.end());
  EXPECT_EQ(permuted->verdict, Verdict::not_compared);  // B's is rounded, A's is not
  EXPECT_EQ(permuted->note, kPairedWrongly);
  EXPECT_EQ(permuted->reason, "absent in B");
}

TEST_F(BlameModels, OtherInputsAreNoRounding) {
  BlameRequest request;
  request.a.model = SmallNetwork{}.build("");
  request.b.model = SmallNetwork{}.build("other_");
  request.a.dump = run(request.a.model, "a.plx");
  request.b.dump = run(request.b.model, "b.plx", 0.4F);
  request.oracle = make_executor("reference:double").take();
  Comparison comparison = compare_dumps(*request.a.dump, *request.b.dump, {}, {}).take();
  ASSERT_TRUE(testing::diagnose(request, comparison).ok());
  EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
  ASSERT_EQ(comparison.causes.size(), 1U);
  EXPECT_EQ(comparison.causes.front().path, "x");
}

TEST_F(BlameModels, StatisticsNameTheFirstNode) {
  const SmallNetwork wrong{.activation = "Relu"};
  BlameRequest request;
  request.a.dump = run(SmallNetwork{}.build(""), "a.plx", 0.3F, CaptureLevel::stats);
  request.b.dump = run(wrong.build(""), "b.plx", 0.3F, CaptureLevel::stats);
  request.oracle = make_executor("reference:double").take();
  Comparison comparison = compare_dumps(*request.a.dump, *request.b.dump, {}, {}).take();
  ASSERT_TRUE(testing::diagnose(request, comparison).ok());
  ASSERT_EQ(comparison.causes.size(), 1U);
  EXPECT_EQ(comparison.causes.front().path, "bent");
  EXPECT_EQ(comparison.causes.front().side, Side::unknown);
  EXPECT_NE(comparison.causes.front().why.find("in A and"), std::string::npos) << comparison.causes.front().why;
}

// Two dumps without models, of an executor that folds and fuses: what is not in them is looked into as well.
TEST_F(BlameModels, ExaminesWhatWasFusedAway) {
  const SmallNetwork wrong{.activation = "Relu", .swaps_constants = true};
  for (const char* stem : {"", "other_"}) {
    BlameRequest request;
    request.a.dump = run(SmallNetwork{}.build(""), "a.plx", 0.3F, CaptureLevel::all, "cpu");
    request.b.dump = run(wrong.build(stem), "b.plx", 0.3F, CaptureLevel::all, "cpu");
    request.oracle = make_executor("reference:double").take();
    const auto is_captured = [&](const char* path) {
      return std::ranges::any_of(request.a.dump->entries(), [&](const DumpEntry& entry) {
        return entry.path == path && !entry.absence.has_value();
      });
    };
    ASSERT_TRUE(is_captured("y") && !is_captured("ratio") && !is_captured("factor"));
    Comparison comparison = compare_dumps(*request.a.dump, *request.b.dump, {}, {}).take();
    ASSERT_TRUE(testing::diagnose(request, comparison).ok());
    std::vector<std::string> ops;
    for (const Cause& cause : comparison.causes) ops.push_back(cause.op);
    EXPECT_EQ(ops, (std::vector<std::string>{"Div", "Tanh"})) << stem;
  }
}

TEST_F(BlameModels, WhatIsTheSameHasNoCause) {
  for (const char* stem : {"", "other_"}) {
    const Comparison comparison = blame({}, {.has_identity = true}, stem);
    EXPECT_EQ(comparison.verdict, OverallVerdict::pass) << stem;
    EXPECT_TRUE(comparison.causes.empty()) << stem;
  }
}

}  // namespace
}  // namespace parallax
