// SPDX-License-Identifier: Apache-2.0
// Quantizing nodes by their operators, scales and zero points.
#include "inspector/diff/tolerance/quantization.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "inspector/diff/tolerance/noise_table.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/model/opset/opset_registry.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

bool is_operator(const Node& node, std::string_view op_type) {
  const std::string_view domain = canonical_domain(node.domain);
  return node.op_type == op_type && (domain == "ai.onnx" || domain == "com.microsoft");
}

ValueId input_of(const Node& node, size_t port) { return port < node.inputs.size() ? node.inputs[port] : kNoValue; }

struct QuantizedInterval {
  DType dtype;
  double lowest, highest;
};
constexpr QuantizedInterval kRanges[] = {
    {DType::int4, -8, 7},
    {DType::uint4, 0, 15},
    {DType::int8, -128, 127},
    {DType::uint8, 0, 255},
    {DType::int16, -32768, 32767},
    {DType::uint16, 0, 65535},
    {DType::int32, -0x1p31, 0x1p31 - 1},
};

const Node* producer_of(const Graph& graph, ValueId id) {
  const NodeId producer = id == kNoValue ? kNoNode : value_at(graph, id).producer;
  return producer == kNoNode ? nullptr : &graph.nodes[static_cast<size_t>(producer)];
}

// The root mean square of the elements less `zero`, of some of them where they are many.
double rms_of(const Tensor& tensor, double zero) {
  constexpr int64_t kMostLookedAt = 4096;
  const int64_t step = std::max<int64_t>(1, tensor.element_count() / kMostLookedAt);
  double squares = 0, count = 0;
  for (int64_t index = 0; index < tensor.element_count(); index += step, ++count)
    squares += std::pow(element_as_double(tensor, index) - zero, 2);
  return count == 0 ? 0 : std::sqrt(squares / count);
}

bool is_integer_product(const Node& node) {
  return is_operator(node, "MatMulInteger") || is_operator(node, "ConvInteger");
}

const Tensor* payload_of(const StoredTensor& stored) { return !stored.absence.empty() ? nullptr : &stored.tensor; }

}  // namespace

std::string_view name_of_floats(std::string_view name) {
  constexpr std::string_view kSuffix = "_quantized";
  const bool has_it = name.size() > kSuffix.size() && name.ends_with(kSuffix);
  return has_it ? name.substr(0, name.size() - kSuffix.size()) : name;
}

const Tensor* constant_tensor(const Graph& graph, ValueId id) {
  if (id == kNoValue) return nullptr;
  const ValueDef& definition = value_at(graph, id);
  if (definition.initializer_index >= 0)
    return payload_of(graph.initializers[static_cast<size_t>(definition.initializer_index)]);
  if (definition.producer == kNoNode) return nullptr;
  const Attribute* attribute = find_attribute(graph.nodes[static_cast<size_t>(definition.producer)], "value");
  const auto* stored = attribute == nullptr ? nullptr : std::get_if<StoredTensor>(&attribute->value);
  return stored == nullptr ? nullptr : payload_of(*stored);
}

bool is_quantize(const Node& node) {
  return is_operator(node, "QuantizeLinear") || is_operator(node, "DynamicQuantizeLinear");
}
bool is_dequantize(const Node& node) { return is_operator(node, "DequantizeLinear"); }

bool moves_elements(const Node& node) {
  constexpr std::array<std::string_view, 7> kMoving = {"Identity", "Cast",    "Reshape",  "Transpose",
                                                       "Squeeze",  "Flatten", "Unsqueeze"};
  return std::ranges::find(kMoving, node.op_type) != kMoving.end();
}

bool clamps_at_zero(const Graph& graph, const Node& node) {
  if (is_operator(node, "Relu")) return true;
  if (!is_operator(node, "Clip")) return false;
  if (const Attribute* attribute = find_attribute(node, "min"); attribute != nullptr) {
    const auto* least = std::get_if<float>(&attribute->value);
    return least != nullptr && *least == 0;
  }
  const Tensor* least = constant_tensor(graph, input_of(node, 1));
  return least != nullptr && least->element_count() == 1 && is_floating(least->dtype()) &&
         element_as_double(*least, 0) == 0;
}

bool has_quantization(const ValueTable& table) {
  return std::ranges::any_of(table.value_infos(), [](const ValueInfo& value_info) {
    return value_info.op == "QuantizeLinear" || value_info.op == "DequantizeLinear";
  });
}

void QuantizationCount::add(const ValueInfo& value_info) {
  if (value_info.op == "QuantizeLinear") ++quantizers;
  if (value_info.op != "DequantizeLinear" || value_info.graph == nullptr || value_info.value == kNoValue) return;
  const Node* node = producer_of(*value_info.graph, value_info.value);
  const Node* before = node == nullptr ? nullptr : producer_of(*value_info.graph, input_of(*node, 0));
  if (before == nullptr || before->inputs.empty()) ++held;
}

bool QuantizationCount::is_quantized() const { return held > 0 || quantizers >= thresholds::kFewestQuantizers; }

bool is_quantized(const ValueTable& table) {
  QuantizationCount count;
  for (const ValueInfo& value_info : table.value_infos()) count.add(value_info);
  return count.is_quantized();
}

NodeId quantize_before(const Graph& graph, const Node& dequantize) {
  ValueId value = input_of(dequantize, 0);
  for (size_t steps = 0; value != kNoValue && steps < graph.nodes.size(); ++steps) {
    const NodeId producer = value_at(graph, value).producer;
    if (producer == kNoNode) return kNoNode;
    const Node& node = graph.nodes[static_cast<size_t>(producer)];
    if (is_quantize(node)) return producer;
    if (noise_row_of(node.op_type, node.domain).propagation != ErrorPropagation::copy) return kNoNode;
    value = input_of(node, 0);
  }
  return kNoNode;
}

ValueId float_before_quantization(const Graph& graph, const Node& dequantize) {
  const NodeId quantize = quantize_before(graph, dequantize);
  return quantize == kNoNode ? kNoValue : input_of(graph.nodes[static_cast<size_t>(quantize)], 0);
}

std::optional<QuantizedRange> quantized_range_of(const Graph& graph, const Node& node) {
  const Tensor* scale = constant_tensor(graph, input_of(node, 1));
  if (scale == nullptr || !is_floating(scale->dtype()) || scale->element_count() == 0) return std::nullopt;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  QuantizedRange range{0, rms_of(*scale, 0), -kInfinity, kInfinity};
  for (int64_t index = 0; index < scale->element_count(); ++index)
    range.step = std::max(range.step, std::abs(element_as_double(*scale, index)));
  const Tensor* zero_point = constant_tensor(graph, input_of(node, 2));
  const bool is_omitted = input_of(node, 2) == kNoValue;
  if (scale->element_count() != 1 || (!is_omitted && zero_point == nullptr)) return range;
  const ValueId held = is_dequantize(node) ? input_of(node, 0) : node.outputs.front();
  const DType dtype = zero_point != nullptr ? zero_point->dtype() : value_at(graph, held).type.dtype;
  const auto* interval = std::ranges::find(kRanges, dtype, &QuantizedInterval::dtype);
  if (interval == std::end(kRanges)) return range;
  const double zero = zero_point == nullptr ? 0 : element_as_double(*zero_point, 0);
  range.lowest = (interval->lowest - zero) * range.step;
  range.highest = (interval->highest - zero) * range.step;
  return range;
}

bool is_dynamic_quantization(const Node& node) {
  return is_operator(node, "DynamicQuantizeLinear") || is_integer_product(node);
}

bool quantizes_dynamically(const ValueTable& table) {
  return std::ranges::any_of(table.value_infos(),
                             [](const ValueInfo& value_info) { return value_info.op == "DynamicQuantizeLinear"; });
}

std::optional<DynamicProduct> dynamic_product_of(const Graph& graph, const Node& node) {
  if (!is_operator(node, "Mul") || node.inputs.size() != 2) return std::nullopt;
  const auto integers_of = [&](ValueId id) -> const Node* {
    const Node* cast = producer_of(graph, id);
    const Node* product = cast != nullptr && cast->op_type == "Cast" ? producer_of(graph, input_of(*cast, 0)) : nullptr;
    return product != nullptr && is_integer_product(*product) ? product : nullptr;
  };
  const bool is_first = integers_of(node.inputs[0]) != nullptr;
  const Node* product = integers_of(node.inputs[is_first ? 0 : 1]);
  const Node* scales = producer_of(graph, node.inputs[is_first ? 1 : 0]);
  const Node* quantize = product == nullptr ? nullptr : producer_of(graph, input_of(*product, 0));
  if (scales == nullptr || scales->op_type != "Mul" || quantize == nullptr) return std::nullopt;
  if (!is_operator(*quantize, "DynamicQuantizeLinear") || quantize->outputs.size() < 2) return std::nullopt;
  const bool is_scale_first = input_of(*scales, 0) == quantize->outputs[1];
  if (!is_scale_first && input_of(*scales, 1) != quantize->outputs[1]) return std::nullopt;
  const Tensor* weights = constant_tensor(graph, input_of(*product, 1));
  const Tensor* steps = constant_tensor(graph, input_of(*scales, is_scale_first ? 1 : 0));
  if (steps == nullptr || !is_floating(steps->dtype())) return std::nullopt;
  const Tensor* zero_point = constant_tensor(graph, input_of(*product, 3));
  const bool has_zero = zero_point != nullptr && zero_point->element_count() > 0;
  const double step = rms_of(*steps, 0);
  // A dump's graph has no large weights.
  const double rms = weights == nullptr ? thresholds::kOrdinaryQuantized
                                        : rms_of(*weights, has_zero ? element_as_double(*zero_point, 0) : 0);
  double terms = is_operator(*product, "ConvInteger") ? 1 : 0;
  const auto& dims = value_at(graph, input_of(*product, 1)).type.dims;
  for (size_t axis = 1; terms > 0 && dims.has_value() && axis < dims->size(); ++axis)
    terms *= static_cast<double>(std::max<int64_t>(1, (*dims)[axis].value));
  const auto id_of = [&](const Node* found) { return static_cast<NodeId>(found - graph.nodes.data()); };
  return DynamicProduct{input_of(*quantize, 0),
                        quantize->outputs[1],
                        step * rms,
                        step,
                        terms,
                        id_of(product),
                        id_of(scales),
                        input_of(*scales, is_scale_first ? 1 : 0)};
}

double size_of_held_quantized(const Graph& graph, const Node& dequantize) {
  const Tensor* held = constant_tensor(graph, input_of(dequantize, 0));
  const std::optional<QuantizedRange> range = quantized_range_of(graph, dequantize);
  if (held == nullptr || !range.has_value() || held->element_count() == 0) return 0;
  const Tensor* zero_point = constant_tensor(graph, input_of(dequantize, 2));
  const bool has_zero = zero_point != nullptr && zero_point->element_count() > 0;
  return range->step * rms_of(*held, has_zero ? element_as_double(*zero_point, 0) : 0);
}

WithinRange as_quantized(const Value& wide, const Value& held, const QuantizedRange& range) {
  if (!wide.is_tensor() || !held.is_tensor() || !std::isfinite(range.highest)) return {wide};
  const Tensor &floats = wide.tensor(), &ends = held.tensor();
  if (!is_floating(floats.dtype()) || !is_floating(ends.dtype()) || !(floats.shape() == ends.shape())) return {wide};
  const double room = thresholds::kSaturationRoom * (range.highest - range.lowest);
  std::vector<double> elements(static_cast<size_t>(floats.element_count()));
  load_doubles(floats, 0, elements);
  double squares = 0;
  for (size_t index = 0; index < elements.size(); ++index) {
    double& element = elements[index];
    const bool is_above = element > range.highest && element <= range.highest + room;
    const bool is_below = element < range.lowest && element >= range.lowest - room;
    const double end = is_above ? range.highest : range.lowest,
                 other = element_as_double(ends, static_cast<int64_t>(index));
    if (!(is_above || is_below) || !(std::abs(other - end) < range.step / 2)) continue;
    squares += (element - other) * (element - other);
    element = other;
  }
  if (squares == 0) return {wide};
  auto within = Tensor::allocate(floats.dtype(), floats.shape());
  if (!within.ok()) return {wide};
  store_doubles(*within, 0, elements);
  return {Value(within.take()), std::sqrt(squares / static_cast<double>(elements.size()))};
}

}  // namespace parallax::diff
