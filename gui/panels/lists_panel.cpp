// SPDX-License-Identifier: Apache-2.0
// The lists at the left: alerts, the table of all values, ranked causes, what is explained, marks.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "gui/panels/panels.h"
#include "inspector/render/compact_numbers.h"
#include "inspector/render/severity_style.h"

namespace parallax::gui {
namespace {

void draw_tabs(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  const bool is_pair = viewer.document() != nullptr && viewer.document()->comparison != nullptr;
  const size_t causes = is_pair ? viewer.document()->comparison->causes.size() : 0;
  struct Tab {
    LeftTab tab;
    std::string title;
    const char* name;
    bool is_there;
  };
  const TwoModels* models = viewer.models();
  const size_t differences = models == nullptr ? 0 : models->differences.size();
  const std::array<Tab, 7> tabs = {
      {{LeftTab::differences, fmt::format("Differences {}###6", differences), "tab.differences", models != nullptr},
       {LeftTab::runs, fmt::format("Runs {}###5", viewer.other_runs().size()), "tab.runs",
        !viewer.other_runs().empty()},
       {LeftTab::alerts, fmt::format("Divergences {}###0", viewer.alerts().size()), "tab.alerts", is_pair},
       {LeftTab::table, "Values###1", "tab.table", true},
       {LeftTab::causes, fmt::format("Causes {}###2", causes), "tab.causes", is_pair},
       {LeftTab::explained, fmt::format("Explained {}###4", viewer.explained().size()), "tab.explained",
        !viewer.explained().empty()},
       {LeftTab::marks, fmt::format("Marks {}###3", viewer.bookmarks().size()), "tab.marks",
        !viewer.bookmarks().empty()}}};
  bool is_first = true;
  for (const Tab& tab : tabs) {
    if (!tab.is_there) continue;
    if (!is_first) same_line_if_fits(ui, tab.title.substr(0, tab.title.find('#')).c_str(), 3 * ui.scale);
    is_first = false;
    if (small_button(ui, tab.title.c_str(), tab.name, viewer.left_tab == tab.tab)) viewer.left_tab = tab.tab;
  }
  ImGui::Dummy({0, 2 * ui.scale});
}

const char* title_of(Alert::Kind kind) {
  switch (kind) {
    case Alert::Kind::first_divergence:
      return "(first)";
    case Alert::Kind::special_values:
      return "NaN or Inf";
    case Alert::Kind::shape_or_dtype:
      return "shape or type";
    case Alert::Kind::diverged:
      return "diverged";
    case Alert::Kind::missing:
      return "not compared";
    case Alert::Kind::expected:
      return "not as expected";
  }
  return "";
}

// Two lines: what, and where.
void draw_alert(Ui& ui, const Alert& alert, size_t index) {
  Viewer& viewer = *ui.viewer;
  const ValueRow& row = viewer.document()->rows[static_cast<size_t>(alert.row)];
  const float line = ImGui::GetTextLineHeight(), width = ImGui::GetContentRegionAvail().x;
  ImGui::PushID(static_cast<int>(index));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (ImGui::Selectable("##alert", alert.row == viewer.row(), 0, {0, line * 2 + 4 * ui.scale}))
    viewer.select_row(alert.row);
  ui.mark(fmt::format("alert:{}", index));
  copy_menu(ui, "copy",
            {{"Copy the name", [&] { return row.path; }},
             {"Copy the alert", [&] { return alert.text; }},
             {"Copy all alerts", [&] {
                std::string text;
                for (const Alert& other : viewer.alerts()) text += other.text + "\n";
                return text;
              }}});
  if (alert.kind == Alert::Kind::expected) tooltip(alert.text.c_str());
  if (alert.row == viewer.row() && ui.scrolled_row != alert.row) {
    ImGui::SetScrollHereY(0.4F);
    ui.scrolled_row = alert.row;
  }
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImU32 swatch = alert.kind == Alert::Kind::special_values ? to_imgui(kNanColor) : ui.theme().bad;
  list->AddRectFilled({at.x, at.y + 3 * ui.scale}, {at.x + 4 * ui.scale, at.y + 2 * line + ui.scale}, swatch, 2);
  const float x = at.x + 11 * ui.scale, y = at.y + 2 * ui.scale;
  const std::string& severity = alert.severity_text;
  const float severity_width = ImGui::CalcTextSize(severity.c_str()).x;
  const bool has_op = !row.op.empty();  // else its name stands first
  const std::string title = fmt::format("{}  {}", has_op ? row.op : row.path,
                                        alert.kind == Alert::Kind::diverged ? "" : title_of(alert.kind));
  const std::string where = has_op ? row.path : row.dtype + " " + row.shape;
  list->AddText(
      {x, y}, ui.theme().text,
      cut_text(ui.fonts.base, ui.fonts.base->FontSize, title, width - severity_width - 24 * ui.scale).c_str());
  list->AddText({at.x + width - severity_width - 6 * ui.scale, y}, ui.theme().text, severity.c_str());
  list->AddText({x, y + line}, alert.row == viewer.row() ? ui.theme().text : ui.theme().dim,
                cut_front(ui.fonts.base, ui.fonts.base->FontSize, where, width - 20 * ui.scale).c_str());
  ImGui::PopID();
}

void draw_alerts(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  if (viewer.document()->comparison == nullptr) {
    wrapped_text(viewer.is_busy() ? "Comparing..."
                                  : "One side only: there is nothing to compare with. Open two dumps, or "
                                    "run the model on two executors (Ctrl+R).",
                 ImGui::GetContentRegionAvail().x);
    return;
  }
  if (viewer.alerts().empty()) {
    wrapped_text("No value diverged.", ImGui::GetContentRegionAvail().x);
    return;
  }
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(viewer.alerts().size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i)
      draw_alert(ui, viewer.alerts()[static_cast<size_t>(i)], static_cast<size_t>(i));
  }
}

std::vector<TableColumnInfo> shown_columns(const Document& document) {
  std::vector<TableColumnInfo> shown;
  for (const TableColumnInfo& info : table_columns()) {
    if (!info.needs_comparison || document.comparison != nullptr) shown.push_back(info);
  }
  return shown;
}

// In a narrow list the value's name gives way, so that its severity stays in sight.
float width_of(TableColumn column, float list) {
  switch (column) {
    case TableColumn::order:
      return 36;
    case TableColumn::op:
      return list < 420 ? 78 : list < 600 ? 100 : 136;
    case TableColumn::name:
      return std::clamp(list - 210, 90.0F, 230.0F);
    case TableColumn::verdict:
      return 76;
    case TableColumn::shape:
      return 96;
    default:
      return 62;
  }
}

void sort_as_asked(Viewer& viewer) {
  ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
  if (specs == nullptr || !specs->SpecsDirty) return;
  if (specs->SpecsCount > 0) {
    viewer.set_table_order({static_cast<TableColumn>(specs->Specs[0].ColumnUserID),
                            specs->Specs[0].SortDirection == ImGuiSortDirection_Descending});
  }
  specs->SpecsDirty = false;
}

void draw_row(Ui& ui, int32_t row, const std::vector<TableColumnInfo>& columns) {
  Viewer& viewer = *ui.viewer;
  const ValueComparison* value = viewer.document()->compared(row);
  ImGui::TableNextRow();
  for (size_t c = 0; c < columns.size(); ++c) {
    ImGui::TableSetColumnIndex(static_cast<int>(c));
    const std::string text = table_cell(*viewer.document(), row, columns[c].column);
    if (c == 0) {
      ImGui::PushID(row);
      if (ImGui::Selectable(text.c_str(), row == viewer.row(), ImGuiSelectableFlags_SpanAllColumns))
        viewer.select_row(row);
      const Document& document = *viewer.document();
      copy_menu(ui, "copy",
                {{"Copy the name", [&] { return document.rows[static_cast<size_t>(row)].path; }},
                 {"Copy the row", [&] { return table_row_text(document, row); }},
                 {"Copy the table", [&] {
                    std::string table = table_title_text(document) + "\n";
                    for (const int32_t other : viewer.table_rows()) table += table_row_text(document, other) + "\n";
                    return table;
                  }}});
      // The row spans columns that may be outside the window: its first cell is named.
      const ImVec2 least = ImGui::GetItemRectMin();
      ui.mark(fmt::format("row:{}", row), least, {least.x + 36 * ui.scale, ImGui::GetItemRectMax().y});
      ImGui::PopID();
      continue;
    }
    const bool bad = value != nullptr && value->verdict == Verdict::diverged && row != viewer.row() &&
                     columns[c].column == TableColumn::verdict;
    if (bad) ImGui::PushStyleColor(ImGuiCol_Text, ui.theme().bad);
    const bool is_name = columns[c].column == TableColumn::name;
    const ImFont* font = ui.fonts.base;
    const float room = ImGui::GetContentRegionAvail().x;
    const std::string shown =
        is_name ? cut_front(font, font->FontSize, text, room) : cut_text(font, font->FontSize, text, room);
    ImGui::TextUnformatted(shown.c_str());
    if (bad) ImGui::PopStyleColor();
    if (shown != text) tooltip(text.c_str());
  }
}

void draw_table(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  const auto columns = shown_columns(*viewer.document());
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_ScrollX | ImGuiTableFlags_Sortable |
                                     ImGuiTableFlags_Resizable | ImGuiTableFlags_RowBg | ImGuiTableFlags_Hideable |
                                     ImGuiTableFlags_BordersInnerV | ImGuiTableFlags_SizingFixedFit;
  const float list = ImGui::GetContentRegionAvail().x / ui.scale;
  const std::string id = fmt::format("values{}{}", columns.size(), list < 420 ? "narrow" : "");
  if (!ImGui::BeginTable(id.c_str(), static_cast<int>(columns.size()), kFlags)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const TableColumnInfo& info : columns) {
    ImGui::TableSetupColumn(info.title.data(), ImGuiTableColumnFlags_WidthFixed, width_of(info.column, list) * ui.scale,
                            static_cast<ImGuiID>(info.column));
  }
  ImGui::TableHeadersRow();
  sort_as_asked(viewer);
  const auto& rows = viewer.table_rows();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) draw_row(ui, rows[static_cast<size_t>(i)], columns);
  }
  if (ui.scrolled_row != viewer.row()) {
    const auto at = std::find(rows.begin(), rows.end(), viewer.row());
    if (at != rows.end()) {
      const float line = ImGui::GetTextLineHeight() + ImGui::GetStyle().CellPadding.y * 2;
      ImGui::SetScrollY(std::max(0.0F, static_cast<float>(at - rows.begin()) * line - ImGui::GetWindowHeight() * 0.4F));
    }
    ui.scrolled_row = viewer.row();
  }
  ImGui::EndTable();
}

void draw_causes(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  const Comparison* comparison = viewer.document()->comparison.get();
  const float width = ImGui::GetContentRegionAvail().x - 8 * ui.scale;
  if (comparison == nullptr || comparison->causes.empty()) {
    const bool is_looking = viewer.is_busy();
    wrapped_text(is_looking ? "Looking for causes..."
                            : "No causes are known. `parallax blame` looks for the node whose own arithmetic differs.",
                 width);
    return;
  }
  for (const Cause& cause : comparison->causes) {
    ImGui::PushID(cause.rank);
    const std::string title =
        fmt::format("{}. {}  {}", cause.rank, cause.op, cause.node.empty() ? cause.path : cause.node);
    if (ImGui::Selectable(title.c_str(), false)) viewer.select_path(cause.path);
    ui.mark(fmt::format("cause:{}", cause.rank));
    copy_menu(ui, "copy",
              {{"Copy the node", [&] { return cause.node.empty() ? cause.path : cause.node; }},
               {"Copy the cause", [&] {
                  return fmt::format("{}\t{}\tintroduced {}\tinherited {}\tside {}\t{}", cause.op, cause.node,
                                     short_number(cause.introduced), short_number(cause.inherited), name_of(cause.side),
                                     cause.why);
                }}});
    ImGui::PushStyleColor(ImGuiCol_Text, ui.theme().dim);
    wrapped_text(fmt::format("introduced {}, inherited {}, side {}", short_number(cause.introduced),
                             short_number(cause.inherited), name_of(cause.side)),
                 width);
    ImGui::PopStyleColor();
    if (cause.is_renamed_in_b()) wrapped_text(fmt::format("in B {}", cause.node_b), width);
    if (!cause.why.empty()) wrapped_text(cause.why, width);
    ImGui::PushStyleColor(ImGuiCol_Text, ui.theme().dim);
    if (cause.has_source())
      wrapped_text(fmt::format("{} {} {}", cause.source_module, cause.source_line, cause.source_operator), width);
    ImGui::PopStyleColor();
    ImGui::Separator();
    ImGui::PopID();
  }
}

// Values that pass beyond their limits, each with the reason and the evidence.
void draw_explained(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  const Document& document = *viewer.document();
  const float width = ImGui::GetContentRegionAvail().x - 8 * ui.scale;
  ImGui::PushStyleColor(ImGuiCol_Text, ui.theme().dim);
  wrapped_text("Beyond their limits, and no node is to blame: they pass.", width);
  ImGui::PopStyleColor();
  for (size_t i = 0; i < viewer.explained().size(); ++i) {
    const int32_t row = viewer.explained()[i];
    const ValueComparison& value = *document.compared(row);
    ImGui::PushID(row);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const std::string severity = short_number(value.severity) + (std::isfinite(value.severity) ? "x" : "");
    const std::string title = fmt::format("   {}  {}", value.op.empty() ? value.path : value.op, severity);
    if (ImGui::Selectable(title.c_str(), row == viewer.row())) viewer.select_row(row);
    ui.mark(fmt::format("explained:{}", i));
    copy_menu(ui, "copy",
              {{"Copy the name", [&] { return value.path; }},
               {"Copy the explanation", [&] {
                  return fmt::format("{}\t{}\t{}", value.path, value.accepted->reason, value.accepted->evidence);
                }}});
    ImGui::GetWindowDrawList()->AddRectFilled({at.x, at.y}, {at.x + 4 * ui.scale, ImGui::GetItemRectMax().y},
                                              to_imgui(color_from_hex(kExplainedFill)), 2);
    if (row == viewer.row() && ui.scrolled_row != row) {
      ImGui::SetScrollHereY(0.4F);
      ui.scrolled_row = row;
    }
    const ImFont* font = ui.fonts.base;
    ImGui::TextDisabled("%s", cut_front(font, font->FontSize, value.path, width).c_str());
    wrapped_text(value.accepted->reason + ": " + value.accepted->evidence, width);
    ImGui::Separator();
    ImGui::PopID();
  }
}

// The runs that the baseline is compared with, each with its verdict.
void draw_runs(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  const ImFont* font = ui.fonts.base;
  const float width = ImGui::GetContentRegionAvail().x - 8 * ui.scale;
  const auto& runs = viewer.other_runs();
  for (size_t i = 0; i < runs.size(); ++i) {
    const int index = static_cast<int>(i);
    const Comparison* compared = runs[i].document == nullptr ? nullptr : runs[i].document->comparison.get();
    const std::string key = fmt::format("Alt+{}", i + 1);
    const float room = width - ImGui::CalcTextSize(key.c_str()).x - 16 * ui.scale;
    ImGui::PushID(index);
    const std::string shown = cut_front(font, font->FontSize, runs[i].file, room);
    const std::string title = fmt::format("{}  {}", i + 1, shown);
    if (ImGui::Selectable(title.c_str(), index == viewer.shown_run())) viewer.choose_run(index);
    ui.mark(fmt::format("run:{}", i + 1));
    if (shown != runs[i].file) tooltip(runs[i].file.c_str());
    ImGui::SameLine(width - ImGui::CalcTextSize(key.c_str()).x);
    ImGui::TextDisabled("%s", key.c_str());
    if (compared == nullptr) {
      ImGui::TextDisabled("%s", runs[i].is_settled ? "   it cannot be opened" : "   not compared yet");
    } else {
      const bool is_bad = compared->verdict == OverallVerdict::diverged;
      const ImU32 color = is_bad                                      ? ui.theme().bad
                          : compared->verdict == OverallVerdict::pass ? ui.theme().good
                                                                      : ui.theme().dim;
      ImGui::PushStyleColor(ImGuiCol_Text, color);
      ImGui::TextUnformatted(fmt::format("   {}", name_of(compared->verdict)).c_str());
      ImGui::PopStyleColor();
      ImGui::SameLine(0, 8 * ui.scale);
      ImGui::TextDisabled("%s", fmt::format("{} diverged", compared->summary.diverged).c_str());
    }
    ImGui::PopID();
  }
}

void draw_marks(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  for (size_t i = 0; i < viewer.bookmarks().size(); ++i) {
    const int32_t row = viewer.bookmarks()[i];
    const ValueRow& value = viewer.document()->rows[static_cast<size_t>(row)];
    const std::string key = i < 9 ? fmt::format("Ctrl+{}", i + 1) : "";
    if (ImGui::Selectable(fmt::format("{}  {}##{}", value.op, value.path, i).c_str(), row == viewer.row()))
      viewer.select_row(row);
    ui.mark(fmt::format("mark:{}", i));
    ImGui::SameLine(ImGui::GetContentRegionAvail().x - ImGui::CalcTextSize(key.c_str()).x);
    ImGui::TextDisabled("%s", key.c_str());
  }
}

}  // namespace

void draw_lists(Ui& ui) {
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {6 * ui.scale, 4 * ui.scale});
  ImGui::SetCursorPos({6 * ui.scale, 6 * ui.scale});
  ImGui::BeginGroup();
  draw_tabs(ui);
  ImGui::EndGroup();
  if (ui.scrolled_tab != ui.viewer->left_tab) {
    ui.scrolled_tab = ui.viewer->left_tab;
    ui.scrolled_row = ui.scrolled_difference = -1;
  }
  ImGui::SetCursorPosX(6 * ui.scale);
  ImGui::BeginChild("list", {ImGui::GetContentRegionAvail().x - 4 * ui.scale, ImGui::GetContentRegionAvail().y}, false);
  if (ui.viewer->document() == nullptr) {
    ImGui::TextDisabled("Values and divergences are listed here.");
  } else if (ui.viewer->left_tab == LeftTab::alerts) {
    draw_alerts(ui);
  } else if (ui.viewer->left_tab == LeftTab::table) {
    draw_table(ui);
  } else if (ui.viewer->left_tab == LeftTab::causes) {
    draw_causes(ui);
  } else if (ui.viewer->left_tab == LeftTab::differences) {
    draw_differences(ui);
  } else if (ui.viewer->left_tab == LeftTab::runs) {
    draw_runs(ui);
  } else if (ui.viewer->left_tab == LeftTab::explained) {
    draw_explained(ui);
  } else {
    draw_marks(ui);
  }
  ImGui::EndChild();
  ImGui::PopStyleVar();
}

}  // namespace parallax::gui
