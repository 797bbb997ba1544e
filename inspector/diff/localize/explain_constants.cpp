// SPDX-License-Identifier: Apache-2.0
// Rules that let the oracle run a node with another number in place of a small constant that it holds or reads: a
// scale, an epsilon, the value of a mask, an axis, a bound of a slice.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>

#include "inspector/diff/localize/explanation.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/model/opset/op_schema.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

constexpr int64_t kMostIntegers = 8;  // elements of a constant that is tried element by element

// A number of the node that may be another one: an input that is a constant, or an attribute.
struct Number {
  std::string name;
  double value = 0;
  std::function<std::optional<Value>(double)> result_with;  // the judged output with another number
};

bool is_constant_input(const FoundValue& input) {
  if (!input.value.is_tensor()) return false;
  const bool is_made_by_constant = input.computed_by.size() == 1 && input.computed_by[0]->op_type == "Constant";
  return input.is_constant || is_made_by_constant;
}

void add_inputs(const ExplanationEvidence& evidence, std::vector<Number>& numbers) {
  for (size_t index = 0; index < evidence.inputs().size(); ++index) {
    const FoundValue& input = evidence.inputs()[index];
    if (!is_constant_input(input) || !is_floating(input.value.tensor().dtype())) continue;
    const Tensor tensor = input.value.tensor();
    if (tensor.element_count() != 1) continue;
    const auto result_with = [&evidence, index, shape = tensor.shape()](double number) -> std::optional<Value> {
      auto other = Tensor::allocate(DType::float64, shape);
      if (!other.ok()) return std::nullopt;
      other->mutable_as<double>()[0] = number;
      return evidence.rerun_with(index, other.take());
    };
    numbers.push_back({fmt::format("'{}'", evidence.input_name(index)), element_as_double(tensor, 0), result_with});
  }
}

void add_attributes(const ExplanationEvidence& evidence, std::vector<Number>& numbers) {
  const Node& node = evidence.node();
  if (node.schema == nullptr) return;
  for (const AttributeSchema& schema : node.schema->attributes) {
    if (schema.type != AttributeType::float_) continue;
    const Attribute* given = find_attribute(node, schema.name);
    const auto* number =
        given != nullptr ? std::get_if<float>(&given->value) : std::get_if<float>(&schema.default_value);
    if (number == nullptr) continue;
    const auto result_with = [&evidence, name = std::string(schema.name)](double other) {
      Node changed = evidence.node();
      std::erase_if(changed.attributes, [&](const Attribute& attribute) { return attribute.name == name; });
      Attribute attribute;
      attribute.name = name;
      attribute.type = AttributeType::float_;
      attribute.value = static_cast<float>(other);
      changed.attributes.push_back(std::move(attribute));
      return evidence.rerun(changed, evidence.input_values());
    };
    numbers.push_back({std::string(schema.name), static_cast<double>(*number), result_with});
  }
}

// Numbers that are used in such positions by mistake: the inverse, the root, the other sign, what masks and epsilons
// usually are, and what follows from the sizes of the tensors.
std::vector<double> usual_numbers(const ExplanationEvidence& evidence, double now) {
  std::vector<double> numbers = {-now, now * now, 2 * now, now / 2};
  if (now != 0) numbers.insert(numbers.end(), {1 / now, std::sqrt(std::abs(now))});
  const bool has_infinities = std::ranges::any_of(evidence.actual_doubles(), [](double x) { return std::isinf(x); });
  if (std::abs(now) > 1000 || has_infinities) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    const double lowest = std::numeric_limits<float>::lowest();
    numbers.insert(numbers.end(), {-kInfinity, kInfinity, lowest, -65504, -1e9, -1e4});
  }
  if (std::abs(now) < 0.11) {
    for (int digits = 1; digits <= 12; ++digits) numbers.push_back(std::pow(10.0, -digits));
  }
  for (const FoundValue& input : evidence.inputs()) {
    if (!input.value.is_tensor()) continue;
    for (const int64_t dim : input.value.tensor().shape()) {
      const auto size = static_cast<double>(dim);
      if (size > 1) numbers.insert(numbers.end(), {size, std::sqrt(size), 1 / size, 1 / std::sqrt(size)});
    }
  }
  return numbers;
}

std::vector<double> finite_doubles(const ExplanationEvidence& evidence, const Value& value) {
  std::vector<double> elements(evidence.actual_doubles().size());
  if (!value.is_tensor() || value.tensor().element_count() != static_cast<int64_t>(elements.size())) return {};
  if (value.tensor().dtype() == DType::string || is_complex(value.tensor().dtype())) return {};
  load_doubles(value.tensor(), 0, elements);
  const bool are_finite = std::ranges::all_of(elements, [](double element) { return std::isfinite(element); });
  return are_finite ? elements : std::vector<double>();
}

// The number that comes nearest to the captured result, by least squares in one unknown (Gauss-Newton).
std::optional<double> fitted(const ExplanationEvidence& evidence, const Number& number) {
  constexpr int kSteps = 12;
  double at = number.value;
  for (int step = 0; step < kSteps; ++step) {
    const double by = thresholds::kFitStep * std::max(std::abs(at), 1e-6);
    const auto here = number.result_with(at), next_to = number.result_with(at + by);
    if (!here.has_value() || !next_to.has_value()) return std::nullopt;
    const std::vector<double> f = finite_doubles(evidence, *here), g = finite_doubles(evidence, *next_to);
    if (f.empty() || g.empty()) return std::nullopt;
    double product = 0, square = 0;
    for (size_t index = 0; index < f.size(); ++index) {
      const double slope = (g[index] - f[index]) / by;
      product += slope * (evidence.actual_doubles()[index] - f[index]);
      square += slope * slope;
    }
    if (!(square > 0) || !std::isfinite(product)) return std::nullopt;
    const double change = product / square;
    at += change;
    if (std::abs(change) <= 1e-9 * std::abs(at)) break;
  }
  return at;
}

std::string reported(const Number& number, double other) {
  return fmt::format("its result is what {}={:.6g} gives; the node has {}={:.6g}", number.name, other, number.name,
                     number.value);
}

std::optional<std::string> explain_number(const ExplanationEvidence& evidence, const Number& number) {
  std::optional<double> nearest;
  double distance = std::numeric_limits<double>::infinity();
  const auto look_at = [&](double other) {
    if (other == number.value) return;
    const auto candidate = number.result_with(other);
    if (!candidate.has_value() || !evidence.is_reproduced_by(*candidate)) return;
    const double found = evidence.distance_to(*candidate);
    if (!(found < distance)) return;
    nearest = other;
    distance = found;
  };
  for (const double other : usual_numbers(evidence, number.value)) look_at(other);
  if (distance > thresholds::kExactFit && std::isfinite(number.value) && !evidence.actual_doubles().empty()) {
    if (const auto other = fitted(evidence, number); other.has_value()) look_at(*other);
  }
  return nearest.has_value() ? std::optional(reported(number, *nearest)) : std::nullopt;
}

// ---- axes, bounds, shapes ----

std::vector<int64_t> other_integers(int64_t now, int64_t rank) {
  std::vector<int64_t> numbers = {now + 1, now - 1, -now, now + 2, now - 2, 0, std::numeric_limits<int64_t>::max()};
  for (int64_t axis = -rank; axis < rank; ++axis) numbers.push_back(axis);
  // An axis or an index may be counted from either end; as the node counts it comes first.
  const auto counts_alike = [now](int64_t number) { return (number < 0) == (now < 0); };
  std::stable_partition(numbers.begin(), numbers.end(), counts_alike);
  return numbers;
}

std::vector<std::vector<int64_t>> other_lists(const std::vector<int64_t>& now, int64_t rank) {
  std::vector<std::vector<int64_t>> lists;
  for (size_t index = 0; index < now.size(); ++index) {
    for (const int64_t number : other_integers(now[index], rank)) {
      lists.push_back(now);
      lists.back()[index] = number;
    }
  }
  lists.push_back(now);
  std::ranges::reverse(lists.back());
  return lists;
}

std::optional<std::string> explain_integers(const ExplanationEvidence& evidence, size_t index) {
  const Tensor tensor = evidence.inputs()[index].value.tensor();
  std::vector<int64_t> now(static_cast<size_t>(tensor.element_count()));
  load_int64s(tensor, 0, now);
  int64_t rank = 0;
  for (const FoundValue& input : evidence.inputs()) {
    if (input.value.is_tensor()) rank = std::max(rank, static_cast<int64_t>(input.value.tensor().shape().rank()));
  }
  for (const std::vector<int64_t>& other : other_lists(now, rank)) {
    auto changed = Tensor::allocate(tensor.dtype(), tensor.shape());
    const bool fits = tensor.dtype() == DType::int64 || std::ranges::all_of(other, [](int64_t number) {
                        return std::abs(number) < std::numeric_limits<int32_t>::max();
                      });
    if (other == now || !fits || !changed.ok()) continue;
    store_int64s(*changed, 0, other);
    const auto candidate = evidence.rerun_with(index, changed.take());
    if (!candidate.has_value() || !evidence.is_reproduced_by(*candidate)) continue;
    return fmt::format("its result is what '{}'=[{}] gives; the node has '{}'=[{}]", evidence.input_name(index),
                       fmt::join(other, ","), evidence.input_name(index), fmt::join(now, ","));
  }
  return std::nullopt;
}

// ---- operands that the node does not have ----

// The tensor's elements as broadcasting repeats them in a result of shape `whole`; nothing where it does not fit.
std::optional<std::vector<double>> broadcast(const Tensor& tensor, const Shape& whole) {
  const Shape& shape = tensor.shape();
  if (shape.rank() > whole.rank()) return std::nullopt;
  const size_t missing = whole.rank() - shape.rank();
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] != 1 && shape[axis] != whole[axis + missing]) return std::nullopt;
  }
  std::vector<double> own(static_cast<size_t>(tensor.element_count())), result;
  load_doubles(tensor, 0, own);
  result.reserve(static_cast<size_t>(whole.element_count()));
  for (int64_t linear = 0; linear < whole.element_count(); ++linear) {
    const auto index = whole.index_of(linear);
    int64_t at = 0;
    for (size_t axis = 0; axis < shape.rank(); ++axis)
      at = at * shape[axis] + (shape[axis] == 1 ? 0 : index[axis + missing]);
    result.push_back(own[static_cast<size_t>(at)]);
  }
  return result;
}

std::optional<std::string> explain_with(const ExplanationEvidence& evidence, const std::string& name,
                                        const Tensor& tensor) {
  const Shape& whole = evidence.actual().tensor().shape();
  if (!is_floating(tensor.dtype()) || tensor.element_count() < 2 || tensor.element_count() > whole.element_count())
    return std::nullopt;
  const auto operand = broadcast(tensor, whole);
  if (!operand.has_value()) return std::nullopt;
  const auto& expected = evidence.expected_doubles();
  std::vector<double> sum(expected.size()), product(expected.size());
  for (size_t index = 0; index < expected.size(); ++index) {
    sum[index] = expected[index] + (*operand)[index];
    product[index] = expected[index] * (*operand)[index];
  }
  if (evidence.is_reproduced_by(sum)) return fmt::format("its result is the node's plus '{}', which is missing", name);
  if (evidence.is_reproduced_by(product))
    return fmt::format("its result is the node's times '{}', which is missing", name);
  return std::nullopt;
}

}  // namespace

std::optional<std::string> explain_by_missing_operand(const ExplanationEvidence& evidence) {
  constexpr size_t kLookedBack = 64;
  constexpr size_t kMostElements = 1U << 20U;
  const size_t count = evidence.expected_doubles().size();
  if (!evidence.is_foreign() || evidence.is_member() || count < 2 || count > kMostElements) return std::nullopt;
  for (const StoredTensor& stored : evidence.instance().location->graph->initializers) {
    if (!stored.absence.empty()) continue;
    if (auto answer = explain_with(evidence, stored.name, stored.tensor)) return answer;
  }
  const auto earlier = evidence.earlier();
  for (size_t back = 1; back <= std::min(kLookedBack, earlier.size()); ++back) {
    const std::string& path = earlier[earlier.size() - back];
    const Value value = evidence.captured(path);
    if (!value.is_tensor()) continue;
    if (auto answer = explain_with(evidence, path, value.tensor())) return answer;
  }
  return std::nullopt;
}

std::optional<std::string> explain_by_number(const ExplanationEvidence& evidence) {
  std::vector<Number> numbers;
  add_inputs(evidence, numbers);
  add_attributes(evidence, numbers);
  for (const Number& number : numbers) {
    if (auto answer = explain_number(evidence, number)) return answer;
  }
  return std::nullopt;
}

std::optional<std::string> explain_by_integers(const ExplanationEvidence& evidence) {
  for (size_t index = 0; index < evidence.inputs().size(); ++index) {
    const FoundValue& input = evidence.inputs()[index];
    if (!is_constant_input(input)) continue;
    const Tensor& tensor = input.value.tensor();
    const bool is_wide = tensor.dtype() == DType::int64 || tensor.dtype() == DType::int32;
    if (!is_wide || tensor.shape().rank() > 1 || tensor.element_count() > kMostIntegers) continue;
    if (auto answer = explain_integers(evidence, index)) return answer;
  }
  return std::nullopt;
}

}  // namespace parallax::diff
