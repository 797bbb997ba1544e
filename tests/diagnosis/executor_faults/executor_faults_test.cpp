// SPDX-License-Identifier: Apache-2.0
// The score of blame on spoilt executors, and silence on healthy ones.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <gtest/gtest.h>

#include "inspector/executors/make_executor.h"
#include "inspector/model/io/import.h"
#include "inspector/workbench/blame.h"
#include "inspector/workbench/run.h"
#include "tests/diagnosis/executor_faults/fault_list.h"

namespace parallax::diagnosis {
namespace {

std::string sample_folder(const std::string& sample) { return std::string(PX_SOURCE_DIR) + "/samples/" + sample; }

RunRequest request_of(const std::string& sample, std::vector<std::string> executors) {
  RunRequest request;
  request.model = sample_folder(sample) + "/model.onnx";
  request.inputs.source = sample_folder(sample) + "/test_data_set_0";
  request.executors = std::move(executors);
  request.options.rewrite.base = RewriteChoice::Base::none;  // every node keeps its own results
  return request;
}

struct Score {
  int faults = 0, detected = 0, first = 0, third = 0, in_context = 0, said_context = 0, right_side = 0, with_reason = 0,
      right_reason = 0;
};

// Position (from 1) of the first cause that is one of the struck nodes; 0: none.
size_t rank_of(const Comparison& comparison, const std::set<std::string>& struck) {
  for (size_t index = 0; index < comparison.causes.size(); ++index) {
    if (struck.contains(comparison.causes[index].node)) return index + 1;
  }
  return 0;
}

void judge(const Fault& fault, Score& score) {
  const RunRequest request = request_of(fault.sample, {"reference", "faulty"});
  const auto model = import_model(request.model).take();
  const std::set<std::string> struck = struck_nodes(fault, *model);
  ASSERT_FALSE(struck.empty()) << fault.name;
  const ExecutorFactory factory = [&](const std::string& name) -> Result<std::shared_ptr<Executor>> {
    if (name != "faulty") return make_executor(name);
    return make_faulty_executor(fault, PX_TRY(make_executor(fault.base)), struck);
  };
  const auto result = run_models(request, factory);
  ASSERT_TRUE(result.ok()) << fault.name << ": " << result.error().message;
  const Comparison& comparison = *result->comparison;
  ++score.faults;
  EXPECT_EQ(comparison.verdict, OverallVerdict::diverged) << fault.name;
  score.detected += comparison.verdict == OverallVerdict::diverged ? 1 : 0;
  const size_t rank = rank_of(comparison, struck);
  score.first += rank == 1 ? 1 : 0;
  score.third += rank >= 1 && rank <= 3 ? 1 : 0;
  std::printf("%-62s rank %zu of %zu", fault.name.c_str(), rank, comparison.causes.size());
  if (!comparison.causes.empty()) {
    const Cause& cause = comparison.causes[rank == 0 ? 0 : rank - 1];
    score.right_side += rank > 0 && cause.side == Side::b ? 1 : 0;
    const bool says_context = cause.why.find("only in context") != std::string::npos;
    score.with_reason += fault.says.empty() ? 0 : 1;
    score.right_reason += !fault.says.empty() && cause.why.find(fault.says) != std::string::npos ? 1 : 0;
    score.in_context += fault.in_context ? 1 : 0;
    score.said_context += fault.in_context && says_context ? 1 : 0;
    std::printf("  %s (%s), %.3g: %s", cause.node.c_str(), cause.op.c_str(), cause.introduced, cause.why.c_str());
  }
  std::printf("\n");
}

TEST(ExecutorFaults, AreFoundAtTheirNode) {
  Score score;
  for (const Fault& fault : executor_faults()) ASSERT_NO_FATAL_FAILURE(judge(fault, score));
  std::printf(
      "%d faults: %d detected, %d with the faulty node first (%.1f %%), %d among the first three, %d on the right "
      "side; %d of "
      "%d reported as wrong only in context; %d of %d reasons right\n",
      score.faults, score.detected, score.first, 100.0 * score.first / score.faults, score.third, score.right_side,
      score.said_context, score.in_context, score.right_reason, score.with_reason);
  EXPECT_GE(score.faults, 40);
  EXPECT_GE(score.in_context, 8);
  EXPECT_EQ(score.detected, score.faults);
  EXPECT_GE(score.first * 100, score.faults * 97);
  EXPECT_GE(score.right_side * 100, score.faults * 97);
  EXPECT_EQ(score.said_context, score.in_context);
  EXPECT_GE(score.right_reason * 100, score.with_reason * 95);
}

// Two dumps, without the executor that made the bad one; each side in turn is the bad one.
TEST(ExecutorFaults, AreFoundInDumpsAloneOnEitherSide) {
  int judged = 0, right = 0;
  for (size_t index = 0; index < executor_faults().size(); index += 5) {
    const Fault& fault = executor_faults()[index];
    const bool is_first = judged % 2 == 0;
    const std::string folder = testing::TempDir() + "/executor_faults_" + std::to_string(index);
    RunRequest request = request_of(fault.sample, {is_first ? "faulty" : "cpu", is_first ? "cpu" : "faulty"});
    request.dump_directory = folder;
    const std::set<std::string> struck = struck_nodes(fault, *import_model(request.model).take());
    const ExecutorFactory factory = [&](const std::string& name) -> Result<std::shared_ptr<Executor>> {
      if (name != "faulty") return make_executor(name);
      return make_faulty_executor(fault, PX_TRY(make_executor(fault.base)), struck);
    };
    const auto result = run_models(request, factory);
    ASSERT_TRUE(result.ok()) << fault.name << ": " << result.error().message;
    ASSERT_EQ(result->written.size(), 2U);
    auto opened = compare_files(result->written[0], result->written[1], {});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    ASSERT_TRUE(blame_files(result->written[0], result->written[1], {}, make_executor, opened->comparison).ok());
    const std::vector<Cause>& causes = opened->comparison.causes;
    const bool is_right = rank_of(opened->comparison, struck) == 1 && causes[0].side == (is_first ? Side::a : Side::b);
    EXPECT_TRUE(is_right) << fault.name << ": "
                          << (causes.empty() ? "no cause" : causes[0].node + ": " + causes[0].why);
    right += is_right ? 1 : 0;
    ++judged;
    std::filesystem::remove_all(folder);
  }
  std::printf("%d of %d found from two dumps\n", right, judged);
  EXPECT_GE(judged, 10);
}

constexpr const char* kSamples[] = {"cnn",         "resnet",     "mobilenet", "recurrent", "greedy_decoder",
                                    "scan_filter", "llama_layer"};

class HealthyPairs : public testing::TestWithParam<const char*> {};

TEST_P(HealthyPairs, RaiseNoAlarm) {
  for (const RewriteChoice::Base rewrite : {RewriteChoice::Base::none, RewriteChoice::Base::all}) {
    RunRequest request = request_of(GetParam(), {"reference", "cpu"});
    request.options.rewrite.base = rewrite;
    const auto result = run_models(request, make_executor);
    ASSERT_TRUE(result.ok()) << result.error().message;
    EXPECT_EQ(result->comparison->verdict, OverallVerdict::pass);
    EXPECT_TRUE(result->comparison->causes.empty());
  }
}

// Asked to explain every last bit, blame finds rounding, and no node that is wrong.
TEST_P(HealthyPairs, HoldNoCulpritUnderBitwiseComparison) {
  RunRequest request = request_of(GetParam(), {"reference", "cpu"});
  request.policy.tolerance = Tolerance{0, 0};
  const auto result = run_models(request, make_executor);
  ASSERT_TRUE(result.ok()) << result.error().message;
  for (const Cause& cause : result->comparison->causes) {
    EXPECT_FALSE(cause.introduced > 1) << cause.node << " (" << cause.op << "), " << cause.introduced << ": "
                                       << cause.why;
  }
}

INSTANTIATE_TEST_SUITE_P(Samples, HealthyPairs, testing::ValuesIn(kSamples));

}  // namespace
}  // namespace parallax::diagnosis
