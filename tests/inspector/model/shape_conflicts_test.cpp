// SPDX-License-Identifier: Apache-2.0
// Tests of what `check` says of inputs that cannot fit each other.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/model/io/import.h"
#include "inspector/model/shape_inference/infer_types.h"
#include "tests/inspector/model/graph_builder.h"

namespace parallax {
namespace {

using testing::GraphBuilder;
using Attributes = std::vector<std::pair<std::string, Attribute::Value>>;

std::string conflict_of(const GraphBuilder& builder) {
  const auto problems = find_shape_conflicts(builder.model());
  return problems.empty() ? "" : problems.front().message;
}

struct ConflictCase {
  std::string op;
  std::vector<std::string> shapes;  // of the float32 inputs
  std::vector<int64_t> numbers;     // a last input, constant; none where empty
  Attributes attributes;
  std::string conflict;  // a part of it; empty: none
  int64_t opset = 21;
  size_t outputs = 1;
};

Attribute::Value axes_of(std::vector<int64_t> values) { return values; }
Attribute::Value whole(int64_t value) { return value; }

GraphBuilder conflict_graph(const ConflictCase& given) {
  GraphBuilder builder(given.opset);
  std::vector<std::string> inputs, outputs;
  for (const std::string& shape : given.shapes) {
    inputs.push_back("x" + std::to_string(inputs.size()));
    builder.input(inputs.back(), "float32[" + shape + "]");
  }
  if (!given.numbers.empty()) builder.numbers("numbers", given.numbers);
  if (!given.numbers.empty()) inputs.emplace_back("numbers");
  for (size_t index = 0; index < given.outputs; ++index) outputs.push_back("y" + std::to_string(index));
  builder.node(given.op, inputs, outputs, given.attributes);
  return builder;
}

TEST(ShapeConflicts, EachRuleFindsWhatCannotBeComputedAndNothingElse) {
  const std::vector<ConflictCase> cases = {
      {"MatMul", {"2,3", "4,5"}, {}, {}, "3 columns meet 4 rows"},
      {"MatMul", {"2,2,3", "3,3,5"}, {}, {}, "2 and 3 do not broadcast"},
      {"MatMul", {"n,3", "k,5"}, {}, {}, ""},
      {"MatMul", {"3", "3,5"}, {}, {}, ""},
      {"Gemm", {"2,3", "5,4"}, {}, {{"transB", whole(1)}}, "3 columns meet 4 rows, as transA and transB have it"},
      {"Gemm", {"2,3", "5,3", "4"}, {}, {{"transB", whole(1)}}, "the product is [2,5] and input 'C' is [4]"},
      {"Gemm", {"2,3", "3,5", "1,5"}, {}, {}, ""},
      {"Gemm", {"2,3,4", "3,5"}, {}, {}, "no matrix"},
      {"Add", {"2,3", "4"}, {}, {}, "input 'A' is [2,3] and input 'B' is [4]: 3 and 4 do not broadcast"},
      {"Add", {"2,1", "n,4"}, {}, {}, ""},
      {"Sum", {"1,3", "2,1", "4", "2,5"}, {}, {}, "3 and 4 do not broadcast"},
      {"Sum", {"1,3", "2,1", "3", "2,3"}, {}, {}, ""},
      {"Add", {"2,3", "2"}, {}, {{"broadcast", whole(1)}, {"axis", whole(0)}}, "", 6},
      {"Sum", {"2,1", "1,4", "3,4"}, {}, {}, "input 1 is [2,1] and input 3 is [3,4]"},
      {"PRelu", {"5,3", "4"}, {}, {}, "3 and 4"},
      {"PRelu", {"1", "4"}, {}, {}, "1 and 4"},
      {"Concat", {"2,3", "4,5"}, {}, {{"axis", whole(1)}}, "they differ in other axes than 1"},
      {"Concat", {"2,3", "2,5"}, {}, {{"axis", whole(-1)}}, ""},
      {"Concat", {"2,3", "5"}, {}, {{"axis", whole(0)}}, "not equally many dimensions"},
      {"Concat", {"2,3", "2,5"}, {}, {{"axis", whole(2)}}, "axis 2 is outside input 1, which is [2,3]"},
      {"Conv", {"1,3,8,8", "4,2,3,3"}, {}, {}, "3 channels meet weights for 2"},
      {"Conv", {"1,4,8,8", "6,1,3,3"}, {}, {{"group", whole(3)}}, "4 channels meet weights for 3 in 3 groups"},
      {"Conv", {"1,3,8,8", "6,1,3,3"}, {}, {{"group", whole(3)}}, ""},
      {"Conv", {"1,3,8,8", "4,3,3,3", "5"}, {}, {}, "input 'B' is [5], but there are 4 output channels"},
      {"Conv", {"1,3,8,8", "4,3,3"}, {}, {}, "not equally many dimensions"},
      {"Conv", {"1,3,8,8", "4,3,3,3"}, {}, {{"kernel_shape", axes_of({5, 5})}}, "kernel_shape says 5"},
      {"Conv", {"1,3,8,8", "4,3,3,3"}, {}, {{"pads", axes_of({1, 1})}}, "pads has 2 numbers"},
      {"ConvTranspose", {"1,3,8,8", "4,3,3,3"}, {}, {}, "3 channels meet weights for 4"},
      {"MaxPool", {"1,2,5,3"}, {}, {{"kernel_shape", axes_of({2})}}, "kernel_shape has 1 numbers"},
      {"BatchNormalization", {"5,3", "3", "3", "4", "3"}, {}, {}, "input 'input_mean' is [4]"},
      {"LayerNormalization", {"5,3", "4"}, {}, {}, "3 and 4"},
      {"LayerNormalization", {"5,3", "1,3"}, {}, {}, ""},
      {"Reshape", {"2,3"}, {4, 2}, {}, "6 elements, which do not make [4,2]"},
      {"Reshape", {"2,3"}, {4, -1}, {}, "do not make [4,-1]"},
      {"Reshape", {"2,3"}, {-1, -1}, {}, "leaves 2 dimensions open"},
      {"Reshape", {"2,3"}, {1, 1, 0}, {}, "copies a dimension that is not in"},
      {"Reshape", {"2,n,3"}, {0, -1}, {}, ""},
      {"Reshape", {"2,0"}, {0, 5}, {{"allowzero", whole(1)}}, ""},
      {"Transpose", {"2,3"}, {}, {{"perm", axes_of({0, 0})}}, "perm [0,0] is no order of the axes"},
      {"Squeeze", {"2,1"}, {0}, {}, "axis 0 has 2 elements"},
      {"Squeeze", {"n,1"}, {0, -1}, {}, ""},
      {"Unsqueeze", {"2,3"}, {5}, {}, "axis 5 is outside"},
      {"Unsqueeze", {"2,3"}, {3, 2}, {}, ""},
      {"Split", {"5,3"}, {2, 2}, {}, "the parts sum to 4", 21, 2},
      {"Split", {"5,3"}, {2, 3}, {}, "", 21, 2},
      {"Split", {"5,3"}, {INT64_MIN, INT64_MIN}, {}, "the parts sum to a number beyond int64", 21, 2},
      {"Softmax", {"5,3"}, {}, {{"axis", whole(2)}}, "axis 2 is outside"},
      {"Softmax", {"5,3"}, {}, {{"axis", whole(2)}}, "", 11},
      {"ReduceSum", {"5,3"}, {2}, {}, "axis 2 is outside"},
      {"ReduceSum", {"5,3"}, {-2}, {}, ""},
      {"Expand", {"5,3"}, {4, 3}, {}, "is to have [4,3]: 5 and 4"},
      {"Expand", {"5,1"}, {1, 3}, {}, ""},
  };
  for (const ConflictCase& given : cases) {
    const std::string found = conflict_of(conflict_graph(given));
    const std::string shapes = ::testing::PrintToString(given.shapes);
    if (given.conflict.empty()) {
      EXPECT_EQ(found, "") << given.op << shapes;
    } else {
      EXPECT_NE(found.find(given.conflict), std::string::npos) << given.op << shapes << ": '" << found << "'";
    }
  }
}

// Exporters leave shapes in the file that nothing computes any more.
TEST(ShapeConflicts, WhatTheFileDeclaresOfComputedValuesCountsForNothing) {
  GraphBuilder builder(21);
  builder.input("x", "float32[2,3]").input("w", "float32[3,5]");
  builder.node("Relu", {"x"}, {"h"}).node("MatMul", {"h", "w"}, {"y"}).node("Mystery", {"x"}, {"m"});
  builder.node("MatMul", {"m", "w"}, {"z"});
  Model model = builder.model();
  const auto declare = [&](const std::string& name, std::string_view type) {
    model.graph.values[static_cast<size_t>(model.graph.find_value(name))].type = testing::type_from_text(type);
  };
  declare("h", "float32[7,9]");
  declare("m", "float32[7,9]");
  EXPECT_TRUE(find_shape_conflicts(model).empty());
  declare("w", "float32[4,5]");
  const auto problems = find_shape_conflicts(model);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].message, "input 'A' is [2,3] and input 'B' is [4,5]: 3 columns meet 4 rows");
  const auto shown = check_shapes(model);
  ASSERT_EQ(shown.size(), 1U);
  EXPECT_EQ(shown[0].op, "MatMul-13");
}

// Exporters write If(rank is 2) then ... else ..., of which one branch fits no input.
TEST(ShapeConflicts, BranchesThatMayNeverBeTakenAreLeftOut) {
  GraphBuilder then_branch(21), else_branch(21), builder(21);
  then_branch.outer("x").numbers("axes", {0}).node("Squeeze", {"x", "axes"}, {"a"}).output("a");
  else_branch.outer("x").node("Identity", {"x"}, {"b"}).output("b");
  builder.input("x", "float32[2,3]").input("c", "bool[]");
  builder.node("If", {"c"}, {"y"}, {{"then_branch", then_branch.body()}, {"else_branch", else_branch.body()}});
  EXPECT_EQ(conflict_of(builder), "");
}

}  // namespace
}  // namespace parallax
