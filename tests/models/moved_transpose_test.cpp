// SPDX-License-Identifier: Apache-2.0
// An optimizer moves a Transpose after the Split and Squeeze that follow it: the axes are other constants, to the same
// effect. Other axes without that are not.
#include <fstream>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/models/program.h"

namespace parallax::end_to_end {
namespace {

std::string node(const std::string& op, const std::string& inputs, const std::string& outputs,
                 const std::string& attribute) {
  return fmt::format(R"(node {{ op_type: "{0}" name: "{0}" {1} {2} {3} }} )", op, inputs, outputs, attribute);
}

std::string axis(int value) { return fmt::format(R"(attribute {{ name: "axis" type: INT i: {} }})", value); }

std::string perm(const std::string& axes) {
  return fmt::format(R"(attribute {{ name: "perm" type: INTS ints: {} }})", axes);
}

// Turn, Split, Squeeze, Turn, Tanh; or without the first turn.
std::string model_text(bool is_moved, int squeezed, const std::string& last_turn) {
  std::string nodes;
  if (!is_moved) {
    nodes += R"(node { op_type: "Transpose" name: "first" input: "x" output: "t" )" + perm("[3, 2, 0, 1]") + "} ";
  }
  nodes += node("Split", fmt::format(R"(input: "{}" input: "sizes")", is_moved ? "x" : "t"),
                R"(output: "p" output: "q")", axis(is_moved ? 3 : 0));
  nodes += node("Squeeze", R"(input: "p" input: "axes")", R"(output: "k")", "");
  nodes += node("Transpose", R"(input: "k")", R"(output: "kt")", perm(last_turn));
  nodes += node("Tanh", R"(input: "kt")", R"(output: "y")", "");
  return fmt::format(
      R"(ir_version: 8 opset_import {{ version: 17 }} graph {{ name: "g" {}
        initializer {{ name: "axes" data_type: 7 dims: 1 int64_data: {} }}
        initializer {{ name: "sizes" data_type: 7 dims: 2 int64_data: [1, 2] }}
        input {{ name: "x" type {{ tensor_type {{ elem_type: 1 shape {{
          dim {{ dim_value: 1 }} dim {{ dim_value: 4 }} dim {{ dim_value: 8 }} dim {{ dim_value: 3 }} }} }} }} }}
        output {{ name: "y" type {{ tensor_type {{ elem_type: 1 }} }} }} }})",
      nodes, squeezed);
}

Answer run_against(const std::string& other) {
  const ScratchFolder scratch;
  std::ofstream(scratch.file("a.textproto")) << model_text(false, 0, "[1, 0, 2]");
  std::ofstream(scratch.file("b.textproto")) << other;
  return run_json({"run", scratch.file("a.textproto"), "--against", scratch.file("b.textproto")});
}

TEST(MovedTranspose, HasOtherAxesToTheSameEffect) {
  const Answer answer = run_against(model_text(true, 3, "[0, 2, 1]"));
  EXPECT_EQ(answer.exit_code, 0) << answer.document.dump();
  const nlohmann::json axes_of_a = value_at(answer.document, "axes");
  EXPECT_EQ(axes_of_a.at("verdict"), "not_compared");
  EXPECT_EQ(axes_of_a.at("reason"), "absent in B");
}

TEST(MovedTranspose, OtherAxesThatLeaveAnotherShapeAreNone) {
  const Answer answer = run_against(model_text(false, 2, "[1, 0, 2]"));
  EXPECT_EQ(answer.exit_code, 1) << answer.document.dump();
}

}  // namespace
}  // namespace parallax::end_to_end
