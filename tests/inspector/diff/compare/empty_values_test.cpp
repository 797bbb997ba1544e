// SPDX-License-Identifier: Apache-2.0
// Runs on inputs without elements: equal shapes prove nothing of what a model computes, and the verdict says so; a
// model in which some values are empty keeps its verdict.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "inspector/executors/make_executor.h"
#include "inspector/workbench/open.h"
#include "inspector/workbench/run.h"
#include "tests/runtime/model_text.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;
using model_text::node;

constexpr std::string_view kNothing =
    "nothing was compared but types and shapes: no value that is computed from the inputs has elements";

std::string with_shape(const std::string& role, const std::string& name, const std::string& dims, int elem_type = 1) {
  std::string shape = "shape { ";
  for (const char dim : dims) {
    shape += dim == 'N'   ? "dim { dim_param: \"batch\" } "
             : dim == '?' ? "dim { } "
                          : std::string("dim { dim_value: ") + dim + " } ";
  }
  return model_text::value(role, name, elem_type, shape + "}");
}

class EmptyValues : public ::testing::Test {
 protected:
  EmptyValues() : folder_(fs::temp_directory_path() / ("parallax_empty_values_test-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
    request_.executors = {"reference", "cpu"};
  }
  ~EmptyValues() override { fs::remove_all(folder_); }

  Comparison run(const std::string& graph) {
    request_.model = (folder_ / "model.textproto").string();
    std::ofstream(request_.model) << "ir_version: 8 opset_import { version: 17 } graph { name: \"g\" " << graph << " }";
    const auto result = run_models(request_, [](const std::string& name) { return make_executor(name); });
    EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
    return result.ok() && result->comparison.has_value() ? *result->comparison : Comparison();
  }

  fs::path folder_;
  RunRequest request_;
};

// Weights have elements, and the scale is a float made of a shape: neither says anything of what the model computes.
const std::string& attention_like() {
  static const std::string text =
      node("MatMul", {"x", "w"}, {"h"}) + node("Shape", {"h"}, {"shape"}) +
      node("Gather", {"shape", "one"}, {"width"}) +
      node("Cast", {"width"}, {"width_f"}, "attribute { name: \"to\" type: INT i: 1 }") +
      node("Sqrt", {"width_f"}, {"scale"}) + node("Div", {"h", "scale"}, {"y"}) +
      "initializer { dims: 2 dims: 3 data_type: 1 name: \"w\" float_data: [1, 2, 3, 4, 5, 6] } "
      "initializer { data_type: 7 name: \"one\" int64_data: [1] } " +
      with_shape("input", "x", "N2") + with_shape("output", "y", "N3");
  return text;
}

TEST_F(EmptyValues, OfAnEmptyBatchProveNothing) {
  request_.inputs.dims["batch"] = 0;
  const Comparison comparison = run(attention_like());
  EXPECT_EQ(comparison.verdict, OverallVerdict::inconclusive);
  EXPECT_EQ(comparison.reason, kNothing);
  EXPECT_EQ(comparison.summary.diverged, 0);
  EXPECT_GT(comparison.summary.compared, 3) << "each is compared, trivially";
  EXPECT_FALSE(comparison.first_divergence.has_value());
}

TEST_F(EmptyValues, OfABatchThatHoldsSomethingProveIt) {
  request_.inputs.dims["batch"] = 2;
  const Comparison comparison = run(attention_like());
  EXPECT_EQ(comparison.verdict, OverallVerdict::pass) << comparison.reason;
  EXPECT_EQ(comparison.reason, "");
}

TEST_F(EmptyValues, ProveNothingInDumpsEither) {
  request_.inputs.dims["batch"] = 0;
  for (const CaptureLevel level : {CaptureLevel::all, CaptureLevel::stats}) {
    request_.capture = level;
    request_.dump_directory = folder_.string();
    (void)run(attention_like());
    const auto opened = compare_files(folder_ / "A-reference.plx", folder_ / "B-cpu.plx", {});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    EXPECT_EQ(opened->comparison.verdict, OverallVerdict::inconclusive);
    EXPECT_EQ(opened->comparison.reason, kNothing);
  }
}

// Only the outputs are compared, so that nothing is known of the inputs.
TEST_F(EmptyValues, ProveNothingWhereOutputsAloneAreCompared) {
  request_.inputs.dims["batch"] = 0;
  request_.capture = CaptureLevel::none;
  EXPECT_EQ(run(attention_like()).reason, kNothing);
}

// The indices are none because the input holds zeros: both sides had to look.
TEST_F(EmptyValues, FoundInAnInputWithElementsProveSomething) {
  request_.inputs.ranges["x"] = {0, 0};
  const Comparison comparison =
      run(node("NonZero", {"x"}, {"i"}) + node("Cast", {"i"}, {"y"}, "attribute { name: \"to\" type: INT i: 1 }") +
          with_shape("input", "x", "4") + with_shape("output", "y", "1?"));
  EXPECT_EQ(comparison.verdict, OverallVerdict::pass) << comparison.reason;
}

// A decoder's first step: the past is empty, what is made of it is not.
TEST_F(EmptyValues, AmongOthersChangeNothing) {
  request_.inputs.dims["batch"] = 0;  // here the length of the past
  const Comparison comparison =
      run(node("Neg", {"past"}, {"kept"}) +
          node("Concat", {"kept", "x"}, {"all"}, "attribute { name: \"axis\" type: INT i: 0 }") +
          node("Exp", {"all"}, {"y"}) + with_shape("input", "past", "N2") + with_shape("input", "x", "12") +
          with_shape("output", "y", "??"));
  EXPECT_EQ(comparison.verdict, OverallVerdict::pass) << comparison.reason;
}

// Integers alone decide where there is nothing else.
TEST_F(EmptyValues, OfIntegersAloneProveNothing) {
  const std::string graph = node("Neg", {"x"}, {"h"}) + node("Abs", {"h"}, {"y"}) + with_shape("input", "x", "N2", 7) +
                            with_shape("output", "y", "N2", 7);
  request_.inputs.dims["batch"] = 0;
  EXPECT_EQ(run(graph).reason, kNothing);
  request_.inputs.dims["batch"] = 1;
  EXPECT_EQ(run(graph).verdict, OverallVerdict::pass);
}

// A difference is reported however empty the other values are; and an output that a data set expects counts.
TEST(EmptyVerdict, DoesNotHideWhatHasElements) {
  Comparison comparison;
  ValueComparison empty;
  empty.path = empty.a = empty.b = "y";
  empty.dtype = "float32";
  empty.shape = {0, 3};
  empty.metrics = Metrics{};
  empty.verdict = Verdict::pass;
  ValueComparison weight = empty;
  weight.path = weight.a = weight.b = "w";
  weight.origin = Origin::constant;
  weight.metrics->count = 4;
  comparison.values = {weight, empty};
  conclude(comparison);
  EXPECT_EQ(comparison.reason, kNothing);
  comparison.expected = {empty};
  conclude(comparison);
  EXPECT_EQ(comparison.reason, kNothing);
  comparison.expected.front().shape = {2, 3};
  conclude(comparison);
  EXPECT_EQ(comparison.verdict, OverallVerdict::pass) << "a data set's elements were met";
  comparison.values[0].verdict = Verdict::diverged;
  conclude(comparison);
  EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
  EXPECT_EQ(comparison.reason, "");
}

}  // namespace
}  // namespace parallax
