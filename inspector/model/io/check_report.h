// SPDX-License-Identifier: Apache-2.0
// The problems of a model as they are found, each with its location. Private to this folder.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "inspector/model/io/import.h"
#include "inspector/model/shape_inference/infer_types.h"

namespace parallax {

// A graph being checked and the graphs around it.
struct CheckedGraph {
  const Graph& graph;
  std::string location;  // "", " in then_branch of node 'if_1'", " in function 'my.F'": ends every `where`
  const CheckedGraph* enclosing = nullptr;  // null for the main graph and for a function's body
  const Function* function = nullptr;       // whose body this is, or is in
  const Node* owner = nullptr;              // of the enclosing graph: whose attribute this graph is
  // Its own values by name, which a body in it could hide; empty where it has no bodies.
  std::unordered_multimap<std::string_view, const ValueDef*> names = {};
};

class FoundProblems {
 public:
  void at_model(std::string message, ErrorCode code = ErrorCode::invalid_model);
  void at_graph(const CheckedGraph& graph, std::string message);
  void at_value(const CheckedGraph& graph, std::string_view value, std::string message,
                ErrorCode code = ErrorCode::invalid_model);
  void at_node(const CheckedGraph& graph, const Node& node, std::string message,
               ErrorCode code = ErrorCode::invalid_model);

  bool empty() const { return problems_.empty(); }
  std::vector<ModelProblem> take() { return std::move(problems_); }
  // The first problem of each node that has one.
  const std::unordered_map<const Node*, std::string>& of_nodes() const { return of_nodes_; }

 private:
  void add(ModelProblem problem);

  std::vector<ModelProblem> problems_;
  std::unordered_map<const Node*, std::string> of_nodes_;
};

// check_model() of import.h; leaves what inference found in `types` where nothing else was wrong.
std::vector<ModelProblem> check_model(const Model& model, ModelTypes& types);

// Names and edges: duplicates, shadowing, values from nowhere, cycles, initializers against declarations.
void check_names(const CheckedGraph& checked, FoundProblems& report);

// One node against its schema or function: existence, number of inputs and outputs, attributes, shape of bodies.
void check_node(const CheckedGraph& checked, const Node& node, std::span<const OpsetImport> imports,
                FoundProblems& report);

// "'a', 'b' and 'c'", at most `most` of them named.
std::string quoted_list(const std::vector<std::string>& names, size_t most = 8);

// "1 input", "3 inputs".
std::string counted(size_t count, std::string_view noun);

// A part of a message about a damaged file, fit for a terminal and for JSON, without the middle where it is very long.
std::string reported(std::string_view text);

}  // namespace parallax
