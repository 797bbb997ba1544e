// SPDX-License-Identifier: Apache-2.0
// Colors of the graph: the numbers of items, their ramp, and the legend that explains it.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/format.h>

#include "gui/viewmodel/two_models/view_two_models.h"
#include "gui/viewmodel/view_graph.h"
#include "inspector/base/shown_text.h"
#include "inspector/render/compact_numbers.h"
#include "inspector/render/severity_style.h"

namespace parallax {
namespace {

constexpr std::array<ColorByInfo, 10> kColorings = {{{ColorBy::severity, "severity", "error / limit", true},
                                                     {ColorBy::max_abs, "max_abs", "largest |a-b|", true},
                                                     {ColorBy::rmse, "rmse", "RMS of a-b", true},
                                                     {ColorBy::cosine, "cosine", "cosine distance", true},
                                                     {ColorBy::ulp, "ulp", "largest ULP", true},
                                                     {ColorBy::nan, "nan", "NaN and Inf", false},
                                                     {ColorBy::introduced, "introduced", "introduced error", true},
                                                     {ColorBy::op, "op", "operator", false},
                                                     {ColorBy::time, "time", "time", false},
                                                     {ColorBy::structure, "structure", "structure", false}}};

// Severity has fixed steps, so that colors mean the same in every model.
struct SeverityStep {
  double from;
  double t;  // along the ramp
  const char* text;
};
constexpr std::array<SeverityStep, 5> kSteps = {{{0.1, 0.12, "to 1 (passes)"},
                                                 {1, 0.42, "to 10"},
                                                 {10, 0.58, "to 100"},
                                                 {100, 0.74, "to 1e4"},
                                                 {1e4, 0.9, "more, NaN, Inf"}}};
constexpr Color kMistrustedColor{0xBB, 0xCC, 0xEE};

std::string time_text(double ms) {
  return ms >= 1000 ? fmt::format("{:.3g} s", ms / 1000)
         : ms >= 1  ? fmt::format("{:.3g} ms", ms)
                    : fmt::format("{:.3g} us", ms * 1000);
}

}  // namespace

std::span<const ColorByInfo> colorings() { return kColorings; }

void GraphView::set_color_by(ColorBy by) {
  color_by_ = by;
  if (has_graph()) summarize();
}

void GraphView::set_iteration(int64_t iteration) {
  iteration_ = iteration;
  if (has_graph()) summarize();
}

// Below 0: nothing known. Larger is worse for all of them.
double GraphView::number_of(int32_t row) const {
  const ValueComparison* value = document_->compared(row);
  if (color_by_ == ColorBy::nan && value == nullptr) {
    const int32_t entry = document_->rows[static_cast<size_t>(row)].entry_a;
    if (entry < 0) return -1;
    const auto& statistics = document_->a->entries()[static_cast<size_t>(entry)].statistics;
    if (!statistics.has_value()) return -1;
    return static_cast<double>(statistics->nan + statistics->positive_inf + statistics->negative_inf);
  }
  if (value == nullptr || value->verdict == Verdict::not_compared) return -1;
  if (color_by_ == ColorBy::severity) return judged_severity(*value);
  if (color_by_ == ColorBy::introduced) {
    for (const Cause& cause : document_->comparison->causes) {
      if (cause.path == value->path || (cause.path.empty() && cause.node == value->node)) return cause.introduced;
    }
    return 0;
  }
  if (!value->metrics.has_value()) return -1;
  const Metrics& metrics = *value->metrics;
  switch (color_by_) {
    case ColorBy::max_abs:
      return metrics.max_abs;
    case ColorBy::rmse:
      return metrics.rmse;
    case ColorBy::cosine:
      return std::isnan(metrics.cosine) ? -1 : std::max(0.0, 1 - metrics.cosine);
    case ColorBy::ulp:
      return metrics.max_ulp;
    case ColorBy::nan: {
      const auto in_a = static_cast<double>(metrics.nan_a + metrics.inf_a);
      const auto in_b = static_cast<double>(metrics.nan_b + metrics.inf_b);
      const bool is_of_two_models = !document_->differences_of_item.empty();  // each has a graph of its own
      if (!is_of_two_models) return in_a + in_b;
      return document_->models != nullptr ? in_a : in_b;
    }
    default:
      return -1;
  }
}

// True where a row represents its node better than the one so far. An initializer, which is shown at the node that
// reads it, yields to the node's outputs, unless it diverged and is worse.
bool GraphView::stands_before(int32_t row, int32_t known_row, double known_number) const {
  if (known_row < 0) return true;
  const ValueComparison* value = document_->compared(row);
  const ValueComparison* known = document_->compared(known_row);
  if (value == nullptr || known == nullptr) return number_of(row) > known_number;
  const bool is_read = value->node_reads_it;
  if (is_read == known->node_reads_it) return is_worse(*value, *known);
  const ValueComparison& constant = is_read ? *value : *known;
  const bool constant_leads = constant.verdict == Verdict::diverged && is_worse(constant, is_read ? *known : *value);
  return constant_leads == is_read;
}

void GraphView::add_row(ItemSummary& summary, int32_t row) const {
  const ValueRow& value_row = document_->rows[static_cast<size_t>(row)];
  if (iteration_ >= 0) {
    if (value_row.iteration >= 0 && value_row.iteration != iteration_) return;
  }
  const double number = color_by_ == ColorBy::time ? -1 : number_of(row);
  const ValueComparison* value = document_->compared(row);
  if (stands_before(row, summary.worst_row, summary.number)) summary.worst_row = row;
  summary.number = std::max(summary.number, number);
  if (value == nullptr) return;
  summary.diverged += value->verdict == Verdict::diverged;
  summary.passed += value->verdict == Verdict::pass;
  summary.explained += is_explained(*value);
  summary.mistrusted += value->verdict == Verdict::mistrusted;
  summary.not_compared += value->verdict == Verdict::not_compared;
}

void GraphView::add_below(ItemSummary& outer, const ItemSummary& inner) const {
  const ValueComparison* own = document_->compared(inner.worst_row);
  const ValueComparison* known = document_->compared(outer.worst_row);
  const bool worse = own != nullptr && (known == nullptr || is_worse(*own, *known));
  if (outer.worst_row < 0 || worse) outer.worst_row = inner.worst_row;
  if (color_by_ == ColorBy::time) {
    if (inner.number >= 0) outer.number = std::max(outer.number, 0.0) + inner.number;
  } else {
    outer.number = std::max(outer.number, inner.number);
  }
  outer.diverged += inner.diverged;
  outer.passed += inner.passed;
  outer.explained += inner.explained;
  outer.mistrusted += inner.mistrusted;
  outer.not_compared += inner.not_compared;
}

void GraphView::summarize() {
  const auto& all = items().items();
  summaries_.assign(all.size(), {});
  least_ = greatest_ = 0;
  std::vector<int32_t> by_depth(all.size());
  for (size_t i = 0; i < all.size(); ++i) by_depth[i] = static_cast<int32_t>(i);
  std::stable_sort(by_depth.begin(), by_depth.end(),
                   [&](int32_t a, int32_t b) { return items().item(a).depth > items().item(b).depth; });
  // Its own values come first: among equals they represent an item, not those of its body or its constants.
  for (size_t at = 0; at < all.size(); ++at) {
    for (int32_t row : document_->rows_of_item[at]) add_row(summaries_[at], row);
  }
  for (int32_t index : by_depth) {
    const auto at = static_cast<size_t>(index);
    ItemSummary& summary = summaries_[at];
    if (color_by_ == ColorBy::time && at < document_->ms_of_item.size() && document_->ms_of_item[at] >= 0) {
      summary.number = std::max(summary.number, 0.0) + document_->ms_of_item[at];
    }
    const bool counts = summary.number > 0 && std::isfinite(summary.number) && index != 0;
    if (counts) {
      least_ = least_ == 0 ? summary.number : std::min(least_, summary.number);
      greatest_ = std::max(greatest_, summary.number);
    }
    const int32_t parent = items().item(index).parent;
    if (parent >= 0) add_below(summaries_[static_cast<size_t>(parent)], summary);
  }
  operator_colors_.clear();
  if (color_by_ != ColorBy::op) return;
  std::map<std::string, Color> known;
  for (const GraphItem& item : all) {
    const auto [found, is_new] = known.try_emplace(item.detail);
    if (is_new) found->second = operator_color(item.detail);
    operator_colors_.push_back(found->second);
  }
}

double GraphView::share_of(double number) const {
  if (!std::isfinite(number)) return 1;
  const double low = std::log10(std::max(least_, 1e-300)), high = std::log10(std::max(greatest_, 1e-300));
  return high > low ? 0.1 + 0.8 * (std::log10(number) - low) / (high - low) : 0.5;
}

ItemLook GraphView::look_of_time(int32_t index) const {
  ItemLook look;
  const double ms = summary(index).number;
  if (ms < 0) return look;
  look.is_neutral = ms == 0;
  if (ms > 0) look.fill = magnitude_color(share_of(ms), is_dark);
  look.badge = time_text(ms);
  return look;
}

ItemLook GraphView::look(int32_t index) const {
  ItemLook look;
  const ItemSummary& all = summary(index);
  const GraphItem& item = items().item(index);
  if (color_by_ == ColorBy::structure) look = look_of_difference(*document_, index);
  if (!look.is_neutral) return look;
  if (item.kind == GraphItem::Kind::node && !item.graph->nodes[static_cast<size_t>(item.node)].problem.empty()) {
    look.fill = color_from_hex(kProblemFill);
    look.is_neutral = false;
    look.is_bad = true;
    look.badge = "cannot be executed";
    return look;
  }
  if (color_by_ == ColorBy::op) {
    look.is_neutral = item.kind != GraphItem::Kind::node;
    if (!look.is_neutral) look.fill = operator_colors_[static_cast<size_t>(index)];
    return look;
  }
  if (color_by_ == ColorBy::time) return look_of_time(index);
  const ValueComparison* worst = document_->compared(all.worst_row);
  look.is_bad = all.diverged > 0;
  const bool only_missing = all.not_compared > 0 && all.diverged + all.passed + all.mistrusted == 0;
  if (only_missing) {
    look.fill = kMissingColor;
    look.is_hatched = true;
    look.badge = worst != nullptr ? shorten(brief_reason(*worst), 24) : "not compared";
    return look;
  }
  if (color_by_ == ColorBy::severity && all.explained > 0 && all.diverged == 0) {
    look.fill = color_from_hex(kExplainedFill);
    look.is_neutral = false;
    look.badge = item.kind == GraphItem::Kind::node && worst != nullptr && is_explained(*worst)
                     ? worst->accepted->reason
                     : "explained";
    return look;
  }
  if (color_by_ == ColorBy::severity && worst != nullptr && worst->verdict == Verdict::mistrusted) {
    look.fill = kMistrustedColor;
    look.is_neutral = false;
    look.badge = "mistrusted";
    return look;
  }
  if (all.number <= 0) return look;
  look.badge = short_number(all.number) + (color_by_ == ColorBy::severity && std::isfinite(all.number) ? "x" : "");
  if (color_by_ == ColorBy::severity) {
    for (const SeverityStep& step : kSteps) {
      if (all.number < step.from) continue;
      look.fill = magnitude_color(step.t, is_dark);
      look.is_neutral = false;
    }
    if (look.is_neutral) look.badge.clear();
    return look;
  }
  look.is_neutral = false;
  look.fill = color_by_ == ColorBy::nan ? kNanColor : magnitude_color(share_of(all.number), is_dark);
  return look;
}

// The kinds that are there.
std::vector<LegendEntry> GraphView::legend_of_operators() const {
  std::set<std::string_view> there;
  std::map<std::string_view, Color> colors;
  for (size_t i = 0; i < operator_colors_.size(); ++i) {
    const GraphItem& item = items().items()[i];
    if (item.kind != GraphItem::Kind::node || !there.insert(item.detail).second) continue;
    colors.emplace(kind_of_operator(item.detail), operator_colors_[i]);
  }
  std::vector<LegendEntry> legend;
  for (std::string_view kind : operator_kinds()) {
    if (const auto found = colors.find(kind); found != colors.end())
      legend.push_back({found->second, false, false, std::string(kind)});
  }
  return legend;
}

std::vector<LegendEntry> GraphView::legend() const {
  std::vector<LegendEntry> legend;
  if (!has_graph()) return legend;
  if (color_by_ == ColorBy::op) return legend_of_operators();
  if (color_by_ == ColorBy::structure) return legend_of_differences(*document_);
  if (color_by_ == ColorBy::time) {
    if (greatest_ <= 0) return {{{}, true, false, "not measured"}};
    for (const double ms : {least_, std::sqrt(least_ * greatest_), greatest_})
      legend.push_back({magnitude_color(share_of(ms), is_dark), false, false, time_text(ms)});
    return legend;
  }
  if (!document_->is_pair() && color_by_ != ColorBy::nan) return legend;
  if (color_by_ == ColorBy::severity) {
    legend.push_back({{}, true, false, "to 0.1"});
    for (const SeverityStep& step : kSteps)
      legend.push_back({magnitude_color(step.t, is_dark), false, false, step.text});
    if (summary(0).explained > 0)
      legend.push_back({color_from_hex(kExplainedFill), false, false, "beyond 1, explained (passes)"});
    if (summary(0).mistrusted > 0) legend.push_back({kMistrustedColor, false, false, "mistrusted"});
  } else if (color_by_ == ColorBy::nan) {
    legend.push_back({{}, true, false, "none"});
    legend.push_back({kNanColor, false, false, "holds NaN or Inf"});
  } else {
    legend.push_back({{}, true, false, "0"});
    if (greatest_ > 0) {
      legend.push_back({magnitude_color(share_of(least_), is_dark), false, false, short_number(least_)});
      if (greatest_ > least_)
        legend.push_back({magnitude_color(share_of(greatest_), is_dark), false, false, short_number(greatest_)});
    }
  }
  if (summary(0).not_compared > 0) legend.push_back({kMissingColor, false, true, "not compared"});
  return legend;
}

}  // namespace parallax
