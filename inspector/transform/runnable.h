// SPDX-License-Identifier: Apache-2.0
// Runnable: what of a model with recorded problems can be executed, and what can stand in for the rest.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "inspector/tensor/value.h"
#include "inspector/transform/part.h"

namespace parallax::transform {

// The nodes of the main graph that can be executed: they have no problem (Node::problem, in their bodies and called
// functions too), and need neither a node that has one nor a weight that is absent. `wanted` are globs over value
// paths: only what computes the values that they match; empty: all. Errors: the model's problem, where a wanted value
// cannot be computed or no node is left; usage, where the globs match nothing.
Result<Part> runnable_part(const std::shared_ptr<const Model>& model, const std::vector<std::string>& wanted = {});

// Such a part as a model with all inputs of the whole one. Errors: the problem of the model itself (its IR version,
// say).
Result<std::shared_ptr<const Model>> model_of(const Part& part);
// Both.
Result<std::shared_ptr<const Model>> runnable_model(const std::shared_ptr<const Model>& model,
                                                    const std::vector<std::string>& wanted = {});

// True where an initializer of the graph is absent.
bool has_absent_weight(const Graph& graph);

// The model with values in place of what cannot be executed: each value of `given` that a node with a problem makes, or
// that is an absent weight, becomes an input of that value's type; what such a node reads becomes an output. The same
// model where there is no such value. Errors: the first problem that is left.
Result<std::shared_ptr<const Model>> with_stand_ins(const std::shared_ptr<const Model>& model,
                                                    const std::map<std::string, Value>& given);

// "2 of 14 nodes are left out: ..." for those who see the runnable part of a model.
std::string describe_left_out(const Model& model, const Part& part);

}  // namespace parallax::transform
