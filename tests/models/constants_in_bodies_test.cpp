// SPDX-License-Identifier: Apache-2.0
// A constant that a fused node of a Loop's body reads: written the other way round with the same effect, and with a
// fault in it. What the fused node hides has to be looked for with nothing fused away.
#include <fstream>
#include <span>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "tests/models/program.h"

namespace parallax::end_to_end {
namespace {

// Three times s = Tanh(Gemm(s, w, b)): `cpu` makes one node of the two.
std::string model_text(std::span<const double> w, int is_transposed) {
  const std::string state =
      "type { tensor_type { elem_type: 1 shape { dim { dim_value: 4 } dim { dim_value: 3 } } } } }";
  return fmt::format(
      R"(ir_version: 8 opset_import {{ version: 17 }} graph {{ name: "g"
        node {{ op_type: "Loop" name: "loop" input: "trips" input: "" input: "x" output: "z"
          attribute {{ name: "body" type: GRAPH g {{ name: "body"
            input {{ name: "i" type {{ tensor_type {{ elem_type: 7 shape {{ }} }} }} }}
            input {{ name: "c" type {{ tensor_type {{ elem_type: 9 shape {{ }} }} }} }}
            input {{ name: "s" {0}
            node {{ op_type: "Gemm" name: "gemm" input: "s" input: "w" input: "b" output: "y"
              attribute {{ name: "transB" type: INT i: {1} }} }}
            node {{ op_type: "Tanh" name: "tanh" input: "y" output: "s_out" }}
            node {{ op_type: "Identity" name: "go" input: "c" output: "c_out" }}
            output {{ name: "c_out" type {{ tensor_type {{ elem_type: 9 shape {{ }} }} }} }}
            output {{ name: "s_out" {0} }} }} }}
        initializer {{ name: "w" data_type: 1 dims: 3 dims: 3 float_data: [{2}] }}
        initializer {{ name: "b" data_type: 1 dims: 3 float_data: [0.5, -0.25, 0.125] }}
        initializer {{ name: "trips" data_type: 7 int64_data: 3 }}
        input {{ name: "x" {0}
        output {{ name: "z" {0} }})",
      state, is_transposed, fmt::join(w, ", "));
}

Answer blame(const ScratchFolder& scratch, std::span<const double> w_of_b) {
  const double w[] = {0.5, -0.25, 0.75, 0.125, 0.375, -0.5, 0.25, -0.625, 0.875};
  std::ofstream(scratch.file("a.textproto")) << model_text(w, 0);
  std::ofstream(scratch.file("b.textproto")) << model_text(w_of_b, 1);
  return run_json({"blame", scratch.file("a.textproto"), "--against", scratch.file("b.textproto"), "--with", "cpu"});
}

TEST(ConstantsInBodies, MayHaveEquivalentConstants) {
  const ScratchFolder scratch;
  const double transposed[] = {0.5, 0.125, 0.25, -0.25, 0.375, -0.625, 0.75, -0.5, 0.875};
  const Answer answer = blame(scratch, transposed);
  EXPECT_EQ(answer.exit_code, 0) << answer.command << "\n" << answer.document.dump();
  EXPECT_EQ(answer.document.at("causes").size(), 0U) << answer.document.at("causes").dump();
}

TEST(ConstantsInBodies, AreFoundWithOneWrongElement) {
  const ScratchFolder scratch;
  const double wrong[] = {0.5, 0.125, 0.25, -0.25, 0.375, -0.625, 0.75, -0.5, 0.8125};
  const Answer answer = blame(scratch, wrong);
  EXPECT_EQ(answer.exit_code, 1) << answer.command;
  ASSERT_FALSE(answer.document.at("causes").empty());
  EXPECT_EQ(answer.document.at("causes").front().at("node"), "gemm");
}

}  // namespace
}  // namespace parallax::end_to_end
