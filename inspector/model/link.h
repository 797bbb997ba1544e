// SPDX-License-Identifier: Apache-2.0
// Completes the fields that follow from a graph's names and edges: for the importer, and for transforms that changed a
// graph.
#pragma once

#include <memory>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"

namespace parallax {

// Fills, from values' names, nodes' inputs, outputs and bodies, `inputs`, `outputs`, `initializer_values` and
// `sparse_initializer_values`: every value's producer, indices, is_graph_output and readers; the nodes' display names;
// and `order`. The bodies that nodes hold must have been linked before. Nodes on a cycle come last in `order`, in file
// order.
void link_graph(Graph& graph);

// The nodes that no topological order can hold, in file order.
std::vector<NodeId> nodes_on_cycles(const Graph& graph);

// Every graph that a node's attributes hold.
std::vector<const Graph*> bodies_of(const Node& node);

// Each node's opset version, schema and called function, in all graphs of the model and of its functions.
void resolve_operators(Model& model);

// A copy that may be changed: bodies and functions are copied with it (a plain copy of a Model shares them), weights
// are not. It no longer stands for the file that the model was read from.
std::shared_ptr<Model> copy_model(const Model& model);

// Functions must not call themselves, by whatever detour, nor nest or expand beyond a limit. After resolve_operators.
Status check_calls(const Model& model);

}  // namespace parallax
