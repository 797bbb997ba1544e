// SPDX-License-Identifier: Apache-2.0
// Rules about precision: errors that have the size and the pattern of a narrower type.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "inspector/diff/localize/explanation.h"
#include "inspector/diff/tolerance/noise_table.h"
#include "inspector/diff/tolerance/quantization.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/model/stored_int.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

struct Narrow {
  std::string_view name;
  int fraction_bits;    // that the type keeps
  int lowest_exponent;  // of a number with all its bits
  std::string_view what;
};
// TF32 has float32's exponents and float16's fraction (NVIDIA A100 whitepaper, 2020).
constexpr Narrow kNarrowTypes[] = {
    {"float16", 10, -14, "half precision (float16)"},
    {"bfloat16", 7, -126, "bfloat16"},
    {"TF32", 10, -126, "TF32"},
};

// To nearest, ties to even, as far as the fraction goes.
double rounded_to(double value, const Narrow& type) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), type.lowest_exponent);
  const double unit = std::ldexp(1.0, exponent - type.fraction_bits);
  return std::nearbyint(value / unit) * unit;
}

Value rounded_value(const Value& value, const Narrow& type) {
  if (!value.is_tensor() || value.tensor().dtype() != DType::float32) return value;
  auto rounded = Tensor::allocate(DType::float64, value.tensor().shape());
  if (!rounded.ok()) return value;
  const std::span<double> elements = rounded->mutable_as<double>();
  load_doubles(value.tensor(), 0, elements);
  for (double& element : elements) element = rounded_to(element, type);
  return rounded.take();
}

bool is_float32(const ExplanationEvidence& evidence) {
  return evidence.actual().is_tensor() && evidence.actual().tensor().dtype() == DType::float32;
}

// How alike two errors are, as the cosine between them, and their relative size.
struct Likeness {
  double cosine = 0;
  double ratio = 0;
};

Likeness likeness_of(const ExplanationEvidence& evidence, const Value& candidate) {
  const auto& expected = evidence.expected_doubles();
  const auto& actual = evidence.actual_doubles();
  if (!candidate.is_tensor() || candidate.tensor().element_count() != static_cast<int64_t>(expected.size())) return {};
  double product = 0, own = 0, other = 0;
  for (size_t index = 0; index < expected.size(); ++index) {
    const double a = actual[index] - expected[index];
    const double b = element_as_double(candidate.tensor(), static_cast<int64_t>(index)) - expected[index];
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    product += a * b;
    own += a * a;
    other += b * b;
  }
  if (!(own > 0) || !(other > 0)) return {};
  return {product / std::sqrt(own * other), std::sqrt(own / other)};
}

// The DequantizeLinear that makes a value; null where another node does.
const Node* dequantizer_of(const Graph& graph, ValueId id) {
  const NodeId producer = id == kNoValue ? kNoNode : value_at(graph, id).producer;
  const Node* const node = producer == kNoNode ? nullptr : &graph.nodes[static_cast<size_t>(producer)];
  return node != nullptr && is_dequantize(*node) ? node : nullptr;
}

bool is_quantized_product(const Node& node) { return node.op_type == "MatMulNBits"; }

// A step of a quantized value, or of the weights, has any size: it may be that of a narrower type by chance.
bool is_near_quantization(const ExplanationEvidence& evidence) {
  const auto is_near = [](const NodeInstance& instance) {
    const Node& node = instance.definition();
    const bool works_on_quantized = is_quantize(node) || is_dequantize(node) || is_dynamic_quantization(node) ||
                                    is_quantized_product(node) || node.op_type.starts_with("QLinear");
    return works_on_quantized || std::ranges::any_of(node.inputs, [&](ValueId input) {
             return dequantizer_of(*instance.location->graph, input) != nullptr;
           });
  };
  if (evidence.group() == nullptr) return is_near(evidence.instance());
  return std::ranges::any_of(evidence.group()->members(),
                             [&](const NodeGroup::Member& member) { return is_near(member.instance); });
}

// The length of the blocks of a product's quantized weights; 0 where it has none.
int64_t block_size_of(const NodeInstance& instance) {
  const Node& node = instance.definition();
  if (is_quantized_product(node)) return stored_int(node, "block_size", 0);
  if ((node.op_type != "MatMul" && node.op_type != "Gemm") || node.inputs.size() < 2) return 0;
  const Node* const dequantize = dequantizer_of(*instance.location->graph, node.inputs[1]);
  return dequantize == nullptr ? 0 : stored_int(*dequantize, "block_size", 0);
}

// The rows in int8 without zero point, each block of the last axis by its own scale.
std::optional<Value> rounded_by_blocks(const Value& value, int64_t block) {
  if (!value.is_tensor() || !is_floating(value.tensor().dtype()) || value.tensor().shape().rank() == 0)
    return std::nullopt;
  auto rounded = Tensor::allocate(DType::float64, value.tensor().shape());
  if (!rounded.ok()) return std::nullopt;
  const std::span<double> all = rounded->mutable_as<double>();
  load_doubles(value.tensor(), 0, all);
  const auto row = static_cast<size_t>(rounded->shape()[rounded->shape().rank() - 1]);
  for (size_t at = 0; row > 0 && at < all.size();) {
    const size_t length = std::min(static_cast<size_t>(block), row - at % row);
    const std::span<double> elements = all.subspan(at, length);
    double largest = 0;
    for (const double element : elements) largest = std::max(largest, std::abs(element));
    const double scale = largest / std::numeric_limits<int8_t>::max();
    for (double& element : elements) element = scale > 0 ? std::nearbyint(element / scale) * scale : element;
    at += length;
  }
  return Value(rounded.take());
}

}  // namespace

std::optional<std::string> explain_quantized_activations(const ExplanationEvidence& evidence) {
  constexpr std::string_view kLevel = "accuracy_level";
  const int64_t block = block_size_of(evidence.instance());
  std::vector<Value> values = evidence.input_values();
  const auto rounded = block > 0 && !values.empty() ? rounded_by_blocks(values.front(), block) : std::nullopt;
  if (!rounded.has_value()) return std::nullopt;
  values.front() = *rounded;
  const auto candidate = evidence.rerun(evidence.node(), values);
  if (!candidate.has_value() || !evidence.is_reproduced_by(*candidate)) return std::nullopt;
  const int64_t level = stored_int(evidence.node(), kLevel, 0);
  const std::string allowed =
      level > 0 ? fmt::format("which its {}={} lets a kernel do", kLevel, level)
                : fmt::format("as a MatMulNBits of {}=4 may compute; the node computes with floats", kLevel);
  return fmt::format("its result is what '{}' rounded to int8 by blocks of {} gives, {}", evidence.input_name(0), block,
                     allowed);
}

std::optional<std::string> explain_stored_narrow(const ExplanationEvidence& evidence) {
  constexpr size_t kEnough = 8;
  if (!is_float32(evidence)) return std::nullopt;
  for (const Narrow& type : kNarrowTypes) {
    size_t counted = 0, wide = 0;
    bool all_narrow = true;
    for (size_t index = 0; index < evidence.actual_doubles().size() && all_narrow; ++index) {
      const double value = evidence.actual_doubles()[index];
      if (value == 0 || !std::isfinite(value)) continue;
      ++counted;
      all_narrow = rounded_to(value, type) == value;
      const double right = evidence.expected_doubles()[index];
      wide += rounded_to(right, type) != right ? 1 : 0;
    }
    if (!all_narrow || counted < kEnough || 4 * wide < counted) continue;
    std::vector<double> rounded = evidence.expected_doubles();
    for (double& element : rounded) element = rounded_to(element, type);
    const bool only_rounded = evidence.is_reproduced_by(rounded);
    return fmt::format("every element is a number that {} can hold: {}", type.name,
                       only_rounded ? fmt::format("the right result, rounded to {}", type.what)
                                    : fmt::format("computed or stored in {}", type.what));
  }
  return std::nullopt;
}

std::optional<std::string> explain_computed_narrow(const ExplanationEvidence& evidence) {
  if (!is_float32(evidence)) return std::nullopt;
  const Narrow* like = nullptr;
  for (const Narrow& type : kNarrowTypes) {
    std::vector<Value> values = evidence.input_values();
    for (Value& value : values) value = rounded_value(value, type);
    const auto candidate = evidence.rerun(evidence.node(), values);
    if (!candidate.has_value()) return std::nullopt;
    if (evidence.is_reproduced_by(*candidate))
      return fmt::format("its result is what inputs rounded to {} give", type.what);
    const Likeness likeness = likeness_of(evidence, *candidate);
    if (likeness.cosine > thresholds::kNarrowPatternShare && likeness.ratio > 0.5 && likeness.ratio < 2)
      return fmt::format("its error has the pattern of inputs rounded to {}", type.what);
    if (like == nullptr && likeness.ratio > 0.25 && likeness.ratio < 4) like = &type;
  }
  if (like == nullptr || is_near_quantization(evidence)) return std::nullopt;
  return fmt::format(
      "its error has the size of rounding to {}, though not the pattern: computed in a narrower type, "
      "perhaps",
      like->what);
}

std::optional<std::string> explain_accumulation(const ExplanationEvidence& evidence) {
  const ErrorPropagation propagation = noise_row_of(evidence.node().op_type, evidence.node().domain).propagation;
  const bool sums = propagation == ErrorPropagation::absolute || propagation == ErrorPropagation::dot_product ||
                    propagation == ErrorPropagation::normalizes;
  if (!sums || evidence.judgement().introduced > thresholds::kAccumulationFactor) return std::nullopt;
  return fmt::format(
      "its error is {:.2g} times what the table expects of sums of this length: another order or type of "
      "accumulation, perhaps",
      evidence.judgement().introduced);
}

}  // namespace parallax::diff
