// SPDX-License-Identifier: Apache-2.0
// Runs regions with other constants and without single nodes.
#include "inspector/diff/localize_models/blame_models_counterfactuals.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "inspector/diff/localize_models/blame_models_constants.h"
#include "inspector/diff/localize_models/blame_models_explain.h"
#include "inspector/diff/matching/definition_distance.h"
#include "inspector/diff/matching/matching_attributes.h"
#include "inspector/diff/tolerance/thresholds.h"

namespace parallax::diff {
namespace {

struct ConstantPair {
  int32_t in_a = -1, in_b = -1;
  std::vector<LocatedNode> readers;  // in A; once there is a pair, first the one that stands for B's
};

// The constants that A's nodes of a region read, and those that B's read instead of them.
std::vector<ConstantPair> constants_of(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                       const Region& region) {
  std::vector<ConstantPair> pairs;
  const auto each_constant = [](const ModelSide& side, const std::vector<LocatedNode>& nodes, auto&& visit) {
    for (const LocatedNode& node : nodes) {
      for (const ValueId input : node.node().inputs) {
        const int32_t read = ModelSide::value_info_read(*node.location, input);
        if (read >= 0 && side.follows_from_constants(read)) visit(read, node);
      }
    }
  };
  each_constant(a, region.nodes_a, [&](int32_t x, const LocatedNode& reader) {
    if (const auto known = std::ranges::find(pairs, x, &ConstantPair::in_a); known != pairs.end()) {
      known->readers.push_back(reader);
    } else {
      pairs.push_back({x, -1, {reader}});
    }
  });
  const auto pair_where = [&](auto&& agree) {
    each_constant(b, region.nodes_b, [&](int32_t y, const LocatedNode& reader) {
      if (std::ranges::find(pairs, y, &ConstantPair::in_b) != pairs.end()) return;
      const auto fits = [&](const ConstantPair& pair) { return pair.in_b < 0 && agree(pair.in_a, y); };
      if (std::ranges::count_if(pairs, fits) != 1) return;
      ConstantPair& pair = *std::ranges::find_if(pairs, fits);
      pair.in_b = y;
      const auto is_alike = [&](const LocatedNode& node) { return node.node().op_type == reader.node().op_type; };
      std::stable_partition(pair.readers.begin(), pair.readers.end(), is_alike);
    });
  };
  const auto is_of_one_shape = [&](int32_t x, int32_t y) {
    const Value held = a.constant(x), own = b.constant(y);
    if (!held.is_tensor() || !own.is_tensor() || held.tensor().shape() != own.tensor().shape()) return false;
    const DType x_type = held.tensor().dtype(), y_type = own.tensor().dtype();
    return x_type == y_type || (is_floating(x_type) && is_floating(y_type));
  };
  const auto has_its_name = [&](int32_t x, int32_t y) { return a.static_path(x) == b.static_path(y); };
  pair_where([&](int32_t x, int32_t y) { return matching.b_of_a[static_cast<size_t>(x)] == y; });
  // The others have a counterpart that is read elsewhere in B, or none.
  pair_where([&](int32_t x, int32_t y) { return has_its_name(x, y) && is_of_one_shape(x, y); });
  pair_where(is_of_one_shape);
  // A constant that is only stored in another type is no different constant.
  const auto is_stored_differently = [&](int32_t x, int32_t y) {
    const Tensor held = a.constant(x).tensor(), own = b.constant(y).tensor();
    return held.dtype() != own.dtype() && differ_by_storing(held, own, narrower(held.dtype(), own.dtype()));
  };
  std::erase_if(pairs, [&](const ConstantPair& pair) {
    return pair.in_b < 0 || !is_of_one_shape(pair.in_a, pair.in_b) || is_stored_differently(pair.in_a, pair.in_b);
  });
  return pairs;
}

// A's constants for use in B instead of B's own; not rounded where B's are of another type.
RegionRunner::Constants constants_in_b(const ModelSide& a, const ModelSide& b, const std::vector<ConstantPair>& pairs) {
  RegionRunner::Constants constants;
  for (const ConstantPair& pair : pairs) {
    const Value held = a.constant(pair.in_a);
    const bool is_of_other_type = held.tensor().dtype() != b.constant(pair.in_b).tensor().dtype();
    constants[pair.in_b] = is_of_other_type ? as_double(held) : held;
  }
  return constants;
}

// As few as will do: each is left out that changes nothing.
template <class WillDo>
void drop_unobservable(std::vector<ConstantPair>& pairs, const ModelSide& a, const ModelSide& b, WillDo&& will_do) {
  for (size_t index = pairs.size(); index-- > 0 && pairs.size() > 1;) {
    std::vector<ConstantPair> others = pairs;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(index));
    if (will_do(constants_in_b(a, b, others))) pairs = std::move(others);
  }
}

// The nodes that produce the smallest sufficient set of these constants; none where even all of them are not
// sufficient.
template <class WillDo>
std::vector<Culprit> after_few(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                               std::vector<ConstantPair> pairs, WillDo&& will_do) {
  std::vector<Culprit> culprits;
  if (pairs.empty() || !will_do(constants_in_b(a, b, pairs))) return culprits;
  drop_unobservable(pairs, a, b, will_do);
  for (const ConstantPair& pair : pairs)
    std::ranges::move(after_constant(a, b, matching, pair.in_a, pair.in_b, pair.readers.front()),
                      std::back_inserter(culprits));
  return culprits;
}

}  // namespace

// The relative difference. Rows of a product that one side keeps in two axes and the other in one are laid out alike.
double Interventions::distance(const Value& expected, const Value& found) const {
  Value other = found;
  if (expected.is_tensor() && found.is_tensor()) {
    const Shape &wanted = expected.tensor().shape(), &own = found.tensor().shape();
    const bool is_laid_out_anew =
        wanted.rank() != own.rank() && expected.tensor().element_count() == found.tensor().element_count();
    if (is_laid_out_anew) other = found.tensor().reshaped(wanted);
  }
  return relative_distance(expected, other, limit_).relative_rms;
}

bool Interventions::is_same(const Value& expected, const Result<Value>& found) const {
  return found.ok() && distance(expected, *found) <= thresholds::kSameDefinition;
}

bool Interventions::agrees_with(const RegionRunner::Constants& constants) const {
  return is_same(region_.expected, runner_.run_with(target_.a, target_.b, instance_, constants));
}

bool Interventions::agrees_with_node(const LocatedNode& node, const Node& changed) const {
  return is_same(region_.expected, runner_.run_changed(target_.a, target_.b, instance_, node, changed));
}

bool Interventions::brings_near(const RegionRunner::Constants& constants) const {
  const auto found = runner_.run_with(target_.a, target_.b, instance_, constants);
  if (!found.ok()) return false;
  const double before = distance(region_.expected, region_.found);
  return std::isfinite(before) && distance(region_.expected, *found) <= thresholds::kCounterfactualShare * before;
}

Value Interventions::made_in_a(int32_t in_a, int32_t in_b) const {
  auto read = runner_.read(in_a, in_b, instance_);
  return read.ok() ? read->expected : Value();
}

bool Interventions::agrees_without(const LocatedNode& node, bool in_a) const {
  for (size_t operand = 0; operand < node.node().inputs.size(); ++operand) {
    const auto found = runner_.run_without(target_.a, target_.b, instance_, node, in_a, operand);
    if (is_same(in_a ? region_.found : region_.expected, found)) return true;
  }
  return false;
}

bool Interventions::agrees_without_quantization(const LocatedNode& dequantize) const {
  RegionRunner floats = runner_;
  floats.drop_quantization({dequantize}, false);
  const auto found = floats.run(target_.a, target_.b, instance_);
  return found.ok() && is_same(found->expected, found->found);
}

bool Interventions::changes_nothing(const LocatedNode& node, bool in_a) const {
  return is_same(in_a ? region_.expected : region_.found,
                 runner_.run_without(target_.a, target_.b, instance_, node, in_a));
}

bool Interventions::agrees_as_in_a(const LocatedNode& node_a, const LocatedNode& node_b, bool keeps_constants) const {
  const RegionRunner::Replaced in_b{node_a, node_b, false, keeps_constants};
  return is_same(region_.expected, runner_.run_as_other(target_.a, target_.b, instance_, in_b));
}

bool Interventions::is_operand_order_relevant(const LocatedNode& node_a, const LocatedNode& node_b) const {
  return is_relevant(node_a, node_b, false);
}

bool Interventions::are_attributes_relevant(const LocatedNode& node_a, const LocatedNode& node_b) const {
  return is_relevant(node_a, node_b, true);
}

bool Interventions::is_relevant(const LocatedNode& node_a, const LocatedNode& node_b, bool keeps_constants) const {
  const RegionRunner::Replaced in_b_by_a{node_a, node_b, false, keeps_constants};
  const RegionRunner::Replaced in_a_by_b{node_a, node_b, true, keeps_constants};
  const auto in_b = runner_.run_as_other(target_.a, target_.b, instance_, in_b_by_a);
  const auto in_a = runner_.run_as_other(target_.a, target_.b, instance_, in_a_by_b);
  if (!in_a.ok() && !in_b.ok()) return true;
  return (in_b.ok() && !is_same(region_.found, in_b)) || (in_a.ok() && !is_same(region_.expected, in_a));
}

std::vector<Culprit> culprits_by_intervention(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                              const Region& region, const Differences& differences,
                                              const Interventions& interventions) {
  for (const auto& [node_a, node_b] : differences.changed) {
    if (interventions.agrees_as_in_a(node_a, node_b)) return after_pair(a, b, matching, node_a, node_b, interventions);
  }
  for (const auto& [node_a, node_b] : differences.replaced) {
    if (interventions.agrees_as_in_a(node_a, node_b, true))
      return {{.node = node_a, .why = definition_difference(a, node_a, b, node_b), .node_b = node_b}};
  }
  std::vector<ConstantPair> pairs = constants_of(a, b, matching, region);
  std::vector<ConstantPair> numbers = pairs;  // shapes may be those of another form of the same
  std::erase_if(numbers,
                [&](const ConstantPair& pair) { return !is_floating(a.constant(pair.in_a).tensor().dtype()); });
  const auto agrees = [&](const RegionRunner::Constants& constants) { return interventions.agrees_with(constants); };
  for (const std::vector<ConstantPair>* some : {&pairs, &numbers}) {
    std::vector<Culprit> culprits = after_few(a, b, matching, *some, agrees);
    if (!culprits.empty()) return culprits;
  }
  for (const auto& [node_a, node_b] : differences.replaced) {
    if (interventions.agrees_as_in_a(node_a, node_b))
      return {{.node = node_a, .why = definition_difference(a, node_a, b, node_b), .node_b = node_b}};
  }
  for (const LocatedNode& node : differences.only_b) {
    if (interventions.agrees_without(node, false))
      return {{node,
               fmt::format("B has this {} node, and A has none: without it both make the same", node.node().op_type)}};
  }
  for (const LocatedNode& node : differences.only_a) {
    if (interventions.agrees_without(node, true)) return {missing_in_b(node, ": without it both make the same")};
  }
  // Something else differs as well, but little.
  const auto brings_near = [&](const RegionRunner::Constants& constants) {
    return interventions.brings_near(constants);
  };
  return after_few(a, b, matching, std::move(numbers), brings_near);
}

std::vector<Culprit> after_pair(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                const LocatedNode& node_a, const LocatedNode& node_b,
                                const Interventions& interventions) {
  const bool is_one_operator = hash_operator(node_a.node()) == hash_operator(node_b.node());
  if (is_one_operator && !is_same_operation(node_a, node_b) && !interventions.are_attributes_relevant(node_a, node_b)) {
    std::vector<Culprit> culprits = after_constants(a, b, matching, node_a, node_b, Attributes::irrelevant);
    if (!culprits.empty()) return culprits;
  }
  return after_constants(a, b, matching, node_a, node_b);
}

}  // namespace parallax::diff
