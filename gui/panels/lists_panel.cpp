// The lists at the left: alerts, the table of all values, ranked causes.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "gui/panels/panels.h"

namespace parallax::gui {
namespace {

void draw_tabs(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  const size_t causes = viewer.document() != nullptr && viewer.document()->comparison != nullptr
                            ? viewer.document()->comparison->causes.size()
                            : 0;
  const std::array<std::string, 3> titles = {fmt::format("Alerts {}###0", viewer.alerts().size()), "Values###1",
                                             fmt::format("Causes {}###2", causes)};
  constexpr const char* kNames[] = {"tab.alerts", "tab.table", "tab.causes"};
  for (size_t i = 0; i < titles.size(); ++i) {
    if (i > 0) ImGui::SameLine(0, 3 * ui.scale);
    const auto tab = static_cast<LeftTab>(i);
    if (small_button(ui, titles[i].c_str(), kNames[i], viewer.left_tab == tab)) viewer.left_tab = tab;
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
  }
  return "";
}

// Two lines: what, and where.
void draw_alert(Ui& ui, const Alert& alert, size_t index) {
  Viewer& viewer = *ui.viewer;
  const ValueRow& row = viewer.document()->rows[static_cast<size_t>(alert.row)];
  const ValueComparison* value = viewer.document()->compared(alert.row);
  const float line = ImGui::GetTextLineHeight(), width = ImGui::GetContentRegionAvail().x;
  ImGui::PushID(static_cast<int>(index));
  const ImVec2 at = ImGui::GetCursorScreenPos();
  if (ImGui::Selectable("##alert", alert.row == viewer.row(), 0, {0, line * 2 + 4 * ui.scale}))
    viewer.select_row(alert.row);
  ui.mark(fmt::format("alert:{}", index));
  if (alert.row == viewer.row() && ui.scrolled_row != alert.row) {
    ImGui::SetScrollHereY(0.4F);
    ui.scrolled_row = alert.row;
  }
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImU32 swatch = alert.kind == Alert::Kind::special_values ? to_imgui(kNanColour) : ui.theme().bad;
  list->AddRectFilled({at.x, at.y + 2}, {at.x + 4 * ui.scale, at.y + 2 * line}, swatch, 2);
  const float x = at.x + 11 * ui.scale;
  const std::string severity =
      value != nullptr && value->verdict == Verdict::diverged ? fmt::format("{:.3g}x", value->severity) : "";
  const float severity_width = ImGui::CalcTextSize(severity.c_str()).x;
  const std::string title =
      fmt::format("{}  {}", row.op, alert.kind == Alert::Kind::diverged ? "" : title_of(alert.kind));
  list->AddText(
      {x, at.y}, ui.theme().text,
      cut_text(ui.fonts.base, ui.fonts.base->FontSize, title, width - severity_width - 24 * ui.scale).c_str());
  list->AddText({at.x + width - severity_width - 6 * ui.scale, at.y}, ui.theme().text, severity.c_str());
  list->AddText({x, at.y + line}, ui.theme().dim,
                cut_text(ui.fonts.base, ui.fonts.base->FontSize, row.path, width - 20 * ui.scale).c_str());
  ImGui::PopID();
}

void draw_alerts(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  if (viewer.document()->comparison == nullptr) {
    ImGui::TextWrapped("%s", viewer.is_busy() ? "Comparing..."
                                              : "One side only: there is nothing to compare with. Open two dumps, or "
                                                "run the model on two executors (Ctrl+R).");
    return;
  }
  if (viewer.alerts().empty()) {
    ImGui::TextWrapped("No value diverged.");
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
      // The row spans columns that may lie outside the window: its first cell is named.
      const ImVec2 least = ImGui::GetItemRectMin();
      ui.mark(fmt::format("row:{}", row), least, {least.x + 36 * ui.scale, ImGui::GetItemRectMax().y});
      ImGui::PopID();
      continue;
    }
    const bool bad =
        value != nullptr && value->verdict == Verdict::diverged && columns[c].column == TableColumn::verdict;
    if (bad) ImGui::PushStyleColor(ImGuiCol_Text, ui.theme().bad);
    ImGui::TextUnformatted(text.c_str());
    if (bad) ImGui::PopStyleColor();
    if (columns[c].column == TableColumn::name) tooltip(text.c_str());
  }
}

void draw_table(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  const auto columns = shown_columns(*viewer.document());
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_ScrollX | ImGuiTableFlags_Sortable |
                                     ImGuiTableFlags_Resizable | ImGuiTableFlags_RowBg | ImGuiTableFlags_Hideable |
                                     ImGuiTableFlags_BordersInnerV | ImGuiTableFlags_SizingFixedFit;
  const std::string id = fmt::format("values{}", columns.size());
  if (!ImGui::BeginTable(id.c_str(), static_cast<int>(columns.size()), kFlags)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const TableColumnInfo& info : columns) {
    const float width = info.column == TableColumn::name                                        ? 190.0F
                        : info.column == TableColumn::op || info.column == TableColumn::verdict ? 92.0F
                        : info.column == TableColumn::order                                     ? 40.0F
                                                                                                : 68.0F;
    ImGui::TableSetupColumn(info.title.data(), ImGuiTableColumnFlags_WidthFixed, width * ui.scale,
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
  if (comparison == nullptr || comparison->causes.empty()) {
    ImGui::TextWrapped("No causes are known. `parallax blame` looks for the node whose own arithmetic differs.");
    return;
  }
  for (const Cause& cause : comparison->causes) {
    ImGui::PushID(cause.rank);
    const std::string title = fmt::format("{}. {}  {}", cause.rank, cause.op, cause.node);
    if (ImGui::Selectable(title.c_str(), false)) viewer.select_path(cause.path);
    ui.mark(fmt::format("cause:{}", cause.rank));
    ImGui::PushStyleColor(ImGuiCol_Text, ui.theme().dim);
    ImGui::TextUnformatted(fmt::format("introduced {:.3g}, inherited {:.3g}, side {}", cause.introduced,
                                       cause.inherited, name_of(cause.side))
                               .c_str());
    ImGui::PopStyleColor();
    if (!cause.why.empty()) ImGui::TextWrapped("%s", cause.why.c_str());
    if (!cause.source_module.empty())
      ImGui::TextDisabled("%s", (cause.source_module + " " + cause.source_line).c_str());
    ImGui::Separator();
    ImGui::PopID();
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
    ui.scrolled_row = -1;
  }
  ImGui::SetCursorPosX(6 * ui.scale);
  ImGui::BeginChild("list", {ImGui::GetContentRegionAvail().x - 4 * ui.scale, ImGui::GetContentRegionAvail().y}, false);
  if (ui.viewer->document() == nullptr) {
    ImGui::TextDisabled("Values and divergences are listed here.");
  } else if (ui.viewer->left_tab == LeftTab::alerts) {
    draw_alerts(ui);
  } else if (ui.viewer->left_tab == LeftTab::table) {
    draw_table(ui);
  } else {
    draw_causes(ui);
  }
  ImGui::EndChild();
  ImGui::PopStyleVar();
}

}  // namespace parallax::gui
