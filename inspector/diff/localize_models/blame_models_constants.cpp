// SPDX-License-Identifier: Apache-2.0
// Walks up from two constants that differ, by their contents.
#include "inspector/diff/localize_models/blame_models_constants.h"

#include <algorithm>
#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "inspector/diff/localize/blame_roots.h"
#include "inspector/diff/localize_models/blame_models_explain.h"
#include "inspector/diff/localize_models/blame_models_quantized.h"
#include "inspector/diff/localize_models/blame_models_wiring.h"
#include "inspector/diff/matching/definition_distance.h"
#include "inspector/diff/matching/matching_attributes.h"
#include "inspector/diff/tolerance/quantization.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

constexpr int kDeepest = 64;
constexpr size_t kMostAbove = 256;  // values above one that are looked at

// The numbers by size, NaN last.
std::vector<double> in_order(const Tensor& tensor) {
  std::vector<double> numbers(static_cast<size_t>(tensor.element_count()));
  load_doubles(tensor, 0, numbers);
  std::ranges::sort(numbers, [](double x, double y) { return x < y || (y != y && x == x); });
  return numbers;
}

class ConstantWalk {
 public:
  ConstantWalk(const ModelSide& a, const ModelSide& b, const ModelMatching& matching)
      : a_(a), b_(b), matching_(matching) {}

  // Follows two nodes that compute the same from different inputs.
  void look_after(const LocatedNode& node_a, const LocatedNode& node_b, int depth) {
    const std::vector<ValueId>& in_a = node_a.node().inputs;
    std::vector<ValueId> in_b = node_b.node().inputs;
    if (are_crossed(node_a, node_b)) std::ranges::reverse(in_b);
    const size_t before = culprits_.size();
    bool reads_another = false;
    for (size_t port = 0; port < std::min(in_a.size(), in_b.size()); ++port) {
      const int32_t x = ModelSide::value_info_read(*node_a.location, in_a[port]);
      const int32_t y = ModelSide::value_info_read(*node_b.location, in_b[port]);
      if (!differ(x, y)) continue;
      if (are_rewired(x, y)) {
        accuse(node_a, operand_difference(a_, node_a, b_, node_b, matching_).text);
      } else if (!look_at(x, y, node_a, depth)) {
        reads_another = true;
      }
    }
    if (!reads_another && culprits_.size() > before) return;
    // Attributes that differ are irrelevant.
    accuse(node_a, is_same_operation(node_a, node_b) ? definition_difference(a_, node_a, b_, node_b)
                                                     : constants_difference(a_, node_a, b_, node_b));
  }

  void look_at_constant(int32_t x, int32_t y, const LocatedNode& reader) {
    if (!differ(x, y) || look_at(x, y, reader, 0)) return;
    const Value in_a = a_.constant(x), in_b = b_.constant(y);
    accuse(reader, fmt::format("it reads another constant '{}': {}", a_.value_info(x).name,
                               difference_of_constants(in_a.tensor(), in_b.tensor())));
  }

  std::vector<Culprit> take() { return std::move(culprits_); }

 private:
  // False: what differs is held, not computed, and its reader is to be named.
  bool look_at(int32_t x, int32_t y, const LocatedNode& reader, int depth) {
    if (depth > kDeepest) return false;
    if (look_for_inserted(x, y, reader) || look_for_removed(x, y)) return true;
    if (a_.is_constant(x) && accuse_maker(x, y)) return true;
    if (a_.is_constant(x) || b_.is_constant(y) || is_another(x, y)) return false;
    const LocatedNode from_a = a_.producer(x), from_b = b_.producer(y);
    if (!is_same_operation(from_a, from_b) || from_a.node().inputs.size() != from_b.node().inputs.size())
      return look_after_other_form(x, y, depth) || accuse_pair(from_a, from_b);
    look_after(from_a, from_b, depth + 1);
    return true;
  }

  static bool holds_mask(const Value& value) {
    if (!value.is_tensor() || !is_floating(value.tensor().dtype())) return false;
    for (int64_t index = 0; index < value.tensor().element_count(); ++index)
      if (element_as_double(value.tensor(), index) <= thresholds::kMaskedScore) return true;
    return false;
  }

  // B computes from constants a mask that A stores. False for what is stored and moved, or dequantized.
  bool accuse_maker(int32_t x, int32_t y) {
    const LocatedNode maker = b_.producer(y);
    if (b_.is_constant(y) || is_another(x, y) || maker.id == kNoNode) return false;
    if (only_moves(maker) || is_dequantize(maker.node()) || !holds_mask(a_.constant(x))) return false;
    accuse(maker, fmt::format("B computes the constant here that A stores as '{}'{}", a_.value_info(x).name,
                              difference_text(a_.constant(x), b_.constant(y))));
    return true;
  }

  // B computes it by other nodes, but to the same effect: what differs are counterparts further up, of which B is made.
  bool look_after_other_form(int32_t x, int32_t y, int depth) {
    OtherForm form{.above_a = above(a_, x)};
    const Value made = with_a_values(y, y, form);
    if (made.is_absent() || relative_distance(a_.constant(x), made, {}).relative_rms > thresholds::kSameDefinition)
      return false;
    const size_t before = culprits_.size();
    for (const auto& [of_a, of_b] : form.taken) {
      if (!differ(of_a, of_b)) continue;
      const LocatedNode read_by = reader_among(of_a, form.above_a, x);
      if (!look_at(of_a, of_b, read_by, depth + 1)) accuse(read_by, "it reads another constant in B");
    }
    return culprits_.size() > before;
  }

  struct OtherForm {
    std::vector<int32_t> above_a;  // what A's value is made of
    std::unordered_map<int32_t, Value> values = {};
    std::vector<std::pair<int32_t, int32_t>> taken = {};  // counterparts: A's values that stood for B's
  };

  // The value and all that it is made of, nearest first, up to where `is_last(value, reader)` holds.
  template <class IsLast>
  static std::vector<int32_t> above(const ModelSide& side, int32_t id, const IsLast& is_last) {
    std::vector<int32_t> found = {id};
    for (size_t index = 0; index < found.size() && found.size() < kMostAbove; ++index) {
      if (side.is_constant(found[index])) continue;
      const LocatedNode made_by = side.producer(found[index]);
      if (made_by.id == kNoNode) continue;
      for (const ValueId input : made_by.node().inputs) {
        const int32_t read = ModelSide::value_info_read(*made_by.location, input);
        if (read < 0 || std::ranges::find(found, read) != found.end()) continue;
        if (is_last(read, made_by)) return found;
        found.push_back(read);
      }
    }
    return found;
  }
  static std::vector<int32_t> above(const ModelSide& side, int32_t id) {
    return above(side, id, [](int32_t, const LocatedNode&) { return false; });
  }

  // B's value, its nodes run on A's values wherever what A's is made of has the counterpart.
  Value with_a_values(int32_t id, int32_t target, OtherForm& form) const {
    const auto known = form.values.find(id);
    if (known != form.values.end()) return known->second;
    if (form.values.size() > kMostAbove) return {};
    Value value;
    const int32_t of_a = id == target ? -1 : matching_.a_of_b[static_cast<size_t>(id)];
    if (of_a >= 0 && std::ranges::find(form.above_a, of_a) != form.above_a.end()) {
      value = a_.constant(of_a);
      form.taken.emplace_back(of_a, id);
    } else if (b_.is_constant(id)) {
      value = b_.constant(id);
    } else if (const LocatedNode made_by = b_.producer(id); made_by.id != kNoNode) {
      auto outputs = b_.replay(made_by, [&](int32_t read) { return Result<Value>(with_a_values(read, target, form)); });
      if (outputs.ok()) value = (*outputs)[static_cast<size_t>(b_.value_info(id).output_index)];
    }
    form.values[id] = value;
    return value;
  }

  // The node that reads it on the way to `x`.
  LocatedNode reader_among(int32_t id, const std::vector<int32_t>& above_x, int32_t x) const {
    for (const int32_t made : above_x) {
      const LocatedNode node = a_.producer(made);
      if (node.id == kNoNode) continue;
      const auto reads_it = [&](ValueId input) { return ModelSide::value_info_read(*node.location, input) == id; };
      if (std::ranges::any_of(node.node().inputs, reads_it)) return node;
    }
    return a_.producer(x);
  }

  // Not where the two make a constant of other things, in other ways.
  bool accuse_pair(const LocatedNode& a, const LocatedNode& b) {
    const bool is_one_operator = hash_operator(a.node()) == hash_operator(b.node());
    if (!is_one_operator && !reads_the_same(a_, a, b_, b, matching_)) return false;
    accuse(a, definition_difference(a_, a, b_, b));
    return true;
  }

  void accuse(Culprit culprit) {
    if (std::ranges::find(culprits_, culprit.node, &Culprit::node) == culprits_.end())
      culprits_.push_back(std::move(culprit));
  }
  void accuse(const LocatedNode& node, std::string why) { accuse({.node = node, .why = std::move(why)}); }

  bool differ(int32_t x, int32_t y) const {
    if (x < 0 || y < 0 || !a_.follows_from_constants(x) || !b_.follows_from_constants(y)) return false;
    return !same_content(a_.constant(x), b_.constant(y)) && !are_within_steps(a_, x, b_, y);
  }

  // Up to dimensions of 1 and other ways to lay out the same list.
  static bool same_content(const Value& a, const Value& b) {
    if (!a.is_tensor() || !b.is_tensor()) return a.is_absent() == b.is_absent();
    const Tensor &x = a.tensor(), &y = b.tensor();
    if (x.element_count() != y.element_count()) return false;
    if (difference_of_constants(x, y).empty() || differ_by_rounding(x, y)) return true;
    const bool are_of_two_types = is_floating(x.dtype()) && is_floating(y.dtype()) && x.dtype() != y.dtype();
    return are_of_two_types && differ_by_storing(x, y, narrower(x.dtype(), y.dtype()));
  }

  bool are_crossed(const LocatedNode& node_a, const LocatedNode& node_b) const {
    const std::vector<ValueId>&in_a = node_a.node().inputs, &in_b = node_b.node().inputs;
    if (!commutes(node_a.node()) || in_a.size() != 2 || in_b.size() != 2) return false;
    const auto agrees = [&](size_t port_a, size_t port_b) {
      const int32_t x = ModelSide::value_info_read(*node_a.location, in_a[port_a]);
      const int32_t y = ModelSide::value_info_read(*node_b.location, in_b[port_b]);
      return x >= 0 && y >= 0 &&
             (matching_.b_of_a[static_cast<size_t>(x)] == y ||
              (a_.follows_from_constants(x) && b_.follows_from_constants(y) && !differ(x, y)));
    };
    return !agrees(0, 0) && !agrees(1, 1) && (agrees(0, 1) || agrees(1, 0));
  }

  // B reads another value of A's: it did not change, but is read in the wrong position.
  bool is_another(int32_t x, int32_t y) const {
    const int32_t of_b = matching_.a_of_b[static_cast<size_t>(y)];
    return of_b >= 0 && of_b != x && same_content(a_.constant(of_b), b_.constant(y));
  }

  // Each is held or computed, unchanged, by the other model as well: it is read where it should not be.
  bool are_rewired(int32_t x, int32_t y) const {
    const int32_t of_a = matching_.b_of_a[static_cast<size_t>(x)];
    const bool are_data = a_.is_constant(x) && b_.is_constant(y);
    return !are_data && is_another(x, y) && of_a >= 0 && of_a != y && same_content(a_.constant(x), b_.constant(of_a));
  }

  // The node on the way from a value that is equal to `wanted` down to `id`, next to that value.
  static std::optional<LocatedNode> next_to_equal(const ModelSide& side, int32_t id, const Value& wanted) {
    if (!wanted.is_tensor()) return std::nullopt;
    std::optional<LocatedNode> next;
    above(side, id, [&](int32_t read, const LocatedNode& reader) {
      if (same_content(wanted, side.constant(read)) && !leaves_alone(side, reader, wanted)) next = reader;
      return next.has_value();
    });
    return next;
  }

  // The node's output has the same elements in the same order: it does not cause the difference.
  static bool leaves_alone(const ModelSide& side, const LocatedNode& node, const Value& given) {
    const int32_t made = ModelSide::value_info_read(*node.location, node.node().outputs[0]);
    return made >= 0 && same_content(given, side.constant(made));
  }

  bool look_for_inserted(int32_t x, int32_t y, const LocatedNode& reader) {
    const auto inserted = next_to_equal(b_, y, a_.constant(x));
    const auto is_it = [&](const NodeMatch& match) { return LocatedNode{match.location_b, match.b} == *inserted; };
    // A stored constant that is transposed on its way, and was transposed before, is an equivalent constant.
    if (!inserted.has_value() || (only_moves(*inserted) && a_.is_constant(x)) ||
        std::ranges::any_of(matching_.nodes, is_it))
      return false;
    accuse(*inserted, fmt::format("B has this {} node after a constant that '{}' reads, and A has none",
                                  inserted->node().op_type, reader.node().display_name));
    return true;
  }

  bool look_for_removed(int32_t x, int32_t y) {
    const auto removed = next_to_equal(a_, x, b_.constant(y));
    const auto is_it = [&](const NodeMatch& match) { return LocatedNode{match.location_a, match.a} == *removed; };
    if (!removed.has_value() || std::ranges::any_of(matching_.nodes, is_it)) return false;
    accuse(missing_in_b(*removed));
    return true;
  }

  const ModelSide &a_, &b_;
  const ModelMatching& matching_;
  std::vector<Culprit> culprits_;
};

// The sentences about constants whose consumers are not to blame.
class ConstantCauses {
 public:
  ConstantCauses(const ModelSide& a, const ModelSide& b, const Effects& effects, const ComparedValues& values)
      : a_(a), b_(b), effects_(effects), values_(values) {}

  bool has_diverged(const ValueMatch& match) const {
    if (!a_.is_constant(match.a) || !b_.is_constant(match.b)) return false;
    const ValueComparison* value = compared(match);
    return value != nullptr && value->verdict == Verdict::diverged;
  }

  // Anything that is made of it, directly or not, differs.
  bool is_observable(const ValueMatch& match) const {
    return effects_.is_any_made_of(match.a, [&](int32_t made) { return values_.has_diverged(made); });
  }

  void add(const ValueMatch& match, std::vector<Cause>& causes) const {
    const ValueComparison& value = *compared(match);
    const std::vector<LocatedNode>& readers = effects_.readers(match.a);
    Cause cause = cause_at(value, why(match));
    if (!readers.empty()) {
      cause.node = readers.front().node().display_name;
      cause.op = readers.front().node().op_type;
    }
    cause.rank = static_cast<int32_t>(causes.size()) + 1;
    cause.introduced = value.severity;
    cause.side = Side::b;
    causes.push_back(std::move(cause));
  }

 private:
  const ValueComparison* compared(const ValueMatch& match) const {
    const std::vector<std::string>& paths = a_.captured_paths(match.a);
    return paths.empty() ? nullptr : values_.find(paths.front());
  }

  std::string why(const ValueMatch& match) const {
    const std::string difference = difference_text(a_.constant(match.a), b_.constant(match.b));
    const std::string_view name = a_.value_info(match.a).name;
    const bool is_handed_out = effects_.is_handed_out(match.a);
    if (is_handed_out && effects_.readers(match.a).empty())
      return fmt::format("graph output '{}' is another constant in B{}", name, difference);
    return fmt::format("it reads another constant '{}'{}{}{}", name, is_handed_out ? ", a graph output as well" : "",
                       difference,
                       is_handed_out || is_observable(match) ? "" : "; on these inputs nothing follows from that");
  }

  const ModelSide &a_, &b_;
  const Effects& effects_;
  const ComparedValues& values_;
};

}  // namespace

bool was_changed(const ModelSide& a, const ModelSide& b, const ValueMatch& match) {
  if (match.b < 0 || !a.is_constant(match.a) || !b.is_constant(match.b)) return false;
  if (a.static_path(match.a) != b.static_path(match.b)) return false;
  const Value x = a.constant(match.a), y = b.constant(match.b);
  if (!x.is_tensor() || !y.is_tensor() || x.tensor().dtype() != y.tensor().dtype() ||
      x.tensor().shape() != y.tensor().shape() ||
      !(is_floating(x.tensor().dtype()) || is_integer(x.tensor().dtype()) || x.tensor().dtype() == DType::bool_))
    return false;
  const auto is_same = [](double p, double q) { return p == q || (p != p && q != q); };
  return !std::ranges::equal(in_order(x.tensor()), in_order(y.tensor()), is_same);
}

bool only_moves(const LocatedNode& node) { return moves_elements(node.node()); }

int32_t before_moves(const ModelSide& side, int32_t id) {
  LocatedNode made_by = side.producer(id);
  while (made_by.id != kNoNode && only_moves(made_by)) {
    const int32_t read = ModelSide::value_info_read(*made_by.location, made_by.node().inputs.front());
    if (read < 0) break;
    id = read;
    made_by = side.producer(id);
  }
  return id;
}

std::vector<Culprit> after_constants(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                     const LocatedNode& node_a, const LocatedNode& node_b, Attributes attributes) {
  const bool is_same = is_same_operation(node_a, node_b);
  if (!is_same && attributes == Attributes::relevant) return {{node_a, definition_difference(a, node_a, b, node_b)}};
  if (!is_same && constants_difference(a, node_a, b, node_b).empty()) return {};
  ConstantWalk walk(a, b, matching);
  walk.look_after(node_a, node_b, 0);
  return walk.take();
}

std::vector<Culprit> after_constant(const ModelSide& a, const ModelSide& b, const ModelMatching& matching, int32_t in_a,
                                    int32_t in_b, const LocatedNode& reader) {
  ConstantWalk walk(a, b, matching);
  walk.look_at_constant(in_a, in_b, reader);
  return walk.take();
}

std::vector<Cause> unobservable_constants(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                          const Effects& effects, const ComparedValues& values) {
  std::vector<Cause> result;
  const ConstantCauses causes(a, b, effects, values);
  for (const ValueMatch& match : matching.values) {
    if (result.size() < thresholds::kMostCauses && causes.has_diverged(match)) causes.add(match, result);
  }
  return result;
}

void add_unexplained_constants(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                               const Effects& effects, const ComparedValues& values, std::vector<Cause>& causes) {
  const ConstantCauses of_constants(a, b, effects, values);
  for (const ValueMatch& match : matching.values) {
    if (match.is_extra || causes.size() >= thresholds::kMostCauses || !of_constants.has_diverged(match)) continue;
    const bool is_handed_out = effects.is_handed_out(match.a);
    const bool is_unread = is_handed_out && effects.readers(match.a).empty();
    const bool is_unobservable = !is_handed_out && !of_constants.is_observable(match);
    if (is_unread || is_unobservable) of_constants.add(match, causes);
  }
}

}  // namespace parallax::diff
