// SPDX-License-Identifier: Apache-2.0
// Properties that verdicts must keep: differences that data hide, limits of values after many that were not compared,
// quantized values between two steps; and the search for causes ends.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/diff/diagnose/find_causes.h"
#include "inspector/dump/dump_writer.h"
#include "inspector/executors/make_executor.h"
#include "inspector/model/io/import.h"
#include "tests/inspector/diff/dump_fixture.h"

namespace parallax {
namespace hidden_differences_test {

namespace fs = std::filesystem;
using testing::finished_model;
using testing::GraphBuilder;
using testing::sines;

// Shows a dump one value alone: a writer by itself keeps the graph's outputs whatever it is asked for.
class OneValue final : public Observer {
 public:
  OneValue(DumpWriter& writer, std::string_view name) : writer_(writer), name_(name) {}
  CaptureLevel wants(const ValueInfo& value_info) override {
    return value_info.name == name_ ? writer_.wants(value_info) : CaptureLevel::none;
  }
  Status begin_call(const CallInfo& call, std::span<const Value> inputs) override {
    return writer_.begin_call(call, inputs);
  }
  Status observe(const Observation& observation) override { return writer_.observe(observation); }
  Status end_call(const CallInfo& call) override { return writer_.end_call(call); }

 private:
  DumpWriter& writer_;
  std::string_view name_;
};

class HiddenDifferences : public testing::DumpTest {
 protected:
  std::shared_ptr<const DumpReader> run(const std::shared_ptr<const Model>& model, const std::string& file,
                                        const Tensor& x, const std::string& with = "reference",
                                        std::vector<std::string> only = {}, std::string_view one_value = {}) {
    DumpWriterOptions options;
    options.only = std::move(only);
    const auto show_one = [=](DumpWriter& writer) { return std::make_unique<OneValue>(writer, one_value); };
    if (one_value.empty()) return run_into_dump(model, file, x, with, std::move(options));
    return run_into_dump(model, file, x, with, std::move(options), show_one);
  }

  static Comparison concluded(const std::shared_ptr<const Model>& a, const std::shared_ptr<const DumpReader>& dump_a,
                              const std::shared_ptr<const Model>& b, const std::shared_ptr<const DumpReader>& dump_b) {
    BlameRequest request;
    request.a = {dump_a, a, {}, {}};
    request.b = {dump_b, b, {}, {}};
    request.oracle = make_executor("reference:double").take();
    Comparison comparison = compare_dumps(*dump_a, *dump_b, {}, {}).take();
    EXPECT_TRUE(testing::diagnose(request, comparison).ok());
    return comparison;
  }
};

// ---- Hidden by the data ----

std::shared_ptr<const Model> leaky(float alpha) {
  GraphBuilder builder(17);
  builder.input("x", "float32[6,16]").initializer("w", sines(Shape{16, 16}, 0.3, 0.7));
  builder.node("MatMul", {"x", "w"}, {"product"});
  builder.node("LeakyRelu", {"product"}, {"bent"}, {{"alpha", alpha}});
  builder.node("ReduceMax", {"bent"}, {"greatest"}, {{"axes", std::vector<int64_t>{1}}});
  builder.output("greatest");
  return finished_model(builder);
}

TEST_F(HiddenDifferences, AMaximumHidesNothing) {
  const Tensor x = sines(Shape{6, 16}, 1.0, 1.3);
  const auto a = leaky(0.1F), b = leaky(0.5F);
  const Comparison comparison = concluded(a, run(a, "a.plx", x), b, run(b, "b.plx", x));
  const auto greatest = std::ranges::find(comparison.values, "greatest", &ValueComparison::path);
  ASSERT_NE(greatest, comparison.values.end());
  ASSERT_EQ(greatest->verdict, Verdict::pass);  // the fault does not reach the output
  EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
  ASSERT_EQ(comparison.causes.size(), 1U);
  EXPECT_EQ(comparison.causes.front().path, "bent");
  EXPECT_NE(comparison.causes.front().why.find("alpha"), std::string::npos) << comparison.causes.front().why;
}

// x -> `bends`, one after the other, in the graph or in a function -> Tanh -> `last`, which hides what differs.
std::shared_ptr<const Model> bent(const std::vector<std::string>& bends, const std::string& last,
                                  bool in_function = false) {
  const auto node = [](const std::string& op, const std::string& in, const std::string& out) {
    return fmt::format("node {{ input: '{}' output: '{}' op_type: '{}' name: '{}_{}' }} ", in, out, op, op, out);
  };
  std::string nodes, from = in_function ? "from" : "x";
  for (size_t index = 0; index < bends.size(); ++index) {
    const std::string out = index + 1 == bends.size() ? "c" : fmt::format("b{}", index);
    nodes += node(bends[index], std::exchange(from, out), out);
  }
  const std::string opset = "opset_import { version: 17 } ";
  const std::string call = "node { input: 'x' output: 'c' op_type: 'Bend' domain: 'my' name: 'call' } ";
  const std::string text =
      "ir_version: 8 " + opset + "opset_import { domain: 'my' version: 1 } graph { name: 'g' " +
      (in_function ? call : nodes) + node("Tanh", "c", "r") + node(last, "r", "y") +
      "input { name: 'x' type { tensor_type { elem_type: 1 shape { dim { dim_value: 9 } dim { dim_value: 9 } } } } } "
      "output { name: 'y' } } " +
      (in_function ? "functions { name: 'Bend' domain: 'my' input: 'from' output: 'c' " + opset + nodes + "}" : "");
  return import_model(std::as_bytes(std::span(text)), "", text).take();
}

// The values computed from one value differ, except for the outputs: then the value is a pair, and its difference a
// fault.
TEST_F(HiddenDifferences, WhatAShapeOrASumHidesIsNoRounding) {
  const Tensor x = sines(Shape{9, 9}, 1.0, 1.3);
  const auto plain = bent({"Abs"}, "Shape"), called = bent({"Exp", "Abs"}, "Shape", true);
  const auto summed = bent({"Abs"}, "ReduceSum"), permuted = bent({"Transpose", "Abs"}, "ReduceSum", true);
  for (const auto& [a, b, culprits] :
       {std::tuple(plain, called, "Exp"), std::tuple(called, plain, "Exp"), std::tuple(summed, permuted, "Transpose"),
        std::tuple(permuted, summed, "Transpose")}) {
    const Comparison comparison = blame_on(x, a, b);
    EXPECT_EQ(comparison.verdict, OverallVerdict::diverged) << culprits;
    ASSERT_FALSE(comparison.causes.empty()) << culprits;
    EXPECT_EQ(comparison.causes.front().op, culprits) << comparison.causes.front().why;
  }
  EXPECT_EQ(blame_on(x, bent({"Abs"}, "Shape"), bent({"Abs"}, "Shape", true)).verdict, OverallVerdict::pass);
}

// A Transpose that does nothing vanishes where it is run, and with it what was to be compared.
TEST_F(HiddenDifferences, WhatVanishedInOneModelIsLookedAt) {
  const auto permuted = [](std::vector<int64_t> perm) {
    GraphBuilder builder(17);
    builder.input("x", "float32[8,8]").node("Transpose", {"x"}, {"c"}, {{"perm", std::move(perm)}});
    builder.node("Relu", {"c"}, {"r"}).node("ReduceSum", {"r"}, {"y"}, {{"keepdims", int64_t{0}}}).output("y");
    return finished_model(builder);
  };
  const Tensor x = sines(Shape{8, 8}, 1.0, 1.3);
  const auto a = permuted({0, 1}), b = permuted({1, 0});
  for (const auto& [first, second] : {std::pair(a, b), std::pair(b, a)}) {
    const Comparison comparison = blame_on(x, first, second, {}, "cpu");
    EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
    ASSERT_FALSE(comparison.causes.empty());
    EXPECT_NE(comparison.causes.front().why.find("attribute perm"), std::string::npos) << comparison.causes.front().why;
  }
}

// ---- After values that were not compared ----

constexpr int kBlocks = 40;

std::shared_ptr<const Model> blocks(float sign_of_last) {
  GraphBuilder builder(17);
  builder.input("x", "float32[4,32]");
  std::string stream = "x";
  for (int block = 0; block < kBlocks; ++block) {
    const std::string suffix = std::to_string(block);
    const double scale = block + 1 == kBlocks ? 0.3 * static_cast<double>(sign_of_last) : 0.3;
    builder.initializer("w" + suffix, sines(Shape{32, 32}, scale, 0.37 + 0.01 * block));
    builder.node("MatMul", {stream, "w" + suffix}, {"product" + suffix});
    builder.node("Tanh", {"product" + suffix}, {"bent" + suffix});
    builder.node("Add", {stream, "bent" + suffix}, {"sum" + suffix});
    stream = "sum" + suffix;
  }
  builder.output(stream);
  return finished_model(builder);
}

TEST_F(HiddenDifferences, OutputsAloneShowAFault) {
  const Tensor x = sines(Shape{4, 32}, 1.0, 1.3);
  const auto a = blocks(1), b = blocks(-1);
  const std::string output = "sum" + std::to_string(kBlocks - 1);
  const auto all = run(a, "all.plx", x), few = run(b, "few.plx", x, "reference", {"x", output});
  for (const auto& [first, second] : {std::pair{all, few}, std::pair{few, all}}) {
    const Comparison comparison = concluded(a, first, b, second);
    EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
    const auto value = std::ranges::find(comparison.values, output, &ValueComparison::path);
    ASSERT_NE(value, comparison.values.end());
    EXPECT_EQ(value->verdict, Verdict::diverged);
    EXPECT_LT(value->limit.rtol, 0.05);
  }
}

TEST_F(HiddenDifferences, OutputsAloneOfHealthyRunsPass) {
  const Tensor x = sines(Shape{4, 32}, 1.0, 1.3);
  const auto model = blocks(1);
  const std::string output = "sum" + std::to_string(kBlocks - 1);
  const Comparison comparison =
      concluded(model, run(model, "all.plx", x), model, run(model, "few.plx", x, "cpu", {"x", output}));
  EXPECT_EQ(comparison.verdict, OverallVerdict::pass);
}

TEST_F(HiddenDifferences, OutputsThatNoDumpHasAreMissed) {
  const Tensor x = sines(Shape{4, 32}, 1.0, 1.3);
  const auto a = blocks(1), b = blocks(-1);
  const auto dump_a = run(a, "a.plx", x, "reference", {}, "product1"),
             dump_b = run(b, "b.plx", x, "reference", {}, "product1");
  const Comparison comparison = compare_dumps(*dump_a, *dump_b, {}, {}).take();
  EXPECT_EQ(comparison.verdict, OverallVerdict::inconclusive);
  const auto value = std::ranges::find(comparison.values, "sum" + std::to_string(kBlocks - 1), &ValueComparison::path);
  ASSERT_NE(value, comparison.values.end());
  EXPECT_EQ(value->reason, "not captured");
}

// ---- Quantized values between two steps ----

TEST_F(HiddenDifferences, ManyTiesAreNoFault) {
  GraphBuilder builder(18);
  builder.input("x", "float32[1,8,32,32]").initializer("s", Tensor::scalar(0.0243F));
  builder.initializer("z", Tensor::scalar(int8_t{3}));
  builder.node("QuantizeLinear", {"x", "s", "z"}, {"q"}).node("DequantizeLinear", {"q", "s", "z"}, {"d"});
  builder.node("AveragePool", {"d"}, {"mean"},
               {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  builder.node("QuantizeLinear", {"mean", "s", "z"}, {"again"}).node("DequantizeLinear", {"again", "s", "z"}, {"y"});
  builder.output("y");
  const auto model = finished_model(builder);
  const Tensor x = sines(Shape{1, 8, 32, 32}, 1.5, 0.91);
  const auto a = run(model, "a.plx", x), b = run(model, "b.plx", x, "cpu");
  const Comparison before = compare_dumps(*a, *b, {}, {}).take();
  const auto again = std::ranges::find(before.values, "again", &ValueComparison::path);
  ASSERT_NE(again, before.values.end());
  ASSERT_EQ(again->verdict, Verdict::diverged) << "nothing is between two steps: the test proves nothing";
  const Comparison comparison = concluded(model, a, model, b);
  EXPECT_EQ(comparison.verdict, OverallVerdict::pass);
  EXPECT_TRUE(comparison.causes.empty());
}

}  // namespace hidden_differences_test
}  // namespace parallax
