// SPDX-License-Identifier: Apache-2.0
// ModelSide: one of two different models as blame sees it: its value table, its captured values, and its nodes run
// alone.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "inspector/diff/localize/blame.h"
#include "inspector/diff/localize/node_replay.h"
#include "inspector/exec/value_table.h"

namespace parallax::diff {

// Which of the repetitions a static path stands for: frames of steps and graphs, and the iterations in their order.
struct Instance {
  std::string outer;
  std::vector<int64_t> iterations;
};
Instance instance_of(std::string_view path);
// "loop.body[*]//x" -> "loop.body[3]//x"; empty when the instance has too few iterations.
std::string path_in(const Instance& instance, std::string_view static_text);

// A node in its place.
struct LocatedNode {
  const GraphValues* location = nullptr;
  NodeId id = kNoNode;
  const Node& node() const { return location->graph->nodes[static_cast<size_t>(id)]; }
  bool operator==(const LocatedNode&) const = default;
};

// Operator and attributes, by meaning.
bool is_same_operation(const LocatedNode& x, const LocatedNode& y);

class ModelSide {
 public:
  static Result<std::unique_ptr<ModelSide>> create(const BlameSide& side, std::shared_ptr<Executor> oracle);

  // The type that most of the nodes compute floats in, when these are a few at least; else float32.
  DType main_type() const;
  // True where some nodes compute in half precision: thresholds::kFewestOfMixed at least.
  bool computes_in_half() const;
  // The oracle rounds where the model casts, unless it is told otherwise.
  void ignore_casts() { options_.keep_casts = false; }

  const std::shared_ptr<const Model>& model() const { return model_; }
  const ValueTable& value_infos() const { return value_infos_; }
  const ValueInfo& value_info(int32_t id) const { return value_infos_.value_infos()[static_cast<size_t>(id)]; }
  const GraphValues& location_of(int32_t id) const { return *locations_[static_cast<size_t>(id)]; }
  std::string static_path(int32_t id) const { return value_info(id).scope + value_info(id).escaped_name; }
  // The node that makes a value; no id for inputs and initializers.
  LocatedNode producer(int32_t id) const;
  // The value id of a value read in `location`; -1 when there is none.
  static int32_t value_info_read(const GraphValues& location, ValueId value);
  // The argument of a called function's formal input: the value that the call gives it; -1 for all other values.
  int32_t given_to_call(int32_t id) const;
  // The output of the called function that is this result of its call; -1 for values that no call makes.
  int32_t returned_by_call(int32_t id) const;
  bool is_constant(int32_t id) const;  // an initializer or the output of a Constant
  // Computed from constants alone, or one itself.
  bool follows_from_constants(int32_t id) const { return from_constants_[static_cast<size_t>(id)]; }

  // Instances of a value that were captured in full, in order.
  const std::vector<std::string>& captured_paths(int32_t id) const;
  // The paths of a value's instances; where there are none (it was fused away), the captured instances of its graph.
  std::vector<std::string> instance_paths(int32_t id) const;
  Result<Value> captured(const std::string& path) const;  // absent when it was not captured
  // The value of an initializer or a Constant; absent where the payload is not available.
  Value stored(int32_t id) const;
  // The value of a node that follows from constants: stored, captured, or computed from such; absent where it is not
  // available.
  Value constant(int32_t id) const { return constant(id, 0); }

  // True where the node reads a value that follows from constants there.
  bool reads_constant(const LocatedNode& node, size_t port) const;

  // The outputs of `node` on the values that `value_of` returns for its inputs.
  using ValueOf = std::function<Result<Value>(int32_t id)>;
  Result<std::vector<Value>> replay(const LocatedNode& node, const ValueOf& value_of) const;
  // The outputs of `changed`, which stands where `node` does and reads the same.
  Result<std::vector<Value>> replay_changed(const LocatedNode& node, const Node& changed,
                                            const ValueOf& value_of) const;

 private:
  ModelSide(const BlameSide& side, std::shared_ptr<const Model> model, ValueTable value_infos,
            std::shared_ptr<Executor> oracle);
  void add_locations(const GraphValues& location);
  void find_constants();
  Value constant(int32_t id, int depth) const;
  Value compute_constant(int32_t id, int depth) const;
  Result<std::vector<Value>> run_replay(NodeReplay& replay, const GraphValues& location, const ValueOf& value_of) const;

  std::shared_ptr<const DumpReader> dump_;
  std::shared_ptr<const Model> model_;
  ValueTable value_infos_;
  std::shared_ptr<Executor> oracle_;
  RunOptions options_;
  std::vector<const GraphValues*> locations_;  // by value id
  std::vector<bool> from_constants_;           // likewise
  std::unordered_map<std::string, int32_t> entries_;
  std::unordered_map<std::string, std::vector<std::string>> paths_;     // by static path
  std::unordered_map<std::string, std::vector<std::string>> prefixes_;  // of captured paths, by scope
  mutable std::unordered_map<int32_t, Value> computed_constants_;       // small ones
  mutable std::unordered_map<const Node*, std::unique_ptr<NodeReplay>> replays_;
};

// One of the two is in half precision or mixes it in, and the other does not, or in another type of floats.
bool are_of_two_types(const ModelSide& a, const ModelSide& b);

}  // namespace parallax::diff
