// SPDX-License-Identifier: Apache-2.0
// Looks at what paired nodes read.
#include "inspector/diff/matching/matching_consumers.h"

#include <algorithm>

#include "inspector/diff/matching/matching_attributes.h"
#include "inspector/diff/matching/matching_likeness.h"
#include "inspector/diff/matching/same_quantized_values.h"
#include "inspector/dump/dump_reader.h"

namespace parallax::diff {
namespace {

struct Read {
  size_t port = 0;
  const ValueInfo* value_info = nullptr;
};

// Computed from the model's inputs, and without a counterpart.
std::vector<Read> free_reads(const GraphValues& location, NodeId id, const std::vector<int32_t>& counterparts) {
  std::vector<Read> found;
  const std::vector<ValueId>& inputs = location.graph->nodes[static_cast<size_t>(id)].inputs;
  for (size_t port = 0; port < inputs.size(); ++port) {
    if (inputs[port] == kNoValue) continue;
    const ValueInfo* const value_info = location.values[static_cast<size_t>(inputs[port])];
    const bool is_computed = value_info != nullptr && value_info->role == ValueInfo::Role::node_output &&
                             !value_info->follows_from_constants;
    if (is_computed && counterparts[static_cast<size_t>(value_info->id)] < 0) found.push_back({port, value_info});
  }
  return found;
}

// The data of a value in the graph at `location`; null where there is none, or a dump left it out.
const StoredTensor* data_of(const GraphValues& location, ValueId value) {
  const StoredTensor* stored =
      value == kNoValue ? nullptr : stored_tensor_of(location.values[static_cast<size_t>(value)]);
  return stored == nullptr || !stored->absence.empty() ? nullptr : stored;
}

// True for one definition, also where quantized values are signed in one of the two models and unsigned in the other.
bool do_the_same(const NodeMatch& match) {
  if (match.is_same_definition) return true;
  const Node& a = match.location_a->graph->nodes[static_cast<size_t>(match.a)];
  const Node& b = match.location_b->graph->nodes[static_cast<size_t>(match.b)];
  if (hash_operator(a) != hash_operator(b) || a.inputs.size() != b.inputs.size() ||
      hash_attributes(*match.location_a->graph, a) != hash_attributes(*match.location_b->graph, b))
    return false;
  for (size_t port = 0; port < a.inputs.size(); ++port) {
    const StoredTensor *const x = data_of(*match.location_a, a.inputs[port]), *const y = data_of(*match.location_b,
                                                                                                 b.inputs[port]);
    if (x == nullptr && y == nullptr) continue;
    if (x == nullptr || y == nullptr) return false;
    if (hash_tensor(*x) != hash_tensor(*y) && !are_same_quantized(x->tensor, y->tensor)) return false;
  }
  return true;
}

bool may_be_pair(const ValueInfo& a, const ValueInfo& b) {
  const TypeInfo &x = value_at(*a.graph, a.value).type, &y = value_at(*b.graph, b.value).type;
  return x.kind == y.kind && x.dtype == y.dtype && !have_other_sizes(x, y);
}

}  // namespace

const StoredTensor* stored_tensor_of(const ValueInfo* value) {
  if (value == nullptr) return nullptr;
  const ValueDef& definition = value_at(*value->graph, value->value);
  if (definition.initializer_index >= 0)
    return &value->graph->initializers[static_cast<size_t>(definition.initializer_index)];
  if (value->op != "Constant" || !value->domain.empty()) return nullptr;
  const Attribute* attribute = find_attribute(value->graph->nodes[static_cast<size_t>(definition.producer)], "value");
  return attribute == nullptr ? nullptr : std::get_if<StoredTensor>(&attribute->value);
}

void pair_read_alike(ModelMatching& matching) {
  for (const NodeMatch& match : matching.nodes) {
    if (!do_the_same(match)) continue;
    const std::vector<Read> in_a = free_reads(*match.location_a, match.a, matching.b_of_a);
    const std::vector<Read> in_b = free_reads(*match.location_b, match.b, matching.a_of_b);
    const bool may_cross =
        in_a.size() == 1 && in_b.size() == 1 && commutes(match.location_a->graph->nodes[static_cast<size_t>(match.a)]);
    for (const Read& x : in_a) {
      const auto is_partner = [&](const Read& y) {
        return (may_cross || x.port == y.port) && matching.a_of_b[static_cast<size_t>(y.value_info->id)] < 0 &&
               may_be_pair(*x.value_info, *y.value_info);
      };
      const auto y = std::ranges::find_if(in_b, is_partner);
      if (y == in_b.end() || matching.b_of_a[static_cast<size_t>(x.value_info->id)] >= 0) continue;
      const bool is_named_alike = x.value_info->name == y->value_info->name;
      const MatchedBy how = !is_named_alike                               ? MatchedBy::structure
                            : x.value_info->scope == y->value_info->scope ? MatchedBy::path
                                                                          : MatchedBy::name;
      matching.values.push_back({x.value_info->id, y->value_info->id, how, 0.5, false});
      matching.b_of_a[static_cast<size_t>(x.value_info->id)] = y->value_info->id;
      matching.a_of_b[static_cast<size_t>(y->value_info->id)] = x.value_info->id;
    }
  }
}

}  // namespace parallax::diff
