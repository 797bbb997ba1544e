// SPDX-License-Identifier: Apache-2.0
// The verb `blame`, as a script calls it: two models, two executors, two dumps; exit codes and causes.
#include <string>

#include <gtest/gtest.h>

#include "inspector/model/io/export.h"
#include "inspector/model/io/import.h"
#include "tests/models/program.h"

namespace parallax::end_to_end {
namespace {

const nlohmann::json& first_cause(const Answer& answer) {
  static const nlohmann::json none;
  const nlohmann::json& causes = answer.document.at("causes");
  return causes.empty() ? none : causes.at(0);
}

TEST(BlameCommand, IsSilentOnHealthyExecutors) {
  const Answer answer = run_json({"blame", sample("cnn/model.onnx"), "--with", "reference,cpu"});
  EXPECT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.messages;
  EXPECT_TRUE(answer.document.at("causes").empty());
}

TEST(BlameCommand, SaysThatRoundingAloneMadeADifference) {
  const Answer answer =
      run_json({"blame", sample("resnet/model.onnx"), "--with", "reference,cpu", "--rtol", "0", "--atol", "0"});
  ASSERT_EQ(answer.exit_code, 1) << answer.command << "\n" << answer.messages;
  const nlohmann::json& cause = first_cause(answer);
  ASSERT_FALSE(cause.is_null());
  EXPECT_EQ(cause.at("side"), "unknown");
  EXPECT_EQ(cause.at("introduced"), 0);
  EXPECT_NE(cause.at("why").get<std::string>().find("rounding"), std::string::npos);
}

TEST(BlameCommand, NamesTheNodeThatDiffersBetweenTwoModels) {
  const Answer answer = run_json({"blame", sample("fault_pair/A.onnx"), "--against", sample("fault_pair/B.onnx"),
                                  "--inputs", sample("fault_pair/test_data_set_0")});
  ASSERT_EQ(answer.exit_code, 1) << answer.command << "\n" << answer.messages;
  ASSERT_FALSE(first_cause(answer).is_null());
  EXPECT_EQ(first_cause(answer).at("rank"), 1);
  EXPECT_EQ(first_cause(answer).at("node"), answer.document.at("first_divergence").at("node"));
}

TEST(BlameCommand, JudgesTwoDumps) {
  const ScratchFolder scratch;
  const std::string folder = scratch.file("dumps");
  ASSERT_EQ(run_json({"run", sample("scan_filter/model.onnx"), "--with", "reference,cpu", "--dump", folder}).exit_code,
            0);
  const Answer answer = run_json({"blame", folder + "/A-reference.plx", folder + "/B-cpu.plx"});
  EXPECT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.messages;
  EXPECT_EQ(answer.document.at("verdict"), "pass");
  EXPECT_EQ(run_json({"blame", folder + "/A-reference.plx"}).exit_code, 2);
  EXPECT_EQ(run_json({"blame", folder + "/A-reference.plx", folder + "/B-cpu.plx", "--with", "cpu"}).exit_code, 2);
}

// Values that are fused away or have another shape bound no error: a run with nothing fused away compares them, and the
// verdict is the same as that of an executor that fuses nothing.
TEST(BlameCommand, VerdictAndCausesAgreeWhereValuesWereFusedAway) {
  const ScratchFolder scratch;
  auto model = import_model(sample("fault_pair/A.onnx"));
  ASSERT_TRUE(model.ok());
  Model changed = **model;
  for (Node& node : changed.graph.nodes) {
    for (Attribute& attribute : node.attributes) {
      if (node.display_name == "stem/conv" && attribute.name == "strides") attribute.value = std::vector<int64_t>{3, 2};
    }
  }
  ASSERT_TRUE(export_model(changed, scratch.file("B.onnx")).ok());
  for (const char* with : {"reference", "cpu", "reference,cpu"}) {
    const Answer answer = run_json(
        {"run", sample("fault_pair/A.onnx"), "--against", scratch.file("B.onnx"), "--seed", "4", "--with", with});
    EXPECT_EQ(answer.exit_code, 1) << answer.command << "\n" << answer.messages;
    EXPECT_EQ(answer.document.at("verdict"), "diverged") << answer.command;
    ASSERT_FALSE(first_cause(answer).is_null()) << answer.command;
    EXPECT_EQ(first_cause(answer).at("node"), "stem/conv") << answer.command;
  }
}

TEST(BlameCommand, WantsTwoSides) {
  EXPECT_EQ(run_json({"blame", sample("cnn/model.onnx"), "--with", "cpu"}).exit_code, 2);
}

}  // namespace
}  // namespace parallax::end_to_end
