// SPDX-License-Identifier: Apache-2.0
// Rules that let the oracle run the node on changed inputs: swapped, left out, inverted, transposed, shifted, replaced
// by older values.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "inspector/diff/localize/explanation.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/model/opset/op_schema.h"
#include "inspector/tensor/elements.h"

namespace parallax::diff {
namespace {

bool gives(const ExplanationEvidence& evidence, std::span<const Value> values) {
  const auto candidate = evidence.rerun(evidence.node(), values);
  return candidate.has_value() && evidence.is_reproduced_by(*candidate);
}

bool gives(const ExplanationEvidence& evidence, size_t input, Value value) {
  std::vector<Value> values = evidence.input_values();
  values[input] = std::move(value);
  return gives(evidence, values);
}

const Tensor* tensor_at(const ExplanationEvidence& evidence, size_t input) {
  const Value& value = evidence.inputs()[input].value;
  return value.is_tensor() && value.tensor().dtype() != DType::string ? &value.tensor() : nullptr;
}

std::optional<std::string> swapped(const ExplanationEvidence& evidence) {
  // The pairs of a node that reads hundreds of values are too many.
  if (evidence.inputs().size() > thresholds::kMostSwappedOperands) return std::nullopt;
  for (size_t first = 0; first < evidence.inputs().size(); ++first) {
    for (size_t second = first + 1; second < evidence.inputs().size(); ++second) {
      const Tensor* a = tensor_at(evidence, first);
      const Tensor* b = tensor_at(evidence, second);
      if (a == nullptr || b == nullptr || a->dtype() != b->dtype()) continue;
      std::vector<Value> values = evidence.input_values();
      std::swap(values[first], values[second]);
      if (gives(evidence, values))
        return fmt::format("its result is what its operands '{}' and '{}' give when they are swapped",
                           evidence.input_name(first), evidence.input_name(second));
    }
  }
  return std::nullopt;
}

// As if an optional input (a bias, a mask) had not been given.
std::optional<std::string> left_out(const ExplanationEvidence& evidence) {
  const Node& node = evidence.node();
  if (node.schema == nullptr) return std::nullopt;
  for (size_t input = 1; input < evidence.inputs().size() && input < node.inputs.size(); ++input) {
    if (node.inputs.size() != evidence.inputs().size()) return std::nullopt;
    const FormalParameter* parameter = node.schema->input(input);
    if (parameter == nullptr || parameter->option != ParameterOption::optional) continue;
    if (!gives(evidence, input, Value())) continue;
    return fmt::format("its result is what it gives without '{}' ({}): that input was ignored",
                       evidence.input_name(input), parameter->name);
  }
  return std::nullopt;
}

std::optional<std::string> blanked(const ExplanationEvidence& evidence) {
  for (size_t input = 0; input < evidence.inputs().size(); ++input) {
    const Tensor* tensor = tensor_at(evidence, input);
    if (tensor == nullptr || !is_floating(tensor->dtype())) continue;
    auto zero = Tensor::zeros(tensor->dtype(), tensor->shape());
    if (zero.ok() && gives(evidence, input, zero.take()))
      return fmt::format("its result is what it gives when '{}' is zero: that input was not read",
                         evidence.input_name(input));
    auto ones = Tensor::allocate(DType::float64, tensor->shape());
    if (!ones.ok()) continue;
    std::ranges::fill(ones->mutable_as<double>(), 1.0);
    if (gives(evidence, input, ones.take()))
      return fmt::format("its result is what it gives when '{}' is one: that scale is missing",
                         evidence.input_name(input));
  }
  return std::nullopt;
}

std::optional<std::string> inverted(const ExplanationEvidence& evidence) {
  for (size_t input = 0; input < evidence.inputs().size(); ++input) {
    const Tensor* tensor = tensor_at(evidence, input);
    if (tensor == nullptr) continue;
    if (tensor->dtype() == DType::bool_) {
      auto other = Tensor::allocate(DType::bool_, tensor->shape());
      if (!other.ok()) continue;
      const auto from = tensor->as<bool>();
      std::transform(from.begin(), from.end(), other->mutable_as<bool>().begin(), [](bool value) { return !value; });
      if (gives(evidence, input, other.take()))
        return fmt::format("its result is what the inverted mask '{}' gives", evidence.input_name(input));
    } else if (is_floating(tensor->dtype())) {
      auto other = Tensor::allocate(DType::float64, tensor->shape());
      if (!other.ok()) continue;
      load_doubles(*tensor, 0, other->mutable_as<double>());
      for (double& element : other->mutable_as<double>()) element = -element;
      if (gives(evidence, input, other.take()))
        return fmt::format("its result is what '{}' gives with its sign changed", evidence.input_name(input));
    }
  }
  return std::nullopt;
}

// Read in another layout: the last two axes exchanged, or the channels last.
std::optional<std::string> in_other_layout(const ExplanationEvidence& evidence) {
  for (size_t input = 0; input < evidence.inputs().size(); ++input) {
    const Tensor* tensor = tensor_at(evidence, input);
    if (tensor == nullptr || !is_floating(tensor->dtype()) || tensor->shape().rank() < 2) continue;
    const size_t rank = tensor->shape().rank();
    std::vector<std::vector<int64_t>> orders;
    std::vector<int64_t> order(rank);
    for (size_t axis = 0; axis < rank; ++axis) order[axis] = static_cast<int64_t>(axis);
    std::swap(order[rank - 1], order[rank - 2]);
    orders.push_back(order);
    if (rank == 4) orders.insert(orders.end(), {{0, 2, 3, 1}, {0, 3, 1, 2}, {1, 0, 2, 3}});
    for (const auto& permutation : orders) {
      const auto moved = transposed(*tensor, permutation);
      if (!moved.has_value() || !gives(evidence, input, moved->reshaped(tensor->shape()))) continue;
      return fmt::format("its result is what '{}' gives when it is read transposed (axes in the order [{}])",
                         evidence.input_name(input), fmt::join(permutation, ","));
    }
  }
  return std::nullopt;
}

std::optional<std::string> shifted(const ExplanationEvidence& evidence) {
  for (size_t input = 0; input < evidence.inputs().size(); ++input) {
    const Tensor* tensor = tensor_at(evidence, input);
    if (tensor == nullptr) continue;
    if (is_integer(tensor->dtype()) && !is_sub_byte(tensor->dtype())) {
      if (evidence.is_foreign() && evidence.inputs()[input].is_constant) continue;  // explain_by_integers says which
      for (const int64_t by : {1, -1}) {
        std::vector<int64_t> numbers(static_cast<size_t>(tensor->element_count()));
        load_int64s(*tensor, 0, numbers);
        const bool fits = std::ranges::all_of(numbers, [&](int64_t n) { return n + by >= 0 && n + by < 127; });
        auto other = Tensor::allocate(tensor->dtype(), tensor->shape());
        if (!fits || !other.ok()) continue;
        for (int64_t& number : numbers) number += by;
        store_int64s(*other, 0, numbers);
        if (gives(evidence, input, other.take()))
          return fmt::format("its result is what '{}' {} one gives: off by one", evidence.input_name(input),
                             by > 0 ? "plus" : "minus");
      }
      continue;
    }
    for (size_t axis = 0; axis < tensor->shape().rank() && is_floating(tensor->dtype()); ++axis) {
      if (tensor->shape()[axis] < 2) continue;
      for (const int64_t by : {1, -1}) {
        const auto moved = rolled(*tensor, axis, by);
        if (moved.has_value() && gives(evidence, input, *moved))
          return fmt::format(
              "its result is what '{}' gives when it is read one element further along axis {}: off by "
              "one slice",
              evidence.input_name(input), axis);
      }
    }
  }
  return std::nullopt;
}

// The tensor with its subnormal numbers as zeros; nothing where it has none.
std::optional<Tensor> without_subnormals(const Tensor& tensor) {
  if (!is_floating(tensor.dtype())) return std::nullopt;
  auto flushed = Tensor::allocate(DType::float64, tensor.shape());
  if (!flushed.ok()) return std::nullopt;
  const std::span<double> elements = flushed->mutable_as<double>();
  load_doubles(tensor, 0, elements);
  const double least = float_limits(tensor.dtype()).min_normal;
  bool any = false;
  for (double& element : elements) {
    if (element == 0 || !(std::abs(element) < least)) continue;
    element = std::copysign(0.0, element);
    any = true;
  }
  if (!any) return std::nullopt;
  return flushed.take();
}

}  // namespace

std::optional<std::string> explain_inputs_flushed(const ExplanationEvidence& evidence) {
  for (size_t input = 0; input < evidence.inputs().size(); ++input) {
    const Tensor* tensor = tensor_at(evidence, input);
    const auto flushed = tensor == nullptr ? std::nullopt : without_subnormals(*tensor);
    if (!flushed.has_value() || !gives(evidence, input, *flushed)) continue;
    return fmt::format("subnormal numbers of '{}' are taken as zero: its result is what it gives without them",
                       evidence.input_name(input));
  }
  return std::nullopt;
}

std::optional<std::string> explain_operands(const ExplanationEvidence& evidence) {
  for (const auto rule : {swapped, left_out, blanked, inverted, in_other_layout, shifted}) {
    if (auto answer = rule(evidence)) return answer;
  }
  return std::nullopt;
}

std::optional<std::string> explain_stale_input(const ExplanationEvidence& evidence) {
  constexpr size_t kLookedBack = 48;
  for (size_t input = 0; input < evidence.inputs().size(); ++input) {
    const Tensor* tensor = tensor_at(evidence, input);
    if (tensor == nullptr || tensor->element_count() < 2) continue;
    for (size_t back = 1; back <= std::min(kLookedBack, evidence.earlier().size()); ++back) {
      const std::string& path = evidence.earlier()[evidence.earlier().size() - back];
      const Value value = evidence.captured(path);
      if (!value.is_tensor() || value.tensor().dtype() != tensor->dtype()) continue;
      if (value.tensor().element_count() != tensor->element_count()) continue;
      if (value.tensor().storage() == tensor->storage()) continue;
      if (!gives(evidence, input, value.tensor().reshaped(tensor->shape()))) continue;
      return fmt::format(
          "its result is what it gives when '{}' holds the value of '{}': a stale or an overwritten buffer",
          evidence.input_name(input), path);
    }
    if (evidence.actual().is_tensor() && evidence.actual().tensor().dtype() == tensor->dtype() &&
        evidence.actual().tensor().element_count() == tensor->element_count() &&
        gives(evidence, input, evidence.expected().tensor().reshaped(tensor->shape())))
      return fmt::format(
          "its result is what it gives on its own output: '{}' was overwritten in place while it was "
          "still being read",
          evidence.input_name(input));
  }
  return std::nullopt;
}

}  // namespace parallax::diff
