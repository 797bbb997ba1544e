// SPDX-License-Identifier: Apache-2.0
// The float32 tensors of a model and the groups of inputs and outputs that must have one type, because a type parameter
// of a schema, a state of a loop or a branch ties them together.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"

namespace parallax::transform {

using GroupId = int32_t;          // index into PrecisionGroups::demands
constexpr GroupId kAnyType = -1;  // a reader that takes either type
constexpr GroupId kNarrow = 0;    // these two are there in every model
constexpr GroupId kFloat32 = 1;

enum class Demand : uint8_t { any, narrow, float32 };

using NodeKey = std::pair<const Graph*, NodeId>;

struct FloatReader {
  Graph* graph = nullptr;
  NodeId node = kNoNode;  // kNoNode: an output of the graph
  size_t index = 0;       // of the node's inputs, or of the graph's outputs
  GroupId group = kAnyType;
};

// A tensor that was float32, in the graph that defines it.
struct FloatValue {
  enum class Source : uint8_t { computed, input, initializer, constant, fill, cast };
  Graph* graph = nullptr;
  ValueId id = kNoValue;
  GroupId group = kFloat32;
  Source source = Source::computed;
  NodeId producer = kNoNode;
  std::vector<FloatReader> readers;

  bool is_stored() const { return source == Source::initializer || source == Source::constant; }
};

// A node that reads or makes float32 tensors.
struct FloatNode {
  Graph* graph = nullptr;
  NodeId node = kNoNode;
  std::string path;  // "loop.body[*]//add": of the first call, for nodes of a function
  std::vector<GroupId> groups;
  bool is_kept = false;
  bool has_narrow = false;  // its schema allows the narrow type
};

struct PrecisionGroups {
  std::vector<Demand> demands;
  std::vector<FloatValue> values;
  std::vector<FloatNode> nodes;                        // in execution order
  std::unordered_map<const Graph*, Graph*> enclosing;  // of bodies
  std::vector<Graph*> graphs;                          // a body after the graph around it
};

struct GroupOptions {
  DType to = DType::float16;
  bool keep_io = false;
  std::set<NodeKey> kept;
};

// Which nodes of the model, its bodies and its functions the entries name: each a node's display name, its path, or a
// glob over either. Errors: usage, naming an entry that matches no node.
Result<std::set<NodeKey>> find_named_nodes(const Model& model, const std::vector<std::string>& entries);

PrecisionGroups find_precision_groups(Model& model, const GroupOptions& options);

}  // namespace parallax::transform
