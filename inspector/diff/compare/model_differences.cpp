// SPDX-License-Identifier: Apache-2.0
// Half-precision islands, and constants that differ without effect.
#include "inspector/diff/compare/model_differences.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "inspector/diff/matching/definition_distance.h"
#include "inspector/diff/tolerance/noise_table.h"
#include "inspector/diff/tolerance/paths.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/diff/tolerance/value_compare.h"
#include "inspector/exec/value_path.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

// The half type that the elements of a value have been rounded to before they were cast and moved, else undefined.
// `known` holds it of the values before, so that a chain is not walked anew from each of its values.
DType narrowest_on_the_way(const Graph& graph, ValueId value, std::unordered_map<const ValueDef*, DType>& known) {
  constexpr std::array kKeepElements = {"Cast",    "Identity",  "Reshape", "Squeeze", "Unsqueeze",
                                        "Flatten", "Transpose", "Slice",   "Gather",  "Expand"};
  const ValueDef* const asked = &value_at(graph, value);
  DType narrowest = DType::undefined;
  for (size_t steps = 0; value != kNoValue && steps < graph.nodes.size(); ++steps) {
    const ValueDef& definition = value_at(graph, value);
    const auto before = known.find(&definition);
    if (before != known.end()) narrowest = before->second;
    if (is_half(definition.type.dtype)) narrowest = definition.type.dtype;
    if (before != known.end() || narrowest != DType::undefined || definition.producer == kNoNode) break;
    const Node& node = graph.nodes[static_cast<size_t>(definition.producer)];
    if (std::ranges::find(kKeepElements, node.op_type) == kKeepElements.end() || node.inputs.empty()) break;
    value = node.inputs.front();
  }
  known.emplace(asked, narrowest);
  return narrowest;
}

}  // namespace

DType type_between_casts(const Graph& graph) {
  DType between = DType::undefined;
  const auto is_wide = [&](ValueId id) {
    const ValueDef& definition = value_at(graph, id);
    return definition.type.dtype == DType::float32 && definition.initializer_index < 0;
  };
  const auto narrows = [&](NodeId id) {
    const Node& reader = graph.nodes[static_cast<size_t>(id)];
    const DType dtype = value_at(graph, reader.outputs.front()).type.dtype;
    if (reader.op_type != "Cast" || !is_half(dtype)) return false;
    between = dtype;
    return true;
  };
  const auto is_narrowed = [&](ValueId id) {
    const std::vector<NodeId>& readers = value_at(graph, id).readers;
    return !is_wide(id) || (!readers.empty() && std::ranges::all_of(readers, narrows));
  };
  const auto comes_from_half = [&](ValueId id) {
    const NodeId producer = value_at(graph, id).producer;
    if (!is_wide(id)) return true;
    if (producer == kNoNode) return false;
    const Node& node = graph.nodes[static_cast<size_t>(producer)];
    return node.op_type == "Cast" && is_half(value_at(graph, node.inputs.front()).type.dtype);
  };
  const bool is_cast = std::ranges::any_of(graph.inputs, is_wide) && std::ranges::all_of(graph.inputs, is_narrowed) &&
                       std::ranges::all_of(graph.outputs, comes_from_half);
  return is_cast ? between : DType::undefined;
}

Limit wider(const Limit& a, const Limit& b) {
  if (a.from == LimitSource::user) return a;
  return {std::max(a.rtol, b.rtol), std::max(a.atol, b.atol), a.from};
}

void ModelDifferences::add(bool is_a, const ValueInfo& value_info) {
  if (value_info.graph == nullptr || value_info.value == kNoValue) return;
  const ValueDef& definition = value_info.graph->values[static_cast<size_t>(value_info.value)];
  const bool computes =
      value_info.role == ValueInfo::Role::node_output && !value_info.is_constant_like && value_info.op != "Cast";
  Precision& precision = is_a ? a_ : b_;
  if (is_half(definition.type.dtype)) ++(computes ? precision.half : precision.half_data);
  if (definition.type.dtype == DType::float32) ++(computes ? precision.wide : precision.wide_data);
  if (definition.type.dtype == DType::float64) ++(computes ? precision.twice : precision.twice_data);
  if (value_info.scope.empty() && value_info.is_graph_output && !std::exchange(precision.is_between_casts_asked, true))
    precision.is_cast_to_half = type_between_casts(*value_info.graph) != DType::undefined;
  equivalent_constants_.add(is_a, value_info);
  const std::string path = value_info.scope + value_info.escaped_name;
  precision.quantization.add(value_info);
  precision.is_dynamic = precision.is_dynamic || value_info.op == "DynamicQuantizeLinear";
  if (value_info.role == ValueInfo::Role::node_output && is_floating(definition.type.dtype))
    add_quantized(is_a, value_info);
  if (is_floating(definition.type.dtype)) {
    const DType narrowest = narrowest_on_the_way(*value_info.graph, value_info.value, narrowest_);
    if (narrowest != DType::undefined) (is_a ? narrowed_in_a_ : narrowed_in_b_).emplace(path, narrowest);
  }
}

// A value that is moved after a DequantizeLinear has the same ends of its range.
void ModelDifferences::add_quantized(bool is_a, const ValueInfo& value_info) {
  auto& known = is_a ? quantized_in_a_ : quantized_in_b_;
  const ValueDef& definition = value_at(*value_info.graph, value_info.value);
  const Node& node = value_info.graph->nodes[static_cast<size_t>(definition.producer)];
  const std::string path = value_info.scope + value_info.escaped_name;
  if (is_dequantize(node)) {
    if (const std::optional<QuantizedRange> range = quantized_range_of(*value_info.graph, node); range.has_value())
      known.emplace(path, *range);
    return;
  }
  const auto is_float = [&](ValueId input) {
    return input != kNoValue && is_floating(value_at(*value_info.graph, input).type.dtype);
  };
  if (noise_row_of(node.op_type, node.domain).propagation != ErrorPropagation::copy || node.inputs.empty()) return;
  if (!is_float(node.inputs.front()) || std::ranges::count_if(node.inputs, is_float) != 1) return;
  const auto moved = known.find(value_info.scope + escape_name(value_at(*value_info.graph, node.inputs.front()).name));
  if (moved != known.end()) known.emplace(path, moved->second);
}

ModelDifferences::Both ModelDifferences::as_held_by_both(Both both, std::string_view path_a,
                                                         std::string_view path_b) const {
  both.a = as_held_in_half(both.a, both.b);
  if (!is_one_quantized()) return both;
  const auto in_a = quantized_in_a_.find(static_path(path_a)), in_b = quantized_in_b_.find(static_path(path_b));
  const auto cut = [&](Value& wide, const Value& held, const QuantizedRange& range) {
    WithinRange within = as_quantized(wide, held, range);
    wide = std::move(within.value);
    both.cut_off = std::hypot(both.cut_off, within.cut_off);
  };
  if (in_b != quantized_in_b_.end()) cut(both.a, both.b, in_b->second);
  if (in_a != quantized_in_a_.end()) cut(both.b, both.a, in_a->second);
  return both;
}

DType ModelDifferences::type_that_rounds(DType carried) const {
  return is_half(carried) && !b_.rounds_to_half() ? DType::float32 : carried;
}

DType ModelDifferences::type_in(const Types& narrowed, const Held& value) {
  if (narrowed.empty() || !is_floating(value.dtype)) return value.dtype;
  const auto found = narrowed.find(static_path(value.path));
  return found == narrowed.end() ? value.dtype : found->second;
}

bool ModelDifferences::is_double_and_float(DType in_a, DType in_b) const {
  const bool is_double_in_a = a_.is_in_double();
  return is_double_in_a != b_.is_in_double() && (is_double_in_a ? in_a : in_b) == DType::float64 &&
         (is_double_in_a ? in_b : in_a) == DType::float32;
}

Limit ModelDifferences::with_storing(const Limit& limit, const Held& in_a, const Held& in_b) const {
  const DType a = type_in(narrowed_in_a_, in_a), b = type_in(narrowed_in_b_, in_b);
  if (!is_floating(a) || !is_floating(b)) return limit;
  if (is_half(a) == is_half(b) && !is_double_and_float(a, b)) return limit;
  if (is_half(b) && type_that_rounds(b) != b) return limit;
  const FloatLimits limits = float_limits(narrower(a, b));
  return wider(limit, {limits.epsilon, limits.min_normal * limits.epsilon, limit.from});
}

Value ModelDifferences::as_held_in_half(const Value& a, const Value& b) const {
  if (!a.is_tensor() || !b.is_tensor()) return a;
  const Tensor &wide = a.tensor(), &half = b.tensor();
  if (wide.dtype() != DType::float32 || !(wide.shape() == half.shape())) return a;
  // B may compute in floats on a mask that was in float16.
  const bool is_mixed = half.dtype() == DType::float32 && are_of_two_types() && b_.rounds_to_half();
  const DType narrow = is_mixed ? DType::float16 : half.dtype();
  if (!is_half(narrow) || type_that_rounds(narrow) != narrow) return a;
  // Beyond what attention scores reach, within what converters write for minus infinity (-10000 in float16).
  const double far = float_limits(narrow).max_finite / 8;
  const std::span<const float> elements = wide.as<float>();
  Tensor held;
  for (size_t index = 0; index < elements.size(); ++index) {
    if (!(elements[index] <= thresholds::kMaskedScore)) continue;
    const double other = element_as_double(half, static_cast<int64_t>(index));
    if (!(other <= -far)) continue;
    if (!held.defined()) {
      auto copy = wide.clone();
      if (!copy.ok()) return a;
      held = copy.take();
    }
    held.mutable_as<float>()[index] = static_cast<float>(other);
  }
  return held.defined() ? Value(held) : a;
}

}  // namespace parallax::diff
