// SPDX-License-Identifier: Apache-2.0
// Values as outputs: a model that gives back what it computes inside, so that any runtime can be asked for it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"
#include "inspector/transform/inline_calls.h"

namespace parallax::transform {

// One branch of an If around a value.
struct BranchFlag {
  std::string output;  // int64 scalar: 1 where then_branch ran, else 0. Empty where an If around it did not run at all
  int64_t taken = 1;   // the number that says that this branch ran
};

// How a graph output holds a value.
//   main graph   the value itself
//   Loop         a sequence with an item for each execution of the innermost Loop's body, in order. `index` is a
//   sequence
//                of the same length: int64 vectors of the iteration numbers of all Loops around, outermost first.
//   Scan         and Loop before opset 13: one more leading axis for each, outermost first, which counts iterations
//   If           a tensor without elements (a zero where the value is a scalar) where the branch did not run:
//   `branches`
struct ExposedValue {
  std::string path;  // "loop.body[*]//x": iterations of any number are written [*]
  std::string output;
  DType dtype = DType::undefined;  // of the value's elements; undefined where it is no tensor
  bool is_sequence = false;        // of executions of a Loop's body
  int stacked_axes = 0;
  std::string index;  // an output's name; empty outside of Loops
  std::vector<BranchFlag> branches;
};

struct ValuesAsOutputs {
  std::shared_ptr<Model> model;
  std::vector<ExposedValue> values;                           // in execution order
  std::vector<std::pair<std::string, std::string>> left_out;  // path, or node of a body or call, and the reason
};

struct ValuesAsOutputsOptions {
  bool bodies = true;        // of Loop, Scan and If; calls of functions are inlined either way
  bool shapes_only = false;  // gives the shape of each value (int64 vector) in its stead: to learn how large values are
  PathTexts paths;           // of a model that inline_calls has made already
};

// Makes outputs of the values at `paths`, all that nodes compute where it is empty; iteration numbers in them do not
// count: each gives all iterations. The outputs that the model has come first and stay. What cannot be an output is
// left out and reported: optional values, sequences and maps of bodies, values of an unknown type in bodies, what
// bodies of a Scan (or of a Loop before opset 13) hold in an If or a Loop of their own, bodies of other operators.
// Errors: usage, for a path that names no value; invalid_model.
Result<ValuesAsOutputs> values_as_outputs(const Model& model, std::span<const std::string> paths = {},
                                          const ValuesAsOutputsOptions& options = {});

}  // namespace parallax::transform
