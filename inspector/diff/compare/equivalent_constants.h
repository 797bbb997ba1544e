// SPDX-License-Identifier: Apache-2.0
// Constants of two models that differ and are no more than another way to write the same: found by what is made of
// them.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "inspector/diff/comparison.h"
#include "inspector/exec/observer.h"
#include "inspector/model/placing_inputs.h"

namespace parallax::diff {

class EquivalentConstants {
 public:
  // A value of either model; all of them are added before any other call, and in the order of execution.
  void add(bool is_a, const ValueInfo& value_info);

  // Takes back the pairs of such constants. Nothing that is made with them may be wrong for it, and one of these holds:
  // they are integers that say no more than where elements go (the shape of a Reshape, the axes of a Slice), or one
  // index counted from the other end; what is made of them is made of constants alone, and equal; they differ as
  // constants do that two programs computed; they are kept in half precision; nothing made with them has a counterpart
  // (a normalization folded into weights).
  void excuse(std::vector<ValueComparison>& values) const;

 private:
  // The output of a consumer, or the beginning of the paths of its bodies.
  struct Effect {
    std::string path;
    Placing placing = Placing::none;
    bool is_of_bodies = false;
    int64_t indexed = 0;  // the length of the axis that the value is an index into; 0: it is none, or not known
  };
  // Static paths of A; of `wrong`, also the beginnings of those in bodies.
  using Paths = std::unordered_set<std::string>;
  struct Seen {
    Paths wrong, compared, fused, excused;
  };
  static void add_seen(const ValueComparison& value, bool is_constant, Seen& seen);

  // True where the values computed with it, directly or through values that are not compared, agree: none is wrong, and
  // some were compared. True where it has no consumers.
  bool has_right_effects(const ValueComparison& constant, const Seen& seen) const;
  bool may_be_written_so(const ValueComparison& constant, const Seen& seen) const;
  static bool is_one_index(const ValueComparison& constant, const Effect& effect);
  bool leads_to_the_same(const ValueComparison& constant, const Seen& seen) const;
  // True where its effects are not visible: values of `fused`, which an executor's fusion omits, have a counterpart
  // where B's model computes them, too.
  bool has_no_counterparts(const std::string& constant, const Seen& seen) const;
  // A value of this static path is in both models, of one operator.
  bool is_made_alike(const std::string& path) const;
  bool follows_from_data_alone(const ValueInfo& value_info, const std::string& path) const;

  std::unordered_map<std::string, std::string> operators_in_a_, operators_in_b_;  // by static path
  std::unordered_map<std::string, ValueComparison> in_b_;                         // constants of B by static path
  Paths half_in_b_;
  Paths constants_;  // of A: given, or filled and chosen from such
  Paths held_;       // of A: what follows from data that the model holds, whatever the shapes of its inputs
  // By static paths in A; by the beginning of a node's bodies: what the node makes.
  std::unordered_map<std::string, std::vector<Effect>> made_with_;
};

}  // namespace parallax::diff
