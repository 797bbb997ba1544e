// SPDX-License-Identifier: Apache-2.0
// The inspector at the right: what is known of the node and the value selected.
#include <algorithm>

#include <fmt/format.h>

#include "gui/panels/panels.h"

namespace parallax::gui {
namespace {

ImU32 color_of(const Theme& theme, InspectorLine::Kind kind) {
  switch (kind) {
    case InspectorLine::Kind::good:
      return theme.good;
    case InspectorLine::Kind::bad:
      return theme.bad;
    case InspectorLine::Kind::link:
      return theme.accent;
    case InspectorLine::Kind::header:
      return theme.dim;
    default:
      return theme.text;
  }
}

void mark_link(Ui& ui, const InspectorSection& section, const InspectorLine& line) {
  ui.mark("link:" + section.title + ":" + line.key);
  copy_menu(ui, ("copy" + section.title + line.key).c_str(), {{"Copy the name", [&] { return line.link; }}});
}

// Stacked, in a narrow pane: what a line says stands below its key.
void draw_line(Ui& ui, const InspectorSection& section, const InspectorLine& line, bool is_stacked) {
  ImGui::TableNextRow();
  ImGui::TableSetColumnIndex(0);
  if (line.is_changed) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::GetWindowDrawList()->AddRectFilled({at.x - 6 * ui.scale, at.y},
                                              {at.x - 3 * ui.scale, at.y + ImGui::GetTextLineHeight()}, ui.theme().bad);
  }
  if (!line.key.empty()) ImGui::TextDisabled("%s", key_text(line).c_str());
  const float indent = 10 * ui.scale;
  if (is_stacked) {
    ImGui::Indent(indent);
  } else {
    ImGui::TableSetColumnIndex(1);
  }
  ImGui::PushStyleColor(ImGuiCol_Text, line.is_changed ? ui.theme().bad : color_of(ui.theme(), line.kind));
  if (line.kind == InspectorLine::Kind::link && !line.b.empty()) {  // wrapped as B's is, to be compared with it
    const ImVec2 at = ImGui::GetCursorPos();
    const float width = ImGui::GetContentRegionAvail().x;
    ImGui::BeginGroup();
    wrapped_text(line.a, width);
    ImGui::EndGroup();
    const float height = ImGui::GetItemRectSize().y;
    ImGui::SetCursorPos(at);
    if (ImGui::Selectable(("##" + line.link).c_str(), false, 0, {width, height})) ui.viewer->select_path(line.link);
    mark_link(ui, section, line);
  } else if (line.kind == InspectorLine::Kind::link) {
    const ImFont* font = ui.fonts.base;
    const std::string shown = cut_text(font, font->FontSize, line.a, ImGui::GetContentRegionAvail().x);
    if (ImGui::Selectable(fmt::format("{}##{}", shown, line.link).c_str())) ui.viewer->select_path(line.link);
    mark_link(ui, section, line);
    tooltip(line.a.c_str());
  } else {
    ImGui::BeginGroup();
    wrapped_text(line.a, ImGui::GetContentRegionAvail().x);
    ImGui::EndGroup();
    ui.mark("line:" + section.title + ":" + line.key);
    copy_menu(
        ui, ("copy" + section.title + line.key).c_str(),
        {{"Copy the value", [&] { return line.b.empty() ? line.a : line.a + "\t" + line.b; }},
         {"Copy the line", [&] { return key_text(line) + "\t" + line.a + (line.b.empty() ? "" : "\t" + line.b); }}});
  }
  ImGui::PopStyleColor();
  if (!line.b.empty()) {
    const bool is_link = line.kind == InspectorLine::Kind::link;  // B's cannot be clicked
    const ImU32 color = is_link ? ui.theme().text : color_of(ui.theme(), line.kind);
    ImGui::PushStyleColor(ImGuiCol_Text, line.is_changed ? ui.theme().bad : color);
    if (!is_stacked) ImGui::TableSetColumnIndex(2);
    ImGui::BeginGroup();
    wrapped_text(line.b, ImGui::GetContentRegionAvail().x);
    ImGui::EndGroup();
    ImGui::PopStyleColor();
  }
  if (is_stacked) ImGui::Unindent(indent);
}

// Sections of words share one column, which grows with longer keys within bounds; numbers and texts need less.
float key_width(const InspectorSection& section, float scale) {
  float longest = 0;
  bool are_numbers = true;
  for (const InspectorLine& line : section.lines) {
    longest = std::max(longest, ImGui::CalcTextSize(key_text(line).c_str()).x / scale);
    are_numbers = are_numbers && line.key.find_first_not_of("0123456789") == std::string::npos;
  }
  return longest == 0 ? 0.0F : std::clamp(longest, are_numbers ? 16.0F : 78.0F, 110.0F);
}

void draw_section(Ui& ui, const InspectorSection& section) {
  bool has_b = false;
  for (const InspectorLine& line : section.lines) has_b = has_b || !line.b.empty();
  ImGui::Dummy({0, 2 * ui.scale});
  ImGui::PushStyleColor(ImGuiCol_Header, ui.theme().raised);
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {4 * ui.scale, 2 * ui.scale});
  const bool is_open = ImGui::CollapsingHeader(
      section.title.c_str(), section.is_open ? ImGuiTreeNodeFlags_DefaultOpen : ImGuiTreeNodeFlags_None);
  ui.mark("section:" + section.title);
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  const float key = key_width(section, ui.scale);
  const float least = has_b ? 130 : 80;  // of what is said
  const bool is_stacked = ImGui::GetContentRegionAvail().x < (key + least) * ui.scale;
  const int columns = is_stacked ? 1 : has_b ? 3 : 2;
  if (!is_open || !ImGui::BeginTable(section.title.c_str(), columns, ImGuiTableFlags_SizingStretchProp)) return;
  if (!is_stacked) ImGui::TableSetupColumn("key", ImGuiTableColumnFlags_WidthFixed, key * ui.scale);
  if (has_b && !is_stacked) ImGui::TableSetupColumn("a", ImGuiTableColumnFlags_WidthStretch, 1);
  if (has_b && !is_stacked) ImGui::TableSetupColumn("b", ImGuiTableColumnFlags_WidthStretch, 1);
  for (const InspectorLine& line : section.lines) {
    ImGui::PushID(&line);  // keys and links may be repeated
    draw_line(ui, section, line, is_stacked);
    ImGui::PopID();
  }
  ImGui::EndTable();
}

}  // namespace

void draw_inspector(Ui& ui) {
  const InspectorView& view = ui.viewer->inspector();
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {6 * ui.scale, 4 * ui.scale});
  ImGui::SetCursorPos({10 * ui.scale, 8 * ui.scale});
  ImGui::BeginChild("inside",
                    {ImGui::GetContentRegionAvail().x - 4 * ui.scale, ImGui::GetContentRegionAvail().y - 4 * ui.scale},
                    false);
  if (view.title.empty()) {
    ImGui::TextDisabled("Select a node or a value.");
  } else {
    const ImFont* font = ui.fonts.title;
    ImGui::PushFont(ui.fonts.title);
    ImGui::TextUnformatted(
        cut_text(font, font->FontSize, view.title, ImGui::GetContentRegionAvail().x - 8 * ui.scale).c_str());
    ImGui::PopFont();
    tooltip(view.title.c_str());
    ImGui::TextDisabled("%s", view.subtitle.c_str());
    for (const InspectorSection& section : view.sections) draw_section(ui, section);
    if (!view.command.empty()) {
      ImGui::Dummy({0, 6 * ui.scale});
      if (small_button(ui, "Copy the command that repeats this", "copy_command"))
        find_command("tensor.copy_command")->run(*ui.viewer);
      tooltip(view.command.c_str());
      if (small_button(ui, "Copy the command that shows this view", "copy_view"))
        find_command("file.copy_view")->run(*ui.viewer);
    }
    if (ui.viewer->active_item() != 0 && (ui.viewer->active_item() > 0 || ui.viewer->row() >= 0) &&
        ui.viewer->graph.has_graph()) {
      if (small_button(ui, "Show the model's properties", "show_model")) ui.viewer->select_item(0);
    }
  }
  ImGui::EndChild();
  ImGui::PopStyleVar();
}

}  // namespace parallax::gui
