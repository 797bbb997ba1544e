// SPDX-License-Identifier: Apache-2.0
// The samples on the two executors: they agree with each other and with their data sets, and nothing is left out.
#include <array>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "inspector/model/io/import.h"
#include "tests/models/program.h"

namespace parallax::end_to_end {
namespace {

constexpr std::array kSamples = {"llama_layer",    "cnn",        "resnet", "mobilenet", "recurrent",
                                 "greedy_decoder", "scan_filter"};

Answer run_sample(const std::string& name, const std::string& executors) {
  return run_json({"run", sample(name + "/model.onnx"), "--with", executors, "--inputs",
                   sample(name + "/test_data_set_0"), "--observe-all"});
}

std::set<std::string> paths_of(const nlohmann::json& document) {
  std::set<std::string> paths;
  for (const nlohmann::json& value : document.at("values")) paths.insert(value.at("path").get<std::string>());
  return paths;
}

bool is_float(const nlohmann::json& value) {
  const std::string dtype = value.at("dtype").is_string() ? value.at("dtype").get<std::string>() : "";
  return dtype == "float32" || dtype == "float64" || dtype == "float16" || dtype == "bfloat16";
}

class Samples : public testing::TestWithParam<const char*> {};

TEST_P(Samples, AgreeOnTwoExecutorsAndWithTheirDataSet) {
  const Answer answer = run_sample(GetParam(), "reference,cpu");
  ASSERT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.messages;
  EXPECT_EQ(answer.document.at("verdict"), "pass") << answer.command;
  for (const nlohmann::json& value : answer.document.at("values")) {
    if (is_float(value)) {
      EXPECT_EQ(value.at("verdict"), "pass") << value.at("path") << " in " << answer.command;
    }
  }
  ASSERT_FALSE(answer.document.at("expected").empty()) << answer.command;
  for (const nlohmann::json& value : answer.document.at("expected")) {
    EXPECT_EQ(value.at("verdict"), "pass") << value.at("path") << " in " << answer.command;
  }
}

// Two executors that share no arithmetic do not agree to the last bit everywhere: were every difference 0, one of them
// would be a copy of the other. The control-flow samples compute too little for that to be certain.
TEST_P(Samples, AreComputedTwice) {
  const std::string name = GetParam();
  if (name == "greedy_decoder" || name == "scan_filter") GTEST_SKIP() << "too few operations to round differently";
  const Answer answer = run_sample(name, "reference,cpu");
  ASSERT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.messages;
  double largest = 0;
  for (const nlohmann::json& value : answer.document.at("values")) {
    if (value.at("metrics").is_object()) largest = std::max(largest, value.at("metrics").at("max_abs").get<double>());
  }
  EXPECT_GT(largest, 0) << answer.command;
}

TEST_P(Samples, HoldEveryValueOfTheGraph) {
  const auto model = import_model(sample(std::string(GetParam()) + "/model.onnx"));
  ASSERT_TRUE(model.ok());
  const Answer answer = run_sample(GetParam(), "reference,cpu");
  ASSERT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.messages;
  const std::set<std::string> paths = paths_of(answer.document);
  for (const ValueDef& value : (*model.value()).graph.values) {
    if (value.producer != kNoNode) {
      EXPECT_TRUE(paths.count(value.name)) << value.name << " in " << answer.command;
    }
  }
}

// Rounding to float after every operator against carrying double: close, and not the same.
TEST_P(Samples, AreCloseToDoublePrecision) {
  const Answer answer = run_sample(GetParam(), "reference:double,reference");
  EXPECT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.messages;
  EXPECT_EQ(answer.document.value("verdict", ""), "pass");
}

TEST_P(Samples, OneExecutorIsJudgedByTheDataSet) {
  const std::string name = GetParam();
  for (const std::string executor : {"reference", "cpu"}) {
    const Answer answer = run_json(
        {"run", sample(name + "/model.onnx"), "--with", executor, "--inputs", sample(name + "/test_data_set_0")});
    EXPECT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.messages;
    EXPECT_EQ(answer.document.value("verdict", ""), "pass") << answer.command;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Samples, testing::ValuesIn(kSamples),
                         [](const testing::TestParamInfo<const char*>& parameter) { return parameter.param; });

// A path that a report prints chooses that value, and no other iteration's.
TEST(ControlFlowSamples, OneIterationCanBeChosen) {
  const Answer answer = run_json({"run", sample("greedy_decoder/model.onnx"), "--with", "reference,cpu", "--inputs",
                                  sample("greedy_decoder/test_data_set_0"), "--only", "decode.body[1]//picked"});
  ASSERT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.messages;
  EXPECT_FALSE(value_at(answer.document, "decode.body[1]//picked").is_null()) << answer.command;
  EXPECT_TRUE(value_at(answer.document, "decode.body[2]//picked").is_null()) << answer.command;
}

// The first model's outputs are what the faulty one is expected to give: rounding does not explain the difference.
TEST(FaultPair, OneExecutorDoesNotPassForItsRounding) {
  const Answer answer =
      run_json({"run", sample("fault_pair/B.onnx"), "--with", "cpu", "--inputs", sample("fault_pair/test_data_set_0")});
  EXPECT_EQ(answer.exit_code, 1) << answer.command << "\n" << answer.messages;
  EXPECT_EQ(answer.document.value("verdict", ""), "diverged") << answer.command;
}

// The decoder ends at its ninth token; its state is halved in steps 0, 1, 5, 7 and 8 (computed separately, in numpy).
TEST(ControlFlowSamples, HoldEveryIterationAndTheBranchTaken) {
  const Answer answer = run_sample("greedy_decoder", "reference,cpu");
  ASSERT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.messages;
  const std::set<std::string> paths = paths_of(answer.document);
  constexpr std::array kHalved = {true, true, false, false, false, true, false, true, true};
  for (size_t step = 0; step < kHalved.size(); ++step) {
    const std::string frame = "decode.body[" + std::to_string(step) + "]//";
    for (const char* name : {"scores", "probabilities", "picked", "moved", "state_out", "condition_out", "token"}) {
      EXPECT_TRUE(paths.count(frame + name)) << frame << name;
    }
    EXPECT_EQ(paths.count(frame + "rescale.then//halved"), kHalved[step] ? 1U : 0U) << frame;
    EXPECT_EQ(paths.count(frame + "rescale.else//kept"), kHalved[step] ? 0U : 1U) << frame;
  }
  EXPECT_FALSE(paths.count("decode.body[9]//scores"));
}

TEST(ControlFlowSamples, HoldTheScanInsideTheBranch) {
  const Answer answer = run_sample("scan_filter", "reference,cpu");
  ASSERT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.messages;
  const std::set<std::string> paths = paths_of(answer.document);
  for (int step = 0; step < 6; ++step) {
    const std::string frame = "choose.then//filter.body[" + std::to_string(step) + "]//";
    for (const char* name : {"open", "gated_sample", "delta", "change", "level_out", "level"}) {
      EXPECT_TRUE(paths.count(frame + name)) << frame << name;
    }
  }
  EXPECT_FALSE(paths.count("choose.then//filter.body[6]//open"));
  EXPECT_FALSE(paths.count("choose.else//unfiltered"));
}

TEST(TextSamples, AnswerAsTheirBinaryForm) {
  for (const std::string name : {"greedy_decoder", "scan_filter"}) {
    const Answer answer = run_json({"run", sample(name + "/model.onnx"), "--against", sample(name + "/model.textproto"),
                                    "--inputs", sample(name + "/test_data_set_0")});
    ASSERT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.messages;
    for (const nlohmann::json& value : answer.document.at("values")) {
      EXPECT_EQ(value.at("severity"), 0) << value.at("path") << " in " << answer.command;
    }
  }
}

}  // namespace
}  // namespace parallax::end_to_end
