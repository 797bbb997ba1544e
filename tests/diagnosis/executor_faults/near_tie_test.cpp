// SPDX-License-Identifier: Apache-2.0
// Choices that a rounding decides pass, with the reason; choices that a fault decides do not.
#include <array>
#include <filesystem>

#include <gtest/gtest.h>

#include "inspector/executors/make_executor.h"
#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "inspector/workbench/run.h"
#include "tests/diagnosis/executor_faults/faulty_executor.h"

namespace parallax::diagnosis {
namespace {

// scores = x * w, then a choice of each kind. x and w are such that two scores are equal.
constexpr std::string_view kModel = R"(
ir_version: 8
opset_import { domain: "" version: 17 }
graph {
  name: "choices"
  node { input: "x" input: "w" output: "scores" name: "score" op_type: "Mul" }
  node { input: "scores" output: "best" name: "best" op_type: "ArgMax" attribute { name: "axis" i: 0 type: INT } }
  node { input: "scores" input: "two" output: "top" output: "order" name: "top" op_type: "TopK" }
  node { input: "scores" output: "whole" name: "whole" op_type: "Round" }
  node { input: "scores" input: "scale" input: "zero" output: "steps" name: "steps" op_type: "QuantizeLinear" }
  node { input: "scores" input: "bound" output: "above" name: "above" op_type: "Greater" }
  initializer { name: "w" data_type: 1 dims: 4 float_data: [0.5, 1.0, 1.0, 0.25] }
  initializer { name: "two" data_type: 7 dims: 1 int64_data: [2] }
  initializer { name: "scale" data_type: 1 float_data: [1.0] }
  initializer { name: "zero" data_type: 3 int32_data: [0] }
  initializer { name: "bound" data_type: 1 float_data: [2.5] }
  input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } } } } }
  output { name: "best" type { tensor_type { elem_type: 7 } } }
  output { name: "order" type { tensor_type { elem_type: 7 } } }
  output { name: "whole" type { tensor_type { elem_type: 1 } } }
  output { name: "steps" type { tensor_type { elem_type: 3 } } }
  output { name: "above" type { tensor_type { elem_type: 9 } } }
}
)";

// Runs the model on `reference` and on a `cpu` whose product is struck.
Result<RunResult> run_with(void (*strike)(Surgeon&)) {
  const std::string path = testing::TempDir() + "/near_ties.onnx";
  const auto model = PX_TRY(import_model(std::as_bytes(std::span(kModel)), "", "choices"));
  PX_TRY(export_model(*model, path));
  const Fault fault{"", "", "cpu", "Mul", -1, false, "", strike};
  const ExecutorFactory factory = [&](const std::string& name) -> Result<std::shared_ptr<Executor>> {
    if (name != "faulty") return make_executor(name);
    return make_faulty_executor(fault, PX_TRY(make_executor("cpu")), {"score"});
  };
  RunRequest request;
  request.model = path;
  request.executors = {"reference", "faulty"};
  request.inputs.shapes["x"] = {4};
  request.inputs.ranges["x"] = {2.5, 2.5};
  return run_models(request, factory);
}

void move_third(Surgeon& surgeon, float by) {
  const std::array<float, 4> factors = {1, 1, by, 1};
  const ValueId right = surgeon.take_output();
  surgeon.give_output(surgeon.emit("Mul", {right, surgeon.constant(Tensor::vector<float>(factors))}));
}

const ValueComparison& value_named(const Comparison& comparison, std::string_view path) {
  for (const ValueComparison& value : comparison.values) {
    if (value.path == path) return value;
  }
  static const ValueComparison none;
  return none;
}

TEST(NearTies, PassWithTheirReason) {
  const auto result = run_with([](Surgeon& surgeon) { move_third(surgeon, 1 + 0x1p-23F); });
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Comparison& comparison = *result->comparison;
  EXPECT_EQ(comparison.verdict, OverallVerdict::pass);
  EXPECT_TRUE(comparison.causes.empty());
  for (const char* chosen : {"best", "order"}) {
    const ValueComparison& value = value_named(comparison, chosen);
    EXPECT_EQ(value.verdict, Verdict::pass) << chosen;
    EXPECT_EQ(value.reason, "near tie: scores differ by 1 ULP") << chosen;
    ASSERT_TRUE(value.accepted.has_value()) << chosen;
    EXPECT_EQ(value.accepted->reason, "near tie");
    EXPECT_EQ(value.accepted->evidence, "scores differ by 1 ULP");
    EXPECT_EQ(value.limit.from, LimitSource::table);
    EXPECT_GT(value.severity, 1);
  }
  for (const char* chosen : {"steps", "above"}) {
    EXPECT_NE(value_named(comparison, chosen).reason.find("near tie"), std::string::npos) << chosen;
  }
  EXPECT_EQ(value_named(comparison, "whole").verdict, Verdict::pass);
}

TEST(NearTies, DoNotExcuseAFault) {
  const auto result = run_with([](Surgeon& surgeon) { move_third(surgeon, 1.0001F); });
  ASSERT_TRUE(result.ok()) << result.error().message;
  const Comparison& comparison = *result->comparison;
  EXPECT_EQ(comparison.verdict, OverallVerdict::diverged);
  ASSERT_FALSE(comparison.causes.empty());
  EXPECT_EQ(comparison.causes[0].node, "score");
  EXPECT_EQ(value_named(comparison, "best").verdict, Verdict::diverged);
}

}  // namespace
}  // namespace parallax::diagnosis
