// SPDX-License-Identifier: Apache-2.0
// The inspector's content for two models: the sections of both sides in two columns, and what differs marked.
#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "gui/viewmodel/inspect/view_inspector.h"
#include "gui/viewmodel/inspect/view_properties.h"
#include "gui/viewmodel/two_models/view_two_models.h"
#include "inspector/render/compact_numbers.h"
#include "inspector/render/report_text.h"
#include "inspector/render/structure_report.h"

namespace parallax {
namespace {

using Kind = InspectorLine::Kind;

// The lines of both sides joined by their keys; of a repeated key the first with the first.
InspectorSection joined(const InspectorSection& a, const InspectorSection& b) {
  InspectorSection section{a.title, {}};
  section.is_open = a.is_open;
  std::vector<bool> is_taken(b.lines.size());
  for (InspectorLine line : a.lines) {
    size_t at = 0;
    while (at < b.lines.size() && (is_taken[at] || key_text(b.lines[at]) != key_text(line))) ++at;
    const bool is_text = line.key.empty() && at < b.lines.size() && b.lines[at].a == line.a;  // once is enough
    if (at < b.lines.size()) is_taken[at] = true;
    if (!is_text) line.b = at < b.lines.size() ? b.lines[at].a : "-";
    section.lines.push_back(std::move(line));
  }
  for (size_t at = 0; at < b.lines.size(); ++at) {
    if (is_taken[at]) continue;
    InspectorLine line = b.lines[at];
    line.b = std::exchange(line.a, "-");
    section.lines.push_back(std::move(line));
  }
  return section;
}

std::string joined(const std::string& a, const std::string& b) { return a == b ? a : a + " | " + b; }

// Sections that have figures of both sides already; they are not joined.
bool is_of_comparison(const InspectorSection& section) {
  constexpr std::array<std::string_view, 4> kTitles = {"Verdict", "Expected output", "Difference", "Statistics"};
  return std::ranges::find(kTitles, section.title) != kTitles.end();
}

InspectorView joined(InspectorView a, InspectorView b, bool is_compared) {
  if (is_compared) std::erase_if(b.sections, is_of_comparison);
  for (InspectorSection& section : a.sections) {
    if (is_compared && is_of_comparison(section)) continue;
    const auto other = std::ranges::find(b.sections, section.title, &InspectorSection::title);
    section = joined(section, other == b.sections.end() ? InspectorSection{section.title, {}} : *other);
  }
  for (const InspectorSection& section : b.sections) {
    const auto known = std::ranges::find(a.sections, section.title, &InspectorSection::title);
    if (known == a.sections.end()) a.sections.push_back(joined({section.title, {}, section.is_open}, section));
  }
  for (InspectorSection& section : a.sections) {
    if (is_compared && is_of_comparison(section)) continue;
    const bool has_two = std::ranges::any_of(section.lines, [](const InspectorLine& line) { return !line.b.empty(); });
    if (has_two) section.lines.insert(section.lines.begin(), {"", "A", "B", Kind::header, ""});
  }
  a.title = joined(a.title, b.title);
  a.subtitle = joined(a.subtitle, b.subtitle);
  return a;
}

// Attributes and inputs as the comparison says, for other names are no difference; figures and versions as they read.
void mark_changes(const std::vector<NodeChange>& changes, bool is_compared, InspectorView& view) {
  for (InspectorSection& section : view.sections) {
    const bool by_text = (section.title == "Statistics" && !is_compared) || section.title == "Model";
    for (InspectorLine& line : section.lines) {
      if (line.kind == Kind::header) continue;
      const auto is_of_line = [&](const NodeChange& change) {
        if (section.title == "Attributes") return change.kind == NodeChange::Kind::attribute && change.name == line.key;
        const bool is_input = change.kind == NodeChange::Kind::input || change.kind == NodeChange::Kind::constant;
        return section.title == "Inputs" && is_input && (change.name == line.name || change.name == line.key);
      };
      const bool is_type = section.title == "Value" && line.key == "type";
      line.is_changed =
          ((by_text || is_type) && !line.b.empty() && line.a != line.b) || std::ranges::any_of(changes, is_of_line);
    }
  }
}

InspectorSection section_of_constant(const NodeChange& change) {
  InspectorSection section{"Constant " + change.name, {{"", "A", "B", Kind::header, ""}}};
  const auto [a, b] = sides_of(change);
  section.lines.push_back({"value", change.text_a, change.text_b, Kind::link, change.text_a});
  section.lines.push_back({"elements", a, b, Kind::text, "", "", true});
  if (!change.metrics.has_value()) return section;
  const Metrics& metrics = *change.metrics;
  const auto add = [&](std::string key, std::string text) {
    section.lines.push_back({std::move(key), std::move(text), "", Kind::text, ""});
  };
  add("differ", fmt::format("{} of {} elements", metrics.mismatches, metrics.count));
  if (are_texts(metrics)) return section;
  add("max |a-b|", short_number(metrics.max_abs, 6));
  add("max rel", short_number(metrics.max_rel, 6));
  add("RMS", short_number(shown_average(metrics, metrics.rmse), 6));
  add("rel L2", short_number(shown_average(metrics, metrics.rel_l2), 6));
  add("cosine", short_number(shown_average(metrics, metrics.cosine), 9));
  return section;
}

// The difference of what is selected in one sentence for each change, and the constants that differ.
std::vector<InspectorSection> sections_of_difference(const Document& document, int32_t item_a, int32_t item_b) {
  const TwoModels& pair = *document.models;
  InspectorSection section{"A against B", {}};
  const auto say = [&](std::string key, std::string text, bool is_changed) {
    section.lines.push_back({std::move(key), std::move(text), "", is_changed ? Kind::bad : Kind::good, ""});
  };
  if (item_a <= 0 && item_b <= 0) {
    say("", pair.verdict_text(), !pair.structure->is_same());
    for (const SignatureDifference& difference : pair.structure->signature) say("", signature_text(difference), true);
    return {section};
  }
  if (item_a > 0 && item_b > 0 && pair.b_of_a[static_cast<size_t>(item_a)] != item_b)
    say("", "the two nodes are not matched; their outputs are compared", true);
  const int32_t index = item_a > 0 ? pair.difference_of_a[static_cast<size_t>(item_a)]
                                   : pair.difference_of_b[static_cast<size_t>(item_b)];
  const ItemDifference& state = item_a > 0 ? document.differences_of_item[static_cast<size_t>(item_a)]
                                           : pair.b->differences_of_item[static_cast<size_t>(item_b)];
  if (index < 0) {
    const bool is_alone = item_a <= 0 || item_b <= 0;
    say("",
        is_alone           ? (item_a > 0 ? "only in A" : "only in B")
        : state.count == 0 ? "the same in both models"
                           : fmt::format("{} differences within", state.count),
        is_alone || state.count > 0);
    return {section};
  }
  const ModelDifference& difference = pair.differences[static_cast<size_t>(index)];
  if (difference.sentences.empty()) say("", text_of(difference.kind), true);
  for (const std::string& sentence : difference.sentences) say("", sentence, true);
  std::vector<InspectorSection> sections{section};
  for (const NodeChange& change : difference.node == nullptr ? std::vector<NodeChange>() : difference.node->changes) {
    if (change.kind == NodeChange::Kind::constant) sections.push_back(section_of_constant(change));
  }
  return sections;
}

}  // namespace

InspectorView inspect_models(const Document& document, int32_t item_a, int32_t item_b, int32_t row,
                             const WeightFigures& weight) {
  const TwoModels& pair = *document.models;
  const bool is_model = item_a <= 0 && item_b <= 0 && row < 0;
  if (is_model) item_a = item_b = 0;
  const ValueRow* value = row < 0 ? nullptr : &document.rows[static_cast<size_t>(row)];
  const int32_t row_a = value == nullptr || value->is_only_b ? -1 : row, row_b = value == nullptr ? -1 : value->row_b;
  const bool has_a = item_a >= 0 || row_a >= 0, has_b = item_b >= 0 || row_b >= 0;
  const bool is_compared = document.compared(row) != nullptr && row_a >= 0;
  InspectorView view;
  if (has_a) view = inspect(document, item_a, row_a, {weight.statistics, {}, weight.problem});
  if (has_b) {
    const InspectorView b = inspect(*pair.b, item_b, row_b, {weight.statistics_b, {}, has_a ? "" : weight.problem});
    view = has_a ? joined(std::move(view), b, is_compared) : b;
  }
  std::vector<InspectorSection> first = sections_of_difference(document, item_a, item_b);
  const int32_t index = item_a > 0 ? pair.difference_of_a[static_cast<size_t>(item_a)] : -1;
  const NodeDifference* node = index < 0 ? nullptr : pair.differences[static_cast<size_t>(index)].node;
  mark_changes(node == nullptr ? std::vector<NodeChange>() : node->changes, is_compared, view);
  view.sections.insert(view.sections.begin(), first.begin(), first.end());
  if (is_model) view.title = document.title();
  if (document.run.has_value()) {
    view.command = command_of(*document.run);
  } else {
    const bool has_values = document.a != nullptr && document.b != nullptr;
    view.command = fmt::format("parallax diff {} {}", shell_word(has_values ? document.a->path() : pair.name_a),
                               shell_word(has_values ? document.b->path() : pair.name_b));
  }
  return view;
}

}  // namespace parallax
