// SPDX-License-Identifier: Apache-2.0
// Pairs a region's nodes as the matching has them, then by operator and by position.
#include "inspector/diff/localize_models/blame_models_parts.h"

#include <algorithm>
#include <optional>
#include <span>

#include "inspector/diff/localize_models/blame_models_explain.h"
#include "inspector/diff/localize_models/blame_models_ties.h"
#include "inspector/diff/localize_models/blame_models_wiring.h"
#include "inspector/diff/matching/matching_attributes.h"

namespace parallax::diff {
namespace {

// By more than quantized values that are signed in one of the two.
bool are_defined_differently(const ModelSide& a, const LocatedNode& node_a, const ModelSide& b,
                             const LocatedNode& node_b) {
  return !definition_difference(a, node_a, b, node_b).empty() && !differ_by_step(a, node_a, b, node_b);
}

// The one node that only one side has stands for the one of its operator among those that only the other has: what is
// left was put in, or left out.
void pair_by_operator(const ModelSide& a, const ModelSide& b, Parts& parts) {
  const bool is_one_in_a = parts.only_a.size() == 1 && parts.only_b.size() > 1;
  const bool is_one_in_b = parts.only_b.size() == 1 && parts.only_a.size() > 1;
  const bool is_one_each = parts.only_a.size() == 1 && parts.only_b.size() == 1;
  if (!is_one_in_a && !is_one_in_b && !is_one_each) return;
  const auto constants_of = [](const ModelSide& side, const LocatedNode& node) {
    return std::ranges::count_if(node.node().inputs, [&](ValueId input) {
      const int32_t read = ModelSide::value_info_read(*node.location, input);
      // Values that follow from shapes count, too: the other side may have folded them.
      return read >= 0 && (side.follows_from_constants(read) || side.value_info(read).follows_from_constants);
    });
  };
  const auto are_alike = [&](const LocatedNode& node_a, const LocatedNode& node_b) {
    return hash_operator(node_a.node()) == hash_operator(node_b.node()) &&
           node_a.node().inputs.size() == node_b.node().inputs.size() &&
           constants_of(a, node_a) == constants_of(b, node_b);
  };
  std::optional<std::pair<LocatedNode, LocatedNode>> pair;
  for (const LocatedNode& node_a : parts.only_a) {
    for (const LocatedNode& node_b : parts.only_b) {
      if (!are_alike(node_a, node_b)) continue;
      if (pair.has_value()) return;
      pair.emplace(node_a, node_b);
    }
  }
  if (!pair.has_value()) return;
  const auto [node_a, node_b] = *pair;
  parts.paired.push_back(*pair);
  if (are_defined_differently(a, node_a, b, node_b)) parts.changed.push_back(*pair);
  std::erase(parts.only_a, node_a);
  std::erase(parts.only_b, node_b);
}

// As reads_the_same, where B may have folded what A computes.
bool reads_the_same_or_folded(const ModelSide& a, const LocatedNode& node_a, const ModelSide& b,
                              const LocatedNode& node_b, const ModelMatching& matching) {
  const std::vector<ValueId>&in_a = node_a.node().inputs, &in_b = node_b.node().inputs;
  const auto is_counterpart = [&](ValueId of_a, ValueId of_b) {
    const int32_t x = ModelSide::value_info_read(*node_a.location, of_a),
                  y = ModelSide::value_info_read(*node_b.location, of_b);
    if (x < 0 || y < 0) return x == y;
    return matching.b_of_a[static_cast<size_t>(x)] == y || (may_be_folded(a, x) && b.follows_from_constants(y));
  };
  return reads_the_same(a, node_a, b, node_b, matching) || std::ranges::equal(in_a, in_b, is_counterpart);
}

// Nodes of two operators that read the same and compute counterparts: one replaced the other, even one that leaves
// these values unchanged.
void pair_replaced(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, const ValueMatch& target,
                   Parts& parts) {
  const auto make_the_same = [&](const LocatedNode& node_a, const LocatedNode& node_b) {
    if (node_a.node().outputs.size() != 1 || node_b.node().outputs.size() != 1) return false;
    const int32_t x = ModelSide::value_info_read(*node_a.location, node_a.node().outputs[0]);
    const int32_t y = ModelSide::value_info_read(*node_b.location, node_b.node().outputs[0]);
    return (x == target.a && y == target.b) || (x >= 0 && y >= 0 && matching.b_of_a[static_cast<size_t>(x)] == y);
  };
  for (size_t index = parts.only_a.size(); index-- > 0;) {
    const LocatedNode node_a = parts.only_a[index];
    const auto stands_there = [&](const LocatedNode& node_b) {
      return hash_operator(node_a.node()) != hash_operator(node_b.node()) && !node_a.node().inputs.empty() &&
             !make_other_kinds(node_a, node_b) && make_the_same(node_a, node_b) &&
             reads_the_same_or_folded(a, node_a, b, node_b, matching);
    };
    const auto node_b = std::ranges::find_if(parts.only_b, stands_there);
    if (node_b == parts.only_b.end()) continue;
    parts.paired.emplace_back(node_a, *node_b);
    parts.replaced.emplace_back(node_a, *node_b);
    parts.only_b.erase(node_b);
    parts.only_a.erase(parts.only_a.begin() + static_cast<std::ptrdiff_t>(index));
  }
}

// From one type of floats to another.
bool is_cast_of_floats(const LocatedNode& node) {
  if (node.node().op_type != "Cast" || !is_floating(type_made(node))) return false;
  return is_floating(value_at(*node.location->graph, node.node().inputs.front()).type.dtype);
}

}  // namespace

bool is_identity(const LocatedNode& node) { return node.node().op_type == "Identity"; }

bool has(const std::vector<LocatedNode>& nodes, const LocatedNode& node) {
  return std::ranges::find(nodes, node) != nodes.end();
}

DType type_made(const LocatedNode& node) {
  return node.location->graph->values[static_cast<size_t>(node.node().outputs[0])].type.dtype;
}

const LocatedNode* find_round_trip(const std::vector<LocatedNode>& casts) {
  const auto is_wide = [](DType dtype) { return dtype == DType::float32 || dtype == DType::float64; };
  for (const LocatedNode& cast : casts) {
    if (is_wide(type_made(cast))) continue;
    for (const LocatedNode& back : casts) {
      const bool is_next = back.location == cast.location && back.node().inputs[0] == cast.node().outputs[0];
      if (is_next && is_wide(type_made(back))) return &cast;
    }
  }
  return nullptr;
}

bool make_other_kinds(const LocatedNode& a, const LocatedNode& b) {
  const DType in_a = type_made(a), in_b = type_made(b);
  const bool are_known = in_a != DType::undefined && in_b != DType::undefined;
  return are_known && (is_floating(in_a) != is_floating(in_b) || (in_a == DType::bool_) != (in_b == DType::bool_));
}

bool may_be_folded(const ModelSide& side, int32_t id, int depth) {
  if (id < 0 || depth > kMostFolded) return false;
  if (side.follows_from_constants(id) || side.value_info(id).follows_from_constants) return true;
  const LocatedNode made_by = side.producer(id);
  if (made_by.id == kNoNode || made_by.node().inputs.empty() || made_by.node().function != nullptr) return false;
  const std::span<const ValueId> inputs = made_by.node().inputs;
  const size_t read = made_by.node().op_type == "CastLike" ? 1 : inputs.size();  // the second lends its type
  return std::ranges::all_of(inputs.first(read), [&](ValueId input) {
    return input == kNoValue || may_be_folded(side, ModelSide::value_info_read(*made_by.location, input), depth + 1);
  });
}

Parts take_apart(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, const ValueMatch& target,
                 const Region& region) {
  Parts parts;
  const bool of_two_types = are_of_two_types(a, b);
  const auto does_nothing = [&](const LocatedNode& node) {
    return is_identity(node) || (of_two_types && is_cast_of_floats(node));
  };
  std::vector<LocatedNode> paired_b;
  for (const LocatedNode& node : region.nodes_a) {
    const auto is_it = [&](const NodeMatch& match) { return match.location_a == node.location && match.a == node.id; };
    const auto found = std::ranges::find_if(matching.nodes, is_it);
    const LocatedNode other = found == matching.nodes.end() ? LocatedNode{} : LocatedNode{found->location_b, found->b};
    if (other.location != nullptr && has(region.nodes_b, other)) {
      paired_b.push_back(other);
      parts.paired.emplace_back(node, other);
      if (are_defined_differently(a, node, b, other)) parts.changed.emplace_back(node, other);
    } else if (!does_nothing(node)) {
      parts.only_a.push_back(node);
    }
  }
  for (const LocatedNode& node : region.nodes_b) {
    if (!has(paired_b, node) && !does_nothing(node)) parts.only_b.push_back(node);
  }
  pair_by_operator(a, b, parts);
  pair_replaced(a, b, matching, target, parts);
  return parts;
}

}  // namespace parallax::diff
