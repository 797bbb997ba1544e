// SPDX-License-Identifier: Apache-2.0
// Pairs within two groups of aliases.
#include "inspector/diff/matching/matching_aliases.h"

#include <algorithm>
#include <limits>
#include <list>
#include <string>
#include <unordered_map>

#include "inspector/diff/tolerance/quantization.h"

namespace parallax::diff {
namespace {

// Whatever their types are known to be, quantized values are no floats.
bool are_quantized(const FlatValue& value) { return value.value_info->op == "QuantizeLinear"; }

// True for types of one kind: neither is quantized where the other is a float.
bool are_of_one_kind(const FlatValue& a, const FlatValue& b) {
  const bool are_known = a.type->dtype != DType::undefined && b.type->dtype != DType::undefined;
  return same_dtype(a, b) || (are_known && is_floating(a.type->dtype) == is_floating(b.type->dtype));
}

// The DequantizeLinear that makes a value; null where another operator does.
const Node* dequantize_of(const FlatValue& value) {
  const ValueInfo& info = *value.value_info;
  const NodeId producer = info.graph == nullptr ? kNoNode : value_at(*info.graph, info.value).producer;
  const Node* const node = producer == kNoNode ? nullptr : &info.graph->nodes[static_cast<size_t>(producer)];
  return node != nullptr && is_dequantize(*node) ? node : nullptr;
}

// True where both dequantize the same value in the same way.
bool dequantize_alike(const FlatValue& x, const FlatValue& y) {
  const Node *const one = dequantize_of(x), *const other = dequantize_of(y);
  if (one == nullptr || other == nullptr || x.value_info->graph != y.value_info->graph) return false;
  if (one->inputs.front() != other->inputs.front()) return false;
  const auto range = quantized_range_of(*x.value_info->graph, *one);
  return range.has_value() && range == quantized_range_of(*y.value_info->graph, *other);
}

// The member of a group that stands for a float which nothing reads but a QuantizeLinear: what that is dequantized to.
// -1 where there is none.
int32_t dequantized_of(const MatchSide& side, int32_t id, const std::vector<int32_t>& group) {
  const ValueInfo& info = *side.value(id).value_info;
  const auto first_reader = [&](ValueId value, size_t most) -> const Node* {
    const std::vector<NodeId>& readers = value_at(*info.graph, value).readers;
    return readers.empty() || readers.size() > most ? nullptr
                                                    : &info.graph->nodes[static_cast<size_t>(readers.front())];
  };
  const bool is_made = info.graph != nullptr && info.role == ValueInfo::Role::node_output && !info.is_graph_output;
  if (!is_made || !is_floating(side.value(id).type->dtype)) return -1;
  const Node* const quantize = first_reader(info.value, 1);
  if (quantize == nullptr || !is_quantize(*quantize) || quantize->outputs.size() != 1) return -1;
  constexpr size_t kAny = std::numeric_limits<size_t>::max();
  const Node* const dequantize = first_reader(quantize->outputs.front(), kAny);
  if (dequantize == nullptr || !is_dequantize(*dequantize)) return -1;
  const auto found = std::ranges::find_if(group, [&](int32_t other) {
    const ValueInfo& its = *side.value(other).value_info;
    return its.graph == info.graph && its.value == dequantize->outputs.front();
  });
  return found == group.end() ? -1 : *found;
}

// A value that is dequantized once more has the same counterpart, though it is not that of any other value.
void share_dequantized(const MatchSide& side, const std::vector<int32_t>& group, std::vector<int32_t>& counterparts) {
  for (const int32_t again : group) {
    if (counterparts[static_cast<size_t>(again)] >= 0) continue;
    const auto is_first = [&](int32_t other) {
      return counterparts[static_cast<size_t>(other)] >= 0 && dequantize_alike(side.value(again), side.value(other));
    };
    const auto first = std::ranges::find_if(group, is_first);
    if (first != group.end()) counterparts[static_cast<size_t>(again)] = counterparts[static_cast<size_t>(*first)];
  }
}

void pair_members(const MatchSide& a, const MatchSide& b, const std::vector<int32_t>& group_a,
                  const std::vector<int32_t>& group_b, const ValueMatch& like, ModelMatching& result) {
  const auto add = [&](int32_t x, int32_t y, bool is_extra) {
    ValueMatch match = like;
    match.a = x;
    match.b = y;
    match.is_extra = is_extra;
    const ValueInfo &info_a = *a.value(x).value_info, &info_b = *b.value(y).value_info;
    if (info_a.name == info_b.name) match.how = info_a.scope == info_b.scope ? MatchedBy::path : MatchedBy::name;
    result.values.push_back(match);
    if (is_extra) return;
    result.b_of_a[static_cast<size_t>(x)] = y;
    result.a_of_b[static_cast<size_t>(y)] = x;
  };
  const auto is_free_a = [&](int32_t x) { return result.b_of_a[static_cast<size_t>(x)] < 0; };
  const auto is_free_b = [&](int32_t y) { return result.a_of_b[static_cast<size_t>(y)] < 0; };
  const auto same_op = [&](int32_t x, int32_t y) { return a.value(x).value_info->op == b.value(y).value_info->op; };
  // A float alone in its group is what the other model makes of it in the end.
  const auto pair_alone = [&](const MatchSide& side, const std::vector<int32_t>& alone, const MatchSide& other,
                              const std::vector<int32_t>& group, auto&& pair) {
    if (alone.size() != 1 || !is_floating(side.value(alone.front()).type->dtype)) return;
    for (const int32_t id : group) {
      const int32_t in_the_end = dequantized_of(other, id, group);
      if (in_the_end >= 0) return pair(in_the_end);
    }
  };
  pair_alone(a, group_a, b, group_b, [&](int32_t y) { add(group_a.front(), y, false); });
  pair_alone(b, group_b, a, group_a, [&](int32_t x) { add(x, group_b.front(), false); });
  std::unordered_map<std::string, int32_t> by_path;
  for (const int32_t y : group_b) by_path.emplace(b.path(y), y);
  for (const int32_t x : group_a) {
    const auto found = is_free_a(x) ? by_path.find(a.path(x)) : by_path.end();
    if (found == by_path.end() || !is_free_b(found->second) || !same_op(x, found->second)) continue;
    const bool are_doubles = a.value(x).type->dtype == DType::float64;
    if (are_doubles != (b.value(found->second).type->dtype == DType::float64)) continue;
    if (are_of_one_kind(a.value(x), b.value(found->second))) add(x, found->second, false);
  }
  std::list<int32_t> free_b(group_b.begin(), group_b.end());  // what is paired is not looked at again
  free_b.remove_if([&](int32_t y) { return !is_free_b(y); });
  const auto pair_where = [&](auto&& agree) {
    for (const int32_t x : group_a) {
      if (!is_free_a(x)) continue;
      const auto fits = [&](int32_t y) { return same_dtype(a.value(x), b.value(y)) && agree(x, y); };
      const auto found = std::ranges::find_if(free_b, fits);
      if (found == free_b.end()) continue;
      add(x, *found, false);
      free_b.erase(found);
    }
  };
  pair_where(same_op);
  pair_where([&](int32_t x, int32_t y) { return a.value(x).clamps && b.value(y).clamps; });
  pair_where([](int32_t, int32_t) { return true; });
  const auto first_like = [&](const std::vector<int32_t>& group, int32_t x) {  // of another type, but of its kind
    return std::ranges::find_if(group, [&](int32_t y) { return are_of_one_kind(a.value(x), b.value(y)); });
  };
  const auto like_first = first_like(group_b, group_a[0]);
  if (is_free_a(group_a[0]) && like_first != group_b.end() && is_free_b(*like_first))
    add(group_a[0], *like_first, false);
  for (const int32_t x : group_a) {
    const auto fits = [&](int32_t y) { return same_dtype(a.value(x), b.value(y)); };
    const auto found = is_free_a(x) ? std::ranges::find_if(group_b, fits) : group_b.end();
    if (found != group_b.end()) add(x, *found, true);
  }
  for (const int32_t y : group_b) {
    const auto fits = [&](int32_t x) { return same_dtype(a.value(x), b.value(y)); };
    const auto found = is_free_b(y) ? std::ranges::find_if(group_a, fits) : group_a.end();
    if (found != group_a.end()) add(*found, y, true);
  }
}

}  // namespace

std::vector<std::vector<int32_t>> aliases_of(const FlatGraph& flat) {
  std::vector<std::vector<int32_t>> groups(flat.values.size());
  for (size_t id = 0; id < flat.values.size(); ++id)
    groups[static_cast<size_t>(flat.values[id].root)].push_back(static_cast<int32_t>(id));
  return groups;
}

bool same_dtype(const FlatValue& a, const FlatValue& b) {
  if (are_quantized(a) != are_quantized(b)) return false;
  return a.type->dtype == b.type->dtype || a.type->dtype == DType::undefined || b.type->dtype == DType::undefined;
}

void pair_aliases(const MatchSide& a, const MatchSide& b, const std::vector<int32_t>& group_a,
                  const std::vector<int32_t>& group_b, const ValueMatch& like, ModelMatching& result) {
  pair_members(a, b, group_a, group_b, like, result);
  share_dequantized(a, group_a, result.b_of_a);
  share_dequantized(b, group_b, result.a_of_b);
}

}  // namespace parallax::diff
