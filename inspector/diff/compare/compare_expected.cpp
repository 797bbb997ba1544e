// SPDX-License-Identifier: Apache-2.0
// Outputs against those of a test_data_set: results that other programs made, on other hardware.
#include <algorithm>

#include <fmt/format.h>

#include "inspector/diff/compare/compare.h"
#include "inspector/diff/tolerance/thresholds.h"
#include "inspector/diff/tolerance/value_compare.h"
#include "inspector/exec/value_path.h"

namespace parallax {
namespace {

struct ToleranceRow {
  DType dtype;
  thresholds::ExpectedTolerance tolerance;
};
constexpr ToleranceRow kTolerances[] = {
    {DType::float64, thresholds::kExpectedFloat64},
    {DType::float32, thresholds::kExpectedFloat32},
    {DType::float16, thresholds::kExpectedFloat16},
    {DType::bfloat16, thresholds::kExpectedBfloat16},
};

DType element_type(const Value& value) {
  if (value.is_tensor()) return value.tensor().dtype();
  if (value.is_sequence())
    return value.sequence().items.empty() ? DType::undefined : element_type(value.sequence().items.front());
  if (value.is_optional())
    return value.optional().item.empty() ? DType::undefined : element_type(value.optional().item.front());
  return DType::undefined;
}

double rms_of(const Value& value) {
  if (value.is_tensor()) {
    const bool is_real = is_floating(value.tensor().dtype());
    if (!is_real || value.tensor().element_count() == 0) return 0;
    return compare_views(value.tensor(), value.tensor(), {}).rms_a;
  }
  double largest = 0;
  const std::vector<Value>* items = value.is_sequence()   ? &value.sequence().items
                                    : value.is_optional() ? &value.optional().item
                                                          : nullptr;
  for (size_t index = 0; items != nullptr && index < items->size(); ++index)
    largest = std::max(largest, rms_of((*items)[index]));
  return largest;
}

Limit default_limit(const Value& value) {
  DType dtype = element_type(value);
  if (dtype == DType::complex64) dtype = DType::float32;
  if (dtype == DType::complex128) dtype = DType::float64;
  const auto* row = std::find_if(std::begin(kTolerances), std::end(kTolerances),
                                 [dtype](const ToleranceRow& row_) { return row_.dtype == dtype; });
  const thresholds::ExpectedTolerance& tolerance =
      row == std::end(kTolerances) ? thresholds::kExpectedNarrow : row->tolerance;
  return {tolerance.rtol, std::max(thresholds::kSmallestExpectedAtol, tolerance.atol_relative_to_rms * rms_of(value)),
          LimitSource::table};
}

Limit wider(Limit limit, const LimitsByPath& carried, const std::string& path) {
  const auto found = carried.find(path);
  if (found == carried.end()) return limit;
  if (found->second.rtol > limit.rtol || found->second.atol > limit.atol) limit.from = found->second.from;
  limit.rtol = std::max(limit.rtol, found->second.rtol);
  limit.atol = std::max(limit.atol, found->second.atol);
  return limit;
}

const NamedValue* find_counterpart(std::span<const NamedValue> actual, const NamedValue& expected, size_t position) {
  for (const NamedValue& candidate : actual) {
    if (!expected.name.empty() && candidate.name == expected.name) return &candidate;
  }
  return position < actual.size() ? &actual[position] : nullptr;
}

}  // namespace

std::vector<ValueComparison> compare_expected(std::span<const NamedValue> expected, std::span<const NamedValue> actual,
                                              const std::string& executor, const Policy& policy,
                                              const LimitsByPath& carried) {
  std::vector<ValueComparison> results;
  for (size_t position = 0; position < expected.size(); ++position) {
    const NamedValue* counterpart = find_counterpart(actual, expected[position], position);
    ValueComparison& result = results.emplace_back();
    result.path = escape_name(counterpart != nullptr ? counterpart->name : expected[position].name);
    result.a = "expected";
    result.is_graph_output = true;
    diff::describe_type(type_of(expected[position].value), result);
    if (counterpart == nullptr) {
      diff::set_not_compared(result, "absent in B");
      continue;
    }
    result.b = executor.empty() ? counterpart->name : fmt::format("{}: {}", executor, counterpart->name);
    result.matched_by = counterpart->name == expected[position].name ? MatchedBy::name : MatchedBy::structure;
    const Limit plain = default_limit(expected[position].value);
    const Limit limit = policy.limit_of(result.path).value_or(wider(plain, carried, result.path));
    // Expected data is what it is: a constant output proves as much as any.
    diff::judge_values(expected[position].value, counterpart->value, {limit, true, false}, result);
  }
  return results;
}

ComparedExecution describe_execution(const RunInfo& run, Side side, double wall_ms) {
  return {run.executor,
          side,
          run.device,
          run.settings,
          run.model_sha256,
          wall_ms,
          run.model == nullptr ? "" : run.model->path};
}

}  // namespace parallax
