// SPDX-License-Identifier: Apache-2.0
// The frame around all windows: fixed panes with splitters between them.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gui/panels/panels.h"

namespace parallax::gui {
namespace {

// A bar that is dragged; gives the new share.
void splitter(Ui& ui, const char* name, bool vertical, float length, float whole, float& share, bool grows_right) {
  const float thickness = 5 * ui.scale;
  ImGui::InvisibleButton(name, vertical ? ImVec2(thickness, length) : ImVec2(length, thickness));
  ui.mark(name);
  const bool active = ImGui::IsItemActive();
  if (ImGui::IsItemHovered() || active) {
    ImGui::SetMouseCursor(vertical ? ImGuiMouseCursor_ResizeEW : ImGuiMouseCursor_ResizeNS);
    ImGui::GetWindowDrawList()->AddRectFilled(ImGui::GetItemRectMin(), ImGui::GetItemRectMax(), ui.theme().accent);
  }
  if (!active) return;
  const float delta = (vertical ? ImGui::GetIO().MouseDelta.x : ImGui::GetIO().MouseDelta.y) / whole;
  share = std::clamp(share + (grows_right ? delta : -delta), 0.1F, 0.7F);
}

struct Panes {
  float left = 0, right = 0, bottom = 0;  // sizes in pixels; 0: not shown
};

Panes panes_of(const Ui& ui, ImVec2 area) {
  const Preset preset = ui.viewer->preset;
  const Document* document = ui.viewer->document();
  Panes panes{area.x * ui.left, area.x * ui.right, area.y * ui.bottom};
  if (preset == Preset::graph || preset == Preset::tensor) panes.left = 0;
  if (preset == Preset::tensor) panes.bottom = area.y * std::max(ui.bottom, 0.52F);
  if (preset == Preset::graph || preset == Preset::table) panes.bottom = 0;
  // A model alone has the elements of its weights to look at.
  const TensorPane& pane = ui.viewer->tensor();
  const bool is_weight = pane.model.has_value() || pane.texts.has_value() || !pane.weight.problem.empty();
  const bool has_values =
      document != nullptr && (document->a != nullptr || document->comparison != nullptr || is_weight);
  if (!has_values) panes.bottom = 0;
  if (document == nullptr) panes.left = panes.right = 0;
  if (preset == Preset::table) panes.left = area.x * 0.56F;
  return panes;
}

void draw_left(Ui& ui, const Panes& panes, float height, float width) {
  if (panes.left == 0) return;
  ImGui::BeginChild("lists", {panes.left, height});
  draw_lists(ui);
  ImGui::EndChild();
  ImGui::SameLine(0, 0);
  splitter(ui, "splitter.left", true, height, width, ui.left, true);
  ImGui::SameLine(0, 0);
}

// A graph below the name of its file.
void draw_model(Ui& ui, const char* side, const std::string& file, GraphView& graph, ImVec2 size) {
  const float title = ImGui::GetFrameHeight();
  ImGui::BeginGroup();
  ImGui::BeginChild(fmt::format("title {}", side).c_str(), {size.x, title}, false, ImGuiWindowFlags_NoScrollbar);
  ImGui::SetCursorPos({8 * ui.scale, 0});
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted(side);
  ImGui::SameLine(0, 8 * ui.scale);
  const ImFont* font = ui.fonts.base;
  ImGui::TextDisabled("%s", cut_front(font, font->FontSize, file, size.x - 32 * ui.scale).c_str());
  tooltip(file.c_str());
  ImGui::EndChild();
  ImGui::BeginChild(fmt::format("canvas {}", side).c_str(), {size.x, size.y - title}, false,
                    ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  draw_canvas(ui, graph);
  ImGui::EndChild();
  ImGui::EndGroup();
}

void draw_two_models(Ui& ui, float width, float height) {
  const TwoModels& models = *ui.viewer->models();
  const bool is_narrow = width < 420 * ui.scale && width < height;  // then A is above B
  const float bar = 5 * ui.scale, whole = is_narrow ? height : width, first = std::floor((whole - bar) * ui.middle),
              second = whole - bar - first;
  ImGui::BeginGroup();
  draw_model(ui, "A", models.name_a, ui.viewer->graph, is_narrow ? ImVec2(width, first) : ImVec2(first, height));
  if (!is_narrow) ImGui::SameLine(0, 0);
  splitter(ui, "splitter.middle", !is_narrow, is_narrow ? width : height, whole, ui.middle, true);
  if (!is_narrow) ImGui::SameLine(0, 0);
  draw_model(ui, "B", models.name_b, ui.viewer->graph_b, is_narrow ? ImVec2(width, second) : ImVec2(second, height));
  ImGui::EndGroup();
  ui.mark("graphs");
}

void draw_center(Ui& ui, float width, float height) {
  const bool is_repeated = ui.viewer->document() != nullptr && ui.viewer->document()->iterations > 0;
  ImGui::BeginGroup();
  if (is_repeated) {
    const float row_tile = ImGui::GetFrameHeight() + 8 * ui.scale;
    ImGui::BeginChild("iterations", {width, row_tile}, false, ImGuiWindowFlags_NoScrollbar);
    draw_iterations(ui);
    ImGui::EndChild();
    height -= row_tile;
  }
  const bool is_two = ui.viewer->models() != nullptr;
  const bool has_values = is_two && ui.viewer->document()->is_pair();
  const float ribbon = ui.viewer->document() != nullptr && (!is_two || has_values) ? 16 * ui.scale : 0;
  const float legend = legend_height(ui, width);
  const bool has_room = legend > 0 && height > legend * 4;  // else the graph needs it
  if (has_room) height -= legend;
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  if (is_two) {
    draw_two_models(ui, width - ribbon, height);
  } else {
    ImGui::BeginChild("canvas", {width - ribbon, height}, false,
                      ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
    ui.viewer->document() == nullptr ? draw_welcome(ui) : draw_canvas(ui, ui.viewer->graph);
    ImGui::EndChild();
  }
  if (ribbon > 0) {
    ImGui::SameLine(0, 0);
    ImGui::BeginChild("ribbon", {ribbon, height}, false, ImGuiWindowFlags_NoScrollbar);
    draw_ribbon(ui);
    ImGui::EndChild();
  }
  if (has_room) {
    ImGui::BeginChild("legend", {width, legend}, false, ImGuiWindowFlags_NoScrollbar);
    draw_legend(ui);
    ImGui::EndChild();
  }
  ImGui::PopStyleVar();
  ImGui::EndGroup();
}

void draw_bottom(Ui& ui, const Panes& panes, float width, float height) {
  splitter(ui, "splitter.bottom", false, width, height, ui.bottom, false);
  ImGui::BeginChild("tensor", {width, panes.bottom}, false,
                    ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  draw_tensor(ui);
  ImGui::EndChild();
  ui.mark("tensor");
}

void draw_panes(Ui& ui, ImVec2 area) {
  const TensorPane& pane = ui.viewer->tensor();
  if (ui.viewer->tensor_maximized && (pane.model.has_value() || !pane.problem.empty())) {
    ImGui::BeginChild("tensor", area, false, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
    draw_tensor(ui);
    ImGui::EndChild();
    ui.mark("tensor");
    return;
  }
  const Panes panes = panes_of(ui, area);
  const float bar = 5 * ui.scale;
  const float main_width = area.x - (panes.right > 0 ? panes.right + bar : 0);
  ImGui::BeginChild("main", {main_width, area.y}, false,
                    ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  const float upper = area.y - (panes.bottom > 0 ? panes.bottom + bar : 0);
  draw_left(ui, panes, upper, area.x);
  draw_center(ui, main_width - (panes.left > 0 ? panes.left + bar : 0), upper);
  if (panes.bottom > 0) draw_bottom(ui, panes, main_width, area.y);
  ImGui::EndChild();
  if (panes.right == 0) return;
  ImGui::SameLine(0, 0);
  splitter(ui, "splitter.right", true, area.y, area.x, ui.right, false);
  ImGui::SameLine(0, 0);
  ImGui::BeginChild("inspector", {panes.right, area.y});
  draw_inspector(ui);
  ImGui::EndChild();
}

}  // namespace

void draw_frame(Ui& ui) {
  ui.widgets.clear();
  Viewer& viewer = *ui.viewer;
  viewer.graph.is_dark = viewer.graph_b.is_dark = viewer.is_dark;
  viewer.graph_b.shows_shapes = viewer.graph.shows_shapes;
  apply_theme(ui.theme(), ui.scale);
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({0, 0});
  ImGui::SetNextWindowSize(size);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {0, 0});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, 0});
  constexpr ImGuiWindowFlags kFlags = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove |
                                      ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus |
                                      ImGuiWindowFlags_NoScrollWithMouse;
  ImGui::Begin("Parallax", nullptr, kFlags);
  const float bar = ImGui::GetFrameHeight() + 10 * ui.scale, status = ImGui::GetFrameHeight();
  ImGui::BeginChild("menu", {size.x, bar}, false, ImGuiWindowFlags_NoScrollbar);
  draw_menu(ui);
  ImGui::EndChild();
  float used = bar + status;
  if (!ui.viewer->messages.empty()) {
    ImGui::BeginChild("messages", {size.x, bar}, false, ImGuiWindowFlags_NoScrollbar);
    draw_messages(ui);
    ImGui::EndChild();
    used += bar;
  }
  draw_panes(ui, {size.x, size.y - used});
  ImGui::BeginChild("status", {size.x, status}, false, ImGuiWindowFlags_NoScrollbar);
  draw_status(ui);
  ImGui::EndChild();
  ImGui::End();
  ImGui::PopStyleVar(2);
  draw_dialogs(ui);
}

}  // namespace parallax::gui
