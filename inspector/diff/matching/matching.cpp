// SPDX-License-Identifier: Apache-2.0
// Two models matched: signatures, then the search over roots, then the aliases of what was paired.
#include "inspector/diff/matching/matching.h"

#include <algorithm>
#include <limits>
#include <list>
#include <string>
#include <unordered_map>

#include "inspector/diff/matching/matching_consumers.h"
#include "inspector/diff/matching/matching_search.h"
#include "inspector/diff/tolerance/quantization.h"

namespace parallax {
namespace {

using diff::FlatGraph;
using diff::FlatNode;
using diff::FlatValue;
using diff::HashKey;
using diff::MatchSide;
using diff::mix;

std::vector<std::vector<int32_t>> aliases_of(const FlatGraph& flat) {
  std::vector<std::vector<int32_t>> groups(flat.values.size());
  for (size_t id = 0; id < flat.values.size(); ++id)
    groups[static_cast<size_t>(flat.values[id].root)].push_back(static_cast<int32_t>(id));
  return groups;
}

// Whatever their types are known to be, quantized values are no floats.
bool are_quantized(const FlatValue& value) { return value.value_info->op == "QuantizeLinear"; }

bool same_dtype(const FlatValue& a, const FlatValue& b) {
  if (are_quantized(a) != are_quantized(b)) return false;
  return a.type->dtype == b.type->dtype || a.type->dtype == DType::undefined || b.type->dtype == DType::undefined;
}

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
  return node != nullptr && diff::is_dequantize(*node) ? node : nullptr;
}

// True where both dequantize the same value in the same way.
bool dequantize_alike(const FlatValue& x, const FlatValue& y) {
  const Node *const one = dequantize_of(x), *const other = dequantize_of(y);
  if (one == nullptr || other == nullptr || x.value_info->graph != y.value_info->graph) return false;
  if (one->inputs.front() != other->inputs.front()) return false;
  const auto range = diff::quantized_range_of(*x.value_info->graph, *one);
  return range.has_value() && range == diff::quantized_range_of(*y.value_info->graph, *other);
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
  if (quantize == nullptr || !diff::is_quantize(*quantize) || quantize->outputs.size() != 1) return -1;
  constexpr size_t kAny = std::numeric_limits<size_t>::max();
  const Node* const dequantize = first_reader(quantize->outputs.front(), kAny);
  if (dequantize == nullptr || !diff::is_dequantize(*dequantize)) return -1;
  const auto found = std::ranges::find_if(group, [&](int32_t other) {
    const ValueInfo& its = *side.value(other).value_info;
    return its.graph == info.graph && its.value == dequantize->outputs.front();
  });
  return found == group.end() ? -1 : *found;
}

// Pairs the members of two groups of aliases: of equal path, operator or type; the rest with the first of its type.
void pair_aliases(const MatchSide& a, const MatchSide& b, const std::vector<int32_t>& group_a,
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
  // What is dequantized once more has the same counterpart, though it is not that of any other value.
  const auto share = [](const MatchSide& side, const std::vector<int32_t>& group, std::vector<int32_t>& counterparts) {
    for (const int32_t again : group) {
      if (counterparts[static_cast<size_t>(again)] >= 0) continue;
      const auto is_first = [&](int32_t other) {
        return counterparts[static_cast<size_t>(other)] >= 0 && dequantize_alike(side.value(again), side.value(other));
      };
      const auto first = std::ranges::find_if(group, is_first);
      if (first != group.end()) counterparts[static_cast<size_t>(again)] = counterparts[static_cast<size_t>(*first)];
    }
  };
  share(a, group_a, result.b_of_a);
  share(b, group_b, result.a_of_b);
}

void list_nodes(const MatchSide& a, const MatchSide& b, ModelMatching& result) {
  for (size_t index = 0; index < a.flat.nodes.size(); ++index) {
    const FlatNode& node = a.flat.nodes[index];
    if (a.node_match[index] < 0) continue;
    const FlatNode& other = b.node(a.node_match[index]);
    const bool is_repeated =
        !result.nodes.empty() && result.nodes.back().location_a == node.location && result.nodes.back().a == node.id;
    if (is_repeated) continue;  // another port of the same control-flow node
    const bool is_same =
        node.op == other.op && node.attributes == other.attributes && node.constants == other.constants;
    result.nodes.push_back({node.location, node.id, other.location, other.id, is_same});
  }
}

// Graph outputs are what the two models are asked for: they are each other's nearest counterparts, whatever makes them.
// What was paired with them before still stands for them.
void pair_output(int32_t a, int32_t b, ModelMatching& result) {
  int32_t& of_a = result.b_of_a[static_cast<size_t>(a)];
  int32_t& of_b = result.a_of_b[static_cast<size_t>(b)];
  if (of_a == b) return;
  of_a = b;
  of_b = a;
  std::erase_if(result.values, [&](const ValueMatch& match) { return match.a == a && match.b == b; });
  for (ValueMatch& match : result.values) match.is_extra = match.is_extra || match.a == a || match.b == b;
  result.values.push_back({a, b, MatchedBy::structure, 0.5, false});
}

void pair_outputs(const ValueTable& a, const ValueTable& b, ModelMatching& result) {
  const Graph &graph_a = *a.main().graph, &graph_b = *b.main().graph;
  const SignatureMatch outputs = match_outputs(graph_a, graph_b);
  for (size_t index = 0; index < outputs.a_of_b.size(); ++index) {
    if (outputs.a_of_b[index] < 0) continue;
    const ValueId in_a = graph_a.outputs[static_cast<size_t>(outputs.a_of_b[index])], in_b = graph_b.outputs[index];
    const ValueInfo* info_a = a.main().values[static_cast<size_t>(in_a)];
    const ValueInfo* info_b = b.main().values[static_cast<size_t>(in_b)];
    if (info_a == nullptr || info_b == nullptr) continue;
    pair_output(info_a->id, info_b->id, result);
    if (info_a->name != info_b->name) continue;
    for (ValueMatch& match : result.values) {
      if (match.a == info_a->id && match.b == info_b->id) match.how = MatchedBy::path;
    }
  }
}

// Outputs of bodies are paired by position, where one of the two has no counterpart yet.
void pair_body_outputs(ModelMatching& result) {
  for (size_t index = 0; index < result.nodes.size(); ++index) {
    const NodeMatch node = result.nodes[index];
    for (const GraphValues::Child& child : node.location_a->children_of(node.a)) {
      const GraphValues* other = node.location_b->child(node.b, child.attribute);
      if (other == nullptr) continue;
      const std::vector<ValueId>&in_a = child.value_infos->graph->outputs, &in_b = other->graph->outputs;
      for (size_t port = 0; port < in_a.size() && in_a.size() == in_b.size(); ++port) {
        const ValueInfo* info_a = child.value_infos->values[static_cast<size_t>(in_a[port])];
        const ValueInfo* info_b = other->values[static_cast<size_t>(in_b[port])];
        if (info_a == nullptr || info_b == nullptr) continue;  // handed out as it was read from outside
        const bool is_free =
            result.b_of_a[static_cast<size_t>(info_a->id)] < 0 || result.a_of_b[static_cast<size_t>(info_b->id)] < 0;
        if (is_free) pair_output(info_a->id, info_b->id, result);
      }
    }
  }
}

// Pairs values of one name and one operator that are computed from inputs in one model and from constants alone in the
// other: the structure does not show it, reliable names do.
void pair_with_constants(MatchSide& a, MatchSide& b, ModelMatching& result) {
  std::unordered_map<std::string, int32_t> free_in_b;
  const auto is_made = [](const FlatValue& value) { return value.value_info->role == ValueInfo::Role::node_output; };
  for (size_t id = 0; id < b.flat.values.size(); ++id) {
    if (result.a_of_b[id] < 0 && is_made(b.flat.values[id]))
      free_in_b.emplace(b.path(static_cast<int32_t>(id)), static_cast<int32_t>(id));
  }
  for (size_t id = 0; id < a.flat.values.size(); ++id) {
    const auto in_a = static_cast<int32_t>(id);
    const FlatValue& value = a.flat.values[id];
    if (result.b_of_a[id] >= 0 || !is_made(value)) continue;
    const auto found = free_in_b.find(a.path(in_a));
    if (found == free_in_b.end()) continue;
    const FlatValue& other = b.value(found->second);
    const bool is_of_one_kind =
        value.value_info->op == other.value_info->op && value.value_info->domain == other.value_info->domain &&
        value.value_info->output_index == other.value_info->output_index && same_dtype(value, other);
    if (!is_of_one_kind || a.value(value.root).is_constant == b.value(other.root).is_constant) continue;
    if (value.producer >= 0 && other.producer >= 0 && a.node_match[static_cast<size_t>(value.producer)] < 0 &&
        b.node_match[static_cast<size_t>(other.producer)] < 0) {
      a.node_match[static_cast<size_t>(value.producer)] = other.producer;
      b.node_match[static_cast<size_t>(other.producer)] = value.producer;
    }
    result.values.push_back({in_a, found->second, MatchedBy::path, 1, false});
    result.b_of_a[id] = found->second;
    result.a_of_b[static_cast<size_t>(found->second)] = in_a;
  }
}

SignatureMatch match_signature(const Graph& a, const std::vector<ValueId>& in_a, const Graph& b,
                               const std::vector<ValueId>& in_b) {
  SignatureMatch result;
  result.a_of_b.assign(in_b.size(), -1);
  const auto definition = [](const Graph& graph, ValueId id) -> const ValueDef& {
    return graph.values[static_cast<size_t>(id)];
  };
  std::vector<bool> taken(in_a.size(), false);
  bool any_name = false;
  const auto take = [&](size_t index, auto&& fits) {
    for (size_t candidate = 0; candidate < in_a.size() && result.a_of_b[index] < 0; ++candidate) {
      if (taken[candidate] || !fits(definition(a, in_a[candidate]), definition(b, in_b[index]))) continue;
      result.a_of_b[index] = static_cast<int32_t>(candidate);
      taken[candidate] = true;
    }
  };
  for (size_t index = 0; index < in_b.size(); ++index) {
    take(index, [](const ValueDef& x, const ValueDef& y) { return x.name == y.name; });
    any_name = any_name || result.a_of_b[index] >= 0;
  }
  if (any_name || in_a.size() < in_b.size()) return result;
  result.by_position = true;
  const auto same_type = [](const ValueDef& x, const ValueDef& y) {
    if (x.type.kind != y.type.kind || x.type.dtype != y.type.dtype) return false;
    return !x.type.dims.has_value() || !y.type.dims.has_value() || x.type.dims->size() == y.type.dims->size();
  };
  for (size_t index = 0; index < in_b.size(); ++index) take(index, same_type);
  return result;
}

bool fits_together(const TypeInfo& a, const TypeInfo& b) {
  if (a.kind != b.kind || a.dtype != b.dtype) return false;
  if (!a.dims.has_value() || !b.dims.has_value()) return true;
  return std::ranges::equal(*a.dims, *b.dims, [](const Dim& x, const Dim& y) {
    return !x.is_known() || !y.is_known() || x.value == y.value;
  });
}

// The name of the float that stored quantized values stand for, as quantizers name them; empty for any other value.
std::string name_of_stored(const FlatValue& value) {
  constexpr std::string_view kSuffix = "_quantized";
  const ValueInfo& info = *value.value_info;
  if (info.op != "DequantizeLinear" || info.graph == nullptr) return {};
  const NodeId producer = value_at(*info.graph, info.value).producer;
  const ValueDef& held = value_at(*info.graph, info.graph->nodes[static_cast<size_t>(producer)].inputs.front());
  if (held.producer != kNoNode || !held.name.ends_with(kSuffix)) return {};
  return held.name.substr(0, held.name.size() - kSuffix.size());
}

// Pairs stored quantized values with the floats of the other model that they are named after, which no node shows.
void pair_stored_by_name(const MatchSide& floats, const MatchSide& quantized, bool are_floats_in_a,
                         ModelMatching& result) {
  std::vector<int32_t>& of_floats = are_floats_in_a ? result.b_of_a : result.a_of_b;
  std::vector<int32_t>& of_quantized = are_floats_in_a ? result.a_of_b : result.b_of_a;
  std::unordered_map<std::string, int32_t> free;
  for (size_t id = 0; id < floats.flat.values.size(); ++id) {
    const FlatValue& value = floats.flat.values[id];
    if (of_floats[id] < 0 && value.is_constant && is_floating(value.type->dtype))
      free.emplace(value.value_info->name, static_cast<int32_t>(id));
  }
  for (size_t id = 0; id < quantized.flat.values.size(); ++id) {
    const auto found = of_quantized[id] < 0 ? free.find(name_of_stored(quantized.flat.values[id])) : free.end();
    if (found == free.end()) continue;
    TypeInfo type = *quantized.flat.values[id].type;
    if (type.dtype == DType::undefined) type.dtype = floats.value(found->second).type->dtype;
    if (!fits_together(*floats.value(found->second).type, type)) continue;
    const auto other = static_cast<int32_t>(id);
    result.values.push_back(
        {are_floats_in_a ? found->second : other, are_floats_in_a ? other : found->second, MatchedBy::name, 1, false});
    of_floats[static_cast<size_t>(found->second)] = other;
    of_quantized[id] = found->second;
    free.erase(found);
  }
}

// The one index in `free` that holds true; -1 where there are none or several.
int32_t only_one(const std::vector<bool>& free) {
  if (std::ranges::count(free, true) != 1) return -1;
  return static_cast<int32_t>(std::ranges::find(free, true) - free.begin());
}

// Inputs that must be given: those with a default may be left alone.
std::vector<bool> inputs_without_default(const Graph& graph) {
  std::vector<bool> needed;
  for (const ValueId id : graph.inputs) {
    const ValueDef& input = graph.values[static_cast<size_t>(id)];
    needed.push_back(input.initializer_index < 0 && input.sparse_initializer_index < 0);
  }
  return needed;
}

void pair_remaining(const Graph& a, const Graph& b, SignatureMatch& match) {
  std::vector<bool> free_a = inputs_without_default(a), free_b = inputs_without_default(b);
  for (size_t index = 0; index < match.a_of_b.size(); ++index) {
    if (match.a_of_b[index] < 0) continue;
    free_b[index] = false;
    free_a[static_cast<size_t>(match.a_of_b[index])] = false;
  }
  const int32_t in_a = only_one(free_a), in_b = only_one(free_b);
  if (in_a < 0 || in_b < 0) return;
  const auto type_of_input = [](const Graph& graph, int32_t input) {
    return graph.values[static_cast<size_t>(graph.inputs[static_cast<size_t>(input)])].type;
  };
  if (!fits_together(type_of_input(a, in_a), type_of_input(b, in_b))) return;
  match.a_of_b[static_cast<size_t>(in_b)] = in_a;
  match.paired_last = in_b;
}

std::vector<HashKey> numbers_of_a(size_t count) {
  std::vector<HashKey> numbers(count);
  for (size_t index = 0; index < count; ++index) numbers[index] = index + 1;
  return numbers;
}

std::vector<HashKey> numbers_of_b(const SignatureMatch& match) {
  std::vector<HashKey> numbers;
  for (size_t index = 0; index < match.a_of_b.size(); ++index) {
    const int32_t in_a = match.a_of_b[index];
    numbers.push_back(in_a >= 0 ? static_cast<HashKey>(in_a) + 1 : mix(0xB, index));
  }
  return numbers;
}

}  // namespace

SignatureMatch match_inputs(const Graph& a, const Graph& b) {
  SignatureMatch match = match_signature(a, a.inputs, b, b.inputs);
  if (!match.by_position) pair_remaining(a, b, match);
  return match;
}
SignatureMatch match_outputs(const Graph& a, const Graph& b) { return match_signature(a, a.outputs, b, b.outputs); }

ModelMatching match_models(const ValueTable& a, const ValueTable& b) {
  const Graph &graph_a = *a.main().graph, &graph_b = *b.main().graph;
  const bool passes_quantized = diff::has_quantization(a) != diff::has_quantization(b);
  MatchSide side_a(
      diff::flatten(a, {numbers_of_a(graph_a.inputs.size()), numbers_of_a(graph_a.outputs.size()), passes_quantized}));
  MatchSide side_b(diff::flatten(b, {numbers_of_b(match_inputs(graph_a, graph_b)),
                                     numbers_of_b(match_outputs(graph_a, graph_b)), passes_quantized}));
  ModelMatching result;
  const diff::SearchResult found = diff::search_matches(side_a, side_b);
  result.names_agree = found.names_agree;
  result.b_of_a.assign(side_a.flat.values.size(), -1);
  result.a_of_b.assign(side_b.flat.values.size(), -1);
  const auto groups_a = aliases_of(side_a.flat), groups_b = aliases_of(side_b.flat);
  for (size_t root = 0; root < groups_a.size(); ++root) {
    const int32_t other = side_a.value_match[root];
    if (other < 0) continue;
    const auto likely = found.confidences.find(static_cast<int32_t>(root));
    const double confidence = likely == found.confidences.end() ? 1.0 : likely->second;
    const ValueMatch like{-1, -1, MatchedBy::structure, confidence, false};
    pair_aliases(side_a, side_b, groups_a[root], groups_b[static_cast<size_t>(other)], like, result);
  }
  pair_outputs(a, b, result);
  if (result.names_agree) pair_with_constants(side_a, side_b, result);
  if (passes_quantized) {
    pair_stored_by_name(side_a, side_b, true, result);
    pair_stored_by_name(side_b, side_a, false, result);
  }
  list_nodes(side_a, side_b, result);
  diff::pair_read_alike(result);
  pair_body_outputs(result);
  std::ranges::stable_sort(result.values, [](const ValueMatch& x, const ValueMatch& y) {
    return x.a != y.a ? x.a < y.a : x.is_extra < y.is_extra;
  });
  return result;
}

}  // namespace parallax
