// SPDX-License-Identifier: Apache-2.0
// Compares what the nodes of a region make on both sides, and walks back from its target to what is equal.
#include "inspector/diff/localize_models/blame_models_shrink.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "inspector/diff/localize_models/blame_models_constants.h"
#include "inspector/diff/localize_models/blame_models_counterfactuals.h"
#include "inspector/diff/localize_models/blame_models_layouts.h"
#include "inspector/diff/localize_models/blame_models_parts.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/model/link.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

struct Intermediate {
  int32_t id = -1;
  Tensor doubles;
  double rms = 0;
};

bool tells_apart(std::span<const double> elements) {
  return elements.size() >= thresholds::kFewestTellingElements &&
         std::ranges::any_of(elements, [&](double element) { return element != elements.front(); }) &&
         std::ranges::all_of(elements, [](double element) { return std::isfinite(element); });
}

double rms_of(std::span<const double> elements) {
  double sum = 0;
  for (const double element : elements) sum += element * element;
  return std::sqrt(sum / static_cast<double>(elements.size()));
}

// The floats that the nodes make and no view of another value is, in order; the target is none of them.
std::vector<Intermediate> intermediates_of(const std::vector<LocatedNode>& nodes, int32_t target,
                                           const std::unordered_map<int32_t, Value>& made) {
  std::vector<Intermediate> found;
  for (const LocatedNode& node : nodes) {
    if (only_moves(node)) continue;
    for (const ValueId output : node.node().outputs) {
      const int32_t id = ModelSide::value_info_read(*node.location, output);
      const auto value = made.find(id);
      if (id < 0 || id == target || value == made.end() || !value->second.is_tensor()) continue;
      const Tensor& tensor = value->second.tensor();
      if (!is_floating(tensor.dtype()) || tensor.element_count() > thresholds::kMostComparedElements) continue;
      const Value wide = as_double(value->second);
      if (!wide.is_tensor() || !tells_apart(wide.tensor().as<double>())) continue;
      Intermediate one{id, wide.tensor(), rms_of(wide.tensor().as<double>())};
      found.push_back(std::move(one));
    }
  }
  return found;
}

// True where one of the two transposes more often: then values of one shape may be in another order of axes, too.
bool moves_axes(const Region& region) {
  const auto transposes = [](const std::vector<LocatedNode>& nodes) {
    return std::ranges::count_if(nodes, [](const LocatedNode& node) { return node.node().op_type == "Transpose"; });
  };
  return transposes(region.nodes_a) != transposes(region.nodes_b);
}

// A's value in B's shape, with the order of axes in which it is nearest to B's. As many elements in both.
Tensor laid_out(const Intermediate& a, const Intermediate& b, bool moves_axes) {
  const bool is_same_shape = a.doubles.shape() == b.doubles.shape();
  if (is_same_shape && !moves_axes) return a.doubles;
  const std::optional<Layout> layout = layout_between(a.doubles, b.doubles);
  if (!layout.has_value()) return a.doubles.reshaped(b.doubles.shape());
  const Value moved = as_b_lays_it_out(*layout, a.doubles);
  return moved.is_tensor() ? moved.tensor() : a.doubles.reshaped(b.doubles.shape());
}

// The root mean square of the difference in relation to the first. As many elements in both.
double relative_difference(const Tensor& a, const Intermediate& b) {
  const std::span<const double> x = a.as<double>(), y = b.doubles.as<double>();
  double sum = 0;
  for (size_t index = 0; index < x.size(); ++index) sum += (x[index] - y[index]) * (x[index] - y[index]);
  return std::sqrt(sum / static_cast<double>(x.size())) / rms_of(x);
}

bool are_as_many(const Intermediate& a, const Intermediate& b) {
  return a.doubles.element_count() == b.doubles.element_count();
}

bool are_equal(const Intermediate& a, const Intermediate& b, bool moves_axes) {
  if (!are_as_many(a, b) || std::abs(a.rms - b.rms) > thresholds::kSameDefinition * a.rms) return false;
  return relative_difference(laid_out(a, b, moves_axes), b) <= thresholds::kSameDefinition;
}

// Those of the nodes that stand between `ends` and the target.
std::vector<LocatedNode> nodes_after(const ModelSide& side, const std::vector<LocatedNode>& nodes, int32_t target,
                                     const std::unordered_set<int32_t>& ends) {
  std::vector<LocatedNode> reached;
  std::vector<int32_t> walked = {target};
  for (size_t index = 0; index < walked.size(); ++index) {
    if (ends.contains(walked[index])) continue;
    const LocatedNode node = side.producer(walked[index]);
    if (node.id == kNoNode || !has(nodes, node)) continue;
    if (!has(reached, node)) reached.push_back(node);
    for (const ValueId input : node.node().inputs) {
      const int32_t read = ModelSide::value_info_read(*node.location, input);
      if (read >= 0 && std::ranges::find(walked, read) == walked.end()) walked.push_back(read);
    }
  }
  std::vector<LocatedNode> kept = nodes;
  std::erase_if(kept, [&](const LocatedNode& node) { return !has(reached, node); });
  return kept;
}

// True for more than a node each, in one graph: the walk of nodes_after does not follow values into bodies and calls.
bool may_shrink(const Region& region) {
  const auto is_plain = [](const std::vector<LocatedNode>& nodes) {
    return !nodes.empty() && std::ranges::all_of(nodes, [&](const LocatedNode& node) {
      return node.location == nodes.front().location && bodies_of(node.node()).empty() &&
             node.node().function == nullptr;
    });
  };
  return region.nodes_a.size() + region.nodes_b.size() > 2 && is_plain(region.nodes_a) && is_plain(region.nodes_b);
}

}  // namespace

EqualValues shrink(const ModelSide& a, const ModelSide& b, const ValueMatch& target, Region& region) {
  EqualValues equal;
  if (!may_shrink(region)) return equal;
  const std::vector<Intermediate> of_a = intermediates_of(region.nodes_a, target.a, region.made_a),
                                  of_b = intermediates_of(region.nodes_b, target.b, region.made_b);
  const bool are_axes_moved = moves_axes(region);
  std::unordered_set<int32_t> ends_a, ends_b;
  for (const Intermediate& in_a : of_a) {
    for (const Intermediate& in_b : of_b) {
      if (ends_b.contains(in_b.id) || !are_equal(in_a, in_b, are_axes_moved)) continue;
      equal.emplace_back(in_a.id, in_b.id);
      ends_a.insert(in_a.id);
      ends_b.insert(in_b.id);
      break;
    }
  }
  if (equal.empty()) return equal;
  region.nodes_a = nodes_after(a, region.nodes_a, target.a, ends_a);
  region.nodes_b = nodes_after(b, region.nodes_b, target.b, ends_b);
  return equal;
}

std::optional<ValueMatch> find_earlier_target(const ValueMatch& target, const Region& region,
                                              const Interventions& interventions) {
  if (!may_shrink(region)) return std::nullopt;
  const std::vector<Intermediate> of_a = intermediates_of(region.nodes_a, target.a, region.made_a),
                                  of_b = intermediates_of(region.nodes_b, target.b, region.made_b);
  struct Candidate {
    double difference;
    const Intermediate *in_a, *in_b;
  };
  const bool are_axes_moved = moves_axes(region);
  std::vector<Candidate> candidates;
  for (const Intermediate& in_a : of_a) {
    for (const Intermediate& in_b : of_b) {
      if (are_as_many(in_a, in_b))
        candidates.push_back({relative_difference(laid_out(in_a, in_b, are_axes_moved), in_b), &in_a, &in_b});
    }
  }
  std::ranges::stable_sort(candidates, {}, &Candidate::difference);
  if (candidates.size() > thresholds::kMostTriedPairs) candidates.resize(thresholds::kMostTriedPairs);
  for (const Candidate& candidate : candidates) {
    const Tensor as_in_b = laid_out(*candidate.in_a, *candidate.in_b, are_axes_moved);
    if (!interventions.agrees_with({{candidate.in_b->id, as_in_b}})) continue;
    ValueMatch earlier = target;
    earlier.a = candidate.in_a->id;
    earlier.b = candidate.in_b->id;
    return earlier;
  }
  return std::nullopt;
}

}  // namespace parallax::diff
