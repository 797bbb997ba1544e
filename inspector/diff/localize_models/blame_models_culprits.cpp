// SPDX-License-Identifier: Apache-2.0
// Tries the parts of a region, and says what differs of those that make the difference.
#include "inspector/diff/localize_models/blame_models_culprits.h"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>

#include "inspector/diff/localize_models/blame_models_constants.h"
#include "inspector/diff/localize_models/blame_models_counterfactuals.h"
#include "inspector/diff/localize_models/blame_models_explain.h"
#include "inspector/diff/localize_models/blame_models_numbers.h"
#include "inspector/diff/localize_models/blame_models_packed.h"
#include "inspector/diff/localize_models/blame_models_parts.h"
#include "inspector/diff/localize_models/blame_models_quantized.h"
#include "inspector/diff/localize_models/blame_models_shrink.h"
#include "inspector/diff/localize_models/blame_models_wiring.h"
#include "inspector/diff/matching/definition_distance.h"
#include "inspector/diff/matching/matching_attributes.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/model/opset/opset_registry.h"
#include "inspector/model/random_operators.h"

namespace parallax::diff {
namespace {

// Two of its kind make different things of the same.
bool draws_without_seed(const Node& node) {
  return node.schema != nullptr && canonical_domain(node.domain) == "ai.onnx" && draws_at_random(node.op_type) &&
         find_attribute(node, "seed") == nullptr;
}

bool is_cast(const LocatedNode& node) { return node.node().op_type == "Cast"; }

// "MatMul 'a', Add 'b'", the first of them.
std::string list_of(const std::vector<LocatedNode>& nodes) {
  constexpr size_t kListed = 3;
  std::string text;
  for (const LocatedNode& node : std::span(nodes).first(std::min(kListed, nodes.size())))
    text += fmt::format("{}{} '{}'", text.empty() ? "" : ", ", node.node().op_type, node.node().display_name);
  return nodes.size() <= kListed ? text : fmt::format("{} and {} more nodes", text, nodes.size() - kListed);
}

// Either of two adjacent nodes of B with one operation may have been matched with A's: where one of them has its name,
// the other was inserted.
LocatedNode by_name(const ModelMatching& matching, const LocatedNode& inserted) {
  if (!matching.names_agree) return inserted;
  for (const NodeMatch& match : matching.nodes) {
    const LocatedNode in_a{match.location_a, match.a}, in_b{match.location_b, match.b};
    const std::string& name = in_a.node().display_name;
    const bool is_swapped = name == inserted.node().display_name && name != in_b.node().display_name &&
                            hash_operator(in_b.node()) == hash_operator(inserted.node());
    if (is_swapped) return in_b;
  }
  return inserted;
}

// True where nodes that only move elements make a difference, too: one that remains where B reads A's constants.
bool differs_besides_constants(const ModelSide& a, const ModelSide& b, const Parts& parts,
                               const Interventions& interventions) {
  RegionRunner::Constants constants;
  if (!std::ranges::any_of(parts.only_a, only_moves) && !std::ranges::any_of(parts.only_b, only_moves)) return false;
  for (const auto& [node_a, node_b] : parts.changed) {
    if (!is_same_operation(node_a, node_b)) return false;
    const std::vector<ValueId>&in_a = node_a.node().inputs, &in_b = node_b.node().inputs;
    for (size_t port = 0; port < std::min(in_a.size(), in_b.size()); ++port) {
      const int32_t x = ModelSide::value_info_read(*node_a.location, in_a[port]);
      const int32_t y = ModelSide::value_info_read(*node_b.location, in_b[port]);
      if (x < 0 || y < 0 || !a.follows_from_constants(x) || !b.follows_from_constants(y)) continue;
      const Value held = a.constant(x), own = b.constant(y);
      if (!held.is_tensor() || !own.is_tensor() || !(held.tensor().shape() == own.tensor().shape()) ||
          held.tensor().dtype() != own.tensor().dtype())
        return false;
      constants[y] = held;
    }
  }
  return !interventions.agrees_with(constants);
}

// The parts without nodes that differ in their text alone, or compute the same on these inputs.
Parts without_unobservable(const Parts& parts, const Interventions& interventions) {
  Parts observable = parts;
  const auto is_unobservable = [&](const auto& pair) {
    return !interventions.is_operand_order_relevant(pair.first, pair.second);
  };
  std::erase_if(observable.changed, is_unobservable);
  std::erase_if(observable.replaced, is_unobservable);
  std::erase_if(observable.only_a, [&](const LocatedNode& node) { return interventions.changes_nothing(node, true); });
  std::erase_if(observable.only_b, [&](const LocatedNode& node) { return interventions.changes_nothing(node, false); });
  return observable;
}

bool is_one_of(const LocatedNode& node, std::span<const std::string_view> operators) {
  return canonical_domain(node.node().domain) == "ai.onnx" &&
         std::ranges::find(operators, node.node().op_type) != operators.end();
}

bool is_product(const LocatedNode& node) {
  constexpr std::array<std::string_view, 4> kProducts = {"Conv", "ConvTranspose", "Gemm", "MatMul"};
  return is_one_of(node, kProducts);
}

// By constants alone: all it reads but one value.
bool scales_by_constants(const ModelSide& side, const LocatedNode& node) {
  constexpr std::array<std::string_view, 5> kLinear = {"Add", "BatchNormalization", "Div", "Mul", "Sub"};
  size_t computed = 0;
  for (size_t port = 0; port < node.node().inputs.size(); ++port)
    computed += node.node().inputs[port] != kNoValue && !side.reads_constant(node, port) ? 1 : 0;
  return computed == 1 && is_one_of(node, kLinear);
}

const LocatedNode* find_draw(const Region& region) {
  const auto is_draw = [](const LocatedNode& node) { return draws_without_seed(node.node()); };
  const auto found = std::ranges::find_if(region.nodes_a, is_draw);
  return found == region.nodes_a.end() ? nullptr : &*found;
}

class Explanation {
 public:
  Explanation(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, const ValueMatch& target,
              const Region& region, const Interventions& interventions)
      : a_(a), b_(b), matching_(matching), target_(target), region_(region), interventions_(interventions) {}

  std::vector<Culprit> find() {
    const LocatedNode made_a = a_.producer(target_.a), made_b = b_.producer(target_.b);
    if (made_a.id == kNoNode || made_b.id == kNoNode) return {held_instead(made_a, made_b)};
    if (auto inserted = find_inserted_quantization(region_, interventions_); inserted.has_value())
      return {*std::move(inserted)};
    Parts parts = take_apart(a_, b_, matching_, target_, region_);
    find_rewired(parts);
    if (std::vector<Culprit> folded = folded_differently(parts); !folded.empty()) return folded;
    if (auto packed = find_wrongly_packed(a_, b_, parts, interventions_); packed.has_value())
      return {*std::move(packed)};
    const size_t differences =
        parts.changed.size() + parts.replaced.size() + parts.only_a.size() + parts.only_b.size() + rewired_.size();
    if (auto number = find_other_number(a_, b_, parts, interventions_); number.has_value()) return {*std::move(number)};
    if (differences > 1 && region_.nodes_a.size() + region_.nodes_b.size() <= thresholds::kMostTriedNodes) {
      std::vector<Culprit> tried = culprits_by_intervention(
          a_, b_, matching_, region_, {parts.only_a, parts.only_b, parts.changed, parts.replaced}, interventions_);
      if (!tried.empty()) return tried;
      if (auto left = find_left(a_, b_, matching_, rewired_, interventions_)) return {*std::move(left)};
      if (auto other = reads_another_value(a_, b_, matching_, region_, parts, interventions_); other.has_value())
        return {*std::move(other)};
      std::vector<Culprit> observable = among(without_unobservable(parts, interventions_));
      if (!observable.empty()) return observable;
    }
    std::vector<Culprit> culprits = among(parts);
    if (!culprits.empty()) return culprits;
    if (const LocatedNode* draw = find_draw(region_); draw != nullptr)
      return {Culprit{.node = *draw, .why = "", .is_draw = true}};
    // A node that hands its constant on is no part of a region.
    if (is_same_operation(made_a, made_b) && !constants_difference(a_, made_a, b_, made_b).empty())
      return after_constants(a_, b_, matching_, made_a, made_b);
    return {reads_differently(made_a, made_b)};
  }

 private:
  // The pairs whose operands are other values. What A's read and B's does not is gone from B as a consequence.
  void find_rewired(Parts& parts) {
    const Wiring wiring(a_, b_, matching_, parts);
    std::vector<LocatedNode> unread;
    for (const auto& pair : parts.paired) {
      const std::vector<int32_t> operands = wiring.other_operands(pair.first, pair.second);
      if (operands.empty()) continue;
      rewired_.push_back(pair);
      for (const int32_t operand : operands) {
        for (const int32_t source : operand < 0 ? std::vector<int32_t>{} : sources_of(a_, operand, parts.only_a))
          if (source >= 0) unread.push_back(a_.producer(source));
      }
    }
    std::erase_if(parts.only_a, [&](const LocatedNode& node) { return has(unread, node); });
  }

  // The culprit where one side computes from constants a value that the other stores.
  Culprit held_instead(const LocatedNode& made_a, const LocatedNode& made_b) const {
    const bool is_held_in_b = made_b.id == kNoNode;
    return {is_held_in_b ? made_a : made_b,
            fmt::format("{} holds a constant in place of what it makes{}", is_held_in_b ? "B" : "A",
                        difference_text(region_.expected, region_.found))};
  }

  Culprit reads_differently(const LocatedNode& node_a, const LocatedNode& node_b) const {
    const OperandDifference difference = operand_difference(a_, node_a, b_, node_b, matching_);
    if (difference.handed_by.id != kNoNode)
      return {difference.handed_by, difference.text, difference.wanted,   difference.instead,
              difference.b_reads,   false,           difference.handed_by};
    return {node_a, difference.text, difference.wanted, difference.instead, difference.b_reads, false, node_b};
  }

  // A value that a node of A reads, and the constant that B's reads instead.
  struct DifferentRead {
    LocatedNode node_a, node_b;
    size_t port = 0;
    int32_t in_b = -1;
    Value made, held;
  };

  // A value that A computes, from shapes and types too, and B has as a constant, where the two are not the same.
  std::optional<DifferentRead> reads_folded(const LocatedNode& node_a, const LocatedNode& node_b, size_t port) const {
    const int32_t x = ModelSide::value_info_read(*node_a.location, node_a.node().inputs[port]);
    const int32_t y = ModelSide::value_info_read(*node_b.location, node_b.node().inputs[port]);
    if (x < 0 || y < 0 || !b_.follows_from_constants(y) || !may_be_folded(a_, x)) return std::nullopt;
    DifferentRead read{node_a, node_b, port, y, interventions_.made_in_a(x, y), b_.constant(y)};
    if (!read.made.is_tensor() || !read.held.is_tensor()) return std::nullopt;
    const Tensor &made = read.made.tensor(), &held = read.held.tensor();
    if (differ_by_storing(made, held, held.dtype()) || difference_of_constants(made, held).empty()) return std::nullopt;
    return read;
  }

  // Both make it by the same operation: then of what differs, as long as that is one thing.
  DifferentRead after(DifferentRead read) const {
    for (int depth = 0; depth < kMostFolded; ++depth) {
      const int32_t x = ModelSide::value_info_read(*read.node_a.location, read.node_a.node().inputs[read.port]);
      const LocatedNode from_a = a_.producer(x), from_b = b_.producer(read.in_b);
      if (from_a.id == kNoNode || from_b.id == kNoNode || !is_same_operation(from_a, from_b)) break;
      if (from_a.node().inputs.size() != from_b.node().inputs.size()) break;
      std::vector<DifferentRead> found;
      for (size_t port = 0; port < from_a.node().inputs.size(); ++port) {
        if (auto next = reads_folded(from_a, from_b, port); next.has_value()) found.push_back(*std::move(next));
      }
      if (found.size() != 1) break;
      read = std::move(found.front());
    }
    return read;
  }

  std::string explain_folded(const DifferentRead& read) const {
    const int32_t x = ModelSide::value_info_read(*read.node_a.location, read.node_a.node().inputs[read.port]);
    const std::string difference = difference_of_constants(read.made.tensor(), read.held.tensor());
    if (a_.follows_from_constants(x))
      return fmt::format("it reads another constant '{}': {}", a_.value_info(x).name, difference);
    return fmt::format("it reads the constant '{}' in B, and what A computes of {} differs: {}",
                       b_.value_info(read.in_b).name, a_.value_info(x).follows_from_constants ? "shapes" : "types",
                       difference);
  }

  // B holds a constant where A computes one of shapes or types, and it is that which makes the difference.
  std::vector<Culprit> folded_differently(const Parts& parts) const {
    for (const auto& [node_a, node_b] : parts.paired) {
      const std::vector<ValueId>&in_a = node_a.node().inputs, &in_b = node_b.node().inputs;
      for (size_t port = 0; port < std::min(in_a.size(), in_b.size()); ++port) {
        const int32_t x = ModelSide::value_info_read(*node_a.location, in_a[port]);
        if (x < 0 || a_.follows_from_constants(x)) continue;
        auto found = reads_folded(node_a, node_b, port);
        if (!found.has_value() || !interventions_.agrees_with({{found->in_b, found->made}})) continue;
        const DifferentRead read = after(*std::move(found));
        return {{read.node_a, explain_folded(read)}};
      }
    }
    return {};
  }

  std::vector<Culprit> among(const Parts& parts) const {
    std::vector<Culprit> culprits;
    for (const auto& [changed_a, changed_b] : parts.changed) {
      if (is_folded_into(parts, changed_a, changed_b)) {
        const bool is_missing_in_b = parts.only_b.empty();
        culprits.push_back({changed_a, fmt::format("{} has no {}, and other constants here, which do not compensate it",
                                                   is_missing_in_b ? "B" : "A",
                                                   list_of(is_missing_in_b ? parts.only_a : parts.only_b))});
        continue;
      }
      std::ranges::move(after_pair(a_, b_, matching_, changed_a, changed_b, interventions_),
                        std::back_inserter(culprits));
    }
    for (const auto& [node_a, node_b] : parts.replaced)
      culprits.push_back({.node = node_a, .why = definition_difference(a_, node_a, b_, node_b), .node_b = node_b});
    const bool is_explained = !culprits.empty() && !differs_besides_constants(a_, b_, parts, interventions_);
    for (const auto& [node_a, node_b] : rewired_) culprits.push_back(reads_differently(node_a, node_b));
    add_unpaired(parts, is_explained, culprits);
    // A pair without any difference in words is defined alike, as far as one sees.
    const auto is_explained_pair = [](const Culprit& culprit) { return !culprit.why.empty(); };
    if (std::ranges::any_of(culprits, is_explained_pair)) std::erase_if(culprits, std::not_fn(is_explained_pair));
    return culprits;
  }

  // A product that reads other constants where one side alone goes on to scale and shift what it makes: an optimizer
  // folds the one into the other.
  bool is_folded_into(const Parts& parts, const LocatedNode& node_a, const LocatedNode& node_b) const {
    if (parts.only_a.empty() == parts.only_b.empty() || !is_product(node_a) || !is_same_operation(node_a, node_b))
      return false;
    const auto scales_in = [](const ModelSide& side) {
      return [&side](const LocatedNode& node) { return scales_by_constants(side, node); };
    };
    return std::ranges::all_of(parts.only_a, scales_in(a_)) && std::ranges::all_of(parts.only_b, scales_in(b_));
  }

  // Adds nodes that only one of the two has; where the rest is explained, nodes that move elements are not part of it.
  void add_unpaired(const Parts& parts, bool is_explained, std::vector<Culprit>& culprits) const {
    const LocatedNode made_by = a_.producer(target_.a);
    const auto counts = [&](const LocatedNode& node) { return !is_explained || !only_moves(node); };
    const auto first_a = std::ranges::find_if(parts.only_a, counts);
    const auto first_b = std::ranges::find_if(parts.only_b, counts);
    const bool has_a = first_a != parts.only_a.end(), has_b = first_b != parts.only_b.end();
    const bool is_one_each = has_a && has_b && parts.only_a.size() == 1 && parts.only_b.size() == 1;
    if (is_one_each && make_other_kinds(*first_a, *first_b)) {
      culprits.push_back(missing_in_b(*first_a));
      culprits.push_back({*first_b, fmt::format("B has this {} node, and A has none", first_b->node().op_type)});
    } else if (is_one_each) {
      culprits.push_back(
          {.node = *first_a, .why = definition_difference(a_, *first_a, b_, *first_b), .node_b = *first_b});
    } else if (!has_a && has_b) {
      culprits.push_back(std::ranges::all_of(parts.only_b, is_cast) ? casts_in_b(parts) : only_in_b(parts, *first_b));
    } else if (has_a && !has_b) {
      culprits.push_back(missing_in_b(*first_a));
    } else if (has_a) {
      const LocatedNode made_in_b = b_.producer(target_.b);
      culprits.push_back({.node = has(parts.only_a, made_by) ? made_by : *first_a,
                          .why = "B makes something else of the same values, by " + list_of(parts.only_b),
                          .node_b = has(parts.only_b, made_in_b) ? made_in_b : parts.only_b.back()});
    }
  }

  // B's node that stands for the one that makes the value in A; no id where the region has none.
  LocatedNode counterpart_of_maker(const Parts& parts) const {
    const auto found = std::ranges::find(parts.paired, a_.producer(target_.a), &ChangedNodes::value_type::first);
    return found == parts.paired.end() ? LocatedNode{} : found->second;
  }

  // True where one node of B is computed from the other's output, by way of nodes of the region.
  bool is_after(const LocatedNode& node, const LocatedNode& other) const {
    const std::vector<int32_t> sources =
        sources_of(b_, ModelSide::value_info_read(*node.location, node.node().outputs.front()), region_.nodes_b);
    return std::ranges::any_of(other.node().outputs, [&](ValueId output) {
      return std::ranges::find(sources, ModelSide::value_info_read(*other.location, output)) != sources.end();
    });
  }

  bool are_all_after(const Parts& parts) const {
    const LocatedNode maker = counterpart_of_maker(parts);
    const auto is_placed_after = [&](const LocatedNode& node) { return is_after(node, maker); };
    return maker.id != kNoNode && std::ranges::all_of(parts.only_b, is_placed_after);
  }

  Culprit casts_in_b(const Parts& parts) const {
    if (const LocatedNode* cast = find_round_trip(parts.only_b); cast != nullptr)
      return {*cast, fmt::format("B takes the values to {} and back here, and A does not", name_of(type_made(*cast)))};
    if (are_all_after(parts)) return only_in_b(parts, parts.only_b.front());
    return {a_.producer(target_.a), "in B it stands between casts to a type of less precision"};
  }

  Culprit only_in_b(const Parts& parts, const LocatedNode& first) const {
    const LocatedNode node = by_name(matching_, first);
    LocatedNode maker = counterpart_of_maker(parts);
    if (maker == node) maker = first;
    std::string location = "here";
    const bool is_known = maker.id != kNoNode, is_placed_after = is_known && is_after(node, maker);
    if (is_placed_after || (is_known && is_after(maker, node)))
      location = fmt::format("{} what stands for A's '{}'", is_placed_after ? "after" : "before",
                             a_.producer(target_.a).node().display_name);
    return {node, fmt::format("B has this {} node {}, and A has none", node.node().op_type, location)};
  }

  const ModelSide &a_, &b_;
  const ModelMatching& matching_;
  const ValueMatch& target_;
  const Region& region_;
  const Interventions& interventions_;
  ChangedNodes rewired_;
};

// In the region of the first pair of values that makes all of the difference.
std::vector<Culprit> culprits_of_region(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                        const ValueMatch& target, const Region& region,
                                        const Interventions& interventions) {
  Region smaller = region;
  const EqualValues equal = shrink(a, b, target, smaller);
  if (const auto earlier = find_earlier_target(target, smaller, interventions); earlier.has_value()) {
    const auto before = interventions.region_of(*earlier);
    if (before.ok()) return culprits_of_region(a, b, matching, *earlier, *before, interventions.at(*earlier, *before));
  }
  ModelMatching known = matching;
  for (const auto& [in_a, in_b] : equal) {
    int32_t &of_a = known.b_of_a[static_cast<size_t>(in_a)], &of_b = known.a_of_b[static_cast<size_t>(in_b)];
    if (of_a < 0 && of_b < 0) of_a = in_b, of_b = in_a;
  }
  return Explanation(a, b, known, target, smaller, interventions).find();
}

}  // namespace

std::vector<Culprit> culprit_nodes(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                   const ValueMatch& target, const Region& region, const Interventions& interventions) {
  std::vector<Culprit> culprits = culprits_of_region(a, b, matching, target, region, interventions);
  for (Culprit& one : culprits) {
    if (!one.why.empty()) continue;
    one.is_draw = one.is_draw || draws_without_seed(one.node.node());
    if (one.node_b.id != kNoNode) one.why = version_difference(one.node.node(), one.node_b.node());
    if (one.is_draw) one.why = "it draws at random and has no seed: what A's and B's drew cannot be compared";
    if (one.why.empty()) one.why = "on A's own values B's definition gives another result";
  }
  return culprits;
}

}  // namespace parallax::diff
