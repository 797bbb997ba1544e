// SPDX-License-Identifier: Apache-2.0
// A whole model's graph made the body of an If: what it got as inputs and initializers it reads from the graph around.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "inspector/model/ir.h"
#include "inspector/transform/graph_building.h"
#include "inspector/transform/merge_decoders.h"

namespace parallax::transform {

// The enclosing graph, as far as a branch has to know it.
struct EnclosingGraph {
  std::map<std::string, TypeInfo, std::less<>> types;  // every value that it defines, by name
  std::vector<std::string> outputs;                    // names, which the body's outputs take
};

struct BranchRequest {
  const Model* model = nullptr;
  // Initializer -> name in the enclosing graph. Inputs have the same name there.
  std::map<std::string, std::string, std::less<>> sources;
  std::map<std::string, std::string, std::less<>> passed;  // output that the model lacks -> input that it is
};

// Values whose names the enclosing graph uses get names from `fresh`; they are added to `renamed`.
std::shared_ptr<Graph> make_branch(const BranchRequest& request, const EnclosingGraph& enclosing, FreshNames& fresh,
                                   std::vector<RenamedItem>& renamed);

// True for inputs and initializers: the graph does not compute them.
inline bool is_source(const ValueDef& value) {
  return value.input_index >= 0 || value.initializer_index >= 0 || value.sparse_initializer_index >= 0;
}

// Names of everything that nodes and bodies define, at any depth: all but the graph's inputs and initializers.
void collect_inner_names(const Graph& graph, bool is_body, std::set<std::string, std::less<>>& names);

}  // namespace parallax::transform
