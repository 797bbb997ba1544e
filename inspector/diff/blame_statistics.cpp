// Words for statistics that differ.
#include "inspector/diff/blame_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace parallax::diff {
namespace {

bool keeps_elements(const DumpReader& dump) {
  return std::ranges::any_of(dump.entries(), [](const DumpEntry& entry) {
    return entry.level == CaptureLevel::all || entry.level == CaptureLevel::sample;
  });
}

const DumpEntry* entry_of(const DumpReader& dump, const std::string& path) {
  const int32_t index = dump.find(path);
  return index < 0 ? nullptr : &dump.entries()[static_cast<size_t>(index)];
}

const TensorStatistics* statistics_of(const DumpEntry* entry) {
  return entry != nullptr && entry->statistics.has_value() ? &*entry->statistics : nullptr;
}

// The statistic that moved most, in relation to the size of the elements.
std::string difference_between(const TensorStatistics& a, const TensorStatistics& b) {
  struct Figure {
    const char* name;
    double a, b;
  };
  const std::array<Figure, 5> figures = {{{"mean", a.mean, b.mean},
                                          {"standard deviation", a.std, b.std},
                                          {"minimum", a.min, b.min},
                                          {"maximum", a.max, b.max},
                                          {"norm", a.l2, b.l2}}};
  if (a.nan != b.nan) return fmt::format("{} NaN in A and {} in B", a.nan, b.nan);
  const int64_t inf_a = a.positive_inf + a.negative_inf, inf_b = b.positive_inf + b.negative_inf;
  if (inf_a != inf_b) return fmt::format("{} infinities in A and {} in B", inf_a, inf_b);
  const auto moved = [](const Figure& figure) {
    const double size = std::max(std::abs(figure.a), std::abs(figure.b));
    return size > 0 ? std::abs(figure.a - figure.b) / size : 0;
  };
  const Figure& most = *std::ranges::max_element(figures, {}, moved);
  constexpr double kSame = 1e-6;  // sums of the same elements, in whichever order
  if (moved(most) < kSame) return "equal moments, other projections: the same elements in another order";
  return fmt::format("{} {:.7g} in A and {:.7g} in B", most.name, most.a, most.b);
}

}  // namespace

std::optional<Cause> first_by_statistics(const BlameRequest& request, const Comparison& comparison) {
  if (keeps_elements(*request.a.dump) && keeps_elements(*request.b.dump)) return std::nullopt;
  const ValueComparison* const first = first_diverged(comparison);
  if (first == nullptr) return std::nullopt;
  const DumpEntry* entry = entry_of(*request.a.dump, first->a);
  const TensorStatistics* a = statistics_of(entry);
  const TensorStatistics* b = statistics_of(entry_of(*request.b.dump, first->b));
  if (a == nullptr || b == nullptr) return std::nullopt;
  Cause cause = cause_at(*first, {});
  cause.introduced = first->severity;
  if (entry->role == ValueSite::Role::input) {
    cause.why = fmt::format("the two runs were given different values of input '{}': {}", entry->name,
                            difference_between(*a, *b));
    return cause;
  }
  cause.why = fmt::format(
      "the first value whose statistics differ: {}; nothing before it does. Elements were not kept: a run with "
      "--dump on both sides shows them",
      difference_between(*a, *b));
  return cause;
}

}  // namespace parallax::diff
