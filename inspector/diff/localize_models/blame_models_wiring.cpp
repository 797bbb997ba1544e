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
#include "inspector/diff/tolerance/quantization.h"
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

bool is_product_of_rows(const LocatedNode& node) {
  return node.node().op_type == "MatMul" || node.node().op_type == "Gemm";
}

// True where each of the two is the only product that its side has more: they stand for each other.
bool are_only_products(const Parts& parts, const LocatedNode& in_a, const LocatedNode& in_b) {
  return is_product_of_rows(in_a) && is_product_of_rows(in_b) &&
         std::ranges::count_if(parts.only_a, is_product_of_rows) == 1 &&
         std::ranges::count_if(parts.only_b, is_product_of_rows) == 1;
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

// The values that casts and quantization hand on to a value, itself included, nearest first, up to `wanted`.
std::vector<int32_t> handed_on(const ModelSide& side, int32_t id, int32_t wanted) {
  std::vector<int32_t> chain = {id};
  while (chain.back() >= 0 && chain.back() != wanted &&
         chain.size() < static_cast<size_t>(thresholds::kLongestFusedChain)) {
    const LocatedNode made_by = side.producer(chain.back());
    if (made_by.id == kNoNode || side.follows_from_constants(chain.back())) break;
    const Node& node = made_by.node();
    const bool passes_on = node.op_type == "Cast" || is_quantize(node) || is_dequantize(node) || is_identity(made_by);
    if (!passes_on || node.inputs.empty()) break;
    chain.push_back(ModelSide::value_info_read(*made_by.location, node.inputs.front()));
  }
  return chain;
}

// True where one value is handed on to both, as by two DequantizeLinear of the same quantized values.
bool are_handed_from_one(const ModelSide& side, int32_t x, int32_t y) {
  const std::vector<int32_t> to_x = handed_on(side, x, -1), to_y = handed_on(side, y, -1);
  return std::ranges::any_of(to_x, [&](int32_t id) { return id >= 0 && std::ranges::find(to_y, id) != to_y.end(); });
}

// True where a value is computed from another one, by way of a few dozens of nodes.
bool comes_from(const ModelSide& side, int32_t id, int32_t source) {
  std::vector<int32_t> made_of = {id};
  for (size_t index = 0; index < made_of.size() && index < thresholds::kLargestGroup; ++index) {
    if (made_of[index] == source) return true;
    const LocatedNode made_by = side.producer(made_of[index]);
    if (made_by.id == kNoNode) continue;
    for (const ValueId input : made_by.node().inputs) {
      const int32_t read = ModelSide::value_info_read(*made_by.location, input);
      if (read >= 0 && std::ranges::find(made_of, read) == made_of.end()) made_of.push_back(read);
    }
  }
  return false;
}

size_t count_of_readers(const ModelSide& side, int32_t id) {
  const ValueInfo& value_info = side.value_info(id);
  return value_at(*value_info.graph, value_info.value).readers.size();
}

// B's name of a value, and A's where it has another.
std::string named_in_both(const ModelSide& a, int32_t in_a, const ModelSide& b, int32_t in_b) {
  const std::string_view own = a.value_info(in_a).name, other = b.value_info(in_b).name;
  return own == other ? fmt::format("'{}'", other) : fmt::format("'{}', which stands for A's '{}',", other, own);
}

// True where the moves from `source` to `id` make `wanted` on the way.
bool leads_through(const ModelSide& side, int32_t id, int32_t source, int32_t wanted) {
  while (id != source && id >= 0 && id != wanted) {
    const LocatedNode made_by = side.producer(id);
    if (made_by.id == kNoNode) return false;
    id = ModelSide::value_info_read(*made_by.location, made_by.node().inputs.front());
  }
  return id == wanted && id != source;
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
          const bool is_near =
              relative_distance(given, as_double(own), {}).relative_rms <= thresholds::kGrossDifference;
          if (is_near || !interventions.agrees_with({{read, given}})) continue;
          const int32_t source = before_moves(b, read);
          const int32_t instead = matching.a_of_b[static_cast<size_t>(source)];
          const std::string named = instead < 0 ? fmt::format("'{}'", b.value_info(source).name)
                                                : fmt::format("what stands for A's '{}'", a.value_info(instead).name);
          const LocatedNode moved_by = reader_of_source(b, read, source);
          const int32_t of_wanted = matching.b_of_a[static_cast<size_t>(wanted)];
          const bool is_on_the_way = of_wanted >= 0 && leads_through(b, read, source, of_wanted);
          return Culprit{.node = is_on_the_way ? a.producer(wanted) : in_a,
                         .why = fmt::format("B reads {} where A reads '{}': with this both make the same", named,
                                            a.value_info(wanted).name),
                         .wanted = wanted,
                         .instead = instead,
                         .b_reads = std::string(b.value_info(source).name),
                         .node_b = is_on_the_way ? b.producer(of_wanted) : moved_by};
        }
      }
    }
  }
  return std::nullopt;
}

OperandDifference operand_difference(const ModelSide& a, const LocatedNode& node_a, const ModelSide& b,
                                     const LocatedNode& node_b, const ModelMatching& matching) {
  const std::vector<ValueId>&in_a = node_a.node().inputs, &in_b = node_b.node().inputs;
  std::vector<size_t> moved;
  for (size_t port = 0; port < std::min(in_a.size(), in_b.size()); ++port) {
    const int32_t x = ModelSide::value_info_read(*node_a.location, in_a[port]),
                  y = ModelSide::value_info_read(*node_b.location, in_b[port]);
    const int32_t of_x = x < 0 ? -1 : matching.b_of_a[static_cast<size_t>(x)];
    if (x < 0 || y < 0 || of_x == y || (of_x >= 0 && are_handed_from_one(b, y, of_x))) continue;
    moved.push_back(port);
  }
  if (moved.empty() ||
      (moved.size() > 1 && commutes(node_a.node()) && moved.size() == in_a.size() && in_a.size() == 2 &&
       matching.b_of_a[static_cast<size_t>(ModelSide::value_info_read(*node_a.location, in_a[0]))] ==
           ModelSide::value_info_read(*node_b.location, in_b[1])))
    return {};
  const auto name = [](const ModelSide& side, const LocatedNode& node, size_t port) {
    const int32_t id = ModelSide::value_info_read(*node.location, node.node().inputs[port]);
    return id < 0 ? std::string("nothing") : fmt::format("'{}'", side.value_info(id).name);
  };
  const int32_t read = ModelSide::value_info_read(*node_b.location, in_b[moved[0]]);
  const int32_t in_a_too = read < 0 ? -1 : matching.a_of_b[static_cast<size_t>(read)];
  const int32_t wanted = ModelSide::value_info_read(*node_a.location, in_a[moved[0]]);
  if (moved.size() == 2) {
    const int32_t second = ModelSide::value_info_read(*node_a.location, in_a[moved[1]]);
    const int32_t other = ModelSide::value_info_read(*node_b.location, in_b[moved[1]]);
    const bool is_first_there = matching.b_of_a[static_cast<size_t>(wanted)] == other;
    // The other one may be made by other nodes in B: it stands for none of A's.
    const int32_t of_second = matching.b_of_a[static_cast<size_t>(second)];
    const bool is_second_there = of_second == read || (of_second < 0 && in_a_too < 0);
    if (is_first_there ? is_second_there || in_a_too >= 0
                       : of_second == read && matching.a_of_b[static_cast<size_t>(other)] < 0)
      return {"the operands are swapped in B", wanted, in_a_too, std::string(b.value_info(read).name)};
  }
  const std::vector<int32_t> chain = handed_on(b, read, wanted < 0 ? -1 : matching.b_of_a[static_cast<size_t>(wanted)]);
  const auto counterpart = [&](int32_t id) { return id < 0 ? -1 : matching.a_of_b[static_cast<size_t>(id)]; };
  size_t own = chain.size() - 1;
  while (own > 0 && counterpart(chain[own]) < 0) --own;
  const int32_t source = chain[own], of_source = counterpart(source);
  // The nodes that hand on the source are its own up to where B reads it more often than A does.
  const size_t readers = of_source < 0 ? 0 : count_of_readers(a, of_source);
  while (own > 0 && of_source >= 0 && count_of_readers(b, chain[own]) <= readers) --own;
  if (own > 0 && of_source >= 0 && of_source != wanted) {
    return {fmt::format("it reads {} where A's '{}' reads {}", named_in_both(a, of_source, b, source),
                        node_a.node().display_name, name(a, node_a, moved[0])),
            wanted, of_source, std::string(b.value_info(source).name), b.producer(chain[own - 1])};
  }
  const int32_t given = in_a_too < 0 ? source : read, of_given = in_a_too < 0 ? of_source : in_a_too;
  const int32_t of_wanted = wanted < 0 ? -1 : matching.b_of_a[static_cast<size_t>(wanted)];
  const bool is_left = of_given < 0 && of_wanted >= 0 && given >= 0 && !b.follows_from_constants(given) &&
                       !comes_from(b, given, of_wanted);
  if (is_left) {
    return {.text = fmt::format("B reads '{}' where A reads {}", b.value_info(given).name, name(a, node_a, moved[0])),
            .wanted = wanted,
            .b_reads = std::string(b.value_info(given).name),
            .left_for = given};
  }
  if (of_given < 0 || of_given == wanted) return {};
  return {fmt::format("B reads {} where A reads {}", named_in_both(a, of_given, b, given), name(a, node_a, moved[0])),
          wanted, of_given, std::string(b.value_info(given).name)};
}

std::optional<Culprit> find_left(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                 const ChangedNodes& rewired, const Interventions& interventions) {
  for (const auto& [node_a, node_b] : rewired) {
    const OperandDifference left = operand_difference(a, node_a, b, node_b, matching);
    if (left.left_for < 0) continue;
    const Value wanted = interventions.made_in_a(left.wanted, left.left_for);
    if (wanted.is_tensor() && interventions.agrees_with({{left.left_for, wanted}}))
      return Culprit{
          .node = node_a, .why = left.text, .wanted = left.wanted, .b_reads = left.b_reads, .node_b = node_b};
  }
  return std::nullopt;
}

bool reads_the_same(const ModelSide& a, const LocatedNode& node_a, const ModelSide& b, const LocatedNode& node_b,
                    const ModelMatching& matching) {
  const std::vector<ValueId>& in_a = node_a.node().inputs;
  std::vector<ValueId> in_b = node_b.node().inputs;
  if (in_a.size() != in_b.size()) return false;
  const auto is_counterpart = [&](ValueId of_a, ValueId of_b) {
    const int32_t x = ModelSide::value_info_read(*node_a.location, of_a),
                  y = ModelSide::value_info_read(*node_b.location, of_b);
    if (x < 0 || y < 0) return x == y;
    // The content of constants is part of the definition, which has been compared.
    return matching.b_of_a[static_cast<size_t>(x)] == y || (a.follows_from_constants(x) && b.follows_from_constants(y));
  };
  if (std::ranges::equal(in_a, in_b, is_counterpart)) return true;
  std::ranges::reverse(in_b);
  return commutes(node_a.node()) && in_a.size() == 2 && std::ranges::equal(in_a, in_b, is_counterpart);
}

}  // namespace parallax::diff
