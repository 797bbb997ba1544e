// SPDX-License-Identifier: Apache-2.0
// Types and shapes of every value of a model before a run, from its inputs, initializers and declarations: forward,
// node by node, with named dimensions and the contents of small shape tensors. Conservative: what is not certain stays
// unknown.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "inspector/model/ir.h"

namespace parallax {

struct TypeProblem {
  enum class Kind : uint8_t {
    type,      // breaks the operator's schema or a declared element type: the model is invalid
    shape,     // a declared shape differs from the inferred one: the declaration is stale
    conflict,  // of find_shape_conflicts()
  };
  Kind kind = Kind::type;
  const Graph* graph = nullptr;  // of the main graph or a body
  NodeId node = kNoNode;
  std::string message;  // a sentence without full stop; names inputs and values, not the node
};

struct ModelTypes {
  // For the main graph and every body in it: the type of each value, by ValueId. Where the file declares a type, that
  // type, with unknown dimensions filled in. Bodies of model-local functions are not listed, as their types belong to a
  // call.
  std::unordered_map<const Graph*, std::vector<TypeInfo>> graphs;
  std::vector<TypeProblem> problems;  // in order of nodes, at most 100

  // Unknown for a value that is not listed.
  const TypeInfo& type_of(const Graph& graph, ValueId value) const;
};

// Never fails: an operator without a rule has outputs of unknown shape.
ModelTypes infer_types(const Model& model);

// The types of the graph's outputs as they follow from its inputs and constants alone: what the file declares of shapes
// that nodes compute may be stale.
std::vector<TypeInfo> computed_output_types(const Model& model);
// True where no tensor has both shapes.
bool are_contradictory(const TypeInfo& a, const TypeInfo& b);

// Nodes that cannot be computed, since their inputs do not fit each other, as far as the graph's inputs and constants
// make that certain: what the file declares of values that nodes compute may be stale, and counts for nothing. Nodes in
// bodies are left out, for an If may never take a branch.
std::vector<TypeProblem> find_shape_conflicts(const Model& model);

// Gives the values that the file does not list (as input, output or value_info) their inferred types; the listed ones
// keep what the file says, as export writes it again; what is known of a graph's outputs is kept next to them. `types`
// must be of this very model.
void fill_types(Model& model, const ModelTypes& types);

}  // namespace parallax
