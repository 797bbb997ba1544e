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
  const ValueSite* site = nullptr;
};

// Computed from the model's inputs, and without a counterpart.
std::vector<Read> free_reads(const GraphSites& place, NodeId id, const std::vector<int32_t>& counterparts) {
  std::vector<Read> found;
  const std::vector<ValueId>& inputs = place.graph->nodes[static_cast<size_t>(id)].inputs;
  for (size_t port = 0; port < inputs.size(); ++port) {
    if (inputs[port] == kNoValue) continue;
    const ValueSite* const site = place.values[static_cast<size_t>(inputs[port])];
    const bool is_computed =
        site != nullptr && site->role == ValueSite::Role::node_output && !site->follows_from_constants;
    if (is_computed && counterparts[static_cast<size_t>(site->id)] < 0) found.push_back({port, site});
  }
  return found;
}

// The data of a value in the graph at `place`; null where there is none, or a dump left it out.
const StoredTensor* data_of(const GraphSites& place, ValueId value) {
  const ValueSite* const site = value == kNoValue ? nullptr : place.values[static_cast<size_t>(value)];
  if (site == nullptr) return nullptr;
  const ValueDef& definition = value_at(*place.graph, value);
  const StoredTensor* stored = nullptr;
  if (definition.initializer_index >= 0) {
    stored = &place.graph->initializers[static_cast<size_t>(definition.initializer_index)];
  } else if (site->op == "Constant" && site->domain.empty()) {
    const Attribute* const attribute =
        find_attribute(place.graph->nodes[static_cast<size_t>(definition.producer)], "value");
    stored = attribute == nullptr ? nullptr : std::get_if<StoredTensor>(&attribute->value);
  }
  return stored == nullptr || stored->external_location == kLeftOutOfDump ? nullptr : stored;
}

// True for one definition, also where quantized values are signed in one of the two models and unsigned in the other.
bool do_the_same(const NodeMatch& match) {
  if (match.is_same_definition) return true;
  const Node& a = match.place_a->graph->nodes[static_cast<size_t>(match.a)];
  const Node& b = match.place_b->graph->nodes[static_cast<size_t>(match.b)];
  if (hash_operator(a) != hash_operator(b) || a.inputs.size() != b.inputs.size() ||
      hash_attributes(*match.place_a->graph, a) != hash_attributes(*match.place_b->graph, b))
    return false;
  for (size_t port = 0; port < a.inputs.size(); ++port) {
    const StoredTensor *const x = data_of(*match.place_a, a.inputs[port]), *const y =
                                                                               data_of(*match.place_b, b.inputs[port]);
    if (x == nullptr && y == nullptr) continue;
    if (x == nullptr || y == nullptr) return false;
    if (hash_tensor(*x) != hash_tensor(*y) && !are_same_codes(x->tensor, y->tensor)) return false;
  }
  return true;
}

bool may_be_pair(const ValueSite& a, const ValueSite& b) {
  const TypeInfo &x = value_at(*a.graph, a.value).type, &y = value_at(*b.graph, b.value).type;
  return x.kind == y.kind && x.dtype == y.dtype && !have_other_sizes(x, y);
}

}  // namespace

void pair_read_alike(ModelMatching& matching) {
  for (const NodeMatch& match : matching.nodes) {
    if (!do_the_same(match)) continue;
    const std::vector<Read> in_a = free_reads(*match.place_a, match.a, matching.b_of_a);
    const std::vector<Read> in_b = free_reads(*match.place_b, match.b, matching.a_of_b);
    const bool may_cross =
        in_a.size() == 1 && in_b.size() == 1 && commutes(match.place_a->graph->nodes[static_cast<size_t>(match.a)]);
    for (const Read& x : in_a) {
      const auto is_partner = [&](const Read& y) {
        return (may_cross || x.port == y.port) && matching.a_of_b[static_cast<size_t>(y.site->id)] < 0 &&
               may_be_pair(*x.site, *y.site);
      };
      const auto y = std::ranges::find_if(in_b, is_partner);
      if (y == in_b.end() || matching.b_of_a[static_cast<size_t>(x.site->id)] >= 0) continue;
      const bool is_named_alike = x.site->name == y->site->name;
      const MatchedBy how = !is_named_alike                   ? MatchedBy::structure
                            : x.site->scope == y->site->scope ? MatchedBy::path
                                                              : MatchedBy::name;
      matching.values.push_back({x.site->id, y->site->id, how, 0.5, false});
      matching.b_of_a[static_cast<size_t>(x.site->id)] = y->site->id;
      matching.a_of_b[static_cast<size_t>(y->site->id)] = x.site->id;
    }
  }
}

}  // namespace parallax::diff
