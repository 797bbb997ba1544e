// SPDX-License-Identifier: Apache-2.0
// Looks values up, and unmatches pairs that say nothing.
#include "inspector/diff/localize_models/blame_models_unmatch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "inspector/diff/compare/apply_diagnosis.h"
#include "inspector/diff/localize_models/blame_models_constants.h"
#include "inspector/diff/localize_models/blame_models_explain.h"
#include "inspector/diff/localize_models/blame_models_parts.h"
#include "inspector/diff/localize_models/blame_models_ties.h"
#include "inspector/diff/localize_models/blame_models_wiring.h"
#include "inspector/diff/matching/definition_distance.h"
#include "inspector/diff/matching/unmatch.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/model/link.h"
#include "inspector/model/placing_inputs.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

// Equal numbers say that what they were made of was equal; equal indices and conditions do not.
bool holds_numbers(const ValueComparison& value) {
  const std::optional<DType> dtype = dtype_from_name(value.dtype);
  return dtype.has_value() && (is_floating(*dtype) || *dtype == DType::int8 || *dtype == DType::uint8);
}

}  // namespace

ComparedValues::ComparedValues(const ModelSide& a, Comparison& view, Diagnosis& diagnosis)
    : a_(a), view_(view), diagnosis_(diagnosis) {
  for (ValueComparison& value : view.values) {
    if (!value.a.empty()) by_path_.emplace(value.a, &value);  // B may give one of these names to a value of its own
  }
}

const ValueComparison* ComparedValues::find(const std::string& path) const {
  const auto found = by_path_.find(path);
  return found == by_path_.end() ? nullptr : found->second;
}

bool ComparedValues::has_diverged(int32_t id) const {
  return std::ranges::any_of(a_.captured_paths(id), [&](const std::string& path) {
    const auto value = by_path_.find(path);
    return value != by_path_.end() && value->second->verdict == Verdict::diverged;
  });
}

bool ComparedValues::is_unmatched(int32_t id) const {
  return std::ranges::any_of(a_.captured_paths(id), [&](const std::string& path) {
    const auto value = by_path_.find(path);
    return value != by_path_.end() && parallax::is_unmatched(*value->second);
  });
}

bool ComparedValues::is_equal(int32_t id) const {
  const std::vector<std::string>& paths = a_.captured_paths(id);
  return !paths.empty() && std::ranges::all_of(paths, [&](const std::string& path) {
    const auto value = by_path_.find(path);
    return value != by_path_.end() && value->second->verdict != Verdict::not_compared && value->second->severity == 0;
  });
}

std::optional<double> ComparedValues::difference_of(int32_t id) const {
  std::optional<double> largest;
  for (const std::string& path : a_.captured_paths(id)) {
    const auto found = by_path_.find(path);
    if (found == by_path_.end() || found->second->verdict == Verdict::not_compared) continue;
    const ValueComparison& value = *found->second;
    if (!holds_numbers(value)) continue;
    double difference = std::numeric_limits<double>::infinity();
    // Compared with a mask of -1e9 everything is small: there, the difference itself.
    if (value.metrics.has_value() && std::isfinite(value.severity))
      difference = value.metrics->rms_a > thresholds::kMaskedSize ? value.metrics->rmse : value.metrics->rel_l2;
    largest = std::max(largest.value_or(0), difference);
  }
  return largest;
}

void ComparedValues::unmatch(int32_t id, std::string_view note) {
  for (const std::string& path : a_.captured_paths(id)) {
    const auto value = by_path_.find(path);
    if (value == by_path_.end() || value->second->verdict != Verdict::diverged) continue;
    parallax::unmatch(*value->second, note);
    diagnosis_.unmatched.push_back({value->second->path, std::string(note)});
  }
  unmatched_.insert(id);
}

// Without a split, the view's values keep their addresses.
OverallVerdict ComparedValues::outcome() {
  apply(diagnosis_, view_);
  return view_.verdict;
}

Unmatching::Unmatching(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, ComparedValues& values,
                       Effects& effects)
    : a_(a), b_(b), matching_(matching), values_(values), effects_(effects) {
  for (const NodeMatch& match : matching.nodes) partners_[&LocatedNode{match.location_a, match.a}.node()] = &match;
}

// Unmatches sizes that are computed from shapes where nothing else differs: numbered names of another export crossed
// them, and every value whose shape they make agrees. True when nothing else was wrong.
bool Unmatching::unmatch_shapes() {
  std::vector<int32_t> sizes;
  for (const ValueMatch& match : matching_.values) {
    if (match.is_extra || !values_.has_diverged(match.a)) continue;
    const bool are_sizes =
        a_.value_info(match.a).follows_from_constants && b_.value_info(match.b).follows_from_constants;
    if (!are_sizes || (a_.follows_from_constants(match.a) && b_.follows_from_constants(match.b))) return false;
    sizes.push_back(match.a);
  }
  for (const int32_t id : sizes) values_.unmatch(id, kPairedWrongly);
  return !sizes.empty() && values_.outcome() == OverallVerdict::pass;
}

// Unmatches values that differ without effect where the outputs agree: they were paired wrongly, or are quantized at
// another node; constants that differ with them are equivalent. True when nothing else was wrong.
bool Unmatching::unmatch_wrong_pairs() {
  if (unmatch_shapes()) return true;
  const auto is_changed = [&](const auto& match) {
    return values_.has_diverged(match.a) && was_changed(a_, b_, match);
  };
  if (std::ranges::any_of(matching_.values, is_changed))
    return false;  // another model, whether these inputs show it or not
  const auto unmatch_where = [&](bool constants, std::string_view note, auto&& applies) {
    for (const ValueMatch& match : matching_.values) {
      if (match.is_extra || a_.follows_from_constants(match.a) != constants || !values_.has_diverged(match.a)) continue;
      if (applies(match.a)) values_.unmatch(match.a, note);
    }
  };
  std::unordered_set<int32_t> traceless;
  for (const ValueMatch& match : matching_.values) {
    if (values_.has_diverged(match.a) && leaves_no_trace(match.a)) traceless.insert(match.a);
  }
  // No value computed from a wrong pair is a right pair and differs nevertheless.
  const std::vector<bool> is_seen = effects_.leading_to(
      [&](int32_t id) { return values_.has_diverged(id) && !traceless.contains(id); }, thresholds::kNoTrace);
  unmatch_where(false, kPairedWrongly,
                [&](int32_t id) { return traceless.contains(id) && !is_seen[static_cast<size_t>(id)]; });
  unmatch_where(true, kEquivalentConstant, [&](int32_t id) { return is_equivalent_constant(id); });
  return values_.is_any_unmatched() && values_.outcome() == OverallVerdict::pass;
}

// True where all its consumers read it as positions of elements.
bool Unmatching::is_placing(int32_t constant, const LocatedNode& reader) const {
  return std::ranges::none_of(reader.node().inputs, [&](ValueId input) {
    return ModelSide::value_info_read(*reader.location, input) == constant &&
           placing_of(*reader.location->graph, reader.node(), input) == Placing::none;
  });
}

// True where it may be an equivalent constant, whatever the inputs, as far as each consumer shows: it gives positions
// of elements, or the values computed from it are computed from constants alone.
bool Unmatching::may_be_written_so(const ValueMatch& match) const {
  const Value held = a_.constant(match.a), other = b_.constant(match.b);
  if (!held.is_tensor() || !other.is_tensor()) return false;
  if (differ_by_rounding(held.tensor(), other.tensor())) return true;
  const bool may_index = is_integer(held.tensor().dtype());
  return std::ranges::all_of(effects_.readers(match.a), [&](const LocatedNode& reader) {
    if (may_index && is_placing(match.a, reader)) return true;
    return std::ranges::all_of(reader.node().outputs, [&](ValueId output) {
      const int32_t made = ModelSide::value_info_read(*reader.location, output);
      return made < 0 || values_.was_unmatched(made) || a_.follows_from_constants(made);
    });
  });
}

// True where no value computed with it was found to be computed differently.
bool Unmatching::is_unobserved(int32_t constant, const std::unordered_set<int32_t>& same) const {
  const std::vector<LocatedNode>& readers = effects_.readers(constant);
  return !readers.empty() && std::ranges::all_of(readers, [&](const LocatedNode& reader) {
    return std::ranges::all_of(reader.node().outputs, [&](ValueId output) {
      const int32_t made = ModelSide::value_info_read(*reader.location, output);
      return made < 0 || values_.was_unmatched(made) || same.contains(made) || values_.is_equal(made);
    });
  });
}

// Indices and shapes with the same effect in both definitions are equivalent constants, wherever the fault is. From the
// last to the first, so that values computed from constants are known before them.
void Unmatching::unmatch_unobserved_constants(const std::unordered_set<int32_t>& same) {
  for (size_t index = matching_.values.size(); index-- > 0;) {
    const ValueMatch& match = matching_.values[index];
    if (match.is_extra || !a_.follows_from_constants(match.a) || !b_.follows_from_constants(match.b)) continue;
    if (!values_.has_diverged(match.a)) continue;
    if (is_unobserved(match.a, same) && may_be_written_so(match)) values_.unmatch(match.a, kEquivalentConstant);
  }
}

// The length of the axis that the reader looks up by an index; nothing where it does something else with it, or the
// length is not known.
std::optional<int64_t> Unmatching::indexed_length(int32_t index, const LocatedNode& reader,
                                                  const Instance& instance) const {
  constexpr std::array kByAxis = {"Gather", "GatherElements", "ScatterElements", "Scatter"};
  const Node& node = reader.node();
  const bool is_index = node.inputs.size() >= 2 && std::ranges::find(kByAxis, node.op_type) != kByAxis.end() &&
                        ModelSide::value_info_read(*reader.location, node.inputs[1]) == index &&
                        ModelSide::value_info_read(*reader.location, node.inputs[0]) != index;
  const int32_t data = is_index ? ModelSide::value_info_read(*reader.location, node.inputs[0]) : -1;
  if (data < 0) return std::nullopt;
  const Attribute* const given = find_attribute(node, "axis");
  const int64_t axis = given == nullptr ? 0 : std::get<int64_t>(given->value);
  const auto looked_up = a_.follows_from_constants(data) ? Result<Value>(a_.constant(data))
                                                         : a_.captured(path_in(instance, a_.static_path(data)));
  if (!looked_up.ok() || !looked_up->is_tensor()) return std::nullopt;
  const Shape& shape = looked_up->tensor().shape();
  const auto rank = static_cast<int64_t>(shape.rank());
  const int64_t counted = axis < 0 ? axis + rank : axis;
  return counted >= 0 && counted < rank ? std::optional(shape[static_cast<size_t>(counted)]) : std::nullopt;
}

bool Unmatching::is_counted_from_end(const ValueMatch& match, const PathLinks& links) const {
  const std::vector<LocatedNode>& readers = effects_.readers(match.a);
  if (readers.empty() || effects_.is_handed_out(match.a)) return false;
  return std::ranges::all_of(a_.captured_paths(match.a), [&](const std::string& path) {
    const Instance instance = instance_of(path);
    const auto in_a = a_.captured(path), in_b = b_.captured(links.b_path_of(path));
    if (!in_a.ok() || !in_b.ok() || !in_a->is_tensor() || !in_b->is_tensor()) return false;
    const Tensor &x = in_a->tensor(), &y = in_b->tensor();
    if (!is_integer(x.dtype()) || x.dtype() != y.dtype() || !(x.shape() == y.shape())) return false;
    return std::ranges::all_of(readers, [&](const LocatedNode& reader) {
      const std::optional<int64_t> length = indexed_length(match.a, reader, instance);
      for (int64_t index = 0; length.has_value() && index < x.element_count(); ++index) {
        const double own = element_as_double(x, index), other = element_as_double(y, index);
        const auto limit = static_cast<double>(*length);
        const bool are_inside = std::abs(own + 0.5) < limit && std::abs(other + 0.5) < limit;
        if (own != other && !(are_inside && std::abs(own - other) == limit)) return false;
      }
      return length.has_value();
    });
  });
}

void Unmatching::unmatch_counted_from_end(const PathLinks& links) {
  for (const ValueMatch& match : matching_.values) {
    if (!match.is_extra && values_.has_diverged(match.a) && is_counted_from_end(match, links))
      values_.unmatch(match.a, kCountedFromEnd);
  }
}

void Unmatching::unmatch_compensated(const RegionRunner& regions, const ValueMatch& target, const Instance& instance,
                                     const Region& region) {
  for (const LocatedNode& node : region.nodes_a) {
    for (const ValueId input : node.node().inputs) {
      const int32_t read = ModelSide::value_info_read(*node.location, input);
      if (read < 0 || !a_.is_constant(read) || !values_.has_diverged(read)) continue;
      if (is_compensated(regions, target, instance, region, read)) values_.unmatch(read, kEquivalentConstant);
    }
  }
}

// True where the two may be no pair, since elements are moved at once here and in two steps there: exact values of one
// shape are a pair where neither side only moves them. Agreement of later values is no evidence: a comparison, a bound
// or a shape hides any difference.
bool Unmatching::may_be_no_pair(const ValueMatch& match, const Region& region) const {
  if (effects_.is_handed_out(match.a)) return false;
  if (!region.expected.is_tensor() || !region.found.is_tensor()) return true;
  const Tensor &a = region.expected.tensor(), &b = region.found.tensor();
  if (is_floating(a.dtype()) || a.dtype() != b.dtype() || !(a.shape() == b.shape())) return true;
  const auto moves = [](const LocatedNode& node) { return node.id != kNoNode && only_moves(node); };
  return moves(a_.producer(match.a)) || moves(b_.producer(match.b));
}

// True where the two compute with other operands, as factors taken in another order: then they may be no pair.
bool Unmatching::reads_other_operands(const ValueMatch& match) const {
  const LocatedNode a = a_.producer(match.a), b = b_.producer(match.b);
  const auto is_plain = [](const LocatedNode& node) { return node.id != kNoNode && bodies_of(node.node()).empty(); };
  return is_plain(a) && is_plain(b) && !effects_.is_handed_out(match.a) && !reads_the_same(a_, a, b_, b, matching_);
}

// Then what both sides make of them is the same, whatever the two are.
bool Unmatching::agrees_past(const RegionRunner& regions, const ValueMatch& match, const Instance& instance) const {
  constexpr size_t kMostFollowed = 64;
  std::vector<int32_t> made = {match.a};
  bool is_any_same = false;
  for (size_t index = 0; index < made.size(); ++index) {
    const int32_t id = made[index], other = matching_.b_of_a[static_cast<size_t>(id)];
    if (index > 0 && other >= 0) {
      const auto region = regions.run_past(id, other, instance, match);
      if (!region.ok()) return false;
      const auto distance = relative_distance(region->expected, region->found, {});
      if (!(distance.relative_rms <= thresholds::kSameDefinition)) return false;
      is_any_same = true;
      continue;
    }
    for (const LocatedNode& reader : effects_.readers(id)) {
      for (const ValueId output : reader.node().outputs) {
        const int32_t next = ModelSide::value_info_read(*reader.location, output);
        if (next >= 0 && std::ranges::find(made, next) == made.end()) made.push_back(next);
      }
    }
    if (made.size() > kMostFollowed) return false;
  }
  return is_any_same;
}

bool Unmatching::is_compensated(const RegionRunner& regions, const ValueMatch& target, const Instance& instance,
                                const Region& region, int32_t constant) const {
  const int32_t other = matching_.b_of_a[static_cast<size_t>(constant)];
  const auto is_inside = [&](const LocatedNode& reader) { return has(region.nodes_a, reader); };
  if (other < 0 || !b_.is_constant(other) || !std::ranges::all_of(effects_.readers(constant), is_inside)) return false;
  const Value held = a_.constant(constant), own = b_.constant(other);
  if (!held.is_tensor() || !own.is_tensor() || held.tensor().dtype() != own.tensor().dtype()) return false;
  const auto found = regions.run_with(target.a, target.b, instance, {{other, held}});
  return found.ok() && relative_distance(region.expected, *found, {}).relative_rms > thresholds::kSameDefinition;
}

// A constant of which every reader is another operation in B, with the same result, or makes what has been unmatched.
bool Unmatching::is_equivalent_constant(int32_t constant) const {
  const auto is_other_operation = [&](const LocatedNode& reader) {
    const auto partner = partners_.find(&reader.node());
    if (partner == partners_.end()) return false;
    const LocatedNode other{partner->second->location_b, partner->second->b};
    return !is_same_operation(reader, other);
  };
  return std::ranges::all_of(effects_.readers(constant), [&](const LocatedNode& reader) {
    return std::ranges::all_of(reader.node().outputs, [&](ValueId output) {
      const int32_t made = ModelSide::value_info_read(*reader.location, output);
      if (made < 0 || values_.was_unmatched(made)) return true;
      return is_other_operation(reader) && values_.difference_of(made).value_or(1) <= thresholds::kNoTrace;
    });
  });
}

// Values computed from a truly wrong value are wrong as well, if a thousand times less. And B does something else with
// its counterpart, or has only quantized it earlier.
bool Unmatching::leaves_no_trace(int32_t id) {
  if (!effects_.leaves_nothing(id, values_.difference_of(id).value_or(0) > thresholds::kGrossDifference
                                       ? thresholds::kNoTrace
                                       : thresholds::kExactTrace))
    return false;
  const int32_t in_b = matching_.b_of_a[static_cast<size_t>(id)];
  if (in_b >= 0 && holds_steps(b_, in_b) && !holds_steps(a_, id)) return true;
  return effects_.is_compensated(id, thresholds::kNoTrace,
                                 [&](const LocatedNode& reader) { return is_read_alike(reader); });
}

// By a node that B has, too, on what stands for what it reads here.
bool Unmatching::is_read_alike(const LocatedNode& reader) const {
  const auto partner = partners_.find(&reader.node());
  if (partner == partners_.end()) return false;
  const LocatedNode other{partner->second->location_b, partner->second->b};
  if (!reads_the_same(a_, reader, b_, other, matching_)) return false;
  return partner->second->is_same_definition || differ_by_step(a_, reader, b_, other);
}

}  // namespace parallax::diff
