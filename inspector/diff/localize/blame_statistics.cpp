// SPDX-License-Identifier: Apache-2.0
// Words for statistics that differ.
#include "inspector/diff/localize/blame_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "inspector/diff/compare/sampled_elements.h"
#include "inspector/diff/tolerance/thresholds.h"

namespace parallax::diff {
namespace {

bool keeps_elements(const DumpReader& dump) { return std::ranges::any_of(dump.entries(), diff::has_payload); }

const DumpEntry* entry_of(const DumpReader& dump, const std::string& path) {
  const int32_t index = dump.find(path);
  return index < 0 ? nullptr : &dump.entries()[static_cast<size_t>(index)];
}

const TensorStatistics* statistics_of(const DumpEntry* entry) {
  return entry != nullptr && entry->statistics.has_value() ? &*entry->statistics : nullptr;
}

// The relative effect of one rounding on an element; 0 for types that are not rounded.
double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
    case DType::complex128:
      return 0x1p-53;
    case DType::float32:
    case DType::complex64:
      return 0x1p-24;
    case DType::float16:
      return 0x1p-11;
    case DType::bfloat16:
      return 0x1p-8;
    default:
      return is_floating(dtype) ? 0.25 : 0;
  }
}

double distance_of(const TensorStatistics& a, const TensorStatistics& b, size_t projection) {
  if (!have_comparable_projections(a, b)) return 0;
  return std::abs(a.projections[projection] - b.projections[projection]);
}

size_t farthest_projection(const TensorStatistics& a, const TensorStatistics& b) {
  size_t farthest = 0;
  for (size_t k = 1; k < kProjectionCount; ++k) {
    if (distance_of(a, b, k) > distance_of(a, b, farthest)) farthest = k;
  }
  return farthest;
}

// Elements in another order have the same extremes, and moments that differ as sums in double do. Elements that were
// rounded differently might, too, but move a signed sum by no more than the sum of their possible errors, which is at
// most sqrt(count) l2 times that (Cauchy and Schwarz).
bool must_be_reordered(const TensorStatistics& a, const TensorStatistics& b, DType dtype) {
  const double root = std::sqrt(static_cast<double>(a.count));
  const bool same_elements = a.min == b.min && a.max == b.max && a.zeros == b.zeros &&
                             std::abs(a.l2 - b.l2) <= kSumsInDouble * a.l2 &&
                             std::abs(a.mean - b.mean) * root <= kSumsInDouble * a.l2;
  return same_elements && distance_of(a, b, farthest_projection(a, b)) >
                              thresholds::kReorderedRoundings * rounding_of(dtype) * root * a.l2;
}

// The statistic that moved most, in relation to the size of the elements.
std::string difference_between(const TensorStatistics& a, const TensorStatistics& b, DType dtype) {
  struct Figure {
    const char* name;
    double a, b;
  };
  const std::array<Figure, 5> figures = {{{"mean", a.mean, b.mean},
                                          {"standard deviation", a.std, b.std},
                                          {"minimum", a.min, b.min},
                                          {"maximum", a.max, b.max},
                                          {"norm", a.l2, b.l2}}};
  const bool has_no_numbers = a.count > 0 && std::isnan(a.min) && a.nan == 0;
  if (has_no_numbers) return "other texts";
  if (a.nan != b.nan) return fmt::format("{} NaN in A and {} in B", a.nan, b.nan);
  const int64_t inf_a = a.positive_inf + a.negative_inf, inf_b = b.positive_inf + b.negative_inf;
  if (inf_a != inf_b) return fmt::format("{} infinities in A and {} in B", inf_a, inf_b);
  const auto moved = [](const Figure& figure) {
    const double size = std::max(std::abs(figure.a), std::abs(figure.b));
    return size > 0 ? std::abs(figure.a - figure.b) / size : 0;
  };
  const Figure& most = *std::ranges::max_element(figures, {}, moved);
  if (must_be_reordered(a, b, dtype)) return "equal moments, other projections: the same elements in another order";
  if (moved(most) < thresholds::kSameStatistics) {
    const size_t farthest = farthest_projection(a, b);
    return fmt::format(
        "moments that agree to {:.1g}, and a signed sum of the elements that is {:.9g} in A and {:.9g} in B",
        std::max(moved(most), 1e-16), a.projections[farthest], b.projections[farthest]);
  }
  return fmt::format("{} {:.7g} in A and {:.7g} in B", most.name, most.a, most.b);
}

// All else follows from an input that had another shape in B.
std::optional<Cause> other_input_shape(const Comparison& comparison) {
  const ValueComparison* const input = input_of_other_shape(comparison);
  if (input == nullptr) return std::nullopt;
  return cause_at(*input,
                  fmt::format("the two runs were given different values of input '{}': shape {} in A and {} in B",
                              input->path, input->shape_a, input->shape_b));
}

}  // namespace

std::optional<Cause> first_by_statistics(const BlameRequest& request, const Comparison& comparison) {
  if (keeps_elements(*request.a.dump) && keeps_elements(*request.b.dump)) return std::nullopt;
  const ValueComparison* const first = first_diverged(comparison);
  if (first == nullptr) return std::nullopt;
  if (auto cause = other_input_shape(comparison); cause.has_value()) return cause;
  const DumpEntry* entry = entry_of(*request.a.dump, first->a);
  const TensorStatistics* a = statistics_of(entry);
  const TensorStatistics* b = statistics_of(entry_of(*request.b.dump, first->b));
  if (a == nullptr || b == nullptr) return std::nullopt;
  Cause cause = cause_at(*first, {});
  cause.introduced = first->severity;
  const std::string difference = difference_between(*a, *b, entry->type.dtype);
  if (entry->role == ValueInfo::Role::input) {
    cause.why = fmt::format("the two runs were given different values of input '{}': {}", entry->name, difference);
    return cause;
  }
  cause.why = fmt::format(
      "the first value whose statistics differ: {}; nothing before it does. Elements were not kept: a run with "
      "--dump on both sides shows them",
      difference);
  return cause;
}

}  // namespace parallax::diff
