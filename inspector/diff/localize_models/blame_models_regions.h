// SPDX-License-Identifier: Apache-2.0
// Regions: the nodes between a pair of matched values and the matched values before them, on both sides, and the
// results of each side's part on A's values.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "inspector/diff/localize_models/blame_models_layouts.h"
#include "inspector/diff/localize_models/blame_models_side.h"
#include "inspector/diff/matching/matching.h"

namespace parallax::diff {

struct Region {
  Value expected;  // what A's nodes make of A's values
  Value found;     // what B's nodes make of the same
  std::vector<LocatedNode>
      nodes_a;  // that were run, inputs before readers; of those that make constants the target's only
  std::vector<LocatedNode> nodes_b;
  std::vector<Value> given_a, given_b;                // what the nodes that make the two values read
  std::unordered_map<int32_t, Value> made_a, made_b;  // all values on the way, by value id of their side
};

// Not rounded: the oracle takes doubles for any type of floats.
Value as_double(const Value& value);

class RegionRunner {
 public:
  RegionRunner(const ModelSide& a, const ModelSide& b, const ModelMatching& matching)
      : a_(a), b_(b), matching_(matching) {}

  // Errors: those of the oracle; usage, when a value is not to be had.
  Result<Region> run(int32_t target_a, int32_t target_b, const Instance& instance) const;

  // The region where one pair of matched values before it is ignored: both sides continue from their own values.
  Result<Region> run_past(int32_t target_a, int32_t target_b, const Instance& instance, const ValueMatch& pair) const;

  // The region with all floats that are read (values and constants) moved by some units in the last place of float32,
  // in directions that follow from `seed` (not 0): the possible effect of rounding on either definition.
  Result<Region> run_nudged(int32_t target_a, int32_t target_b, const Instance& instance, uint32_t seed) const;

  // The results of B's nodes on A's values where they read these constants, by value id of B, instead of their own.
  using Constants = std::unordered_map<int32_t, Value>;
  Result<Value> run_with(int32_t target_a, int32_t target_b, const Instance& instance,
                         const Constants& constants) const;

  // The results of one side's nodes on A's values when one of them returns an input: the `operand`-th of those that it
  // computes with. Errors, besides those of `run`: usage, where it has no such operand.
  Result<Value> run_without(int32_t target_a, int32_t target_b, const Instance& instance, const LocatedNode& node,
                            bool in_a, size_t operand = 0) const;

  // The results of one side's nodes on A's values when one of them is defined as its counterpart is: by that one's
  // operator and attributes, and by its constants unless each keeps its own.
  struct Replaced {
    LocatedNode node_a, node_b;
    bool in_a = false;
    bool keeps_constants = false;
  };
  Result<Value> run_as_other(int32_t target_a, int32_t target_b, const Instance& instance,
                             const Replaced& replaced) const;

  // The results of B's nodes on A's values where `changed` stands in place of one of them and reads the same.
  Result<Value> run_changed(int32_t target_a, int32_t target_b, const Instance& instance, const LocatedNode& node,
                            const Node& changed) const;

  // A value of either side, made of A's values.
  Result<Value> make(int32_t id, bool in_a, const Instance& instance) const;

  // From here on, a value of A counts as having no counterpart.
  void part(int32_t id) { parted_.insert(id); }
  bool is_parted(int32_t id) const { return parted_.contains(id); }

  // From here on, nodes of B are given A's value as B lays it out, and what they make of this value is given back as A
  // does.
  void lay_out(int32_t id, Layout layout) { layouts_.emplace(id, std::move(layout)); }
  // A value of B's counterpart as A lays it out.
  Value as_a_has_it(int32_t id, const Value& in_b) const {
    const auto layout = layouts_.find(id);
    return layout == layouts_.end() ? in_b : as_a_lays_it_out(layout->second, in_b);
  }

  // From here on these DequantizeLinear nodes, of either model, hand on the float that their input was quantized from,
  // or the constant that stands for theirs in the other model, where there is one. With `clamps`, a quantized range
  // that begins at zero stands for a Relu.
  void drop_quantization(std::vector<LocatedNode> dequantizers, bool clamps) {
    without_quantization_ = std::move(dequantizers);
    clamps_ = clamps;
  }

  // The region of values as they are read: those that A has are taken unchanged, and nothing is run for them.
  Result<Region> read(int32_t value_a, int32_t value_b, const Instance& instance) const;

 private:
  struct Walk {
    const Instance& instance;
    bool in_a = true;
    int32_t target = -1;
    int32_t other_target = -1;  // of the other side
    LocatedNode left_out = {};
    size_t passed_operand = 0;                    // of that node
    LocatedNode replaced = {}, replacement = {};  // a node of this side, and the other side's that is run instead
    bool keeps_constants = false;                 // of this side, where the other's node is run
    const Node* changed = nullptr;                // what is run instead, where it is no node of the other side
    int32_t no_pair = -1;                         // a value of A that counts as having no counterpart
    std::vector<LocatedNode> nodes = {};
    std::unordered_map<int32_t, Value> values = {};
    int depth = 0;
    bool fills = false;      // makes A's values that were not captured; its nodes belong to no region
    Walk* filler = nullptr;  // the one that does, for the others
    uint32_t nudge = 0;      // seed; 0: values are read as they are
  };

  // Both definitions, each walked as `how` says apart from its side and targets.
  Result<Region> run_both(int32_t target_a, int32_t target_b, const Walk& how) const;
  Result<Value> value_of(int32_t id, Walk& walk) const;
  Result<Value> compute(int32_t id, Walk& walk) const;
  Result<Value> compute_target(Walk& walk) const;
  Result<Value> pass_on(const LocatedNode& placed, Walk& walk) const;
  Result<Value> before_quantization(int32_t id, const LocatedNode& placed, Walk& walk) const;
  Result<Value> floats_moved_to(int32_t id, const LocatedNode& quantize, Walk& walk) const;
  Result<std::vector<Value>> run_replacement(const LocatedNode& placed, Walk& walk) const;
  std::vector<Value> given(int32_t target, const Walk& walk) const;
  Value as_b_holds_it(int32_t id, const Value& stored) const;
  // A's captured value for a value of either side, where that is known without computing; else absent.
  Result<Value> known(int32_t id, Walk& walk) const;
  Result<Value> value_of_a(int32_t id, Walk& walk) const;

  const ModelSide &a_, &b_;
  const ModelMatching& matching_;
  std::unordered_set<int32_t> parted_;
  std::unordered_map<int32_t, Layout> layouts_;  // by A's value
  std::vector<LocatedNode> without_quantization_;
  bool clamps_ = false;
};

}  // namespace parallax::diff
