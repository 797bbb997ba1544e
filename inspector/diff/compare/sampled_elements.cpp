// SPDX-License-Identifier: Apache-2.0
// Samples compared with whole values and with other samples.
#include "inspector/diff/compare/sampled_elements.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "inspector/dump/sample.h"

namespace parallax::diff {
namespace {

bool is_sample(const DumpEntry& entry, const Value& value) {
  return entry.level == CaptureLevel::sample && value.is_tensor();
}

// The elements at `wanted` of those at `held`, which include them; both in order.
Result<Value> chosen(const Value& value, const std::vector<int64_t>& held, const std::vector<int64_t>& wanted) {
  if (held.size() == wanted.size()) return value;
  std::vector<int64_t> positions;
  auto from = held.begin();
  for (const int64_t location : wanted) {
    from = std::lower_bound(from, held.end(), location);
    positions.push_back(from - held.begin());
  }
  return Value(PX_TRY(dump::take_elements(value.tensor(), positions)));
}

}  // namespace

Shape shape_of(const TypeInfo& captured) {
  auto shape = captured_shape(captured);
  return shape.ok() ? *shape : Shape();
}

bool has_payload(const DumpEntry& entry) {
  return entry.level == CaptureLevel::all || entry.level == CaptureLevel::sample;
}

bool can_tell_apart(const DumpEntry& a, const DumpEntry& b) {
  if (!a.statistics.has_value() || !b.statistics.has_value()) return false;
  if (a.type.kind != TypeInfo::Kind::tensor || a.type.dtype != DType::string) return true;
  return have_comparable_projections(*a.statistics, *b.statistics);
}

Result<CommonElements> common_elements(const DumpEntry& a, Value value_a, const DumpEntry& b, Value value_b) {
  const bool is_part_a = is_sample(a, value_a), is_part_b = is_sample(b, value_b);
  if (!is_part_a && !is_part_b) return CommonElements{std::move(value_a), std::move(value_b), std::nullopt};
  const int64_t count = shape_of(a.type).element_count();
  if (!is_part_a) {
    std::vector<int64_t> locations = dump::sampled_indices(value_b.tensor().element_count(), count);
    Tensor same = PX_TRY(dump::take_elements(value_a.tensor(), locations));
    return CommonElements{std::move(same), std::move(value_b), std::move(locations)};
  }
  std::vector<int64_t> locations = dump::sampled_indices(value_a.tensor().element_count(), count);
  if (!is_part_b) {
    Tensor same = PX_TRY(dump::take_elements(value_b.tensor(), locations));
    return CommonElements{std::move(value_a), std::move(same), std::move(locations)};
  }
  const std::vector<int64_t> locations_b = dump::sampled_indices(value_b.tensor().element_count(), count);
  std::vector<int64_t> common;  // never empty: every sample holds the first element
  std::ranges::set_intersection(locations, locations_b, std::back_inserter(common));
  Value chosen_a = PX_TRY(chosen(value_a, locations, common));
  Value chosen_b = PX_TRY(chosen(value_b, locations_b, common));
  return CommonElements{std::move(chosen_a), std::move(chosen_b), std::move(common)};
}

void conclude_sample(const DumpEntry& a, const DumpEntry& b, const std::vector<int64_t>& locations,
                     const CompareContext& context, ValueComparison& result) {
  describe_type(a.type, result);
  if (result.metrics.has_value() && !result.metrics->worst_index.empty()) {
    std::vector<int64_t>& worst = result.metrics->worst_index;  // into the sample
    worst = shape_of(a.type).index_of(locations[static_cast<size_t>(worst.front())]);
  }
  if (result.verdict != Verdict::pass && result.verdict != Verdict::diverged) return;
  result.reason = result.reason.empty() ? std::string(kBySample) : fmt::format("{}; {}", result.reason, kBySample);
  if (!can_tell_apart(a, b)) return;
  ValueComparison whole = result;
  judge_statistics(*a.statistics, *b.statistics, is_exact_type(a.type), context, whole);
  keep_worse(whole, result);
}

}  // namespace parallax::diff
