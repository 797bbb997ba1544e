// SPDX-License-Identifier: Apache-2.0
// `extract` and `reduce` as a script calls them: documents, files, exit codes, and the script that repeats a finding.
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/models/program.h"

namespace parallax::end_to_end {
namespace {

int shell(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ExtractVerb, WritesABackendTestThatPasses) {
  const ScratchFolder scratch;
  const std::string part = scratch.file("part");
  const Answer answer = run_json({"extract", sample("greedy_decoder/model.onnx"), "--from", "decode.body[2]//scaled",
                                  "--to", "decode.body[2]//state_out", "-o", part});
  ASSERT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.messages;
  EXPECT_EQ(answer.document.at("nodes"), 9);
  EXPECT_EQ(answer.document.at("inputs"), nlohmann::json({"scaled", "state_in"}));
  EXPECT_EQ(answer.document.at("outputs"), nlohmann::json({"state_out"}));
  EXPECT_EQ(answer.document.at("written").size(), 2U);
  const Answer test = run_json({"test", part});
  EXPECT_EQ(test.exit_code, 0) << test.command << "\n" << test.document.dump();
  EXPECT_EQ(test.document.at("passed"), 1);
}

TEST(ExtractVerb, AnswersMistakesWithUsageErrors) {
  const ScratchFolder scratch;
  const Answer unknown =
      run_json({"extract", sample("cnn/model.onnx"), "--to", "max_pool2c", "-o", scratch.file("part")});
  EXPECT_EQ(unknown.exit_code, 2) << unknown.command;
  EXPECT_NE(unknown.document.at("error").at("message").get<std::string>().find("'max_pool2d'"), std::string::npos);
  const Answer refused = run_json(
      {"extract", sample("cnn/model.onnx"), "--from", "add", "--to", "max_pool2d", "-o", scratch.file("part")});
  EXPECT_EQ(refused.exit_code, 2) << refused.command;
  EXPECT_FALSE(std::filesystem::exists(scratch.file("part")));
}

TEST(ReduceVerb, LeavesAScriptThatRepeatsTheFinding) {
  const ScratchFolder scratch;
  const std::string small = scratch.file("small");
  const Answer answer = run_json({"reduce", sample("fault_pair/A.onnx"), "--against", sample("fault_pair/B.onnx"),
                                  "--inputs", sample("fault_pair/test_data_set_0"), "-o", small});
  ASSERT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.messages << answer.document.dump();
  EXPECT_LE(answer.document.at("nodes").get<int>(), 3);
  EXPECT_EQ(answer.document.at("names").size(), answer.document.at("nodes").get<size_t>());
  const std::string repeat = "PARALLAX='" PX_PROGRAM "' " + small + "/repeat.sh >" + scratch.file("out") + " 2>&1";
  EXPECT_EQ(shell(repeat), 1) << repeat;
  EXPECT_EQ(shell("grep -q diverged " + scratch.file("out")), 0);
}

// Nothing diverges where shapes differ, and yet the definition of one node is another.
TEST(ReduceVerb, TakesAnotherShapeForAFailure) {
  const ScratchFolder scratch;
  const auto write = [&](const std::string& name, const std::string& dims) {
    std::ofstream(scratch.file(name)) << R"(ir_version: 8 opset_import { version: 17 } graph { name: "g"
      node { op_type: "Relu" name: "relu" input: "x" output: "a" }
      node { op_type: "Reshape" name: "fold" input: "a" input: "dims" output: "b" }
      node { op_type: "Exp" name: "exp" input: "b" output: "c" }
      node { op_type: "Neg" name: "neg" input: "c" output: "y" }
      initializer { name: "dims" data_type: 7 dims: 2 )" +
                                             dims + R"( }
      input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 6 } } } } }
      output { name: "y" type { tensor_type { elem_type: 1 } } } })";
    return scratch.file(name);
  };
  const std::string a = write("a.textproto", "int64_data: 2 int64_data: 3");
  const std::string b = write("b.textproto", "int64_data: 3 int64_data: 2");
  const Answer answer = run_json({"reduce", a, "--against", b, "-o", scratch.file("small")});
  ASSERT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.messages << answer.document.dump();
  EXPECT_EQ(answer.document.at("names"), nlohmann::json::array({"fold"}));
}

TEST(ReduceVerb, AnswersOneForAModelThatDoesNotFail) {
  const ScratchFolder scratch;
  const std::string small = scratch.file("small");
  const Answer healthy = run_json({"reduce", sample("cnn/model.onnx"), "--check", "test -f {model}", "-o", small});
  EXPECT_EQ(healthy.exit_code, 1) << healthy.command;
  EXPECT_NE(healthy.document.at("error").at("message").get<std::string>().find("does not fail"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(small + "/model.onnx"));
  const Answer failing = run_json({"reduce", sample("cnn/model.onnx"), "--check", "test ! -f {model}", "-o", small});
  EXPECT_EQ(failing.exit_code, 0) << failing.command << "\n" << failing.document.dump();
  EXPECT_EQ(failing.document.at("nodes"), 1);
  const Answer nothing = run_json({"reduce", sample("cnn/model.onnx"), "-o", small});
  EXPECT_EQ(nothing.exit_code, 2) << nothing.command;
}

}  // namespace
}  // namespace parallax::end_to_end
