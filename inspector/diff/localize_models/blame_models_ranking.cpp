// SPDX-License-Identifier: Apache-2.0
// Leaves out irrelevant differences, and adds values that left the range of numbers.
#include "inspector/diff/localize_models/blame_models_ranking.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "inspector/diff/localize/accumulated_rounding.h"
#include "inspector/diff/localize/blame_roots.h"
#include "inspector/diff/localize_models/blame_models_vanished.h"
#include "inspector/diff/tolerance/paths.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/exec/value_path.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

bool is_sure(const ModelRoot& root) { return root.confidence >= thresholds::kSureMatch; }

// True where all values that show the root were compared with limits that a user gave, in all iterations, and pass.
bool is_within_users_limits(const ModelRoot& root, const Comparison& comparison) {
  std::vector<std::string> seen_at = {static_path(root.path)};
  for (const std::string& path : root.also_seen_at) seen_at.push_back(static_path(path));
  bool is_any_compared = false;
  for (const ValueComparison& value : comparison.values) {
    if (value.a.empty() || std::ranges::find(seen_at, static_path(value.a)) == seen_at.end()) continue;
    if (are_mismatched(value)) return false;
    if (value.verdict == Verdict::not_compared) continue;
    if (value.limit.from != LimitSource::user) return false;
    is_any_compared = true;
  }
  return is_any_compared;
}

// Not where nothing would be left: many small changes may sum up to what exceeds a limit.
template <class IsRelevant>
void keep_where(std::vector<ModelRoot>& roots, IsRelevant&& is_relevant) {
  if (std::ranges::any_of(roots, is_relevant))
    std::erase_if(roots, [&](const ModelRoot& root) { return !is_relevant(root); });
}

// The position of a value in the execution; one that was fused away has the position, but no path in A. After all
// others where it is not listed.
size_t location_of(const std::string& path, const Comparison& comparison) {
  const std::vector<ValueComparison>& values = comparison.values;
  auto found = std::ranges::find(values, path, &ValueComparison::a);
  if (found == values.end()) found = std::ranges::find(values, path, &ValueComparison::path);
  return static_cast<size_t>(found - values.begin());
}

// The position at which the difference of a root begins to show: in the bodies of the node that makes its value, if it
// has any.
size_t begin_of(const std::string& path, const Comparison& comparison) {
  const size_t location = location_of(path, comparison);
  if (location == comparison.values.size()) return location;
  const ValueComparison& value = comparison.values[location];
  const std::string frame = std::string(prefix_of(path)) + escape_name(value.node) + ".";
  const auto is_in_body = [&](const ValueComparison& other) { return other.a.starts_with(frame); };
  const auto first = std::ranges::find_if(comparison.values, is_in_body) - comparison.values.begin();
  return std::min(location, static_cast<size_t>(first));
}

// A value that was fused away is listed after all others; in its graph it has its node's position.
bool is_made_before(const ModelRoot& root, const std::string& path) {
  const std::string own_path = static_path(root.path), other_path = static_path(path);
  const ValueInfo *own = nullptr, *other = nullptr;
  for (const ValueInfo* value_info : root.node.location->values) {
    if (value_info == nullptr) continue;
    if (value_info->scope + value_info->escaped_name == own_path) own = value_info;
    if (value_info->scope + value_info->escaped_name == other_path) other = value_info;
  }
  return own != nullptr && other != nullptr && own->node_index <= other->node_index;
}

// The value of one side is beyond the range of the other's type: no other node is needed to explain it.
std::optional<DType> overflown_type(const ValueComparison& value, DType in_a, DType in_b) {
  const Metrics& metrics = *value.metrics;
  const bool is_a_left = !std::isfinite(metrics.worst_a);
  const double held = std::abs(is_a_left ? metrics.worst_b : metrics.worst_a);
  const DType narrow = is_a_left ? in_a : in_b;
  const bool is_beyond = in_a != in_b && std::isfinite(held) && held > float_limits(narrow).max_finite;
  return is_beyond ? std::optional(narrow) : std::nullopt;
}

std::string explain_left(const ValueComparison& value, const std::optional<DType>& overflown) {
  const Metrics& metrics = *value.metrics;
  const std::string element = fmt::format("element [{}] is {:.9g} in A and {:.9g} in B",
                                          fmt::join(metrics.worst_index, ","), metrics.worst_a, metrics.worst_b);
  if (overflown.has_value()) return fmt::format("{}: more than {} can hold", element, name_of(*overflown));
  return element + ": it leaves the range of numbers here, and nothing before it explains that";
}

// A quantization that leaves the range of numbers was calibrated on such, as were those after it: they are its
// consequences, and what ordinary steps do next to that is none of its causes.
void fold_lost_quantizations(std::vector<ModelRoot>& roots) {
  const auto is_lost = [](const ModelRoot& root) { return root.is_quantization && std::isinf(root.introduced); };
  const auto first = std::ranges::find_if(roots, is_lost);
  if (first == roots.end()) return;
  const auto lost = std::ranges::count_if(roots, is_lost);
  if (lost > 1) first->why += fmt::format("; {} more quantizations after it lose their numbers as well", lost - 1);
  const LocatedNode kept = first->node;
  std::erase_if(roots, [&](const ModelRoot& root) { return root.is_quantization && !(root.node == kept); });
}

bool is_node_of(const ModelSide& side, const LocatedNode& node) {
  const GraphValues* location = node.location;
  while (location->parent != nullptr) location = location->parent;
  return location == &side.value_infos().main();
}

// The node that is matched with A's; else the one that makes the counterpart of what it makes, and is matched with no
// other node.
LocatedNode node_in_b(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, const LocatedNode& node) {
  if (!is_node_of(a, node)) return node;
  for (const NodeMatch& match : matching.nodes)
    if (match.location_a == node.location && match.a == node.id) return {match.location_b, match.b};
  for (const ValueId output : node.node().outputs) {
    const int32_t made = output == kNoValue ? -1 : ModelSide::value_info_read(*node.location, output);
    const int32_t other = made < 0 ? -1 : matching.b_of_a[static_cast<size_t>(made)];
    const LocatedNode made_by = other < 0 ? LocatedNode{} : b.producer(other);
    const auto is_matched = [&](const NodeMatch& match) {
      return match.location_b == made_by.location && match.b == made_by.id;
    };
    if (made_by.id != kNoNode && std::ranges::none_of(matching.nodes, is_matched)) return made_by;
  }
  return {};
}

std::string name_in_b(const ModelRoot& root, const ModelSide& a, const ModelSide& b, const ModelMatching& matching) {
  if (root.is_missing_in_b) return {};
  const LocatedNode node = root.node_b.id != kNoNode ? root.node_b : node_in_b(a, b, matching, root.node);
  return node.id == kNoNode ? "" : node.node().display_name;
}

Cause cause_of(const ModelRoot& root, std::string node_b) {
  Cause cause;
  const Node& node = root.node.node();
  cause.node = node.display_name;
  cause.node_b = std::move(node_b);
  cause.op = node.op_type;
  cause.path = root.path;
  cause.introduced = root.introduced;
  cause.inherited = root.inherited;
  cause.side = root.is_draw ? Side::unknown : Side::b;
  cause.why = root.why;
  cause.is_of_stored_values = root.is_of_stored_values;
  if (root.first_iteration >= 0) cause.why += fmt::format(" (from iteration {} on)", root.first_iteration);
  set_source(node, cause);
  return cause;
}

void name_node_in_b(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, Cause& cause) {
  const std::string path = static_path(cause.path);
  for (const ModelSide* side : {&a, &b}) {
    for (const ValueInfo& value_info : side->value_infos().value_infos()) {
      if (value_info.scope + value_info.escaped_name != path) continue;
      const GraphValues& location = side->location_of(value_info.id);
      const NodeId node = location.graph->find_node(cause.node);
      if (node == kNoNode) continue;
      const LocatedNode found = node_in_b(a, b, matching, {&location, node});
      cause.node_b = found.id == kNoNode ? "" : found.node().display_name;
      return;
    }
  }
}

}  // namespace

void name_nodes_in_b(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, std::span<Cause> causes) {
  for (Cause& cause : causes) name_node_in_b(a, b, matching, cause);
}

std::vector<Cause> ranked_causes(std::vector<ModelRoot> roots, const ModelSide& a, const ModelSide& b,
                                 const ModelMatching& matching, const Comparison& comparison) {
  keep_where(roots, [&](const ModelRoot& root) { return !is_within_users_limits(root, comparison); });
  const auto did_much = [](const ModelRoot& root) { return root.introduced > 1; };
  std::optional<Cause> left = find_left_range(comparison, false);
  const size_t left_at = left.has_value() ? location_of(left->path, comparison) : comparison.values.size();
  std::optional<DType> overflown;
  if (left_at < comparison.values.size()) {
    overflown = overflown_type(comparison.values[left_at], a.main_type(), b.main_type());
    left->why = explain_left(comparison.values[left_at], overflown);
    name_node_in_b(a, b, matching, *left);
  }
  const bool of_two_types = are_of_two_types(a, b);
  const auto explains = [&](const ModelRoot& root) {
    if (root.path == left->path) return did_much(root);
    const bool may_grow = did_much(root) || !of_two_types;  // a rounding to the other type does not
    if (!may_grow || overflown.has_value()) return false;
    return begin_of(root.path, comparison) <= left_at || is_made_before(root, left->path);
  };
  if (left.has_value() && std::ranges::any_of(roots, explains)) left.reset();
  // Below a user's limit nothing is relevant except values that exceed one; below the table's, another definition is
  // what it is. Of two types, all that is stored is rounded: that is irrelevant where numbers are lost.
  const bool loses_numbers = left.has_value() && of_two_types;
  const auto is_rounding = [&](const ModelRoot& root) {
    return loses_numbers && !did_much(root) && !root.always_counts;
  };
  std::erase_if(roots, is_rounding);
  if (std::ranges::any_of(roots, [&](const ModelRoot& root) { return did_much(root) && is_sure(root); })) {
    std::erase_if(roots, [&](const ModelRoot& root) { return root.is_users_limit && !did_much(root); });
  }
  fold_lost_quantizations(roots);
  // Roots of large effect come before those within the limits of their values, sure matches before pairs that may be
  // wrong; then what they introduce decides, and the order of execution among equals.
  std::ranges::stable_sort(roots, {}, [&](const ModelRoot& root) {
    return std::tuple(!did_much(root) && !root.always_counts, !is_sure(root), -root.introduced, root.order);
  });
  std::vector<Cause> causes;
  const auto add_left = [&] {
    name_vanished_constant(a, b, matching, *left);
    causes.push_back(*std::move(left));
    left.reset();
  };
  for (const ModelRoot& root : roots) {
    if (left.has_value() && !(location_of(root.path, comparison) < left_at)) add_left();
    causes.push_back(cause_of(root, name_in_b(root, a, b, matching)));
  }
  if (left.has_value()) add_left();
  if (causes.size() > thresholds::kMostCauses) causes.resize(thresholds::kMostCauses);
  for (size_t index = 0; index < causes.size(); ++index) causes[index].rank = static_cast<int32_t>(index) + 1;
  return causes;
}

}  // namespace parallax::diff
