// SPDX-License-Identifier: Apache-2.0
// Errors of outputs, summed in double.
#include "inspector/workbench/half_precision/converted_outputs.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// The sums over the elements of two values so far.
struct ErrorSums {
  double difference = 0, norm = 0;  // squares
  int64_t unequal = 0, count = 0;   // elements that are no floats
  bool broken = false;              // finite in one alone, or of other shapes

  double result() const {
    if (broken) return kInfinite;
    const double floats = difference == 0 ? 0 : norm == 0 ? kInfinite : std::sqrt(difference / norm);
    const double others = count == 0 ? 0 : static_cast<double>(unequal) / static_cast<double>(count);
    return std::max(floats, others);
  }
};

void add_floats(const Tensor& a, const Tensor& b, ErrorSums& sums) {
  constexpr int64_t kBlock = 4096;
  std::vector<double> of_a(kBlock), of_b(kBlock);
  for (int64_t begin = 0; begin < a.element_count(); begin += kBlock) {
    const auto count = static_cast<size_t>(std::min(kBlock, a.element_count() - begin));
    load_doubles(a, begin, {of_a.data(), count});
    load_doubles(b, begin, {of_b.data(), count});
    for (size_t i = 0; i < count; ++i) {
      if (std::isfinite(of_a[i]) && std::isfinite(of_b[i])) {
        const double difference = of_a[i] - of_b[i];
        sums.difference += difference * difference;
        sums.norm += of_a[i] * of_a[i];
      } else if (!(of_a[i] == of_b[i] || (std::isnan(of_a[i]) && std::isnan(of_b[i])))) {
        sums.broken = true;
      }
    }
  }
}

void add_tensors(const Tensor& a, const Tensor& b, ErrorSums& sums) {
  if (a.shape() != b.shape()) {
    sums.broken = true;
  } else if (is_floating(a.dtype()) && is_floating(b.dtype())) {
    add_floats(a, b, sums);
  } else {
    sums.count += a.element_count();
    for (int64_t i = 0; i < a.element_count(); ++i) sums.unequal += element_to_string(a, i) != element_to_string(b, i);
  }
}

void add_values(const Value& a, const Value& b, ErrorSums& sums) {
  if (a.is_tensor() && b.is_tensor()) {
    add_tensors(a.tensor(), b.tensor(), sums);
  } else if (a.is_sequence() && b.is_sequence()) {
    const auto &of_a = a.sequence().items, &of_b = b.sequence().items;
    sums.broken |= of_a.size() != of_b.size();
    for (size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i) add_values(of_a[i], of_b[i], sums);
  } else if (a.is_optional() && b.is_optional()) {
    const auto &of_a = a.optional().item, &of_b = b.optional().item;
    sums.broken |= of_a.size() != of_b.size();
    if (!of_a.empty() && !of_b.empty()) add_values(of_a.front(), of_b.front(), sums);
  } else if (a.is_map() && b.is_map()) {
    const auto &of_a = a.map().values, &of_b = b.map().values;
    sums.broken |= of_a.size() != of_b.size();
    for (size_t i = 0; i < std::min(of_a.size(), of_b.size()); ++i) add_values(of_a[i], of_b[i], sums);
  } else {
    sums.broken |= a.is_absent() != b.is_absent();
  }
}

}  // namespace

double relative_error(const Value& original, const Value& converted) {
  ErrorSums sums;
  add_values(original, converted, sums);
  return sums.result();
}

std::vector<OutputError> compare_outputs(const Graph& graph, const std::vector<Value>& original,
                                         const std::vector<Value>& converted) {
  std::vector<OutputError> errors;
  for (size_t index = 0; index < std::min(original.size(), converted.size()); ++index) {
    const Value& value = original[index];
    OutputError& error = errors.emplace_back();
    error.name = value_at(graph, graph.outputs[index]).name;
    error.rel_l2 = relative_error(value, converted[index]);
    error.is_floating = !value.is_tensor() || is_floating(value.tensor().dtype());
  }
  return errors;
}

void keep_worst(std::vector<OutputError>& worst, const std::vector<OutputError>& errors) {
  if (worst.empty()) worst = errors;
  for (size_t index = 0; index < std::min(worst.size(), errors.size()); ++index)
    worst[index].rel_l2 = std::max(worst[index].rel_l2, errors[index].rel_l2);
}

HalfVerification judge_outputs(std::vector<OutputError> errors, double tolerance) {
  const bool has_floats = std::ranges::any_of(errors, &OutputError::is_floating);
  HalfVerification verification;
  for (const OutputError& error : errors) {
    if (error.is_floating || !has_floats) verification.rel_l2 = std::max(verification.rel_l2, error.rel_l2);
  }
  verification.passed = verification.rel_l2 <= tolerance;
  verification.per_output = std::move(errors);
  return verification;
}

Result<std::vector<Value>> run_outputs(const std::shared_ptr<const Model>& model, const std::vector<Value>& inputs,
                                       Executor& executor, const RunOptions& options) {
  const auto session = PX_TRY_CONTEXT(model->path, executor.prepare(model, options));
  NullObserver observer;
  return session->run(inputs, observer);
}

}  // namespace parallax
