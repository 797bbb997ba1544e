// SPDX-License-Identifier: Apache-2.0
// Calls of operators as no program writes them: a valid call with one thing changed that a file may say all the same.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "inspector/model/ir.h"
#include "inspector/model/opset/op_schema.h"
#include "inspector/tensor/value.h"
#include "tests/ops/op_case.h"

namespace parallax::tests {

// A graph of one node, and a value for each of its inputs.
struct OperatorCall {
  std::shared_ptr<Model> model;
  std::vector<Value> inputs;

  Node& node() { return model->graph.nodes.front(); }
};

// Calls of this very version of an operator: of its cases, of cases of its other versions that are valid at this one,
// else one that is made up from the schema. At most `most`; none where nothing valid is found.
std::vector<OperatorCall> calls_of(const OpSchema& schema, const std::vector<OpCase>& cases, size_t most);

struct CallMutation {
  std::string name;  // "input 1 is of rank 7"
  std::function<void(OperatorCall&)> apply;
};

// Inputs that are missing, omitted, too many, of another rank, size, type or content; attributes that are absurd.
std::vector<CallMutation> mutations_of(const OperatorCall& call);

// The knowledge that a model has of a call's inputs before it runs; `in_function`: types, of a function's inputs, whose
// body takes all attributes from the call.
enum class KnownInputs : uint8_t { nothing, types, values, in_function };

// Attributes of other types than the operator has them, which a function's body may be given by a call.
std::vector<CallMutation> attribute_type_mutations_of(const OperatorCall& call);

// A copy with one mutation, linked anew.
OperatorCall mutated(const OperatorCall& call, const CallMutation& mutation, KnownInputs known);

}  // namespace parallax::tests
