// SPDX-License-Identifier: Apache-2.0
// Looks a value's content and its use up under either name.
#include "inspector/diff/matching/matching_exchange.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "inspector/diff/matching/matching_likeness.h"
#include "inspector/diff/tolerance/quantization.h"

namespace parallax::diff {

Exchanges::Exchanges(const MatchSide& a, const MatchSide& b) : a_(a), b_(b) {
  const auto list = [](const MatchSide& side, Paths& paths, auto& constants) {
    for (const FlatValue& value : side.flat.values) {
      if (value.is_constant && value.producer < 0) constants.emplace(value.value_info->name, value.value_info->id);
      if (!value.is_constant && value.producer >= 0 && value.root == value.value_info->id)
        paths.emplace(side.path(value.value_info->id), value.value_info->id);
    }
  };
  list(a, in_a_, constants_a_);
  list(b, in_b_, constants_b_);
}

int32_t Exchanges::find(const Paths& paths, const std::string& path) {
  const auto found = paths.find(path);
  return found == paths.end() ? -1 : found->second;
}

// The use of shape arithmetic is not known: it goes with the values whose shapes it reads.
bool Exchanges::is_read_of_exchanged(const FlatValue& x, const FlatValue& y) const {
  if (x.producer < 0 || y.producer < 0) return false;
  const std::vector<int32_t>&in_a = a_.node(x.producer).inputs, &in_b = b_.node(y.producer).inputs;
  for (size_t port = 0; port < std::min(in_a.size(), in_b.size()); ++port) {
    const bool is_value = in_a[port] >= 0 && in_b[port] >= 0 && !a_.value(in_a[port]).is_static &&
                          !a_.value(in_a[port]).is_constant && !b_.value(in_b[port]).is_static;
    if (is_value && are_exchanged(in_a[port], in_b[port])) return true;
  }
  return false;
}

bool Exchanges::belong_elsewhere(int32_t a, int32_t b) const {
  const auto is_taken_for = [](const MatchSide& side, int32_t named, int32_t value) {
    return named >= 0 && named != value && side.op_of(named) == side.op_of(value);
  };
  const int32_t namesake_in_a = find(in_a_, b_.path(b)), namesake_in_b = find(in_b_, a_.path(a));
  if (is_taken_for(a_, namesake_in_a, a) || is_taken_for(b_, namesake_in_b, b)) return true;
  const bool are_crossed = namesake_in_a >= 0 && namesake_in_a != a && namesake_in_b >= 0 && namesake_in_b != b;
  return are_crossed && share_weight(a, namesake_in_b) && !share_weight(a, b);
}

bool Exchanges::share_weight(int32_t a, int32_t b) const {
  const auto weights_of = [](const MatchSide& side, int32_t id) {
    std::vector<HashKey> weights;
    const int32_t producer = side.value(id).producer;
    if (producer < 0) return weights;
    for (const int32_t input : side.node(producer).inputs) {
      if (input < 0) continue;
      const FlatValue& read = side.value(input);
      if (read.is_constant && is_floating(read.type->dtype) && known_size(*read.type) > 1)
        weights.push_back(read.made_of);
    }
    return weights;
  };
  const std::vector<HashKey> in_a = weights_of(a_, a), in_b = weights_of(b_, b);
  return std::ranges::find_first_of(in_a, in_b) != in_a.end();
}

bool Exchanges::are_exchanged(int32_t a, int32_t b) const {
  const FlatValue &x = a_.value(a), &y = b_.value(b);
  if (x.is_constant) {
    const bool has_other_name = x.value_info->name != y.value_info->name;
    return has_other_name && constants_b_.contains(x.value_info->name) && constants_a_.contains(y.value_info->name);
  }
  if (x.is_static && y.is_static) return is_read_of_exchanged(x, y);
  const int32_t other_in_a = find(in_a_, b_.path(b)), other_in_b = find(in_b_, a_.path(a));
  if (other_in_a < 0 || other_in_b < 0 || other_in_a == a) return false;
  const FlatValue &other_x = a_.value(other_in_a), &other_y = b_.value(other_in_b);
  if (x.producer == other_x.producer || y.producer == other_y.producer) return false;  // outputs of one node: its doing
  const bool is_of_one_kind = a_.op_of(a) == b_.op_of(other_in_b) && a_.op_of(other_in_a) == b_.op_of(b);
  const bool holds_the_others =
      x.made_of == y.made_of && other_x.made_of == other_y.made_of && x.made_of != other_x.made_of;
  const bool is_used_by_name = x.used_for == other_y.used_for && other_x.used_for == y.used_for;
  return is_of_one_kind && holds_the_others && is_used_by_name && x.used_for != y.used_for;
}

namespace {

class Uncrossing {
 public:
  Uncrossing(MatchSide& a, MatchSide& b) : a_(a), b_(b) {}

  void run(bool names_agree) {
    if (names_agree) match_dead();
    if (names_agree) match_named();
    for (const FlatValue& value : a_.flat.values) {
      const int32_t a = value.value_info->id;
      if (value.root == a && value.producer >= 0 && is_compared(a_, value)) look_at(a);
    }
  }

 private:
  // A value of B that nothing reads is that of A by its name: what reads another one instead was paired with it.
  void match_dead() {
    std::unordered_map<std::string, int32_t> dead;
    for (const FlatValue& value : b_.flat.values) {
      const int32_t b = value.value_info->id;
      const bool is_dead = value.root == b && value.uses.empty() && !value.value_info->is_graph_output;
      if (is_dead && value.producer >= 0 && b_.match_of(b) < 0 && is_compared(b_, value)) dead.emplace(b_.path(b), b);
    }
    for (const FlatValue& value : a_.flat.values) {
      const int32_t a = value.value_info->id;
      const auto found = value.root == a && is_compared(a_, value) ? dead.find(a_.path(a)) : dead.end();
      if (found == dead.end() || a_.match_of(a) < 0 || have_other_sizes(*value.type, *b_.value(found->second).type))
        continue;
      set(-1, a_.match_of(a));
      set(a, found->second);
    }
  }

  // A value without a counterpart that has the name, the operator and a consumer of one of B's, which was matched with
  // a value of another consumer: a node before it is gone from B.
  void match_named() {
    std::unordered_map<std::string, int32_t> free;
    for (const FlatValue& value : a_.flat.values) {
      const int32_t a = value.value_info->id;
      if (a_.is_free(a) && value.producer >= 0 && is_compared(a_, value)) free.emplace(a_.path(a), a);
    }
    for (const FlatValue& value : b_.flat.values) {
      const int32_t b = value.value_info->id, known = value.root == b ? b_.match_of(b) : -1;
      const auto found = known < 0 || !is_compared(b_, value) ? free.end() : free.find(b_.path(b));
      if (found == free.end() || !are_like(found->second, b)) continue;
      if (!consumed_alike(found->second, b).has_value() || consumed_alike(known, b).has_value()) continue;
      set(known, -1);
      set(found->second, b);
    }
  }

  // The values of each side from the first whose producers are compared to the one whose consumers are.
  struct Chain {
    std::vector<int32_t> a, b;
    int32_t reader = -1;  // the node of A that reads the last of them
  };

  // Data and the arithmetic of shapes are recognized by their contents.
  static bool is_compared(const MatchSide& side, const FlatValue& value) {
    const bool is_data = value.producer >= 0 ? side.node(value.producer).inputs.empty() : value.is_constant;
    return !is_data && (!(value.is_constant || value.is_static) || is_floating(value.type->dtype));
  }

  void look_at(int32_t a) {
    const int32_t known = a_.match_of(a);
    const bool is_read_alike = known >= 0 && read_alike(a, known);
    if (is_read_alike && !read_other_names(a, known)) return;
    const std::optional<Chain> crossed = known < 0 ? std::nullopt : consumed_alike(a, known);
    if (is_read_alike && crossed.has_value()) return;
    for (const int32_t input : a_.node(a_.value(a).producer).inputs) {
      const int32_t read = input >= 0 && is_compared(a_, a_.value(input)) ? a_.match_of(input) : -1;
      if (read < 0) continue;
      for (const FlatUse& use : b_.value(read).uses) {
        const std::vector<int32_t>& outputs = b_.node(use.node).outputs;
        const auto port = static_cast<size_t>(a_.value(a).port);
        const int32_t other = port < outputs.size() ? outputs[port] : -1;
        // Outputs of one node are exchanged by what reads them.
        const bool is_of_known = known >= 0 && b_.value(known).producer == use.node;
        if (other < 0 || is_of_known || !read_alike(a, other, is_read_alike)) continue;
        const std::optional<Chain> chain = consumed_alike(a, other);
        if (chain.has_value() && !crossed.has_value()) return match(*chain);
        if (!is_read_alike && !chain.has_value() && crossed.has_value() && exchange(*crossed, other)) return;
      }
    }
  }

  // Two chains of which each reads what the other should, and that end at one node: its operands are swapped, and no
  // node of theirs is another.
  bool exchange(const Chain& crossed, int32_t other) {
    const int32_t of_other = b_.match_of(other);
    if (of_other < 0 || !read_alike(of_other, crossed.b.front())) return false;
    const std::optional<Chain> second = consumed_alike(of_other, other);
    if (!second.has_value() || second->reader != crossed.reader || second->a.size() != crossed.a.size()) return false;
    for (size_t step = 0; step < crossed.a.size(); ++step) {
      set(crossed.a[step], second->b[step]);
      set(second->a[step], crossed.b[step]);
    }
    return true;
  }

  // Visits what the two read at each input.
  template <class Visit>
  bool any_read(int32_t a, int32_t b, Visit&& visit) const {
    const std::vector<int32_t>&in_a = a_.node(a_.value(a).producer).inputs,
          &in_b = b_.node(b_.value(b).producer).inputs;
    for (size_t port = 0; port < std::min(in_a.size(), in_b.size()); ++port)
      if (in_a[port] >= 0 && in_b[port] >= 0 && visit(in_a[port], in_b[port])) return true;
    return false;
  }

  static bool is_weight(const FlatValue& value) {
    const bool may_be_float = value.type->dtype == DType::undefined || is_floating(value.type->dtype);
    return value.is_constant && may_be_float && known_size(*value.type) != 1;
  }
  bool has_its_name(int32_t a, int32_t b) const {
    return name_of_floats(a_.value(a).value_info->name) == name_of_floats(b_.value(b).value_info->name);
  }
  bool read_other_names(int32_t a, int32_t b) const {
    return any_read(a, b, [&](int32_t x, int32_t y) { return is_weight(a_.value(x)) && !has_its_name(x, y); });
  }

  // True for the same operator on operands that are counterparts, or weights of one name; it computes on one at least.
  bool read_alike(int32_t a, int32_t b, bool by_name = false) const {
    if (!are_like(a, b)) return false;
    const std::vector<int32_t>&in_a = a_.node(a_.value(a).producer).inputs,
          &in_b = b_.node(b_.value(b).producer).inputs;
    bool is_any_computed = false;
    for (size_t port = 0; port < in_a.size(); ++port) {
      if ((in_a[port] < 0) != (in_b[port] < 0)) return false;
      if (in_a[port] < 0) continue;
      const FlatValue& read = a_.value(in_a[port]);
      const int32_t counterpart = a_.match_of(in_a[port]);
      const bool is_same =
          counterpart >= 0 && !by_name ? counterpart == in_b[port] : has_its_name(in_a[port], in_b[port]);
      if (is_weight(read)) {
        if (!is_same) return false;
        continue;
      }
      if (!is_compared(a_, read)) continue;
      if (counterpart != in_b[port]) return false;
      is_any_computed = true;
    }
    return is_any_computed;
  }

  bool are_like(int32_t a, int32_t b) const {
    const int32_t node_a = a_.value(a).producer, node_b = b_.value(b).producer;
    if (node_a < 0 || node_b < 0 || b_.value(b).root != b) return false;
    const FlatNode &x = a_.node(node_a), &y = b_.node(node_b);
    return x.op == y.op && x.inputs.size() == y.inputs.size() && x.outputs.size() == y.outputs.size() &&
           a_.value(a).port == b_.value(b).port;
  }

  // The chain to two values that one pair of nodes reads; nothing where there is none.
  std::optional<Chain> consumed_alike(int32_t a, int32_t b) const {
    constexpr size_t kLongest = 8;
    Chain chain{{a}, {b}};
    while (chain.a.size() <= kLongest) {
      const std::vector<FlatUse>&uses_a = a_.value(chain.a.back()).uses, &uses_b = b_.value(chain.b.back()).uses;
      for (const FlatUse& use : uses_a) {
        const int32_t partner = a_.match_of_node(use.node);
        const auto is_of_pair = [&](const FlatUse& other) { return other.node == partner && other.port == use.port; };
        const auto counts = [&](int32_t read) { return read >= 0 && is_compared(a_, a_.value(read)); };
        const bool reads_more = partner >= 0 && std::ranges::count_if(a_.node(use.node).inputs, counts) > 1;
        if (!reads_more || std::ranges::none_of(uses_b, is_of_pair)) continue;
        chain.reader = use.node;
        return chain;
      }
      if (uses_a.size() != 1 || uses_b.size() != 1 || uses_a.front().port != uses_b.front().port) return std::nullopt;
      const std::vector<int32_t>&next_a = a_.node(uses_a.front().node).outputs,
            &next_b = b_.node(uses_b.front().node).outputs;
      if (next_a.size() != 1 || next_b.size() != 1 || !are_like(next_a.front(), next_b.front())) return std::nullopt;
      chain.a.push_back(next_a.front());
      chain.b.push_back(next_b.front());
    }
    return std::nullopt;
  }

  // Their earlier counterparts are matched with each other.
  void match(const Chain& chain) {
    for (size_t step = 0; step < chain.a.size(); ++step) {
      rematch(chain.a[step], chain.b[step]);
      any_read(chain.a[step], chain.b[step], [&](int32_t x, int32_t y) {
        if (is_weight(a_.value(x)) && has_its_name(x, y)) rematch(x, y);
        return false;
      });
    }
  }

  void rematch(int32_t a, int32_t b) {
    const int32_t left_b = a_.match_of(a), left_a = b_.match_of(b);
    if (left_b == b) return;
    set(a, b);
    if (left_a >= 0) set(left_a, left_b);
    if (left_a < 0 && left_b >= 0) set(-1, left_b);
  }

  void set(int32_t a, int32_t b) {
    const int32_t node_a = a < 0 ? -1 : a_.value(a).producer, node_b = b < 0 ? -1 : b_.value(b).producer;
    if (a >= 0) a_.value_match[static_cast<size_t>(a)] = b;
    if (b >= 0) b_.value_match[static_cast<size_t>(b)] = a;
    if (node_a >= 0) a_.node_match[static_cast<size_t>(node_a)] = node_b;
    if (node_b >= 0) b_.node_match[static_cast<size_t>(node_b)] = node_a;
  }

  MatchSide &a_, &b_;
};

}  // namespace

void uncross(MatchSide& a, MatchSide& b, bool names_agree) { Uncrossing(a, b).run(names_agree); }

}  // namespace parallax::diff
