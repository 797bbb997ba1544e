// SPDX-License-Identifier: Apache-2.0
// OpCase: operators, inputs and what they must give, as data (cases/*.json). Every case runs on every executor
// (ops_test.cpp); how far a result may be off is the comparison policy's business, never the case's.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "inspector/exec/executor.h"
#include "inspector/model/ir.h"
#include "inspector/tensor/value.h"

namespace parallax::tests {

struct OpCase {
  std::string name;
  std::string family;      // the file it stands in
  std::string from;        // where the expected values come from
  std::string constant;    // why expected values that are all alike are the point; empty for all others
  std::string not_double;  // why it is no case for an executor that carries floats as double; empty for all others
  std::shared_ptr<const Model> model;
  std::vector<Value> inputs;  // of the graph: an omitted input of a node is none of them
  std::vector<Value> expected;
};

// Every case of every file in the folder that the environment variable PX_OP_CASES names, else in the source tree's
// tests/ops/cases; families and cases in order. Errors name file and case.
Result<std::vector<OpCase>> read_op_cases();

// The expected values are empty, or one value throughout: so would wrong results be that are nothing but zeros.
bool is_constant(const OpCase& op_case);

// Runs the case and says what is wrong with the result, or nothing. Errors: those of the executor.
Result<std::string> problem_with(const OpCase& op_case, Executor& executor, const RunOptions& options = {});

}  // namespace parallax::tests
