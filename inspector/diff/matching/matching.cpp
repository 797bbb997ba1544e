// SPDX-License-Identifier: Apache-2.0
// Two models matched: signatures, then the search over roots, then the aliases of what was paired.
#include "inspector/diff/matching/matching.h"

#include <algorithm>
#include <list>
#include <numeric>
#include <string>
#include <unordered_map>

#include "inspector/diff/matching/matching_aliases.h"
#include "inspector/diff/matching/matching_consumers.h"
#include "inspector/diff/matching/matching_search.h"
#include "inspector/diff/tolerance/quantization.h"

namespace parallax {
namespace {

using diff::FlatNode;
using diff::FlatUse;
using diff::FlatValue;
using diff::HashKey;
using diff::MatchSide;
using diff::mix;

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
void pair_output(int32_t a, int32_t b, MatchedBy how, ModelMatching& result) {
  int32_t& of_a = result.b_of_a[static_cast<size_t>(a)];
  int32_t& of_b = result.a_of_b[static_cast<size_t>(b)];
  if (of_a == b) return;
  of_a = b;
  of_b = a;
  std::erase_if(result.values, [&](const ValueMatch& match) { return match.a == a && match.b == b; });
  for (ValueMatch& match : result.values) match.is_extra = match.is_extra || match.a == a || match.b == b;
  result.values.push_back({a, b, how, 0.5, false});
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
    const MatchedBy how = info_a->name == info_b->name ? MatchedBy::path : MatchedBy::structure;
    pair_output(info_a->id, info_b->id, how, result);
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
        if (is_free) pair_output(info_a->id, info_b->id, MatchedBy::structure, result);
      }
    }
  }
}

// True where a computed float that one of the two reads has another counterpart than what the other computes there.
bool read_others(const MatchSide& a, const FlatNode& x, const MatchSide& b, const FlatNode& y,
                 const ModelMatching& known) {
  const auto is_made = [](const MatchSide& side, int32_t id) {
    return id >= 0 && side.value(id).producer >= 0 && !side.node(side.value(id).producer).inputs.empty();
  };
  for (size_t port = 0; port < std::min(x.inputs.size(), y.inputs.size()); ++port) {
    const int32_t in_a = x.inputs[port], in_b = y.inputs[port];
    if (!is_made(a, in_a) || !is_made(b, in_b) || !is_floating(a.value(in_a).type->dtype)) continue;
    const int32_t of_a = known.b_of_a[static_cast<size_t>(in_a)], of_b = known.a_of_b[static_cast<size_t>(in_b)];
    if ((of_a >= 0 || of_b >= 0) && of_a != in_b) return true;
  }
  return false;
}

// B's value without a counterpart that the same operator makes of the counterpart of what A's value is made of; -1
// where there is none.
int32_t made_alike(const MatchSide& a, const FlatValue& value, const MatchSide& b, const ModelMatching& known) {
  const FlatNode& node = a.node(value.producer);
  for (const int32_t input : node.inputs) {
    const int32_t read = input < 0 ? -1 : known.b_of_a[static_cast<size_t>(input)];
    if (read < 0 || !is_floating(a.value(input).type->dtype)) continue;
    for (const FlatUse& use : b.value(read).uses) {
      const FlatNode& other = b.node(use.node);
      if (other.op != node.op || other.attributes != node.attributes || other.outputs.size() != node.outputs.size())
        continue;
      const int32_t made = other.outputs[static_cast<size_t>(value.port)];
      const bool is_free = made >= 0 && known.a_of_b[static_cast<size_t>(made)] < 0;
      if (is_free && !read_others(a, node, b, other, known)) return made;
    }
  }
  return -1;
}

// Pairs values of one name and one operator that are computed from inputs in one model and from constants alone in the
// other: the structure does not show it, reliable names do, where the two are not made of other computed values.
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
    const auto named = free_in_b.find(a.path(in_a));
    int32_t in_b = named == free_in_b.end() ? -1 : named->second;
    const bool is_other = in_b >= 0 && value.producer >= 0 && b.value(in_b).producer >= 0 &&
                          read_others(a, a.node(value.producer), b, b.node(b.value(in_b).producer), result);
    if (is_other) in_b = made_alike(a, value, b, result);
    if (in_b < 0 || result.a_of_b[static_cast<size_t>(in_b)] >= 0) continue;
    const FlatValue& other = b.value(in_b);
    const bool is_of_one_kind =
        value.value_info->op == other.value_info->op && value.value_info->domain == other.value_info->domain &&
        value.value_info->output_index == other.value_info->output_index && diff::same_dtype(value, other);
    if (!is_of_one_kind || a.value(value.root).is_constant == b.value(other.root).is_constant) continue;
    if (value.producer >= 0 && other.producer >= 0 && a.node_match[static_cast<size_t>(value.producer)] < 0 &&
        b.node_match[static_cast<size_t>(other.producer)] < 0) {
      a.node_match[static_cast<size_t>(value.producer)] = other.producer;
      b.node_match[static_cast<size_t>(other.producer)] = value.producer;
    }
    result.values.push_back({in_a, in_b, is_other ? MatchedBy::structure : MatchedBy::path, 1, false});
    result.b_of_a[id] = in_b;
    result.a_of_b[static_cast<size_t>(in_b)] = in_a;
  }
}

SignatureMatch match_signature(const Graph& a, const std::vector<ValueId>& in_a, const Graph& b,
                               const std::vector<ValueId>& in_b) {
  SignatureMatch result;
  result.a_of_b.assign(in_b.size(), -1);
  const auto definition = [](const Graph& graph, ValueId id) -> const ValueDef& {
    return graph.values[static_cast<size_t>(id)];
  };
  std::unordered_map<std::string_view, int32_t> named;
  for (size_t candidate = 0; candidate < in_a.size(); ++candidate)
    named.emplace(definition(a, in_a[candidate]).name, static_cast<int32_t>(candidate));
  bool any_name = false;
  for (size_t index = 0; index < in_b.size(); ++index) {
    const auto found = named.find(definition(b, in_b[index]).name);
    if (found == named.end()) continue;
    result.a_of_b[index] = found->second;
    named.erase(found);
    any_name = true;
  }
  if (any_name || in_a.size() < in_b.size()) return result;
  result.by_position = true;
  const auto same_type = [](const ValueDef& x, const ValueDef& y) {
    if (x.type.kind != y.type.kind || x.type.dtype != y.type.dtype) return false;
    return !x.type.dims.has_value() || !y.type.dims.has_value() || x.type.dims->size() == y.type.dims->size();
  };
  std::list<int32_t> free(in_a.size());
  std::iota(free.begin(), free.end(), 0);
  for (size_t index = 0; index < in_b.size(); ++index) {
    const auto found = std::ranges::find_if(free, [&](int32_t candidate) {
      return same_type(definition(a, in_a[static_cast<size_t>(candidate)]), definition(b, in_b[index]));
    });
    if (found == free.end()) continue;
    result.a_of_b[index] = *found;
    free.erase(found);
  }
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
  const ValueInfo& info = *value.value_info;
  if (info.op != "DequantizeLinear" || info.graph == nullptr) return {};
  const NodeId producer = value_at(*info.graph, info.value).producer;
  const ValueDef& held = value_at(*info.graph, info.graph->nodes[static_cast<size_t>(producer)].inputs.front());
  const std::string_view name = diff::name_of_floats(held.name);
  return held.producer != kNoNode || name == held.name ? std::string() : std::string(name);
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

ModelMatching match_models(const ValueTable& a, const ValueTable& b, const MatchOptions& options) {
  const Graph &graph_a = *a.main().graph, &graph_b = *b.main().graph;
  const bool passes_quantized = diff::has_quantization(a) != diff::has_quantization(b);
  MatchSide side_a(diff::flatten(
      a, {numbers_of_a(graph_a.inputs.size()), numbers_of_a(graph_a.outputs.size()), passes_quantized, &options}));
  MatchSide side_b(diff::flatten(b, {numbers_of_b(match_inputs(graph_a, graph_b)),
                                     numbers_of_b(match_outputs(graph_a, graph_b)), passes_quantized, &options}));
  ModelMatching result;
  result.b_of_a.assign(side_a.flat.values.size(), -1);
  result.a_of_b.assign(side_b.flat.values.size(), -1);
  if (options.cancel.is_cancelled()) return result;
  const diff::SearchResult found = diff::search_matches(side_a, side_b, options.cancel);
  if (options.cancel.is_cancelled()) return result;
  result.names_agree = found.names_agree;
  const auto groups_a = diff::aliases_of(side_a.flat), groups_b = diff::aliases_of(side_b.flat);
  for (size_t root = 0; root < groups_a.size(); ++root) {
    const int32_t other = side_a.value_match[root];
    if (other < 0) continue;
    const auto likely = found.confidences.find(static_cast<int32_t>(root));
    const double confidence = likely == found.confidences.end() ? 1.0 : likely->second;
    const ValueMatch like{-1, -1, MatchedBy::structure, confidence, false};
    diff::pair_aliases(side_a, side_b, groups_a[root], groups_b[static_cast<size_t>(other)], like, result);
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
