// SPDX-License-Identifier: Apache-2.0
// Runs that break off: what their dumps hold is compared, and what they never came to is said.
#include <fstream>

#include <gtest/gtest.h>

#include "tests/models/program.h"

namespace parallax::end_to_end {
namespace {

TEST(BrokenRuns, AgreeInNothingThatTheyNeverCameTo) {
  const ScratchFolder scratch;
  // Element 7 of six: only a run can tell.
  std::ofstream(scratch.file("model.textproto")) << R"(ir_version: 8 opset_import { version: 17 } graph { name: "g"
      node { op_type: "Relu" name: "relu" input: "x" output: "a" }
      node { op_type: "Gather" name: "pick" input: "a" input: "index" output: "b" }
      node { op_type: "Neg" name: "neg" input: "b" output: "y" }
      input { name: "x" type { tensor_type { elem_type: 1 shape { dim { dim_value: 6 } } } } }
      input { name: "index" type { tensor_type { elem_type: 7 shape { dim { dim_value: 1 } } } } }
      output { name: "y" type { tensor_type { elem_type: 1 } } } })";
  const std::string model = scratch.file("model.textproto");
  for (const char* executor : {"reference", "cpu"}) {
    const Answer run =
        run_json({"run", model, "--with", executor, "--range", "index=7..7", "--dump", scratch.file("d")});
    EXPECT_EQ(run.exit_code, 4) << run.command << "\n" << run.document.dump();
    EXPECT_EQ(run.document.at("error").at("node"), "pick");
  }
  const Answer diff = run_json({"diff", scratch.file("d") + "/reference.plx", scratch.file("d") + "/cpu.plx"});
  EXPECT_EQ(diff.exit_code, 1) << diff.command;
  EXPECT_EQ(diff.document.at("verdict"), "inconclusive");
  const auto& last = diff.document.at("values").back();
  EXPECT_EQ(last.at("path"), "y");
  EXPECT_EQ(last.at("reason"), "not captured");
  EXPECT_EQ(last.at("op"), "Neg");
}

}  // namespace
}  // namespace parallax::end_to_end
