// SPDX-License-Identifier: Apache-2.0
// Effects: what is made of a value of A, and whether a difference in it leaves any trace there.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "inspector/diff/localize_models/blame_models_side.h"

namespace parallax::diff {

class Effects {
 public:
  // How far a value of A is from its counterpart in relation to its size, the largest of its instances; nothing where
  // it was not compared, or holds no numbers.
  using DifferenceOf = std::function<std::optional<double>(int32_t id)>;
  Effects(const ModelSide& a, DifferenceOf difference);

  // Every way from the value to the outputs leads over numbers that differ no more than this: whatever the value was
  // compared with, nothing follows from its own difference. Linear in the graph for each difference asked for.
  bool leaves_nothing(int32_t id, double difference);

  // True where B treats the value differently before the two agree again, to `difference`. Where all consumers are
  // alike by `is_read_alike`, the pair is right, and its own difference has only been hidden: by a maximum, a saturated
  // function, a comparison that these inputs decide alike.
  bool is_compensated(int32_t id, double difference,
                      const std::function<bool(const LocatedNode&)>& is_read_alike) const;

  // True where this holds of any value that is computed from this one, directly or not.
  bool is_any_made_of(int32_t id, const std::function<bool(int32_t made)>& holds) const;

  // The values, by id, from which a way leads to one of which `holds` is true, over none that stops it.
  std::vector<bool> leading_to(const std::function<bool(int32_t id)>& holds, double difference) const;

  // True where it is an output of the model, or carried in a loop: then its difference is observable, whatever else is
  // computed from it.
  bool is_handed_out(int32_t id) const { return is_end_[static_cast<size_t>(id)]; }

  // The nodes that read it, those in bodies included.
  const std::vector<LocatedNode>& readers(int32_t id) const { return readers_[static_cast<size_t>(id)]; }

 private:
  void add(const GraphValues& location);
  void add_passed_on(const GraphValues& location, const GraphValues::Child& child);
  bool stops(int32_t id, double difference) const;

  const ModelSide& a_;
  DifferenceOf difference_;
  std::vector<std::vector<int32_t>> made_of_;  // by value id: outputs of its consumers
  std::vector<std::vector<LocatedNode>> readers_;
  std::map<double, std::vector<bool>> traceless_;  // by difference
  std::vector<bool> is_end_;                       // handed out of the model, or of the body of a loop
};

}  // namespace parallax::diff
