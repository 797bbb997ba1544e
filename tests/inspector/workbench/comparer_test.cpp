// SPDX-License-Identifier: Apache-2.0
// A Comparer: calls that follow each other, failures and cancelled calls among them; and models in memory in other
// jobs.
#include "inspector/workbench/comparer.h"

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>

#include "inspector/executors/make_executor.h"
#include "inspector/workbench/profile.h"

namespace parallax {
namespace {

const ExecutorFactory kFactory = [](const std::string& name) { return make_executor(name); };

// x [n] -> Gather in a table of 4 rows -> Sin or what stands in its place.
std::shared_ptr<const Model> table_model(const std::string& op) {
  const std::string text = R"(
ir_version: 8
opset_import { domain: "" version: 17 }
graph {
  name: "g"
  node { name: "look" input: "table" input: "ids" output: "row" op_type: "Gather" }
  node { name: "last" input: "row" output: "y" op_type: ")" +
                           op + R"(" }
  initializer { name: "table" data_type: 1 dims: 4 float_data: [0.1,1,2,3] }
  input { name: "ids" type { tensor_type { elem_type: 7 shape { dim { dim_param: "n" } } } } }
  output { name: "y" type { tensor_type { elem_type: 1 } } }
}
)";
  auto model = import_model(std::as_bytes(std::span(text)), "", "table of " + op);
  EXPECT_TRUE(model.ok()) << (model.ok() ? "" : model.error().message);
  return model.take();
}

std::vector<Value> ids(std::vector<int64_t> numbers) {
  Tensor tensor = Tensor::allocate(DType::int64, Shape{static_cast<int64_t>(numbers.size())}).take();
  std::ranges::copy(numbers, tensor.mutable_as<int64_t>().begin());
  std::vector<Value> values;
  values.emplace_back(std::move(tensor));
  return values;
}

RunRequest request_of(const std::string& a, const std::string& b = "") {
  RunRequest request;
  request.model_in_memory = table_model(a);
  if (!b.empty()) request.against_in_memory = table_model(b);
  request.executors = {"reference", "cpu"};
  return request;
}

std::unique_ptr<Comparer> comparer_of(RunRequest request) {
  auto comparer = Comparer::create(std::move(request), kFactory);
  EXPECT_TRUE(comparer.ok()) << (comparer.ok() ? "" : comparer.error().message);
  return comparer.take();
}

TEST(Comparer, ComparesEveryCallByItself) {
  const auto comparer = comparer_of(request_of("Sin"));
  for (int64_t count = 1; count < 4; ++count) {
    const auto call = comparer->run(ids(std::vector<int64_t>(static_cast<size_t>(count), count)));
    ASSERT_TRUE(call.ok()) << call.error().message;
    EXPECT_EQ(call->comparison.verdict, OverallVerdict::pass);
    EXPECT_EQ(call->comparison.summary.compared, 4);  // ids, table, row, y
    ASSERT_EQ(call->outputs_b.size(), 1U);
    EXPECT_EQ(call->outputs_b[0].tensor().shape(), Shape{count});
    EXPECT_EQ(call->outputs_a[0].tensor().shape(), Shape{count});
    EXPECT_EQ(call->comparison.executions[1].name, "cpu");
  }
}

// StringConcat has no kernel of ours: the reference computes it for both sides.
TEST(Comparer, ValuesOfOneProgramAreNotCompared) {
  const std::string words = R"(type { tensor_type { elem_type: 8 shape { dim { dim_value: 2 } } } })";
  const std::string text = R"(ir_version: 8 opset_import { version: 20 } graph { name: "g"
    node { name: "join" input: "x" input: "x" output: "y" op_type: "StringConcat" }
    input { name: "x" )" + words +
                           R"( } output { name: "y" )" + words + " } }";
  RunRequest request;
  request.model_in_memory = import_model(std::as_bytes(std::span(text)), "", "words").take();
  request.executors = {"reference", "cpu"};
  request.fallback = "reference";
  Tensor x = Tensor::allocate(DType::string, Shape{2}).take();
  x.mutable_as<std::string>()[0] = "a";
  std::vector<Value> inputs;
  inputs.emplace_back(std::move(x));
  const auto call = comparer_of(request)->run(inputs);
  ASSERT_TRUE(call.ok()) << call.error().message;
  const auto y = std::ranges::find(call->comparison.values, "y", &ValueComparison::path);
  ASSERT_NE(y, call->comparison.values.end());
  EXPECT_EQ(y->verdict, Verdict::not_compared);
  EXPECT_EQ(y->reason, "same program");
  EXPECT_EQ(call->comparison.verdict, OverallVerdict::inconclusive);
  EXPECT_EQ(call->comparison.executions[1].name, "cpu");
}

TEST(Comparer, FindsCausesWhereAsked) {
  const auto comparer = comparer_of(request_of("Sin", "Cos"));
  auto call = comparer->run(ids({1, 2, 3}));
  ASSERT_TRUE(call.ok()) << call.error().message;
  EXPECT_EQ(call->comparison.verdict, OverallVerdict::diverged);
  EXPECT_TRUE(call->comparison.causes.empty());
  call = comparer->run(ids({1, 2, 3}), true);
  ASSERT_TRUE(call.ok()) << call.error().message;
  ASSERT_FALSE(call->comparison.causes.empty());
  EXPECT_EQ(call->comparison.causes[0].node, "last");
}

TEST(Comparer, GoesOnAfterAFailedCall) {
  const auto comparer = comparer_of(request_of("Sin"));
  const auto failed = comparer->run(ids({7}));
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, ErrorCode::execution);
  EXPECT_EQ(failed.error().node, "look");
  EXPECT_EQ(comparer->run({}).error().code, ErrorCode::usage);
  EXPECT_EQ(comparer->run(ids({3}))->comparison.verdict, OverallVerdict::pass);
}

TEST(Comparer, GoesOnAfterACancelledCall) {
  const auto comparer = comparer_of(request_of("Sin"));
  comparer->cancel_token().cancel();
  EXPECT_EQ(comparer->run(ids({1})).error().code, ErrorCode::cancelled);
  EXPECT_EQ(comparer->run(ids({1}))->comparison.verdict, OverallVerdict::pass);
}

TEST(Comparer, RefusesModelsWithOtherInputs) {
  RunRequest request = request_of("Sin");
  auto other = import_model(std::string(PX_SOURCE_DIR) + "/samples/cnn/model.onnx");
  ASSERT_TRUE(other.ok());
  request.against_in_memory = *other;
  const auto comparer = Comparer::create(std::move(request), kFactory);
  ASSERT_TRUE(comparer.ok()) << comparer.error().message;
  EXPECT_EQ((*comparer)->run(ids({1})).error().code, ErrorCode::usage);
}

TEST(ModelsInMemory, RunAsFilesDo) {
  RunRequest request = request_of("Sin", "Cos");
  request.inputs.values["ids"] = ids({0, 3})[0];
  const auto result = run_models(request, kFactory);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ(result->comparison->verdict, OverallVerdict::diverged);
  ASSERT_FALSE(result->comparison->causes.empty());
  EXPECT_EQ(result->comparison->causes[0].node, "last");
  request.against_in_memory = nullptr;
  request.executors = {"cpu"};
  const auto single = run_models(request, kFactory);
  ASSERT_TRUE(single.ok()) << single.error().message;
  ASSERT_EQ(single->output_values.size(), 1U);
  EXPECT_EQ(single->output_values[0].name, "y");
  EXPECT_EQ(single->output_values[0].value.tensor().shape(), Shape{2});
  EXPECT_TRUE(bench_model(request, 1, kFactory).ok());
  EXPECT_EQ(profile_model(request, 1, kFactory)->nodes.size(), 2U);
}

TEST(CancelledJobs, EndWithThatError) {
  RunRequest request = request_of("Sin");
  request.inputs.values["ids"] = ids({0})[0];
  request.options.cancel.cancel();
  EXPECT_EQ(run_models(request, kFactory).error().code, ErrorCode::cancelled);
  request.executors = {"cpu"};
  EXPECT_EQ(bench_model(request, 1'000'000, kFactory).error().code, ErrorCode::cancelled);
  EXPECT_EQ(profile_model(request, 1'000'000, kFactory).error().code, ErrorCode::cancelled);
}

}  // namespace
}  // namespace parallax
