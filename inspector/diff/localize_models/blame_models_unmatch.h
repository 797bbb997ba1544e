// SPDX-License-Identifier: Apache-2.0
// The comparisons of A's values, and the matches that a search takes back: values that are no counterparts of each
// other, and equivalent constants.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "inspector/diff/diagnosis.h"
#include "inspector/diff/localize_models/blame_models_effects.h"
#include "inspector/diff/localize_models/blame_models_regions.h"
#include "inspector/diff/matching/matching.h"
#include "inspector/diff/matching/path_links.h"

namespace parallax::diff {

// The comparisons of A's values, as the search that unmatches some of them sees them.
class ComparedValues {
 public:
  // `view`: the search's own copy of the comparison. What is unmatched goes into the diagnosis, and into the view at
  // once. All three outlive it.
  ComparedValues(const ModelSide& a, Comparison& view, Diagnosis& diagnosis);

  const ValueComparison* find(const std::string& path) const;  // by its path in A; null where there is none
  bool has_diverged(int32_t id) const;                         // in any instance
  bool is_equal(int32_t id) const;                             // to the last bit, in all of them
  bool is_unmatched(int32_t id) const;                         // as a pair, before the search for causes
  // How far a value is from its counterpart in relation to its size, the largest of its instances; nothing where it was
  // not compared, or holds no numbers.
  std::optional<double> difference_of(int32_t id) const;

  // Unmatches the value in every instance that diverged.
  void unmatch(int32_t id, std::string_view note);
  bool was_unmatched(int32_t id) const { return unmatched_.contains(id); }  // by this search
  bool is_any_unmatched() const { return !unmatched_.empty(); }
  // The verdict of the whole, with what was unmatched so far.
  OverallVerdict outcome();

 private:
  const ModelSide& a_;
  Comparison& view_;
  Diagnosis& diagnosis_;
  std::unordered_map<std::string, ValueComparison*> by_path_;  // in the view
  std::unordered_set<int32_t> unmatched_;
};

class Unmatching {
 public:
  Unmatching(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, ComparedValues& values,
             Effects& effects);

  // Unmatches values that differ without effect where the outputs agree: they were paired wrongly, or are quantized at
  // another node; constants that differ with them are equivalent. True when nothing else was wrong.
  bool unmatch_wrong_pairs();

  // Unmatches, where the outputs differ, shapes, axes and indices whose consumers all compute the same by both
  // definitions, on equal values. `same` are the values of A that were found to be computed so.
  void unmatch_unobserved_constants(const std::unordered_set<int32_t>& same);

  // Unmatches computed and constant indices that one of the two counts from the other end: -1 where the other has
  // n - 1, at each node that reads them.
  void unmatch_counted_from_end(const PathLinks& links);

  // True where the two may be no pair, since elements are moved at once here and in two steps there.
  bool may_be_no_pair(const ValueMatch& match, const Region& region) const;
  // True where the two compute with other operands, as factors taken in another order: then they may be no pair.
  bool reads_other_operands(const ValueMatch& match) const;
  // Then what both sides make of them is the same, whatever the two are.
  bool agrees_past(const RegionRunner& regions, const ValueMatch& match, const Instance& instance) const;

  // Unmatches constants that other nodes of the region compensate: both definitions compute the same, and B's no longer
  // does with A's constant. The region is that of `target`, and all consumers of such a constant are in it.
  void unmatch_compensated(const RegionRunner& regions, const ValueMatch& target, const Instance& instance,
                           const Region& region);

 private:
  bool unmatch_shapes();
  bool is_counted_from_end(const ValueMatch& match, const PathLinks& links) const;
  std::optional<int64_t> indexed_length(int32_t index, const LocatedNode& reader, const Instance& instance) const;
  bool is_compensated(const RegionRunner& regions, const ValueMatch& target, const Instance& instance,
                      const Region& region, int32_t constant) const;
  bool is_unobserved(int32_t constant, const std::unordered_set<int32_t>& same) const;
  bool may_be_written_so(const ValueMatch& match) const;
  bool is_placing(int32_t constant, const LocatedNode& reader) const;
  bool is_read_alike(const LocatedNode& reader) const;
  bool is_equivalent_constant(int32_t constant) const;
  bool leaves_no_trace(int32_t id);

  const ModelSide &a_, &b_;
  const ModelMatching& matching_;
  ComparedValues& values_;
  Effects& effects_;
  std::unordered_map<const Node*, const NodeMatch*> partners_;  // by A's node
};

}  // namespace parallax::diff
