// SPDX-License-Identifier: Apache-2.0
// Rules that let the oracle run a changed node: another attribute, another operator. What reproduces the wrong result
// is what was done instead.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <variant>

#include <fmt/format.h>

#include "inspector/diff/localize/explanation.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/model/opset/op_schema.h"
#include "inspector/model/opset/opset_registry.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

// The type of the attributes that are tried; the IR's own variant cannot be compared.
using AttributeValue = std::variant<float, int64_t, std::string, std::vector<int64_t>>;

// ---- other attributes ----

struct Choices {
  std::string_view attribute;
  std::vector<std::string_view> words;
};
const std::vector<Choices>& word_choices() {
  static const std::vector<Choices> choices = {
      {"coordinate_transformation_mode",
       {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"}},
      {"mode",
       {"nearest", "linear", "cubic", "bilinear", "bicubic", "constant", "reflect", "edge", "wrap", "DCR", "CRD", "avg",
        "max"}},
      {"nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}},
      {"approximate", {"none", "tanh"}},
      {"direction", {"forward", "reverse", "LEFT", "RIGHT"}},
      {"auto_pad", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}},
      {"reduction", {"none", "add", "mul", "max", "min", "mean", "sum"}},
      {"padding_mode", {"zeros", "border", "reflection"}},
  };
  return choices;
}

std::optional<AttributeValue> plain_value(const Attribute& attribute) {
  if (const auto* number = std::get_if<float>(&attribute.value)) return *number;
  if (const auto* number = std::get_if<int64_t>(&attribute.value)) return *number;
  if (const auto* word = std::get_if<std::string>(&attribute.value)) return *word;
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(&attribute.value)) return *numbers;
  return std::nullopt;
}

std::optional<AttributeValue> current_value(const Node& node, const AttributeSchema& schema) {
  if (const Attribute* attribute = find_attribute(node, schema.name)) return plain_value(*attribute);
  if (const auto* number = std::get_if<float>(&schema.default_value)) return *number;
  if (const auto* number = std::get_if<int64_t>(&schema.default_value)) return *number;
  if (const auto* word = std::get_if<std::string_view>(&schema.default_value)) return std::string(*word);
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(&schema.default_value)) return *numbers;
  return std::nullopt;
}

void add_integers(std::string_view name, const std::optional<AttributeValue>& current, size_t rank,
                  std::vector<AttributeValue>& values) {
  const auto* now = current.has_value() ? std::get_if<int64_t>(&*current) : nullptr;
  if (name.find("axis") != std::string_view::npos) {
    for (int64_t axis = 0; axis < static_cast<int64_t>(rank); ++axis) values.emplace_back(axis);
    return;
  }
  for (const int64_t value : {int64_t{0}, int64_t{1}}) values.emplace_back(value);
  if (now == nullptr) return;
  for (const int64_t by : {1, -1}) values.emplace_back(*now + by);
}

void add_reals(std::string_view name, const std::optional<AttributeValue>& current, const AttributeSchema& schema,
               std::vector<AttributeValue>& values) {
  if (const auto* usual = std::get_if<float>(&schema.default_value)) values.emplace_back(*usual);
  if (name.find("eps") != std::string_view::npos) {
    for (const float value : {0.0F, 1e-12F, 1e-8F, 1e-7F, 1e-6F, 1e-5F, 1e-4F, 1e-3F, 1e-2F, 0.1F, 1.0F})
      values.emplace_back(value);
    return;
  }
  for (const float value : {0.0F, 1.0F, 0.01F, 0.1F, 0.2F, 0.5F}) values.emplace_back(value);
  const auto* now = current.has_value() ? std::get_if<float>(&*current) : nullptr;
  if (now != nullptr) values.emplace_back(-*now);
}

void add_lists(std::string_view name, const std::optional<AttributeValue>& current, size_t rank,
               std::vector<AttributeValue>& values) {
  const auto* now = current.has_value() ? std::get_if<std::vector<int64_t>>(&*current) : nullptr;
  const size_t length = now != nullptr ? now->size() : rank;
  if (name == "perm" && rank <= 4) {
    std::vector<int64_t> permutation(rank);
    std::iota(permutation.begin(), permutation.end(), 0);
    do values.emplace_back(permutation);
    while (std::next_permutation(permutation.begin(), permutation.end()));
    return;
  }
  if (name == "axes") {
    for (int64_t axis = 0; axis < static_cast<int64_t>(rank); ++axis) values.emplace_back(std::vector<int64_t>{axis});
    return;
  }
  values.emplace_back(std::vector<int64_t>(length, name == "pads" ? 0 : 1));
  if (name == "pads") values.emplace_back(std::vector<int64_t>(length, 1));
  if (now == nullptr) return;
  std::vector<int64_t> permuted = *now;
  std::reverse(permuted.begin(), permuted.end());
  values.emplace_back(permuted);
  std::rotate(permuted.begin(), permuted.begin() + static_cast<std::ptrdiff_t>(permuted.size() / 2), permuted.end());
  values.emplace_back(permuted);
}

std::vector<AttributeValue> other_values(const AttributeSchema& schema, const std::optional<AttributeValue>& current,
                                         size_t rank) {
  std::vector<AttributeValue> values;
  switch (schema.type) {
    case AttributeType::int_:
      add_integers(schema.name, current, rank, values);
      break;
    case AttributeType::float_:
      add_reals(schema.name, current, schema, values);
      break;
    case AttributeType::ints:
      add_lists(schema.name, current, rank, values);
      break;
    case AttributeType::string:
      for (const Choices& choices : word_choices()) {
        if (choices.attribute != schema.name) continue;
        for (const std::string_view word : choices.words) values.emplace_back(std::string(word));
      }
      break;
    default:
      break;
  }
  return values;
}

Node with_attribute(const Node& node, const AttributeSchema& schema, const AttributeValue& value) {
  Node changed = node;
  std::erase_if(changed.attributes, [&](const Attribute& attribute) { return attribute.name == schema.name; });
  Attribute attribute;
  attribute.name = schema.name;
  attribute.type = schema.type;
  std::visit([&](const auto& plain) { attribute.value = plain; }, value);
  changed.attributes.push_back(std::move(attribute));
  return changed;
}

std::string text_of(const AttributeValue& value) {
  if (const auto* number = std::get_if<float>(&value)) return fmt::format("{:.6g}", *number);
  if (const auto* number = std::get_if<int64_t>(&value)) return fmt::format("{}", *number);
  if (const auto* word = std::get_if<std::string>(&value)) return *word;
  return fmt::format("[{}]", fmt::join(std::get<std::vector<int64_t>>(value), ","));
}

struct FittingValue {
  AttributeValue value;
  double distance = 0;
};

// "axis=2"; of several numbers "epsilon from 1e-12 to 1e-07".
std::string text_of(std::string_view name, const std::vector<FittingValue>& fitting) {
  if (fitting.size() == 1) return fmt::format("{}={}", name, text_of(fitting.front().value));
  const auto [least, most] = std::ranges::minmax_element(fitting, {}, &FittingValue::value);
  return fmt::format("{} from {} to {}", name, text_of(least->value), text_of(most->value));
}

size_t first_rank(const ExplanationEvidence& evidence) {
  for (const FoundValue& input : evidence.inputs()) {
    if (input.value.is_tensor()) return input.value.tensor().shape().rank();
  }
  return 0;
}

// The value that comes nearest to the captured result, of those that reproduce it; of real numbers all that come about
// as near. A real number that is not within rounding is left to the fit of another rule.
std::vector<FittingValue> fitting_values(const ExplanationEvidence& evidence, const AttributeSchema& schema,
                                         const std::optional<AttributeValue>& current) {
  const std::vector<Value> values = evidence.input_values();
  std::vector<FittingValue> fitting;
  for (const AttributeValue& value : other_values(schema, current, first_rank(evidence))) {
    const bool is_known = std::ranges::find(fitting, value, &FittingValue::value) != fitting.end();
    if (is_known || (current.has_value() && *current == value)) continue;
    const auto candidate = evidence.rerun(with_attribute(evidence.node(), schema, value), values);
    if (candidate.has_value() && evidence.is_reproduced_by(*candidate))
      fitting.push_back({value, evidence.distance_to(*candidate)});
  }
  if (fitting.empty()) return fitting;
  const double nearest = std::ranges::min_element(fitting, {}, &FittingValue::distance)->distance;
  const bool is_real = schema.type == AttributeType::float_;
  if (is_real && nearest > thresholds::kExactFit) return {};
  const double farthest = is_real ? std::max(2 * nearest, thresholds::kExactFit / 2) : nearest;
  std::erase_if(fitting, [&](const FittingValue& value) { return value.distance > farthest; });
  if (!is_real) fitting.resize(1);
  return fitting;
}

// ---- other operators ----

const std::vector<std::vector<std::string_view>>& kinds_of_operators() {
  static const std::vector<std::vector<std::string_view>> kinds = {
      {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Mod"},
      {"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"},
      {"And", "Or", "Xor"},
      {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
       "ReduceLogSumExp", "ReduceLogSum"},
      {"MaxPool", "AveragePool", "LpPool"},
      {"GlobalMaxPool", "GlobalAveragePool"},
      {"ArgMax", "ArgMin"},
      {"Softmax", "LogSoftmax", "Hardmax"},
      {"Relu", "Abs",   "Neg",      "Exp",      "Log",       "Sqrt", "Reciprocal", "Tanh",      "Sigmoid",
       "Erf",  "Gelu",  "Softplus", "Softsign", "LeakyRelu", "Elu",  "Selu",       "HardSwish", "HardSigmoid",
       "Mish", "Floor", "Ceil",     "Round",    "Sin",       "Cos",  "Sign"},
  };
  return kinds;
}

std::optional<Node> as_operator(const Node& node, std::string_view op) {
  const OpSchema* schema = OpsetRegistry::standard().find(node.domain, op, node.opset_version);
  if (schema == nullptr) return std::nullopt;
  Node changed = node;
  changed.op_type = op;
  changed.schema = schema;
  std::erase_if(changed.attributes,
                [&](const Attribute& attribute) { return schema->attribute(attribute.name) == nullptr; });
  return changed;
}

}  // namespace

std::optional<std::string> explain_attribute(const ExplanationEvidence& evidence) {
  const Node& node = evidence.node();
  if (node.schema == nullptr) return std::nullopt;
  std::vector<const AttributeSchema*> schemas;  // modes last: of what explains the result a number says more
  for (const AttributeSchema& schema : node.schema->attributes) schemas.push_back(&schema);
  const auto is_number = [](const AttributeSchema* schema) { return schema->type != AttributeType::string; };
  std::stable_partition(schemas.begin(), schemas.end(), is_number);
  for (const AttributeSchema* const described : schemas) {
    const AttributeSchema& schema = *described;
    const auto current = current_value(node, schema);
    const std::vector<FittingValue> fitting = fitting_values(evidence, schema, current);
    if (fitting.empty()) continue;
    return fmt::format("its result is what {} gives{}; the node has {}={}", text_of(schema.name, fitting),
                       fitting.size() > 1 ? ", which cannot be told apart here" : "", schema.name,
                       current.has_value() ? text_of(*current) : "none");
  }
  return std::nullopt;
}

std::optional<std::string> explain_operator(const ExplanationEvidence& evidence) {
  const Node& node = evidence.node();
  const std::vector<Value> values = evidence.input_values();
  for (const auto& kind : kinds_of_operators()) {
    if (std::ranges::find(kind, node.op_type) == kind.end()) continue;
    for (const std::string_view op : kind) {
      if (op == node.op_type) continue;
      const auto changed = as_operator(node, op);
      const auto candidate = changed.has_value() ? evidence.rerun(*changed, values) : std::nullopt;
      if (candidate.has_value() && evidence.is_reproduced_by(*candidate))
        return fmt::format("its result is what {} gives; the node is {}", op, node.op_type);
    }
  }
  return std::nullopt;
}

// With n elements a group, a variance divided by n - 1 makes the normalized values smaller by sqrt((n-1)/n).
std::optional<std::string> explain_unbiased_variance(const ExplanationEvidence& evidence) {
  constexpr std::array<std::string_view, 3> kNorms = {"LayerNormalization", "InstanceNormalization",
                                                      "GroupNormalization"};
  const Node& node = evidence.node();
  if (std::ranges::find(kNorms, node.op_type) == kNorms.end()) return std::nullopt;
  std::vector<Value> values = evidence.input_values();
  if (values.empty() || !values[0].is_tensor()) return std::nullopt;
  // Without bias: the output that a bias of zero gives.
  std::vector<double> bias(evidence.expected_doubles().size(), 0.0);
  if (values.size() > 2 && values[2].is_tensor()) {
    auto zero = Tensor::zeros(values[2].tensor().dtype(), values[2].tensor().shape());
    if (!zero.ok()) return std::nullopt;
    values[2] = zero.take();
    const auto plain = evidence.rerun(node, values);
    if (!plain.has_value() || plain->tensor().element_count() != static_cast<int64_t>(bias.size())) return std::nullopt;
    for (size_t index = 0; index < bias.size(); ++index) {
      bias[index] =
          evidence.expected_doubles()[index] - element_as_double(plain->tensor(), static_cast<int64_t>(index));
    }
  }
  const Shape& shape = values[0].tensor().shape();
  for (size_t axis = 1; axis <= shape.rank(); ++axis) {
    double count = 1;
    for (size_t later = axis; later < shape.rank(); ++later) count *= static_cast<double>(shape[later]);
    if (count < 2) continue;
    std::vector<double> candidate = evidence.expected_doubles();
    for (size_t index = 0; index < candidate.size(); ++index) {
      candidate[index] = (candidate[index] - bias[index]) * std::sqrt((count - 1) / count) + bias[index];
    }
    if (evidence.is_reproduced_by(candidate))
      return fmt::format(
          "its result is what the unbiased variance (divided by {:.0f}) gives; the operator is defined "
          "with the biased one (divided by {:.0f})",
          count - 1, count);
  }
  return std::nullopt;
}

}  // namespace parallax::diff
