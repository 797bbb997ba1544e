// SPDX-License-Identifier: Apache-2.0
// The graph canvas: the mouse on it, and the ribbon of all values next to it.
#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "gui/panels/canvas_painter.h"
#include "gui/panels/panels.h"
#include "inspector/base/text.h"
#include "inspector/render/severity_style.h"

namespace parallax::gui {
namespace {

// A drag with Ctrl marks a part of the graph that fills the pane when the button is let go.
bool mark_zoom_box(Ui& ui, GraphView& graph, ImVec2 corner) {
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsItemActivated() && io.KeyCtrl) {
    ui.zoom_box = io.MousePos;
    ui.zoomed_graph = &graph;
  }
  if (ui.zoom_box.x < 0 || ui.zoomed_graph != &graph) return false;
  const ImVec2 least{std::min(ui.zoom_box.x, io.MousePos.x), std::min(ui.zoom_box.y, io.MousePos.y)},
      greatest{std::max(ui.zoom_box.x, io.MousePos.x), std::max(ui.zoom_box.y, io.MousePos.y)};
  if (ImGui::IsItemActive()) {
    ImGui::GetForegroundDrawList()->AddRectFilled(least, greatest, faded(ui.theme().accent, 0.18F));
    ImGui::GetForegroundDrawList()->AddRect(least, greatest, ui.theme().accent);
    return true;
  }
  ui.zoom_box = {-1, -1};
  if (greatest.x - least.x > 8 && greatest.y - least.y > 8) {
    graph.zoom_to(least.x - corner.x, least.y - corner.y, greatest.x - corner.x, greatest.y - corner.y);
  }
  return true;
}

void move_about(Ui& ui, GraphView& graph, ImVec2 corner) {
  const ImGuiIO& io = ImGui::GetIO();
  const bool dragged = ImGui::IsItemActive() && (ImGui::IsMouseDragging(ImGuiMouseButton_Left) ||
                                                 ImGui::IsMouseDragging(ImGuiMouseButton_Middle));
  if (!mark_zoom_box(ui, graph, corner) && dragged) {
    graph.move(-io.MouseDelta.x, -io.MouseDelta.y);
  }
  if (!ImGui::IsItemHovered() || (io.MouseWheel == 0 && io.MouseWheelH == 0)) return;
  if (io.KeyCtrl != ui.viewer->wheel_zooms) {
    graph.zoom_at(io.MousePos.x - corner.x, io.MousePos.y - corner.y, std::pow(1.15F, io.MouseWheel));
  } else {
    const float step = 60 * ui.scale;
    graph.move(-(io.KeyShift ? io.MouseWheel : io.MouseWheelH) * step, io.KeyShift ? 0 : -io.MouseWheel * step);
  }
}

void click(Ui& ui, GraphView& graph, int32_t item) {
  Viewer& viewer = *ui.viewer;
  const ImGuiIO& io = ImGui::GetIO();
  const ImVec2 moved = ImGui::GetMouseDragDelta(ImGuiMouseButton_Left, 0);
  const bool was_click = ImGui::IsItemDeactivated() && std::abs(moved.x) + std::abs(moved.y) < 5;
  if (was_click && item > 0) &graph == &viewer.graph_b ? viewer.select_item_b(item) : viewer.select_item(item);
  const bool twice = ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left);
  if (twice && item > 0 && graph.can_open(item)) viewer.set_open(graph, item, !graph.is_open(item), io.KeyAlt);
}

std::string value_text(const GraphView& graph, const SceneWire& wire) {
  const GraphItem& source = graph.items().item(wire.source);
  const ValueDef& value = source.graph->values[static_cast<size_t>(wire.value)];
  return fmt::format("{}\n{}", value.name, to_string(value.type));
}

void describe_hovered(Ui& ui, GraphView& graph, int32_t item) {
  if (item > 0) {
    const GraphItem& shown = graph.items().item(item);
    const ItemSummary& summary = graph.summary(item);
    std::string text = shown.title + (shown.detail.empty() ? "" : "\n" + shown.detail);
    if (shown.has_children())
      text += fmt::format("\n{} node{}{}", shown.node_count, shown.node_count == 1 ? "" : "s",
                          shown.like > 1 ? fmt::format(", {} blocks like this", shown.like) : "");
    if (summary.diverged + summary.passed + summary.mistrusted + summary.not_compared > 0) {
      text +=
          fmt::format("\n{} diverged, {} passed{}, {} mistrusted, {} not compared", summary.diverged, summary.passed,
                      summary.explained > 0 ? fmt::format(" ({} of them explained)", summary.explained) : "",
                      summary.mistrusted, summary.not_compared);
    }
    if (graph.can_open(item)) text += "\ndouble click, or Enter: open or close";
    show_tooltip(text);
  } else if (ui.hovered_wire >= 0) {
    show_tooltip(value_text(graph, graph.scene().wires[static_cast<size_t>(ui.hovered_wire)]));
  }
}

}  // namespace

// Which iteration of a loop (or step of a decoder) the colors tell of.
void draw_iterations(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  const int64_t count = viewer.document()->iterations;
  ImGui::SetCursorPos({8 * ui.scale, 4 * ui.scale});
  ImGui::AlignTextToFramePadding();
  ImGui::TextDisabled("color by iteration");
  ImGui::SameLine(0, 8 * ui.scale);
  const auto step = [&](const char* label, const char* name, const char* command) {
    if (small_button(ui, label, name)) find_command(command)->run(viewer);
  };
  step("<", "iteration.previous", "graph.previous_iteration");
  ImGui::SameLine(0, 2 * ui.scale);
  int64_t at = viewer.graph.iteration() + 1;
  const std::string text =
      at == 0 ? fmt::format("all {} iterations", count) : fmt::format("iteration {} of {}", at - 1, count);
  if (index_slider(ui, "iteration", text, at, count + 1, 190 * ui.scale)) viewer.set_iteration(at - 1);
  tooltip("Whose values give the colors: of all iterations the worst, or of one");
  ImGui::SameLine(0, 2 * ui.scale);
  step(">", "iteration.next", "graph.next_iteration");
  ImGui::SameLine(0, 10 * ui.scale);
  ImGui::TextDisabled(", / . : same tensor, previous or next iteration");
}

void draw_canvas(Ui& ui, GraphView& graph) {
  const ImVec2 corner = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(corner, {corner.x + size.x, corner.y + size.y}, ui.theme().canvas);
  if (!graph.has_graph()) {
    ImGui::SetCursorPos({20 * ui.scale, 20 * ui.scale});
    ImGui::TextDisabled("This dump holds no graph. Its values are in the table (F4).");
    return;
  }
  const bool resized = graph.canvas_width != size.x || graph.canvas_height != size.y;
  // The middle of the canvas stays in the middle.
  if (graph.pixel_scale != ui.scale) {
    const bool was_fitted = graph.is_fitted;
    graph.zoom_at(graph.canvas_width / 2, graph.canvas_height / 2, ui.scale / graph.pixel_scale);
    graph.is_fitted = was_fitted;
    graph.pixel_scale = ui.scale;
  }
  if (resized) {
    graph.camera.x += (graph.canvas_width - size.x) / 2 / graph.camera.zoom;
    graph.camera.y += (graph.canvas_height - size.y) / 2 / graph.camera.zoom;
    graph.canvas_width = size.x;
    graph.canvas_height = size.y;
    graph.fit_again();
  }
  ImGui::InvisibleButton("graph", size, ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonMiddle);
  ui.mark(&graph == &ui.viewer->graph_b ? "graph_b" : "graph");
  move_about(ui, graph, corner);
  const Camera& camera = graph.camera;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  int32_t item = -1;
  ui.hovered_item = ui.hovered_wire = -1;
  list->PushClipRect(corner, {corner.x + size.x, corner.y + size.y}, true);
  if (ImGui::IsItemHovered()) {
    item = graph.item_at(camera.x + (mouse.x - corner.x) / camera.zoom, camera.y + (mouse.y - corner.y) / camera.zoom);
    const bool on_frame = item <= 0 || (graph.can_open(item) && graph.is_open(item)) ||
                          graph.items().item(item).kind == GraphItem::Kind::body;
    if (on_frame) ui.hovered_wire = CanvasPainter(ui, graph, list, corner, size).wire_at(mouse);
    ui.hovered_item = on_frame ? -1 : item;
  }
  click(ui, graph, item);
  CanvasPainter painter(ui, graph, list, corner, size);  // after the click: it may have changed the scene
  if (ui.hovered_wire >= static_cast<int32_t>(graph.scene().wires.size())) ui.hovered_wire = -1;
  // Frames first, wires over them, titles and nodes over the wires.
  painter.draw_frames();
  painter.draw_wires();
  painter.draw_titles();
  if (graph.shows_shapes) painter.draw_shapes();
  painter.draw_nodes();
  list->PopClipRect();
  if (!ImGui::IsItemActive() && ImGui::IsItemHovered()) describe_hovered(ui, graph, item);
}

namespace {

// The worst of the values that fall on one pixel of the ribbon.
ImU32 ribbon_color(const Ui& ui, const Document& document, size_t begin, size_t end) {
  std::optional<double> worst;
  bool is_any_explained = false, is_any_diverged = false;
  for (size_t row = begin; row < end; ++row) {
    const ValueComparison* value = document.compared(static_cast<int32_t>(row));
    if (value == nullptr || value->verdict == Verdict::not_compared) continue;
    if (!worst.has_value() || judged_severity(*value) > *worst) worst = judged_severity(*value);
    is_any_explained |= is_explained(*value);
    is_any_diverged |= value->verdict == Verdict::diverged;
  }
  if (!worst.has_value()) return faded(ui.theme().dim, 0.25F);
  if (is_any_explained && !is_any_diverged) return to_imgui(color_from_hex(kExplainedFill));
  if (*worst < 0.1) return ui.theme().node;
  const double t = *worst < 1 ? 0.12 : std::min(0.9, 0.42 + 0.16 * std::log10(*worst));
  return to_imgui(magnitude_color(std::isfinite(*worst) ? t : 0.9, ui.viewer->is_dark));
}

}  // namespace

void draw_ribbon(Ui& ui) {
  const Document& document = *ui.viewer->document();
  const ImVec2 corner = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(corner, {corner.x + size.x, corner.y + size.y}, ui.theme().panel);
  ImGui::InvisibleButton("ribbon", size);
  ui.mark("ribbon");
  const size_t count = document.rows.size();
  if (count == 0 || size.y < 4) return;
  const auto bands = std::min(count, static_cast<size_t>(size.y));
  const float band = size.y / static_cast<float>(bands);
  for (size_t i = 0; i < bands; ++i) {
    const float y = corner.y + band * static_cast<float>(i);
    const ImU32 color =
        ribbon_color(ui, document, count * i / bands, std::max(count * i / bands + 1, count * (i + 1) / bands));
    list->AddRectFilled({corner.x + 3 * ui.scale, y},
                        {corner.x + size.x - 3 * ui.scale, y + std::max(1.0F, band - (band > 4 ? 1.0F : 0.0F))}, color);
  }
  if (ui.viewer->row() >= 0) {
    const float y = corner.y + size.y * (static_cast<float>(ui.viewer->row()) + 0.5F) / static_cast<float>(count);
    list->AddRect({corner.x, y - 3 * ui.scale}, {corner.x + size.x, y + 3 * ui.scale}, ui.theme().accent, 0, 0,
                  2 * ui.scale);
  }
  const auto at = static_cast<int32_t>((ImGui::GetIO().MousePos.y - corner.y) / size.y * static_cast<float>(count));
  const int32_t row = std::clamp(at, 0, static_cast<int32_t>(count) - 1);
  if (ImGui::IsItemActive() && row != ui.viewer->row()) ui.viewer->select_row(row);
  if (ImGui::IsItemHovered())
    show_tooltip(fmt::format("{} of {}: {}", row + 1, count, document.rows[static_cast<size_t>(row)].path));
}

void draw_welcome(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  const ImVec2 corner = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  ImGui::GetWindowDrawList()->AddRectFilled(corner, {corner.x + size.x, corner.y + size.y}, ui.theme().canvas);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {8 * ui.scale, 8 * ui.scale});
  const float width = 460 * ui.scale;
  ImGui::SetCursorPos({(size.x - width) / 2, size.y * 0.24F});
  ImGui::BeginGroup();
  ImGui::PushFont(ui.fonts.huge);
  ImGui::TextUnformatted("Parallax");
  ImGui::PopFont();
  ImGui::TextDisabled("Finds the first tensor at which two runs of an ONNX model diverge.");
  ImGui::Dummy({0, 10 * ui.scale});
  const ImVec2 button{width, ImGui::GetFrameHeight() * 1.5F};
  if (ImGui::Button("Open a model, a dump or two dumps    Ctrl+O", button)) viewer.show_open = true;
  ui.mark("welcome.open");
  if (ImGui::Button("Run a model on two executors    Ctrl+R", button)) viewer.show_run = true;
  ui.mark("welcome.run");
  ImGui::TextDisabled("or drop the files on this window");
  const size_t count = std::min<size_t>(8, viewer.recent.size());
  if (count > 0) {
    ImGui::Dummy({0, 10 * ui.scale});
    ImGui::TextDisabled("Recent");
  }
  for (size_t i = 0; i < count; ++i) {
    const std::string& files = viewer.recent[i];
    const std::string title = cut_front(ui.fonts.base, ui.fonts.base->FontSize, title_of_recent(files), width);
    if (ImGui::Selectable(fmt::format("{}##{}", title, i).c_str(), false, 0, {width, 0})) {
      const auto paths = split(files, kRecentSeparator);
      viewer.open({paths.begin(), paths.end()});
    }
    ui.mark(fmt::format("recent:{}", i));
    tooltip(title_of_recent(files).c_str());
  }
  ImGui::EndGroup();
  ImGui::PopStyleVar();
}

}  // namespace parallax::gui
