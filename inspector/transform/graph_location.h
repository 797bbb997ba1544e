// SPDX-License-Identifier: Apache-2.0
// The location that a value path leads to: the graph its last frame stands for in one execution, and the graphs around
// it whose values it may read.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/exec/value_path.h"
#include "inspector/model/ir.h"

namespace parallax::transform {

// One graph as it is executed after one sequence of frames.
struct Scope {
  const Graph* graph = nullptr;
  std::string prefix;         // the frames' text: "" or "loop.body[3]//"
  std::set<ValueId> omitted;  // formal inputs of a function that the call leaves out
};

struct Location {
  std::shared_ptr<const Model> model;
  std::vector<Scope> scopes;                        // innermost first: the graph itself, then those it sees
  const Function* function = nullptr;               // whose body the graph is or is inside: its operator sets hold
  std::vector<std::shared_ptr<const Graph>> bound;  // functions' bodies as they are called: kept alive here

  const Graph& graph() const { return *scopes.front().graph; }
  const std::string& prefix() const { return scopes.front().prefix; }
  std::string path_of(ValueId id) const;
};

// The definition that a value's name refers to: in its own graph, or in a graph around it.
struct Definition {
  const Scope* scope = nullptr;
  ValueId id = kNoValue;
  const ValueDef& value() const { return scope->graph->values[static_cast<size_t>(id)]; }
  std::string path() const { return scope->prefix + escape_name(value().name); }
  bool is_omitted() const { return scope->omitted.contains(id); }
};
std::optional<Definition> definition_of(const Location& location, ValueId id);

// The initializer (also one that is an input's default) or the Constant node's tensor that gives the value, or null.
const StoredTensor* stored_tensor(const Definition& definition);

// Errors: usage, where a frame names no node, or a node without such a body.
Result<Location> find_location(std::shared_ptr<const Model> model, std::span<const Frame> frames);

struct LocatedValue {
  Location location;
  ValueId id = kNoValue;
};
// Errors: usage, naming paths that look alike.
Result<LocatedValue> locate_value(std::shared_ptr<const Model> model, const std::string& path);

// The values that a node reads: its inputs, each once, then the values that its bodies read from around them.
std::vector<ValueId> reads_of(const Graph& graph, const Node& node);

}  // namespace parallax::transform
