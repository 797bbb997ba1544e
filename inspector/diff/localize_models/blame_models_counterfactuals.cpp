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
  std::vector<PlacedNode> readers;  // in A; once there is a pair, first the one that stands for B's
};

// The constants that A's nodes of a region read, and those that B's read instead of them.
std::vector<ConstantPair> constants_of(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                       const Region& region) {
  std::vector<ConstantPair> pairs;
  const auto each_constant = [](const ModelSide& side, const std::vector<PlacedNode>& nodes, auto&& visit) {
    for (const PlacedNode& node : nodes) {
      for (const ValueId input : node.node().inputs) {
        const int32_t read = ModelSide::site_read(*node.place, input);
        if (read >= 0 && side.follows_from_constants(read)) visit(read, node);
      }
    }
  };
  each_constant(a, region.nodes_a, [&](int32_t x, const PlacedNode& reader) {
    if (const auto known = std::ranges::find(pairs, x, &ConstantPair::in_a); known != pairs.end()) {
      known->readers.push_back(reader);
    } else {
      pairs.push_back({x, -1, {reader}});
    }
  });
  const auto pair_where = [&](auto&& agree) {
    each_constant(b, region.nodes_b, [&](int32_t y, const PlacedNode& reader) {
      if (std::ranges::find(pairs, y, &ConstantPair::in_b) != pairs.end()) return;
      const auto fits = [&](const ConstantPair& pair) { return pair.in_b < 0 && agree(pair.in_a, y); };
      if (std::ranges::count_if(pairs, fits) != 1) return;
      ConstantPair& pair = *std::ranges::find_if(pairs, fits);
      pair.in_b = y;
      const auto is_alike = [&](const PlacedNode& node) { return node.node().op_type == reader.node().op_type; };
      std::stable_partition(pair.readers.begin(), pair.readers.end(), is_alike);
    });
  };
  const auto is_of_one_shape = [&](int32_t x, int32_t y) {
    const Value held = a.constant(x), own = b.constant(y);
    if (!held.is_tensor() || !own.is_tensor() || held.tensor().shape() != own.tensor().shape()) return false;
    const DType x_type = held.tensor().dtype(), y_type = own.tensor().dtype();
    return x_type == y_type || (is_floating(x_type) && is_floating(y_type));
  };
  const auto has_none = [&](int32_t x) { return matching.b_of_a[static_cast<size_t>(x)] < 0; };
  const auto has_its_name = [&](int32_t x, int32_t y) { return a.static_path(x) == b.static_path(y); };
  pair_where([&](int32_t x, int32_t y) { return matching.b_of_a[static_cast<size_t>(x)] == y; });
  pair_where([&](int32_t x, int32_t y) { return has_none(x) && has_its_name(x, y) && is_of_one_shape(x, y); });
  pair_where([&](int32_t x, int32_t y) { return has_none(x) && is_of_one_shape(x, y); });
  // A constant that is only stored in another type is no different constant.
  const auto is_stored_otherwise = [&](int32_t x, int32_t y) {
    const Tensor held = a.constant(x).tensor(), own = b.constant(y).tensor();
    return held.dtype() != own.dtype() && differ_by_storing(held, own, narrower(held.dtype(), own.dtype()));
  };
  std::erase_if(pairs, [&](const ConstantPair& pair) {
    return pair.in_b < 0 || !is_of_one_shape(pair.in_a, pair.in_b) || is_stored_otherwise(pair.in_a, pair.in_b);
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
void leave_out_unfelt(std::vector<ConstantPair>& pairs, const ModelSide& a, const ModelSide& b, WillDo&& will_do) {
  for (size_t index = pairs.size(); index-- > 0 && pairs.size() > 1;) {
    std::vector<ConstantPair> others = pairs;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(index));
    if (will_do(constants_in_b(a, b, others))) pairs = std::move(others);
  }
}

// The nodes that produce the smallest sufficient set of these constants; none where even all of them are not
// sufficient.
template <class WillDo>
std::vector<Guilty> behind_few(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                               std::vector<ConstantPair> pairs, WillDo&& will_do) {
  std::vector<Guilty> guilty;
  if (pairs.empty() || !will_do(constants_in_b(a, b, pairs))) return guilty;
  leave_out_unfelt(pairs, a, b, will_do);
  for (const ConstantPair& pair : pairs)
    std::ranges::move(behind_constant(a, b, matching, pair.in_a, pair.in_b, pair.readers.front()),
                      std::back_inserter(guilty));
  return guilty;
}

}  // namespace

bool Trials::is_same(const Value& expected, const Result<Value>& found) const {
  return found.ok() && relative_distance(expected, *found, limit_).relative_rms <= thresholds::kSameDefinition;
}

bool Trials::agrees_with(const RegionRunner::Constants& constants) const {
  return is_same(region_.expected, runner_.run_with(target_.a, target_.b, instance_, constants));
}

bool Trials::brings_near(const RegionRunner::Constants& constants) const {
  const auto found = runner_.run_with(target_.a, target_.b, instance_, constants);
  if (!found.ok()) return false;
  const double apart = relative_distance(region_.expected, region_.found, limit_).relative_rms;
  return std::isfinite(apart) &&
         relative_distance(region_.expected, *found, limit_).relative_rms <= thresholds::kCounterfactualShare * apart;
}

Value Trials::made_in_a(int32_t in_a, int32_t in_b) const {
  auto read = runner_.read(in_a, in_b, instance_);
  return read.ok() ? read->expected : Value();
}

bool Trials::agrees_without(const PlacedNode& node, bool in_a) const {
  return is_same(in_a ? region_.found : region_.expected,
                 runner_.run_without(target_.a, target_.b, instance_, node, in_a));
}

bool Trials::changes_nothing(const PlacedNode& node, bool in_a) const {
  return is_same(in_a ? region_.expected : region_.found,
                 runner_.run_without(target_.a, target_.b, instance_, node, in_a));
}

bool Trials::agrees_as_in_a(const PlacedNode& node_a, const PlacedNode& node_b, bool keeps_constants) const {
  const RegionRunner::Replaced in_b{node_a, node_b, false, keeps_constants};
  return is_same(region_.expected, runner_.run_as_other(target_.a, target_.b, instance_, in_b));
}

bool Trials::matters_which(const PlacedNode& node_a, const PlacedNode& node_b) const {
  return matters(node_a, node_b, false);
}

bool Trials::attributes_matter(const PlacedNode& node_a, const PlacedNode& node_b) const {
  return matters(node_a, node_b, true);
}

bool Trials::matters(const PlacedNode& node_a, const PlacedNode& node_b, bool keeps_constants) const {
  const RegionRunner::Replaced in_b_by_a{node_a, node_b, false, keeps_constants};
  const RegionRunner::Replaced in_a_by_b{node_a, node_b, true, keeps_constants};
  const auto in_b = runner_.run_as_other(target_.a, target_.b, instance_, in_b_by_a);
  const auto in_a = runner_.run_as_other(target_.a, target_.b, instance_, in_a_by_b);
  if (!in_a.ok() && !in_b.ok()) return true;
  return (in_b.ok() && !is_same(region_.found, in_b)) || (in_a.ok() && !is_same(region_.expected, in_a));
}

std::vector<Guilty> guilty_by_trial(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                    const Region& region, const Differences& differences, const Trials& trials) {
  for (const auto& [node_a, node_b] : differences.changed) {
    if (trials.agrees_as_in_a(node_a, node_b)) return behind_pair(a, b, matching, node_a, node_b, trials);
  }
  for (const auto& [node_a, node_b] : differences.replaced) {
    if (trials.agrees_as_in_a(node_a, node_b, true)) return {{node_a, definition_difference(a, node_a, b, node_b)}};
  }
  std::vector<ConstantPair> pairs = constants_of(a, b, matching, region);
  std::vector<ConstantPair> numbers = pairs;  // shapes may be those of another form of the same
  std::erase_if(numbers,
                [&](const ConstantPair& pair) { return !is_floating(a.constant(pair.in_a).tensor().dtype()); });
  const auto agrees = [&](const RegionRunner::Constants& constants) { return trials.agrees_with(constants); };
  for (const std::vector<ConstantPair>* some : {&pairs, &numbers}) {
    std::vector<Guilty> guilty = behind_few(a, b, matching, *some, agrees);
    if (!guilty.empty()) return guilty;
  }
  for (const auto& [node_a, node_b] : differences.replaced) {
    if (trials.agrees_as_in_a(node_a, node_b)) return {{node_a, definition_difference(a, node_a, b, node_b)}};
  }
  for (const PlacedNode& node : differences.only_b) {
    if (trials.agrees_without(node, false))
      return {{node,
               fmt::format("B has this {} node, and A has none: without it both make the same", node.node().op_type)}};
  }
  for (const PlacedNode& node : differences.only_a) {
    if (trials.agrees_without(node, true))
      return {{node, fmt::format("B has no {} node here: without it both make the same", node.node().op_type)}};
  }
  // Something else differs as well, but little.
  const auto brings_near = [&](const RegionRunner::Constants& constants) { return trials.brings_near(constants); };
  return behind_few(a, b, matching, std::move(numbers), brings_near);
}

std::vector<Guilty> behind_pair(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                const PlacedNode& node_a, const PlacedNode& node_b, const Trials& trials) {
  const bool is_one_operator = hash_operator(node_a.node()) == hash_operator(node_b.node());
  if (is_one_operator && !is_same_operation(node_a, node_b) && !trials.attributes_matter(node_a, node_b)) {
    std::vector<Guilty> guilty = behind_constants(a, b, matching, node_a, node_b, Attributes::of_no_matter);
    if (!guilty.empty()) return guilty;
  }
  return behind_constants(a, b, matching, node_a, node_b);
}

}  // namespace parallax::diff
