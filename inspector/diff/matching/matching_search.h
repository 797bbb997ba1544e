// SPDX-License-Identifier: Apache-2.0
// The search for pairs: roots of values (aliases left out) and nodes of two flat graphs, from what is certain to what
// is likely.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "inspector/diff/matching/matching_graph.h"

namespace parallax::diff {

struct MatchSide {
  FlatGraph flat;
  std::vector<int32_t> value_match;  // of roots
  std::vector<int32_t> node_match;

  explicit MatchSide(FlatGraph graph) : flat(std::move(graph)) {
    value_match.assign(flat.values.size(), -1);
    node_match.assign(flat.nodes.size(), -1);
  }
  const FlatValue& value(int32_t id) const { return flat.values[static_cast<size_t>(id)]; }
  const FlatNode& node(int32_t id) const { return flat.nodes[static_cast<size_t>(id)]; }
  int32_t match_of(int32_t value) const { return value_match[static_cast<size_t>(value)]; }
  int32_t match_of_node(int32_t node) const { return node_match[static_cast<size_t>(node)]; }
  bool is_free(int32_t value) const {
    return this->value(value).root == value && value_match[static_cast<size_t>(value)] < 0;
  }
  bool is_free_node(int32_t node) const { return node_match[static_cast<size_t>(node)] < 0; }
  HashKey op_of(int32_t value) const {
    const int32_t producer = this->value(value).producer;
    return producer < 0 ? 0 : node(producer).op;
  }
  std::string path(int32_t id) const { return value(id).value_info->scope + value(id).value_info->escaped_name; }
};

// Confidence of each pair, by A's value, where it is not 1.
struct SearchResult {
  bool names_agree = true;
  std::unordered_map<int32_t, double> confidences;
};

// Fills value_match and node_match of both; returns soon, and incomplete, once it is cancelled.
SearchResult search_matches(MatchSide& a, MatchSide& b, const CancelToken& cancel);

}  // namespace parallax::diff
