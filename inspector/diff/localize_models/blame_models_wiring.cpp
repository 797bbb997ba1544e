// SPDX-License-Identifier: Apache-2.0
// Compares operands, by way of the nodes that only one side has.
#include "inspector/diff/localize_models/blame_models_wiring.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "inspector/diff/localize_models/blame_models_constants.h"
#include "inspector/diff/localize_models/blame_models_counterfactuals.h"
#include "inspector/diff/localize_models/blame_models_explain.h"
#include "inspector/diff/matching/definition_distance.h"
#include "inspector/diff/matching/matching_attributes.h"
#include "inspector/diff/tolerance/thresholds.h"

namespace parallax::diff {
namespace {

using Made = std::unordered_map<int32_t, Value>;

// The values that a node computes with, of floats.
std::vector<int32_t> operands_of(const ModelSide& side, const LocatedNode& node, const Made& made) {
  std::vector<int32_t> operands;
  for (const ValueId input : node.node().inputs) {
    const int32_t read = ModelSide::value_info_read(*node.location, input);
    if (read < 0 || side.follows_from_constants(read)) continue;
    const auto value = made.find(read);
    if (value != made.end() && value->second.is_tensor() && is_floating(value->second.tensor().dtype()))
      operands.push_back(read);
  }
  return operands;
}

bool share_weight(const ModelSide& a, const LocatedNode& in_a, const LocatedNode& in_b, const ModelMatching& matching) {
  return std::ranges::any_of(in_a.node().inputs, [&](ValueId input) {
    const int32_t held = ModelSide::value_info_read(*in_a.location, input);
    const int32_t other = held < 0 || !a.follows_from_constants(held) ? -1 : matching.b_of_a[static_cast<size_t>(held)];
    if (other < 0) return false;
    const Value weight = a.constant(held);
    const bool tells =
        weight.is_tensor() && is_floating(weight.tensor().dtype()) && weight.tensor().element_count() > 1;
    return tells && std::ranges::any_of(in_b.node().inputs, [&](ValueId read) {
             return read != kNoValue && ModelSide::value_info_read(*in_b.location, read) == other;
           });
  });
}

// True where each of the two is the only product that its side has more: they stand for each other.
bool are_only_products(const Parts& parts, const LocatedNode& in_a, const LocatedNode& in_b) {
  const auto is_product = [](const LocatedNode& node) {
    return node.node().op_type == "MatMul" || node.node().op_type == "Gemm";
  };
  return is_product(in_a) && is_product(in_b) && std::ranges::count_if(parts.only_a, is_product) == 1 &&
         std::ranges::count_if(parts.only_b, is_product) == 1;
}

// The node that reads `source`, from which nodes that only move elements lead to `id`; none where they are the same.
LocatedNode reader_of_source(const ModelSide& side, int32_t id, int32_t source) {
  LocatedNode reader;
  while (id != source && id >= 0) {
    reader = side.producer(id);
    if (reader.id == kNoNode) break;
    id = ModelSide::value_info_read(*reader.location, reader.node().inputs.front());
  }
  return reader;
}

}  // namespace

// The values from which a value is computed by way of `nodes`, itself included.
std::vector<int32_t> sources_of(const ModelSide& side, int32_t id, const std::vector<LocatedNode>& nodes) {
  std::vector<int32_t> sources = {id};
  constexpr size_t kMost = 256;
  for (size_t index = 0; index < sources.size() && sources.size() < kMost; ++index) {
    if (sources[index] < 0) continue;
    for (const int32_t alias : {side.given_to_call(sources[index]), side.returned_by_call(sources[index])}) {
      if (alias >= 0 && std::ranges::find(sources, alias) == sources.end()) sources.push_back(alias);
    }
    const LocatedNode placed = side.producer(sources[index]);
    if (placed.id == kNoNode) continue;
    const bool is_between = has(nodes, placed) || is_identity(placed);
    if (!is_between) continue;
    for (const ValueId input : placed.node().inputs) {
      const int32_t read = ModelSide::value_info_read(*placed.location, input);
      if (std::ranges::find(sources, read) == sources.end()) sources.push_back(read);
    }
  }
  return sources;
}

std::vector<int32_t> Wiring::other_operands(const LocatedNode& a, const LocatedNode& b) const {
  const std::vector<ValueId>& in_a = a.node().inputs;
  std::vector<ValueId> in_b = b.node().inputs;
  if (in_a.size() != in_b.size()) return {};
  const auto differing = [&] {
    std::vector<int32_t> operands;
    for (size_t port = 0; port < in_a.size(); ++port) {
      const int32_t x = ModelSide::value_info_read(*a.location, in_a[port]);
      if (!agrees(x, ModelSide::value_info_read(*b.location, in_b[port]))) operands.push_back(x);
    }
    return operands;
  };
  std::vector<int32_t> straight = differing();
  if (straight.empty() || !commutes(a.node())) return straight;
  std::ranges::reverse(in_b);
  std::vector<int32_t> crossed = differing();
  return crossed.size() < straight.size() ? crossed : straight;
}

bool Wiring::agrees(int32_t x, int32_t y) const {
  if (x < 0 || y < 0) return x == y;
  if (a_.follows_from_constants(x) || b_.follows_from_constants(y)) return true;
  const std::pair made_by{a_.producer(x), b_.producer(y)};
  if (made_by.first.id != kNoNode && std::ranges::find(parts_.paired, made_by) != parts_.paired.end())
    return a_.value_info(x).output_index == b_.value_info(y).output_index;  // what differs, differs there
  const std::vector<int32_t> from_a = sources_of(a_, x, parts_.only_a), from_b = sources_of(b_, y, parts_.only_b);
  return std::ranges::any_of(from_a, [&](int32_t source) {
    const int32_t other = source < 0 ? -1 : matching_.b_of_a[static_cast<size_t>(source)];
    return other >= 0 && std::ranges::find(from_b, other) != from_b.end();
  });
}

std::optional<Culprit> reads_another_value(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                           const Region& region, const Parts& parts,
                                           const Interventions& interventions) {
  for (const LocatedNode& in_a : parts.only_a) {
    for (const LocatedNode& in_b : parts.only_b) {
      if (!share_weight(a, in_a, in_b, matching) && !are_only_products(parts, in_a, in_b)) continue;
      for (const int32_t wanted : operands_of(a, in_a, region.made_a)) {
        const Value value = as_double(region.made_a.at(wanted));
        for (const int32_t read : operands_of(b, in_b, region.made_b)) {
          const Tensor& own = region.made_b.at(read).tensor();
          if (!value.is_tensor() || value.tensor().element_count() != own.element_count()) continue;
          const Value given = value.tensor().reshaped(own.shape());
          const bool is_same = relative_distance(given, as_double(own), {}).relative_rms <= thresholds::kSameDefinition;
          if (is_same || !interventions.agrees_with({{read, given}})) continue;
          const int32_t source = before_moves(b, read);
          const int32_t instead = matching.a_of_b[static_cast<size_t>(source)];
          const std::string named = instead < 0 ? fmt::format("'{}'", b.value_info(source).name)
                                                : fmt::format("what stands for A's '{}'", a.value_info(instead).name);
          const LocatedNode moved_by = reader_of_source(b, read, source);
          const bool is_in_b = moved_by.id != kNoNode && has(parts.only_b, moved_by);
          return Culprit{.node = is_in_b ? moved_by : in_a,
                         .why = fmt::format("B reads {} where A reads '{}': with this both make the same", named,
                                            a.value_info(wanted).name),
                         .wanted = wanted,
                         .instead = instead,
                         .b_reads = std::string(b.value_info(source).name),
                         .node_b = is_in_b ? moved_by : LocatedNode{}};
        }
      }
    }
  }
  return std::nullopt;
}

}  // namespace parallax::diff
