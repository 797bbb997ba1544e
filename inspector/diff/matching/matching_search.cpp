// SPDX-License-Identifier: Apache-2.0
// Pairs values and nodes of two flat graphs: made alike from alike inputs; equal names, where names are to be trusted;
// neighbors of what is paired; used alike; and what is left, by the best fit.
#include "inspector/diff/matching/matching_search.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "inspector/diff/matching/matching_attributes.h"
#include "inspector/diff/matching/matching_exchange.h"
#include "inspector/diff/matching/matching_likeness.h"
#include "inspector/diff/matching/matching_names.h"
#include "inspector/diff/tolerance/thresholds.h"

namespace parallax::diff {
namespace {

class Matcher {
 public:
  Matcher(MatchSide& a, MatchSide& b, CancelToken cancel)
      : a_(a), b_(b), exchanges_(a, b), cancel_(std::move(cancel)) {}

  bool run() {
    match_by(&made_of_key, 1.0, true);
    confidence_ = 0.95;
    spread(true);
    names_agree_ = judge_names();
    trusts_content_ = true;
    if (!names_agree_) match_by(&made_of_key, 0.95, true);
    if (names_agree_) {
      confidence_ = 0.9;
      match_names(NameNeeds::operator_and_use);
      spread(true);
    }
    trusts_shared_ = true;
    spread(true);
    match_doubtful();
    match_by(&use_key, 0.9, false);
    match_by(&kind_use_key, 0.8, false);
    match_by(&kind_key, 0.8, false);
    match_by(&near_key, 0.7, false);
    if (names_agree_) {
      confidence_ = 0.7;
      match_names(NameNeeds::use);
      spread(true);
    }
    if (names_are_sure_) {
      confidence_ = 0.65;
      match_names(NameNeeds::size);
      spread(true);
    }
    confidence_ = 0.6;
    match_best();
    match_by(&kind_made_key, 0.5, false);
    match_by(&output_key, 0.5, false);
    confidence_ = 0.5;
    match_left_constants();
    return names_agree_;
  }

  std::unordered_map<int32_t, double> take_confidences() { return std::move(confidences_); }

 private:
  // Keys that are 0 are left out.
  static HashKey made_of_key(const FlatValue& value) { return value.made_of; }
  static HashKey use_key(const FlatValue& value) { return value.is_static ? 0 : value.used_for; }
  static HashKey kind_use_key(const FlatValue& value) { return value.is_static ? 0 : value.kind_used_for; }
  static HashKey kind_key(const FlatValue& value) {
    return value.is_static || value.next_uses == 0 ? 0 : mix(value.kind_made_of, value.next_uses);
  }
  static HashKey near_key(const FlatValue& value) {
    return value.is_static || value.next_uses == 0 ? 0 : mix(value.next_uses, 1);
  }
  static HashKey kind_made_key(const FlatValue& value) { return value.is_static ? 0 : value.kind_made_of; }
  // The key of a body's output that is not computed from inputs.
  static HashKey output_key(const FlatValue& value) { return value.is_static ? value.output : 0; }

  using KeyOf = HashKey (*)(const FlatValue&);
  using Groups = std::unordered_map<HashKey, std::vector<int32_t>>;

  static Groups group(const MatchSide& side, KeyOf key_of) {
    Groups groups;
    for (size_t id = 0; id < side.flat.values.size(); ++id) {
      if (!side.is_free(static_cast<int32_t>(id))) continue;
      if (const HashKey key = key_of(side.flat.values[id]); key != 0) groups[key].push_back(static_cast<int32_t>(id));
    }
    return groups;
  }

  // Pairs what has a key of its own. With `is_certain`, groups of equal values are paired off as well: whichever of
  // them are paired, they hold the same.
  void match_by(KeyOf key_of, double confidence, bool is_certain) {
    confidence_ = confidence;
    const Groups in_a = group(a_, key_of), in_b = group(b_, key_of);
    for (size_t id = 0; id < a_.flat.values.size(); ++id) {
      const auto first = static_cast<int32_t>(id);
      if (!a_.is_free(first)) continue;
      const auto found_a = in_a.find(key_of(a_.value(first)));
      const auto found_b = found_a == in_a.end() ? in_b.end() : in_b.find(found_a->first);
      if (found_b == in_b.end()) continue;
      const std::vector<int32_t>&ids_a = found_a->second, &ids_b = found_b->second;
      if (ids_a.size() == 1 && ids_b.size() == 1) {
        const bool is_refused = is_certain ? !trusts_content_ && exchanges_.are_exchanged(first, ids_b[0])
                                           : names_are_sure_ && exchanges_.belong_elsewhere(first, ids_b[0]);
        if (!is_refused) match(first, ids_b[0]);
      } else if (is_certain && !a_.value(first).is_constant) {
        pair_off(ids_a, ids_b);
      }
    }
    spread(true);
  }

  // Equal values: by what they are used for, by name, then in order.
  void pair_off(const std::vector<int32_t>& ids_a, const std::vector<int32_t>& ids_b) {
    const auto pair_where = [&](auto&& agree) {
      for (const int32_t a : ids_a) {
        if (!a_.is_free(a)) continue;
        const auto fits = [&](int32_t b) { return b_.is_free(b) && agree(a, b); };
        const auto found = std::ranges::find_if(ids_b, fits);
        if (found != ids_b.end()) match(a, *found);
      }
    };
    constexpr size_t kMany = 64;  // beyond, in order: all pairs would be too many
    if (ids_a.size() <= kMany && ids_b.size() <= kMany) {
      const auto same_use = [&](int32_t a, int32_t b) { return a_.value(a).used_for == b_.value(b).used_for; };
      const auto same_path = [&](int32_t a, int32_t b) { return a_.path(a) == b_.path(b); };
      pair_where([&](int32_t a, int32_t b) { return same_use(a, b) && same_path(a, b); });
      pair_where(same_use);
      pair_where(same_path);
      pair_where([](int32_t, int32_t) { return true; });
      return;
    }
    for (size_t index = 0; index < std::min(ids_a.size(), ids_b.size()); ++index) {
      if (a_.is_free(ids_a[index]) && b_.is_free(ids_b[index])) match(ids_a[index], ids_b[index]);
    }
  }

  void match(int32_t a, int32_t b) {
    if (!a_.is_free(a) || !b_.is_free(b) || !may_be_equal(a_.value(a), b_.value(b))) return;
    if (a_.value(a).is_constant != b_.value(b).is_constant) return;
    if (!trusts_content_ && !a_.value(a).is_constant && exchanges_.are_exchanged(a, b)) return;
    a_.value_match[static_cast<size_t>(a)] = b;
    b_.value_match[static_cast<size_t>(b)] = a;
    confidences_[a] = confidence_;
    // That two nodes read the same axes says little: what is certain about them comes first.
    const bool is_shared = a_.value(a).is_constant && a_.value(a).uses.size() > 1;
    (is_shared ? shared_ : queue_).push_back(a);
  }

  // ---- nodes ----

  bool agree(int32_t input_a, int32_t input_b) const {
    if (input_a < 0 || input_b < 0) return input_a == input_b;
    const int32_t match_a = a_.match_of(input_a), match_b = b_.match_of(input_b);
    if (match_a < 0 && match_b < 0) return true;
    return match_a == input_b;
  }

  // Ports of B in A's order: as they are, but the other way round where that fits better and the operator allows it.
  std::vector<int32_t> aligned_inputs(const FlatNode& a, const FlatNode& b) const {
    std::vector<int32_t> inputs = b.inputs;
    if (!a.commutes || !b.commutes || a.inputs.size() != 2 || inputs.size() != 2) return inputs;
    const auto fit = [&](int32_t x, int32_t y) {
      if (x < 0 || y < 0) return 0;
      if (a_.match_of(x) == y) return 8;
      if (a_.match_of(x) >= 0 || b_.match_of(y) >= 0) return -8;
      const FlatValue &value_a = a_.value(x), &value_b = b_.value(y);
      if (value_a.is_constant != value_b.is_constant) return -4;
      return (value_a.made_of == value_b.made_of ? 4 : 0) + (value_a.kind_made_of == value_b.kind_made_of ? 2 : 0) +
             (a_.op_of(x) == b_.op_of(y) ? 1 : 0) + (names_are_sure_ && a_.path(x) == b_.path(y) ? 8 : 0);
    };
    const int straight = fit(a.inputs[0], inputs[0]) + fit(a.inputs[1], inputs[1]);
    const int crossed = fit(a.inputs[0], inputs[1]) + fit(a.inputs[1], inputs[0]);
    if (crossed > straight) std::swap(inputs[0], inputs[1]);
    return inputs;
  }

  bool inputs_agree(const FlatNode& a, const FlatNode& b) const {
    if (a.inputs.size() != b.inputs.size()) return false;
    const std::vector<int32_t> inputs = aligned_inputs(a, b);
    for (size_t port = 0; port < inputs.size(); ++port) {
      if (!agree(a.inputs[port], inputs[port])) return false;
    }
    return true;
  }

  bool same_use(const FlatNode& a, const FlatNode& b) const {
    for (size_t port = 0; port < std::min(a.outputs.size(), b.outputs.size()); ++port) {
      if (a.outputs[port] < 0 || b.outputs[port] < 0) continue;
      if (a_.value(a.outputs[port]).near_uses != b_.value(b.outputs[port]).near_uses) return false;
    }
    return true;
  }

  // By another operator: one may have replaced the other, or a node is between it and its consumer.
  bool are_computed_differently(int32_t x, int32_t y) const {
    return !a_.value(x).is_constant && !b_.value(y).is_constant && a_.op_of(x) != b_.op_of(y);
  }

  void match_doubtful() {
    for (const auto& [x, y] : std::exchange(doubtful_, {})) {
      const bool is_refused = names_are_sure_ && exchanges_.belong_elsewhere(x, y);
      if (!is_refused && !have_other_sizes(*a_.value(x).type, *b_.value(y).type)) match(x, y);
    }
    spread(true);
  }

  bool make_exchanged(const FlatNode& a, const FlatNode& b) const {
    if (a.outputs.empty() || b.outputs.empty() || a.outputs[0] < 0 || b.outputs[0] < 0) return false;
    return exchanges_.are_exchanged(a.outputs[0], b.outputs[0]);
  }

  // True where an output of one of them has been paired with an output of another node.
  bool make_others(int32_t a, int32_t b) const {
    const auto makes_another = [](const MatchSide& side, const FlatNode& node, const MatchSide& other,
                                  int32_t partner) {
      return std::ranges::any_of(node.outputs, [&](int32_t output) {
        const int32_t paired = output < 0 ? -1 : side.match_of(output);
        return paired >= 0 && other.value(paired).producer != partner;
      });
    };
    return makes_another(a_, a_.node(a), b_, b) || makes_another(b_, b_.node(b), a_, a);
  }

  void match_nodes(int32_t a, int32_t b) {
    if (!a_.is_free_node(a) || !b_.is_free_node(b)) return;
    const FlatNode &node_a = a_.node(a), &node_b = b_.node(b);
    if (!trusts_content_ && make_exchanged(node_a, node_b)) return;
    if (make_others(a, b)) return;
    a_.node_match[static_cast<size_t>(a)] = b;
    b_.node_match[static_cast<size_t>(b)] = a;
    const std::vector<int32_t> inputs = aligned_inputs(node_a, node_b);
    for (size_t port = 0; port < std::min(node_a.inputs.size(), inputs.size()); ++port) {
      const int32_t x = node_a.inputs[port], y = inputs[port];
      if (x < 0 || y < 0) continue;
      if (are_computed_differently(x, y)) {
        doubtful_.emplace_back(x, y);
      } else {
        match(x, y);
      }
    }
    for (size_t port = 0; port < std::min(node_a.outputs.size(), node_b.outputs.size()); ++port) {
      if (node_a.outputs[port] >= 0 && node_b.outputs[port] >= 0) match(node_a.outputs[port], node_b.outputs[port]);
    }
  }

  // ---- from what is paired to its neighbors ----

  void spread(bool strictly) {
    while ((!queue_.empty() || (trusts_shared_ && !shared_.empty())) && !cancel_.is_cancelled()) {
      std::deque<int32_t>& next = queue_.empty() ? shared_ : queue_;
      const int32_t a = next.front();
      next.pop_front();
      const int32_t b = a_.match_of(a);
      propagate_to_producers(a, b);
      propagate_to_readers(a, b, strictly);
    }
  }

  void propagate_to_producers(int32_t a, int32_t b) {
    const int32_t from_a = a_.value(a).producer, from_b = b_.value(b).producer;
    if (from_a < 0 || from_b < 0 || a_.value(a).port != b_.value(b).port) return;
    const FlatNode &node_a = a_.node(from_a), &node_b = b_.node(from_b);
    // Nodes of one operator of which only one scales by a constant are two different steps of a formula.
    if (node_a.op == node_b.op && (node_a.constants == 0) == (node_b.constants == 0)) match_nodes(from_a, from_b);
  }

  HashKey use_key_of(const MatchSide& side, const FlatUse& use, int level) const {
    const FlatNode& node = side.node(use.node);
    HashKey key = mix(node.op, node.commutes ? 0 : static_cast<HashKey>(use.port));
    key = mix(key, node.attributes);
    if (level == 0) return key;
    key = mix(key, node.constants);
    for (const int32_t output : node.outputs) {
      if (output >= 0) key = mix(key, level == 1 ? side.value(output).near_uses : side.value(output).next_uses);
    }
    return key;
  }

  void propagate_to_readers(int32_t a, int32_t b, bool strictly) {
    for (int level = 0; level < 3; ++level) {
      std::unordered_map<HashKey, std::pair<std::vector<int32_t>, std::vector<int32_t>>> readers;
      for (const FlatUse& use : a_.value(a).uses) {
        if (a_.is_free_node(use.node)) readers[use_key_of(a_, use, level)].first.push_back(use.node);
      }
      if (readers.empty()) return;
      for (const FlatUse& use : b_.value(b).uses) {
        if (b_.is_free_node(use.node)) readers[use_key_of(b_, use, level)].second.push_back(use.node);
      }
      for (const FlatUse& use : a_.value(a).uses) {  // in order, not in that of the table
        const auto& [in_a, in_b] = readers[use_key_of(a_, use, level)];
        if (in_a.size() == 1 && in_b.size() == 1) match_readers(in_a[0], in_b[0], strictly);
      }
    }
  }

  void match_readers(int32_t a, int32_t b, bool strictly) {
    if (!a_.is_free_node(a) || !b_.is_free_node(b)) return;
    const FlatNode &node_a = a_.node(a), &node_b = b_.node(b);
    if (strictly && !inputs_agree(node_a, node_b)) return;
    // Other constants and other readers: more than a changed weight, as when a normalization went into a product.
    if (node_a.constants != node_b.constants && !same_use(node_a, node_b)) return;
    match_nodes(a, b);
  }

  // ---- names ----

  bool judge_names() {
    constexpr size_t kFewNames = 3;
    size_t equal = 0, all = 0;
    for (size_t id = 0; id < a_.flat.values.size(); ++id) {
      const auto a = static_cast<int32_t>(id);
      const int32_t b = a_.match_of(a);
      if (b < 0 || a_.value(a).producer < 0 || a_.value(a).is_constant) continue;
      ++all;
      equal += a_.value(a).value_info->name == b_.value(b).value_info->name ? 1 : 0;
    }
    names_are_sure_ =
        all >= kFewNames && thresholds::kSureNameShare * static_cast<double>(all) <= static_cast<double>(equal + 1);
    if (all >= kFewNames) return 2 * equal >= all;
    const NamesByWeights by_weights = judge_names_by_weights(a_, b_);
    names_are_sure_ = by_weights.are_sure;
    return by_weights.do_agree || do_names_agree_by_operators(a_, b_);
  }

  // The properties besides the name that two values must have in common. Where names are sure, those of unpaired
  // values: a faulty node among neighbors that an optimizer has changed.
  enum class NameNeeds : uint8_t { operator_and_use, use, size };

  // Values of equal path, or of a name that each graph has once.
  void match_names(NameNeeds needs) {
    std::unordered_map<std::string, int32_t> by_path;
    std::unordered_map<std::string_view, std::vector<int32_t>> names_a, names_b;
    for (const FlatValue& value : b_.flat.values) {
      if (value.root != value.value_info->id) continue;
      by_path.emplace(b_.path(value.value_info->id), value.value_info->id);
      names_b[value.value_info->name].push_back(value.value_info->id);
    }
    for (const FlatValue& value : a_.flat.values) {
      if (value.root == value.value_info->id) names_a[value.value_info->name].push_back(value.value_info->id);
    }
    for (const FlatValue& value : a_.flat.values) {
      const int32_t a = value.value_info->id;
      if (!a_.is_free(a)) continue;
      const auto found = by_path.find(a_.path(a));
      int32_t b = found == by_path.end() ? -1 : found->second;
      const auto named = names_b.find(value.value_info->name);
      if (b < 0 && named != names_b.end() && named->second.size() == 1 && names_a[value.value_info->name].size() == 1)
        b = named->second[0];
      if (b >= 0 && b_.is_free(b) && name_is_plausible(a, b, needs)) match(a, b);
    }
  }

  bool name_is_plausible(int32_t a, int32_t b, NameNeeds needs) const {
    const FlatValue &value_a = a_.value(a), &value_b = b_.value(b);
    if (value_a.is_constant != value_b.is_constant) return false;
    if (value_a.is_constant || value_a.producer < 0) return true;
    if (needs == NameNeeds::size) return !have_other_sizes(*value_a.type, *value_b.type);
    if (needs == NameNeeds::use)
      return value_a.near_uses == value_b.near_uses || are_made_of_the_same(value_a, value_b);
    if (a_.op_of(a) != b_.op_of(b)) return are_made_of_the_same(value_a, value_b);
    const FlatNode &node_a = a_.node(value_a.producer), &node_b = b_.node(value_b.producer);
    return value_a.near_uses == value_b.near_uses ||
           (node_a.constants == node_b.constants && inputs_agree(node_a, node_b));
  }

  // Whatever the operators: another one replaced it.
  bool are_made_of_the_same(const FlatValue& value_a, const FlatValue& value_b) const {
    if (value_b.producer < 0 || have_other_sizes(*value_a.type, *value_b.type)) return false;
    const FlatNode &node_a = a_.node(value_a.producer), &node_b = b_.node(value_b.producer);
    const auto is_computed = [&](int32_t input) { return input >= 0 && !a_.value(input).is_constant; };
    const auto is_unknown = [&](int32_t input) { return is_computed(input) && a_.match_of(input) < 0; };
    return std::ranges::any_of(node_a.inputs, is_computed) && std::ranges::none_of(node_a.inputs, is_unknown) &&
           inputs_agree(node_a, node_b);
  }

  // ---- what is left ----

  // How well two nodes fit; 0: not at all.
  int fit_of(int32_t a, int32_t b) const {
    const FlatNode &node_a = a_.node(a), &node_b = b_.node(b);
    if (node_a.op != node_b.op || node_a.is_static != node_b.is_static) return 0;
    int fit = 1;
    const std::vector<int32_t> inputs = aligned_inputs(node_a, node_b);
    for (size_t port = 0; port < std::min(node_a.inputs.size(), inputs.size()); ++port) {
      const int32_t x = node_a.inputs[port], y = inputs[port];
      if (x >= 0 && y >= 0 && a_.match_of(x) == y && !a_.value(x).is_constant) fit += 8;
      if (x >= 0 && y >= 0 && !agree(x, y)) fit -= 2;
    }
    fit += node_a.attributes == node_b.attributes ? 2 : 0;
    fit += node_a.constants == node_b.constants ? 2 : 0;
    for (size_t port = 0; port < std::min(node_a.outputs.size(), node_b.outputs.size()); ++port) {
      if (node_a.outputs[port] < 0 || node_b.outputs[port] < 0) continue;
      const FlatValue &out_a = a_.value(node_a.outputs[port]), &out_b = b_.value(node_b.outputs[port]);
      fit += out_a.near_uses == out_b.near_uses ? 4 : 0;
      fit += out_a.next_uses == out_b.next_uses ? 4 : 0;
      fit += names_agree_ && out_a.value_info->name == out_b.value_info->name ? 8 : 0;
    }
    return fit;
  }

  // Nodes of B that read the counterpart of something that node `a` reads.
  std::vector<int32_t> candidates(const FlatNode& node) const {
    std::vector<int32_t> found;
    constexpr size_t kMost = 64;
    for (const int32_t input : node.inputs) {
      if (input < 0 || a_.match_of(input) < 0 || a_.value(input).is_constant) continue;
      for (const FlatUse& use : b_.value(a_.match_of(input)).uses) {
        if (b_.is_free_node(use.node) && found.size() < kMost) found.push_back(use.node);
      }
    }
    return found;
  }

  // In A's order each free node takes the free one of B that fits best, if it fits well.
  void match_best() {
    constexpr int kWell = 9;
    bool has_moved = true;
    for (int round = 0; has_moved && round < 8; ++round) {
      has_moved = false;
      for (size_t index = 0; index < a_.flat.nodes.size() && !cancel_.is_cancelled(); ++index) {
        const auto a = static_cast<int32_t>(index);
        if (!a_.is_free_node(a)) continue;
        int best_fit = 0;
        int32_t best = -1;
        for (const int32_t b : candidates(a_.node(a))) {
          const int fit = fit_of(a, b);
          if (fit > best_fit) best_fit = fit, best = b;
        }
        const bool may_differ =
            best >= 0 && (a_.node(a).constants == b_.node(best).constants || same_use(a_.node(a), b_.node(best)));
        if (best_fit < kWell || !may_differ) continue;
        match_nodes(a, best);
        spread(true);
        has_moved = true;
      }
    }
  }

  // Constants that no paired node reads: of equal content.
  void match_left_constants() {
    Groups in_b;
    for (size_t id = b_.flat.values.size(); id-- > 0;) {
      const auto b = static_cast<int32_t>(id);
      if (b_.value(b).is_constant && b_.is_free(b)) in_b[b_.value(b).made_of].push_back(b);
    }
    for (size_t id = 0; id < a_.flat.values.size(); ++id) {
      const auto a = static_cast<int32_t>(id);
      if (!a_.value(a).is_constant || !a_.is_free(a)) continue;
      const auto found = in_b.find(a_.value(a).made_of);
      if (found == in_b.end() || found->second.empty()) continue;
      match(a, found->second.back());
      found->second.pop_back();
    }
    for (const auto& [a, b] : stored_differently(a_, b_)) match(a, b);
    queue_.clear();
    shared_.clear();
  }

  MatchSide &a_, &b_;
  std::deque<int32_t> queue_;   // values of A whose neighbors are to be looked at
  std::deque<int32_t> shared_;  // constants that several nodes read, likewise, once what is certain has been followed
  bool trusts_shared_ = false;
  Exchanges exchanges_;  // what is not to be paired by content until names are known to be of no use
  bool trusts_content_ = false;
  std::vector<std::pair<int32_t, int32_t>> doubtful_;  // read alike, but made by different operators
  std::unordered_map<int32_t, double> confidences_;
  double confidence_ = 1;
  bool names_agree_ = true;
  CancelToken cancel_;
  bool names_are_sure_ = false;  // a value that has a name of the other model's stands for no other value of it
};

}  // namespace

SearchResult search_matches(MatchSide& a, MatchSide& b, const CancelToken& cancel) {
  Matcher matcher(a, b, cancel);
  SearchResult result;
  result.names_agree = matcher.run();
  if (cancel.is_cancelled()) return result;
  uncross(a, b, result.names_agree);
  result.confidences = matcher.take_confidences();
  return result;
}

}  // namespace parallax::diff
