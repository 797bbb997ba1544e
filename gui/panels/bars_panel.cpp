// SPDX-License-Identifier: Apache-2.0
// The bars above and below: menus, search, what colors mean, messages, status.
#include <algorithm>

#include <fmt/format.h>

#include "gui/panels/panels.h"
#include "inspector/base/text.h"

namespace parallax::gui {
namespace {

// True for a switch that is on: its item has a mark.
bool is_on(const Viewer& viewer, const Command& command) {
  return (command.id == "file.desktop_chooser" && viewer.uses_desktop_chooser) ||
         (command.id == "graph.wheel" && viewer.wheel_zooms) || (command.id == "view.legend" && viewer.show_legend) ||
         (command.id == "view.shapes" && viewer.graph.shows_shapes) ||
         (command.id == "tensor.specials" && viewer.tensor().filter.specials_only) ||
         (command.id == "tensor.split" && viewer.tensor().is_split) ||
         (command.id == "tensor.montage" && viewer.tensor().is_montage);
}

void draw_recent_menu(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  const bool is_open = ImGui::BeginMenu("Recent", !viewer.recent.empty());
  ui.mark("file.recent");
  if (!is_open) return;
  for (size_t i = 0; i < viewer.recent.size(); ++i) {
    const std::string files = viewer.recent[i];
    const std::string title = cut_front(ui.fonts.base, ui.fonts.base->FontSize, title_of_recent(files), 520 * ui.scale);
    if (ImGui::MenuItem(fmt::format("{}##{}", title, i).c_str())) {
      const auto paths = split(files, kRecentSeparator);
      viewer.open({paths.begin(), paths.end()});
    }
    ui.mark(fmt::format("file.recent:{}", i));
  }
  ImGui::EndMenu();
}

void draw_menu_of(Ui& ui, const char* title, std::string_view group) {
  const std::string popup = fmt::format("menu {}", title);
  if (ImGui::Button(title)) ImGui::OpenPopup(popup.c_str());
  const ImVec2 below{ImGui::GetItemRectMin().x, ImGui::GetItemRectMax().y + 4 * ui.scale};
  ui.mark(fmt::format("menu.{}", title));
  ImGui::SameLine(0, 2);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {8 * ui.scale, 8 * ui.scale});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {8 * ui.scale, 5 * ui.scale});
  ImGui::SetNextWindowPos(below);
  if (ImGui::BeginPopup(popup.c_str())) {
    close_on_escape(ui);
    for (const Command& command : commands()) {
      const bool is_numbered = command.title.starts_with("Bookmark ") || command.title.starts_with("Other run ");
      if (command.group != group || is_numbered) continue;
      const std::string keys = readable_keys(command.keys.substr(0, command.keys.find(' ')));
      const std::string obstacle = obstacle_to(*ui.viewer, command);
      if (ImGui::MenuItem(command.title.data(), keys.c_str(), is_on(*ui.viewer, command), obstacle.empty()))
        command.run(*ui.viewer);
      ui.mark(std::string(command.id));
      if (!obstacle.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled)) show_tooltip(obstacle);
      if (command.id == "file.open") draw_recent_menu(ui);
    }
    ImGui::EndPopup();
  }
  ImGui::PopStyleVar(2);
}

void draw_search(Ui& ui, float width) {
  Viewer& viewer = *ui.viewer;
  if (ui.search_field != viewer.search() && !ImGui::IsAnyItemActive()) ui.search_field = viewer.search();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::SetNextItemWidth(width);
  if (viewer.focus_search) ImGui::SetKeyboardFocusHere();
  viewer.focus_search = false;
  const bool changed = text_field("##search", "search: name, op:MatMul, attr:axis=1, err>1e-3", ui.search_field);
  ui.mark("search");
  const bool has_keyboard = ImGui::IsItemActive() || ImGui::IsItemDeactivated();
  if (changed) {
    viewer.set_search(ui.search_field);
    if (!viewer.search().empty()) viewer.left_tab = LeftTab::table;  // where the hits are listed
  }
  if (has_keyboard && was_pressed(ui, "Enter")) viewer.focus_search = viewer.step_hit(1);
  if (!viewer.search_problem().empty()) {
    tooltip(viewer.search_problem().c_str());
  } else {
    tooltip(
        "Words and conditions that must all hold; Enter: next hit\nop:MatMul  dtype:float16  shape:1x?x768 (? is any "
        "dimension)  attr:axis  attr:axis=1  is:weight\nerr>1e-3  rel>0.01  ulp>4  sev>1\nerr: largest |a-b|; "
        "rel: relative error; sev: error / limit, from 1 on a divergence\nnan  inf  diverged  pass  mistrusted  "
        "missing  is:explained  is:near-tie  is:rounding");
  }
  if (viewer.search().empty() || viewer.document() == nullptr) return;
  const bool is_wrong = !viewer.search_problem().empty();
  const std::string found = is_wrong ? "?" : std::to_string(viewer.table_rows().size());
  ImGui::GetWindowDrawList()->AddText(
      {at.x + width - ImGui::CalcTextSize(found.c_str()).x - 8 * ui.scale, at.y + ImGui::GetStyle().FramePadding.y},
      is_wrong ? ui.theme().bad : ui.theme().dim, found.c_str());
}

void draw_color_by(Ui& ui, float width) {
  Viewer& viewer = *ui.viewer;
  const auto& current = colorings()[static_cast<size_t>(viewer.graph.color_by())];
  const bool is_pair = viewer.document() != nullptr && viewer.document()->is_pair();
  ImGui::SetNextItemWidth(width);
  const std::string label = fmt::format("color: {}", current.title);
  if (ImGui::BeginCombo("##color", label.c_str(), ImGuiComboFlags_HeightLargest)) {
    close_on_escape(ui);
    for (const ColorByInfo& coloring : colorings()) {
      const bool makes_sense =
          coloring.by == ColorBy::structure ? viewer.models() != nullptr : is_pair || !coloring.needs_comparison;
      if (ImGui::Selectable(coloring.title.data(), coloring.by == viewer.graph.color_by(),
                            makes_sense ? 0 : ImGuiSelectableFlags_Disabled))
        viewer.set_color_by(coloring.by);
      ui.mark(fmt::format("colour.{}", coloring.name));
    }
    ImGui::EndCombo();
  }
  ui.mark("colour_by");
  tooltip("What the colors of the graph stand for");
}

void draw_verdict(Ui& ui, const Comparison& comparison) {
  const bool bad = comparison.verdict == OverallVerdict::diverged;
  const bool good = comparison.verdict == OverallVerdict::pass;
  const ImU32 color = bad ? ui.theme().bad : good ? ui.theme().good : ui.theme().dim;
  ImGui::PushStyleColor(ImGuiCol_Text, color);
  ImGui::TextUnformatted(name_of(comparison.verdict).data());
  ImGui::PopStyleColor();
  const ComparisonSummary& s = comparison.summary;
  ImGui::SameLine(0, 8);
  ImGui::TextDisabled("%s", fmt::format("{} of {} values compared, {} diverged{}", s.compared, s.values, s.diverged,
                                        s.mistrusted > 0 ? fmt::format(", {} mistrusted", s.mistrusted) : "")
                                .c_str());
  if (const std::string explained = explained_text(comparison); !explained.empty()) {
    ImGui::SameLine(0, 0);
    ImGui::TextDisabled("%s", (", " + explained).c_str());
    tooltip(
        "Beyond their limits, and no node is to blame; is:explained finds them, the list Explained has the evidence");
  }
  const std::string why = explain_of(comparison);
  if (why.empty()) return;
  ImGui::SameLine(0, 8);
  // The note, the progress and the zoom follow it.
  const float room = ImGui::GetWindowWidth() * (ui.viewer->note.empty() && !ui.viewer->is_busy() ? 0.6F : 0.25F);
  ImGui::TextDisabled("%s", cut_text(ui.fonts.base, ui.fonts.base->FontSize, "(" + why + ")", room).c_str());
  tooltip(why.c_str());
}

}  // namespace

void draw_menu(Ui& ui) {
  ImGui::SetCursorPos({6 * ui.scale, 5 * ui.scale});
  for (const auto& [title, group] : {std::pair{"File", "File"},
                                     {"Edit", "Edit"},
                                     {"Go", "Go"},
                                     {"View", "View"},
                                     {"Graph", "Graph"},
                                     {"Tensor", "Tensor"},
                                     {"Help", "Help"}}) {
    draw_menu_of(ui, title, group);
  }
  const float from_menus = ImGui::GetCursorPosX(), left = ImGui::GetWindowWidth() - from_menus;
  const float search = std::min(300 * ui.scale, left * 0.34F), color = std::min(190 * ui.scale, left * 0.3F);
  const float right = ImGui::GetWindowWidth() - search - color - 14 * ui.scale;
  if (const Document* document = ui.viewer->document(); document != nullptr) {
    ImGui::SetCursorPosX(from_menus + 12 * ui.scale);
    ImGui::AlignTextToFramePadding();
    const std::string title =
        cut_text(ui.fonts.base, ui.fonts.base->FontSize, document->title(), right - from_menus - 24 * ui.scale);
    ImGui::TextUnformatted(title.c_str());
    tooltip(document->title().c_str());
    ImGui::SameLine(0, 0);
  }
  ImGui::SetCursorPosX(right);
  draw_search(ui, search);
  ImGui::SameLine(0, 6 * ui.scale);
  draw_color_by(ui, color);
}

void draw_messages(Ui& ui) {
  const std::string& message = ui.viewer->messages.back();
  const ImVec2 at = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + size.x, at.y + size.y}, faded(ui.theme().bad, 0.22F));
  ImGui::SetCursorPos({10 * ui.scale, 5 * ui.scale});
  ImGui::AlignTextToFramePadding();
  const size_t more = ui.viewer->messages.size() - 1;
  const std::string text = more > 0 ? fmt::format("{}   (and {} more)", message, more) : message;
  ImGui::TextUnformatted(cut_text(ui.fonts.base, ui.fonts.base->FontSize, text, size.x - 110 * ui.scale).c_str());
  tooltip(message.c_str());
  copy_menu(ui, "copy message", {{"Copy the message", [&] { return message; }}});
  ImGui::SameLine(size.x - 90 * ui.scale);
  if (small_button(ui, "Dismiss", "dismiss")) ui.viewer->messages.pop_back();
}

std::string zoom_text(const Ui& ui) {
  return fmt::format("{:.0f} %", ui.viewer->active_graph().camera.zoom / ui.scale * 100);
}

void draw_status(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  ImGui::SetCursorPos({8 * ui.scale, 0});
  ImGui::AlignTextToFramePadding();
  const Document* document = viewer.document();
  if (document != nullptr && document->comparison != nullptr) {
    if (viewer.is_running() || viewer.was_cut_short()) {
      ImGui::TextDisabled(viewer.is_running() ? "so far:" : "the run was cut short; until then:");
      ImGui::SameLine(0, 6 * ui.scale);
    }
    draw_verdict(ui, *document->comparison);
  } else if (viewer.models() != nullptr) {
    ImGui::TextDisabled("%s", viewer.models()->verdict_text().c_str());
  } else if (document != nullptr) {
    ImGui::TextDisabled("%s", fmt::format("{} values", document->rows.size()).c_str());
  } else {
    ImGui::TextDisabled("nothing is open");
  }
  if (!viewer.note.empty()) {
    ImGui::SameLine(0, 24 * ui.scale);
    ImGui::TextUnformatted(
        cut_text(ui.fonts.base, ui.fonts.base->FontSize, viewer.note, ImGui::GetWindowWidth() * 0.35F).c_str());
  }
  const float right = ImGui::GetWindowWidth();
  if (const DocumentJob* job = viewer.job(); job != nullptr) {
    ImGui::SameLine(right - 420 * ui.scale);
    const float share = job->total() > 0 ? static_cast<float>(job->done()) / static_cast<float>(job->total()) : 0;
    const std::string text =
        job->total() > 0 ? fmt::format("{} {}/{}", job->title(), job->done(), job->total()) : job->title() + "...";
    ImGui::PushStyleColor(ImGuiCol_PlotHistogram, faded(ui.theme().accent, 0.45F));  // text stands over it
    ImGui::ProgressBar(share, {220 * ui.scale, ImGui::GetFrameHeight() - 4 * ui.scale}, text.c_str());
    ImGui::PopStyleColor();
    ImGui::SameLine(0, 6);
    if (small_button(ui, "Cancel", "job.cancel")) viewer.cancel_job();
  }
  if (viewer.graph.has_graph()) {
    const std::string zoom = zoom_text(ui) + "   ? keys";
    const float at = right - ImGui::CalcTextSize(zoom.c_str()).x - 10 * ui.scale;
    if (ImGui::GetItemRectMax().x - ImGui::GetWindowPos().x > at) return;  // no room
    ImGui::SameLine(at);
    ImGui::TextDisabled("%s", zoom.c_str());
  }
}

}  // namespace parallax::gui
