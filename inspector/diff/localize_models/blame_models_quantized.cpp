// SPDX-License-Identifier: Apache-2.0
// Runs regions with the quantization of one value alone, and explains the relevant ones.
#include "inspector/diff/localize_models/blame_models_quantized.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "inspector/diff/localize_models/blame_models_constants.h"
#include "inspector/diff/localize_models/blame_models_explain.h"
#include "inspector/diff/localize_models/blame_models_parts.h"
#include "inspector/diff/matching/definition_distance.h"
#include "inspector/diff/tolerance/quantization.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

// The DequantizeLinear nodes of a region, those that make the constants it reads included.
std::vector<LocatedNode> dequantizers_of(const ModelSide& side, const std::vector<LocatedNode>& nodes) {
  std::vector<LocatedNode> found, waiting = nodes;
  constexpr size_t kMost = 256;
  for (size_t index = 0; index < waiting.size() && index < kMost; ++index) {
    const LocatedNode node = waiting[index];
    if (is_dequantize(node.node())) found.push_back(node);
    for (const ValueId input : node.node().inputs) {
      const int32_t read = ModelSide::value_info_read(*node.location, input);
      if (read < 0 || !side.follows_from_constants(read)) continue;
      const LocatedNode made_by = side.producer(read);
      if (made_by.id != kNoNode && !has(waiting, made_by)) waiting.push_back(made_by);
    }
  }
  return found;
}

// The DequantizeLinear of stored quantized values that a constant comes from, moved since or not; no node where there
// is none.
LocatedNode dequantizer_of_held(const ModelSide& side, int32_t id) {
  LocatedNode made_by = side.producer(id);
  const auto first_input = [&] { return ModelSide::value_info_read(*made_by.location, made_by.node().inputs.front()); };
  while (made_by.id != kNoNode && (only_moves(made_by) || made_by.node().op_type == "Slice") && first_input() >= 0)
    made_by = side.producer(first_input());
  const bool is_it = made_by.id != kNoNode && is_dequantize(made_by.node()) && first_input() >= 0 &&
                     side.follows_from_constants(first_input());
  return is_it ? made_by : LocatedNode{};
}

// The node that takes out of stored quantized values, by indices, what a DequantizeLinear reads; none where that is
// stored as it is, moved since or not.
LocatedNode taken_by(const ModelSide& side, const LocatedNode& dequantize) {
  const int32_t read = ModelSide::value_info_read(*dequantize.location, dequantize.node().inputs.front());
  return read < 0 ? LocatedNode{} : side.producer(before_moves(side, read));
}

// The QuantizeLinear that made what a DequantizeLinear reads; none where that is stored.
LocatedNode quantizer_of(const LocatedNode& dequantize) {
  const NodeId before = quantize_before(*dequantize.location->graph, dequantize.node());
  return before == kNoNode ? LocatedNode{} : LocatedNode{dequantize.location, before};
}

// The root mean square of the elements that no mask hides.
double size_of(const Value& value) {
  if (!value.is_tensor() || !is_floating(value.tensor().dtype())) return 0;
  double squares = 0, count = 0;
  for (int64_t index = 0; index < value.tensor().element_count(); ++index) {
    const double element = element_as_double(value.tensor(), index);
    if (element <= thresholds::kMaskedScore) continue;
    squares += std::pow(element, 2);
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(squares / count);
}

// The largest size of an element.
double largest_of(const Value& value) {
  double largest = 0;
  for (int64_t index = 0; value.is_tensor() && index < value.tensor().element_count(); ++index)
    largest = std::max(largest, std::abs(element_as_double(value.tensor(), index)));
  return largest;
}

bool is_clamp(const LocatedNode& node) { return clamps_at_zero(*node.location->graph, node.node()); }
bool is_of_quantized(const LocatedNode& node) { return is_quantize(node.node()) || is_dequantize(node.node()); }

int32_t made_by(const LocatedNode& node) {
  return ModelSide::value_info_read(*node.location, node.node().outputs.front());
}

// True where a factor takes the one to the other, but for a quantization step, or, of several scales, one for each
// index of an axis: then the scale is wrong.
bool is_rescaled(const Value& a, const Value& b, const QuantizedRange& range) {
  if (!a.is_tensor() || !b.is_tensor() || !(a.tensor().shape() == b.tensor().shape())) return false;
  constexpr int64_t kFewest = 4;  // elements of one factor: fewer fit any
  const Shape& shape = a.tensor().shape();
  const int64_t count = a.tensor().element_count();
  const auto fits = [&](int64_t extent, int64_t stride) {
    std::vector<double> products(static_cast<size_t>(extent)), squares(static_cast<size_t>(extent));
    const auto group = [&](int64_t index) { return static_cast<size_t>(index / stride % extent); };
    for (int64_t index = 0; index < count; ++index) {
      const double x = element_as_double(a.tensor(), index), y = element_as_double(b.tensor(), index);
      products[group(index)] += x * y;
      squares[group(index)] += x * x;
    }
    for (int64_t index = 0; index < count; ++index) {
      const double x = element_as_double(a.tensor(), index), y = element_as_double(b.tensor(), index);
      const size_t own = group(index);
      const double factor = squares[own] > 0 ? products[own] / squares[own] : 0;
      if (!(std::abs(y - factor * x) <= range.step * std::max(1.0, std::abs(factor)))) return false;
    }
    // A scale is positive: what is lost, or has another sign, is stored so.
    return std::ranges::all_of(products, [](double product) { return product > 0; });
  };
  if (count >= kFewest && fits(1, 1)) return true;
  if (std::isfinite(range.highest)) return false;  // one scale
  int64_t stride = 1;
  for (size_t axis = shape.rank(); axis-- > 0; stride *= shape[axis])
    if (shape[axis] > 0 && count / shape[axis] >= kFewest && fits(shape[axis], stride)) return true;
  return false;
}

// The quantized values that a value is dequantized from, moved since or not.
std::optional<QuantizedRange> quantized_held(const ModelSide& side, int32_t id) {
  const LocatedNode made_by = side.producer(before_moves(side, id));
  if (made_by.id == kNoNode || !is_dequantize(made_by.node())) return std::nullopt;
  return quantized_range_of(*made_by.location->graph, made_by.node());
}

// "scale 0.1 and zero point 3", where these are single numbers.
std::string quantized_text(const ModelSide& side, const LocatedNode& node) {
  std::string text;
  for (const auto& [port, name] : {std::pair<size_t, std::string_view>{1, "scale"}, {2, "zero point"}}) {
    if (port >= node.node().inputs.size() || !side.reads_constant(node, port)) continue;
    const Value held = side.constant(ModelSide::value_info_read(*node.location, node.node().inputs[port]));
    if (!held.is_tensor() || held.tensor().element_count() != 1) continue;
    text += fmt::format("{}{} {:.7g}", text.empty() ? "" : " and ", name, element_as_double(held.tensor(), 0));
  }
  return text;
}

// The causes of quantized values that represent other floats than those they were made from.
class QuantizedBlame {
 public:
  QuantizedBlame(const ModelSide& a, const ModelSide& b, const ModelSide& side, const ModelMatching& matching)
      : a_(a), b_(b), side_(side), matching_(matching) {}

  // `floats` are the input of the quantization.
  Culprit of(const LocatedNode& dequantize, const Value& floats) const {
    const LocatedNode quantize = quantizer_of(dequantize);
    if (quantize.id == kNoNode) return of_constant(dequantize);
    const std::string saturation = saturation_text(quantize, floats);
    if (!saturation.empty()) return {quantize, saturation};
    const std::string there = quantized_text(side_, quantize), here = quantized_text(side_, dequantize);
    if (there != here && fits_worse(quantize, dequantize, floats)) {
      return {quantize, fmt::format("it quantizes by {}, but '{}' dequantizes by {}, whose range fits the values",
                                    there, dequantize.node().display_name, here)};
    }
    if (there != here) {
      return {dequantize, fmt::format("it dequantizes by {}, but '{}' has quantized by {}", here,
                                      quantize.node().display_name, there)};
    }
    return {quantize, fmt::format("its steps are too coarse for what it quantizes{}", step_text(quantize))};
  }

  Culprit of_constant(const LocatedNode& dequantize, int32_t in_a, int32_t in_b) const {
    const int32_t other = &side_ == &a_ ? in_b : in_a;
    const std::string difference = difference_text(a_.constant(in_a), b_.constant(in_b));
    const std::string by = quantized_text(side_, dequantize);
    Culprit culprit{
        dequantize,
        fmt::format("its result{} is not the numbers that its quantized values represent, constant '{}'{}",
                    by.empty() ? "" : " by " + by, (&side_ == &a_ ? b_ : a_).value_info(other).name, difference)};
    const std::optional<QuantizedRange> range = quantized_range_of(*dequantize.location->graph, dequantize.node());
    culprit.is_of_stored_values = range.has_value() && !is_rescaled(a_.constant(in_a), b_.constant(in_b), *range);
    if (const LocatedNode taken = taken_by(side_, dequantize); culprit.is_of_stored_values && taken.id != kNoNode) {
      return {taken, fmt::format("it takes other quantized values than those of the constant '{}'{}",
                                 (&side_ == &a_ ? b_ : a_).value_info(other).name, difference)};
    }
    return culprit;
  }

  // True where the range is that of the values while the model runs, and no mask is among them.
  bool is_fitted(const LocatedNode& dequantize, const Value& floats) const {
    const LocatedNode quantize = quantizer_of(dequantize);
    return quantize.id != kNoNode && quantize.node().op_type == "DynamicQuantizeLinear" &&
           largest_of(floats) <= thresholds::kMaskRatio * size_of(floats);
  }

  // True for stored values that are the floats they stand for, but for their steps.
  bool is_held_right(const LocatedNode& dequantize) const {
    const int32_t made = made_by(dequantize), other = counterpart_of(made);
    if (other < 0 || quantizer_of(dequantize).id != kNoNode) return false;
    return &side_ == &a_ ? are_within_steps(a_, made, b_, other) : are_within_steps(a_, other, b_, made);
  }

  // True where the ends of the range are those of the values, as calibration gives them.
  bool is_calibrated(const LocatedNode& dequantize, const Value& floats) const {
    const LocatedNode quantize = quantizer_of(dequantize);
    if (quantize.id == kNoNode) return false;
    const std::optional<QuantizedRange> range = quantized_range_of(*quantize.location->graph, quantize.node());
    if (!range.has_value() || quantized_text(side_, quantize) != quantized_text(side_, dequantize)) return false;
    const double end = std::max(std::abs(range->lowest), std::abs(range->highest)), largest = largest_of(floats);
    const double room = 1 + thresholds::kSaturationRoom;
    return end <= largest * room && largest <= end * room;
  }

 private:
  int32_t counterpart_of(int32_t id) const {
    return (&side_ == &a_ ? matching_.b_of_a : matching_.a_of_b)[static_cast<size_t>(id)];
  }
  std::string_view letter() const { return &side_ == &a_ ? "A" : "B"; }

  Culprit of_constant(const LocatedNode& dequantize) const {
    const int32_t made = made_by(dequantize), other = counterpart_of(made);
    return &side_ == &a_ ? of_constant(dequantize, made, other) : of_constant(dequantize, other, made);
  }

  // True where the range of `node` is further from that of the floats than the range of `other` is.
  static bool fits_worse(const LocatedNode& node, const LocatedNode& other, const Value& floats) {
    const std::optional<QuantizedRange> own = quantized_range_of(*node.location->graph, node.node());
    const std::optional<QuantizedRange> others = quantized_range_of(*other.location->graph, other.node());
    if (!own.has_value() || !others.has_value()) return false;
    const double largest = largest_of(floats);
    const auto misfit = [&](const QuantizedRange& range) {
      return std::abs(std::log(std::max(std::abs(range.lowest), std::abs(range.highest)) / largest));
    };
    return largest > 0 && misfit(*own) > misfit(*others);
  }

  std::string saturation_text(const LocatedNode& quantize, const Value& floats) const {
    const std::optional<QuantizedRange> range = quantized_range_of(*quantize.location->graph, quantize.node());
    if (!range.has_value() || !std::isfinite(range->highest) || !floats.is_tensor()) return {};
    const Tensor& tensor = floats.tensor();
    // A Relu removes the range below zero.
    const double lowest = range->lowest == 0 ? -std::numeric_limits<double>::infinity() : range->lowest;
    int64_t beyond = 0;
    double furthest = 0;
    for (int64_t index = 0; index < tensor.element_count(); ++index) {
      const double element = element_as_double(tensor, index);
      if (element <= range->highest + range->step && element >= lowest - range->step) continue;
      ++beyond;
      if (std::abs(element) > std::abs(furthest)) furthest = element;
    }
    if (beyond == 0) return {};
    return fmt::format(
        "it saturates in {}: {} of {} elements are beyond its quantized range by {}, {:.6g} to {:.6g}, as {:.6g} is",
        letter(), beyond, tensor.element_count(), quantized_text(side_, quantize), range->lowest, range->highest,
        furthest);
  }

  std::string step_text(const LocatedNode& quantize) const {
    const std::optional<QuantizedRange> range = quantized_range_of(*quantize.location->graph, quantize.node());
    return range.has_value() ? fmt::format(": they are {:.6g} wide in {}", range->step, letter()) : "";
  }

  const ModelSide &a_, &b_, &side_;
  const ModelMatching& matching_;
};

}  // namespace

std::optional<Culprit> explain_held(const ModelSide& a, const ModelSide& b, const ModelMatching& matching,
                                    const ValueMatch& match) {
  if (!a.follows_from_constants(match.a) || !b.follows_from_constants(match.b)) return std::nullopt;
  const LocatedNode in_a = dequantizer_of_held(a, match.a), in_b = dequantizer_of_held(b, match.b);
  if ((in_a.id == kNoNode) == (in_b.id == kNoNode)) return std::nullopt;
  const bool is_in_a = in_a.id != kNoNode;
  return QuantizedBlame(a, b, is_in_a ? a : b, matching).of_constant(is_in_a ? in_a : in_b, match.a, match.b);
}

std::optional<Culprit> find_inserted_quantization(const Region& region, const Interventions& interventions) {
  for (const LocatedNode& node : region.nodes_b) {
    if (!is_dequantize(node.node())) continue;
    const LocatedNode quantize = quantizer_of(node);
    if (quantize.id == kNoNode || !interventions.agrees_without_quantization(node)) continue;
    const std::optional<QuantizedRange> range = quantized_range_of(*node.location->graph, node.node());
    const std::string steps = range.has_value() ? fmt::format(" to steps of {:.6g}", range->step) : "";
    return Culprit{
        quantize, fmt::format("B quantizes its values here{}, and A does not: without that both make the same", steps)};
  }
  return std::nullopt;
}

bool are_within_steps(const ModelSide& a, int32_t in_a, const ModelSide& b, int32_t in_b) {
  const LocatedNode held_a = dequantizer_of_held(a, in_a), held_b = dequantizer_of_held(b, in_b);
  const LocatedNode& held = held_a.id != kNoNode ? held_a : held_b;
  if ((held_a.id == kNoNode) == (held_b.id == kNoNode)) return false;
  const std::optional<QuantizedRange> range = quantized_range_of(*held.location->graph, held.node());
  const Value x = a.constant(in_a), y = b.constant(in_b);
  if (!range.has_value() || !x.is_tensor() || !y.is_tensor() || !(x.tensor().shape() == y.tensor().shape()))
    return false;
  for (int64_t index = 0; index < x.tensor().element_count(); ++index) {
    const double distance = std::abs(element_as_double(x.tensor(), index) - element_as_double(y.tensor(), index));
    if (!(distance <= thresholds::kHeldSteps * range->step)) return false;
  }
  return true;
}

bool quantizes(const ModelSide& a, const ModelSide& b, const Region& region) {
  return std::ranges::any_of(region.nodes_a, is_of_quantized) || std::ranges::any_of(region.nodes_b, is_of_quantized) ||
         !dequantizers_of(a, region.nodes_a).empty() || !dequantizers_of(b, region.nodes_b).empty();
}

bool quantizes_dynamically(const Region& region) {
  const auto does = [](const LocatedNode& node) { return is_dynamic_quantization(node.node()); };
  return std::ranges::any_of(region.nodes_a, does) || std::ranges::any_of(region.nodes_b, does);
}

std::optional<WithoutQuantization> without_quantization(const ModelSide& a, const ModelSide& b,
                                                        const ModelMatching& matching, const RegionRunner& runner,
                                                        const ValueMatch& match, const Instance& instance,
                                                        const Region& region, const std::optional<Limit>& known_limit) {
  const bool is_in_a = std::ranges::any_of(
      a.value_infos().value_infos(), [](const ValueInfo& value_info) { return value_info.op == "DequantizeLinear"; });
  const ModelSide& side = is_in_a ? a : b;
  const std::vector<LocatedNode> dequantizers = dequantizers_of(side, is_in_a ? region.nodes_a : region.nodes_b);
  if (dequantizers.empty()) return std::nullopt;
  const bool clamps_a = std::ranges::any_of(region.nodes_a, is_clamp);
  const bool clamps_b = std::ranges::any_of(region.nodes_b, is_clamp);
  const bool clamps = is_in_a ? clamps_b && !clamps_a : clamps_a && !clamps_b;
  const auto& counterparts = is_in_a ? matching.b_of_a : matching.a_of_b;
  const bool keeps_steps = std::ranges::any_of(dequantizers, [&](const LocatedNode& node) {
    return quantizer_of(node).id == kNoNode &&
           (counterparts[static_cast<size_t>(made_by(node))] < 0 || !side.follows_from_constants(made_by(node)));
  });
  WithoutQuantization result{runner, {}, 0, {}, keeps_steps};
  result.runner.drop_quantization(dequantizers, clamps);
  auto plain = result.runner.run(match.a, match.b, instance);
  if (!plain.ok()) return std::nullopt;
  result.region = plain.take();
  const auto begins_at_zero = [](const LocatedNode& dequantize) {
    const std::optional<QuantizedRange> range = quantized_range_of(*dequantize.location->graph, dequantize.node());
    return range.has_value() && range->lowest == 0;
  };
  if (clamps && std::ranges::any_of(dequantizers, begins_at_zero))
    std::erase_if(is_in_a ? result.region.nodes_b : result.region.nodes_a, is_clamp);
  std::erase_if(is_in_a ? result.region.nodes_a : result.region.nodes_b, is_of_quantized);
  const Limit limit = known_limit.value_or(
      Limit{0, thresholds::kLargestQuantizationShare * size_of(result.region.expected), LimitSource::table});
  const std::optional<QuantizedRange> ends = quantized_held(side, is_in_a ? match.a : match.b);
  const auto severity = [&](const Region& made) {
    Value expected = made.expected, found = made.found;
    Value& wide = is_in_a ? found : expected;
    if (ends.has_value()) wide = as_quantized(wide, is_in_a ? expected : found, *ends).value;
    return relative_distance(expected, found, limit).severity;
  };
  result.severity = severity(region);
  if (!(result.severity > 1) || severity(result.region) > 1) return result;
  const QuantizedBlame blame(a, b, side, matching);
  std::vector<std::pair<LocatedNode, double>> beyond;  // with what each does alone
  for (const LocatedNode& dequantize : dequantizers) {
    RegionRunner alone = runner;
    std::vector<LocatedNode> others = dequantizers;
    std::erase(others, dequantize);
    alone.drop_quantization(std::move(others), clamps);
    const auto made = alone.run(match.a, match.b, instance);
    if (made.ok()) beyond.emplace_back(dequantize, severity(*made));
  }
  // Together they are beyond the limit: where none is so alone, the one that does most.
  const auto by_severity = [](const auto& x, const auto& y) { return x.second < y.second; };
  const auto most = std::ranges::max_element(beyond, by_severity);
  if (most != beyond.end() && !(most->second > 1)) beyond = {*most};
  std::erase_if(beyond, [&](const auto& one) { return beyond.size() > 1 && !(one.second > 1); });
  // The limit is that of the rest where quantization cuts off most of a value.
  double largest = 0;
  for (const auto& [dequantize, alone] : beyond) largest = std::max(largest, alone);
  for (const auto& [dequantize, alone] : beyond) {
    if (alone < thresholds::kObservableShare * largest || blame.is_held_right(dequantize)) continue;
    const auto made = result.runner.make(made_by(dequantize), is_in_a, instance);
    const Value floats = made.ok() ? *made : Value();
    if (alone <= thresholds::kNearQuantization && blame.is_calibrated(dequantize, floats)) continue;
    if (blame.is_fitted(dequantize, floats)) continue;
    result.culprits.push_back(blame.of(dequantize, floats));
  }
  return result;
}

}  // namespace parallax::diff
