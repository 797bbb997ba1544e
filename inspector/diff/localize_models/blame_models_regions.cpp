// SPDX-License-Identifier: Apache-2.0
// Runs the nodes between matched values on A's values.
#include "inspector/diff/localize_models/blame_models_regions.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "inspector/diff/localize/node_judge.h"
#include "inspector/diff/matching/same_quantized_values.h"
#include "inspector/diff/tolerance/quantization.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

// The element type a graph declares, undefined where it does not.
DType declared_dtype(const ValueInfo& value_info) {
  return value_info.graph->values[static_cast<size_t>(value_info.value)].type.dtype;
}

// The numbers in a type of another kind (doubles for floats), where it holds them all; else as they are.
Value in_type(const Value& value, DType dtype) {
  if (!value.is_tensor() || dtype == DType::undefined) return value;
  const Tensor& tensor = value.tensor();
  const auto holds_numbers = [](DType type) { return is_floating(type) || is_integer(type) || type == DType::bool_; };
  const bool is_other_kind = is_floating(tensor.dtype()) != is_floating(dtype);
  if (!holds_numbers(tensor.dtype()) || !holds_numbers(dtype) || !is_other_kind) return value;
  std::vector<double> elements(static_cast<size_t>(tensor.element_count()));
  load_doubles(tensor, 0, elements);
  const double largest = dtype == DType::bool_ ? 1 : dtype == DType::int32 || dtype == DType::int64 ? 1 << 30 : 127;
  const auto fits = [&](double element) {
    return element == std::trunc(element) && element >= 0 && element <= largest;
  };
  if (!is_floating(dtype) && !std::ranges::all_of(elements, fits)) return value;
  auto moved = Tensor::allocate(is_floating(dtype) ? DType::float64 : dtype, tensor.shape());
  if (!moved.ok()) return value;
  store_doubles(*moved, 0, elements);
  return moved.take();
}

Value clamped_at_zero(const Value& value) {
  if (!value.is_tensor() || !is_floating(value.tensor().dtype())) return value;
  auto clamped = Tensor::allocate(value.tensor().dtype(), value.tensor().shape());
  if (!clamped.ok()) return value;
  std::vector<double> elements(static_cast<size_t>(clamped->element_count()));
  load_doubles(value.tensor(), 0, elements);
  for (double& element : elements) element = element < 0 ? 0 : element;
  store_doubles(*clamped, 0, elements);
  return clamped.take();
}

// True where `narrow` is `wide` rounded to `type`, which is less precise; numbers beyond its range may be anything
// large.
bool is_rounded_to(const Tensor& wide, const Tensor& narrow, DType type) {
  if (!is_floating(wide.dtype()) || !is_floating(narrow.dtype()) || wide.element_count() != narrow.element_count())
    return false;
  if (!(float_limits(type).epsilon > float_limits(wide.dtype()).epsilon)) return false;
  auto rounded = Tensor::allocate(type, wide.shape());
  if (!rounded.ok()) return false;
  std::vector<double> elements(static_cast<size_t>(wide.element_count()));
  load_doubles(wide, 0, elements);
  store_doubles(*rounded, 0, elements);
  const double largest = float_limits(type).max_finite;
  for (int64_t index = 0; index < narrow.element_count(); ++index) {
    const double held = element_as_double(narrow, index), wanted = elements[static_cast<size_t>(index)];
    if (held == element_as_double(*rounded, index) || (std::isnan(held) && std::isnan(wanted))) continue;
    const bool is_beyond = std::abs(wanted) >= largest && std::abs(held) >= thresholds::kClampedRange * largest;
    if (!is_beyond || std::signbit(held) != std::signbit(wanted)) return false;
  }
  return true;
}

}  // namespace

Value as_double(const Value& value) {
  if (!value.is_tensor() || !is_floating(value.tensor().dtype())) return value;
  auto wide = Tensor::allocate(DType::float64, value.tensor().shape());
  if (!wide.ok()) return value;
  load_doubles(value.tensor(), 0, wide->mutable_as<double>());
  return wide.take();
}

Result<Region> RegionRunner::run(int32_t target_a, int32_t target_b, const Instance& instance) const {
  return run_both(target_a, target_b, {.instance = instance});
}

Result<Region> RegionRunner::run_past(int32_t target_a, int32_t target_b, const Instance& instance,
                                      const ValueMatch& pair) const {
  return run_both(target_a, target_b, {.instance = instance, .no_pair = pair.a});
}

Result<Region> RegionRunner::run_nudged(int32_t target_a, int32_t target_b, const Instance& instance,
                                        uint32_t seed) const {
  return run_both(target_a, target_b, {.instance = instance, .nudge = seed});
}

Result<Region> RegionRunner::run_both(int32_t target_a, int32_t target_b, const Walk& how) const {
  Region region;
  Walk filler{.instance = how.instance, .fills = true};
  Walk in_a = how, in_b = how;
  in_b.in_a = false;
  in_a.filler = in_b.filler = &filler;
  in_a.target = in_b.other_target = target_a;
  in_b.target = in_a.other_target = target_b;
  region.found = PX_TRY(compute_target(in_b));
  region.given_b = given(target_b, in_b);
  region.nodes_b = std::move(in_b.nodes);
  region.made_b = std::move(in_b.values);
  region.expected = PX_TRY(compute_target(in_a));
  region.given_a = given(target_a, in_a);
  region.nodes_a = std::move(in_a.nodes);
  region.made_a = std::move(in_a.values);
  return region;
}

Result<Value> RegionRunner::run_with(int32_t target_a, int32_t target_b, const Instance& instance,
                                     const Constants& constants) const {
  Walk filler{.instance = instance, .fills = true};
  Walk walk{.instance = instance, .in_a = false, .target = target_b, .other_target = target_a, .filler = &filler};
  walk.values = constants;
  return compute_target(walk);
}

Result<Value> RegionRunner::run_without(int32_t target_a, int32_t target_b, const Instance& instance,
                                        const LocatedNode& node, bool in_a, size_t operand) const {
  Walk filler{.instance = instance, .fills = true};
  Walk walk{.instance = instance,
            .in_a = in_a,
            .target = in_a ? target_a : target_b,
            .other_target = in_a ? target_b : target_a,
            .left_out = node,
            .passed_operand = operand,
            .filler = &filler};
  return compute_target(walk);
}

Result<Value> RegionRunner::run_as_other(int32_t target_a, int32_t target_b, const Instance& instance,
                                         const Replaced& replaced) const {
  const bool in_a = replaced.in_a;
  Walk filler{.instance = instance, .fills = true};
  Walk walk{.instance = instance,
            .in_a = in_a,
            .target = in_a ? target_a : target_b,
            .other_target = in_a ? target_b : target_a,
            .replaced = in_a ? replaced.node_a : replaced.node_b,
            .replacement = in_a ? replaced.node_b : replaced.node_a,
            .keeps_constants = replaced.keeps_constants,
            .filler = &filler};
  return compute_target(walk);
}

Result<Value> RegionRunner::run_changed(int32_t target_a, int32_t target_b, const Instance& instance,
                                        const LocatedNode& node, const Node& changed) const {
  Walk filler{.instance = instance, .fills = true};
  Walk walk{.instance = instance,
            .in_a = false,
            .target = target_b,
            .other_target = target_a,
            .replaced = node,
            .changed = &changed,
            .filler = &filler};
  return compute_target(walk);
}

// The other side's node on what this side's reads, port by port, but on its own constants unless this side keeps its
// own.
Result<std::vector<Value>> RegionRunner::run_replacement(const LocatedNode& placed, Walk& walk) const {
  const ModelSide &side = walk.in_a ? a_ : b_, &other = walk.in_a ? b_ : a_;
  if (walk.changed != nullptr)
    return side.replay_changed(placed, *walk.changed, [&](int32_t read) { return value_of(read, walk); });
  const LocatedNode by = walk.replacement;
  const std::vector<ValueId>&inputs = placed.node().inputs, &inputs_by = by.node().inputs;
  // Values are counterparts where each side has a constant instead of the other's value.
  const auto counterpart = [&](size_t port) {
    if (walk.keeps_constants || !side.reads_constant(placed, port)) return port;
    for (size_t crossed = 0; crossed < std::min(inputs.size(), inputs_by.size()); ++crossed) {
      if (other.reads_constant(by, crossed) && !side.reads_constant(placed, crossed)) return crossed;
    }
    return port;
  };
  return other.replay(by, [&](int32_t read) -> Result<Value> {
    if (!walk.keeps_constants && other.follows_from_constants(read))
      return walk.in_a ? other.constant(read) : as_b_holds_it(read, other.constant(read));
    for (size_t port = 0; port < std::min(inputs.size(), inputs_by.size()); ++port) {
      if (ModelSide::value_info_read(*by.location, inputs_by[port]) != read) continue;
      const int32_t mine = ModelSide::value_info_read(*placed.location, inputs[counterpart(port)]);
      if (mine >= 0) return value_of(mine, walk);
    }
    return usage_error("the counterpart reads what this node does not");
  });
}

// The value that a node computes with, in place of what it makes.
Result<Value> RegionRunner::pass_on(const LocatedNode& placed, Walk& walk) const {
  const ModelSide& side = walk.in_a ? a_ : b_;
  if (placed.node().outputs.size() != 1) return usage_error("only a node with one output can be left out");
  size_t operand = 0;
  for (const ValueId input : placed.node().inputs) {
    const int32_t read = ModelSide::value_info_read(*placed.location, input);
    if (read < 0 || side.follows_from_constants(read) || operand++ < walk.passed_operand) continue;
    const Value value = PX_TRY(value_of(read, walk));
    const ValueDef& made = placed.location->graph->values[static_cast<size_t>(placed.node().outputs.front())];
    return placed.node().op_type == "Cast" ? in_type(value, made.type.dtype) : value;
  }
  return usage_error("a node without such an input cannot be left out");
}

// The floats that `quantize` reads, moved as its quantized values are up to this one.
Result<Value> RegionRunner::floats_moved_to(int32_t id, const LocatedNode& quantize, Walk& walk) const {
  const ModelSide& side = walk.in_a ? a_ : b_;
  const LocatedNode made_by = side.producer(id);
  const int32_t first = ModelSide::value_info_read(*made_by.location, made_by.node().inputs.front());
  if (first < 0) return usage_error("the input of the quantization is not available");
  if (made_by == quantize) return value_of(first, walk);
  const auto outputs = PX_TRY(side.replay(made_by, [&](int32_t read) {
    return read == first ? floats_moved_to(read, quantize, walk) : value_of(read, walk);
  }));
  return outputs[static_cast<size_t>(side.value_info(id).output_index)];
}

// The output of a DequantizeLinear before it was quantized; absent where that is not available.
Result<Value> RegionRunner::before_quantization(int32_t id, const LocatedNode& placed, Walk& walk) const {
  const ModelSide &side = walk.in_a ? a_ : b_, &other = walk.in_a ? b_ : a_;
  const Graph& graph = *placed.location->graph;
  if (const NodeId quantize = quantize_before(graph, placed.node()); quantize != kNoNode) {
    const int32_t read = ModelSide::value_info_read(*placed.location, placed.node().inputs.front());
    auto moved = floats_moved_to(read, {placed.location, quantize}, walk);
    if (!moved.ok()) return Value();  // a move that takes no floats
    const std::optional<QuantizedRange> range = quantized_range_of(graph, graph.nodes[static_cast<size_t>(quantize)]);
    return clamps_ && range.has_value() && range->lowest == 0 ? clamped_at_zero(*moved) : moved.take();
  }
  const int32_t counterpart = (walk.in_a ? matching_.b_of_a : matching_.a_of_b)[static_cast<size_t>(id)];
  return side.follows_from_constants(id) && counterpart >= 0 ? other.constant(counterpart) : Value();
}

std::vector<Value> RegionRunner::given(int32_t target, const Walk& walk) const {
  std::vector<Value> values;
  const LocatedNode made_by = (walk.in_a ? a_ : b_).producer(target);
  if (made_by.id == kNoNode) return values;
  for (const ValueId input : made_by.node().inputs) {
    const auto found = walk.values.find(ModelSide::value_info_read(*made_by.location, input));
    values.push_back(found == walk.values.end() ? Value() : found->second);
  }
  return values;
}

Result<Region> RegionRunner::read(int32_t value_a, int32_t value_b, const Instance& instance) const {
  Region region;
  Walk filler{.instance = instance, .fills = true};
  Walk in_b{.instance = instance, .in_a = false, .filler = &filler}, in_a{.instance = instance, .filler = &filler};
  region.found = PX_TRY(value_of(value_b, in_b));
  region.nodes_b = std::move(in_b.nodes);
  region.expected = PX_TRY(value_of(value_a, in_a));
  region.nodes_a = std::move(in_a.nodes);
  return region;
}

Result<Value> RegionRunner::make(int32_t id, bool in_a, const Instance& instance) const {
  Walk filler{.instance = instance, .fills = true};
  Walk walk{.instance = instance, .in_a = in_a, .filler = &filler};
  return value_of(id, walk);
}

// As it was captured; what was not, as A's nodes make it of what was.
Result<Value> RegionRunner::value_of_a(int32_t id, Walk& walk) const {
  const std::string path = path_in(walk.instance, a_.static_path(id));
  Value value = PX_TRY(a_.captured(path));
  if (!value.is_absent() || path.empty() || walk.fills || a_.value_info(id).role != ValueInfo::Role::node_output)
    return value;
  auto made = value_of(id, *walk.filler);
  return made.ok() ? made.take() : Value();
}

Result<Value> RegionRunner::known(int32_t id, Walk& walk) const {
  const ModelSide& side = walk.in_a ? a_ : b_;
  if (side.is_constant(id)) {
    const Value held = side.constant(id);
    return walk.in_a ? as_b_holds_it(id, held) : held;
  }
  const int32_t other = (walk.in_a ? matching_.b_of_a : matching_.a_of_b)[static_cast<size_t>(id)];
  // Part of the side's own definition, unless the other side computes it: then it is judged by itself.
  const bool is_computed = other >= 0 && !(walk.in_a ? b_ : a_).follows_from_constants(other);
  if (side.follows_from_constants(id) && !is_computed) return Value();
  const bool is_source = side.value_info(id).role != ValueInfo::Role::node_output;
  if (other < 0 && !is_source) return Value();
  const int32_t in_a = walk.in_a ? id : other;
  const bool is_no_pair = (walk.no_pair >= 0 && in_a == walk.no_pair) || parted_.contains(in_a);
  if (other >= 0 && id != walk.target && other != walk.other_target && !is_no_pair) {
    const DType mine = declared_dtype(side.value_info(id)), theirs = declared_dtype(a_.value_info(in_a));
    const bool is_same_type = mine == theirs || mine == DType::undefined || theirs == DType::undefined || is_source;
    const bool are_floats = is_floating(mine) && is_floating(theirs);
    const bool are_quantized = is_byte(mine) && is_byte(theirs);
    if (is_same_type || are_floats || are_quantized) {
      Value value = PX_TRY(value_of_a(in_a, walk));
      const auto layout = walk.in_a ? layouts_.end() : layouts_.find(in_a);
      if (layout != layouts_.end()) value = as_b_lays_it_out(layout->second, value);
      return is_same_type ? value : are_quantized ? as_quantized_of(value, mine) : as_double(value);
    }
  }
  return is_source ? side.captured(path_in(walk.instance, side.static_path(id))) : Result<Value>(Value());
}

// A constant of A, but as B has it where B's is the same in a narrower type: that is no other definition.
Value RegionRunner::as_b_holds_it(int32_t id, const Value& stored) const {
  const int32_t other = matching_.b_of_a[static_cast<size_t>(id)];
  const Value narrow = other >= 0 && b_.follows_from_constants(other) ? b_.constant(other) : Value();
  if (!stored.is_tensor() || !narrow.is_tensor()) return stored;
  const DType type = narrow.tensor().dtype();
  const LocatedNode made_by = b_.producer(other);
  const bool is_cast = made_by.id != kNoNode && moves_elements(made_by.node()) && type == stored.tensor().dtype();
  const bool is_same = is_cast ? is_rounded_to(stored.tensor(), narrow.tensor(), DType::float16) ||
                                     is_rounded_to(stored.tensor(), narrow.tensor(), DType::bfloat16)
                               : is_rounded_to(stored.tensor(), narrow.tensor(), type);
  if (!is_same) return stored;
  auto held = Tensor::allocate(stored.tensor().dtype(), stored.tensor().shape());
  if (!held.ok()) return stored;
  std::vector<double> elements(static_cast<size_t>(held->element_count()));
  load_doubles(narrow.tensor(), 0, elements);
  store_doubles(*held, 0, elements);
  return held.take();
}

Result<Value> RegionRunner::value_of(int32_t id, Walk& walk) const {
  const auto before = walk.values.find(id);
  if (before != walk.values.end()) return before->second;
  const ModelSide& side = walk.in_a ? a_ : b_;
  // Constants that a call is given are part of the call's definition, not of what is inside.
  const int32_t given = side.given_to_call(id);
  if (given >= 0 && !side.follows_from_constants(given)) return value_of(given, walk);
  // The outputs of a call are those of its function, in which values may have counterparts that the call lacks.
  const bool is_paired = (walk.in_a ? matching_.b_of_a : matching_.a_of_b)[static_cast<size_t>(id)] >= 0;
  const int32_t returned = is_paired ? -1 : side.returned_by_call(id);
  if (returned >= 0) return value_of(returned, walk);
  Value value = PX_TRY(known(id, walk));
  const bool is_nudged = walk.nudge != 0 && !value.is_absent();
  if (is_nudged)
    value = nudged_value(value, walk.nudge + static_cast<uint32_t>(id) * 0x632BE5ABU, thresholds::kNudgedUlps);
  if (value.is_absent()) value = PX_TRY(compute(id, walk));
  walk.values[id] = value;
  return value;
}

Result<Value> RegionRunner::compute_target(Walk& walk) const {
  Value value = PX_TRY(compute(walk.target, walk));
  return walk.in_a ? value : as_a_has_it(walk.other_target, value);
}

Result<Value> RegionRunner::compute(int32_t id, Walk& walk) const {
  const ModelSide& side = walk.in_a ? a_ : b_;
  const LocatedNode placed = side.producer(id);
  if (placed.id == kNoNode && side.is_constant(id)) return side.constant(id);
  if (placed.id == kNoNode) return usage_error(fmt::format("value '{}' was not captured", side.value_info(id).name));
  if (placed == walk.left_out) return pass_on(placed, walk);
  if (std::ranges::find(without_quantization_, placed) != without_quantization_.end()) {
    Value before = PX_TRY(before_quantization(id, placed, walk));
    if (!before.is_absent()) return before;
  }
  if (++walk.depth > thresholds::kLargestRegion) return usage_error("too many nodes are between two values that match");
  auto outputs = placed == walk.replaced ? run_replacement(placed, walk)
                                         : side.replay(placed, [&](int32_t read) { return value_of(read, walk); });
  --walk.depth;
  if (!outputs.ok()) return std::move(outputs).error();
  const bool counts = id == walk.target || !side.follows_from_constants(id);
  if (!walk.fills && counts && std::ranges::find(walk.nodes, placed) == walk.nodes.end()) walk.nodes.push_back(placed);
  const Node& node = placed.node();
  for (size_t index = 0; index < std::min(node.outputs.size(), outputs->size()); ++index) {
    const ValueInfo* value_info =
        node.outputs[index] == kNoValue ? nullptr : placed.location->values[static_cast<size_t>(node.outputs[index])];
    if (value_info != nullptr) walk.values[value_info->id] = (*outputs)[index];
  }
  return walk.values[id];
}

}  // namespace parallax::diff
