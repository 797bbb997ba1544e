// The tensor viewer: what is looked at, in which measure and range, and the three parts below it.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gui/panels/panels.h"
#include "gui/panels/tensor_parts.h"

namespace parallax::gui {
namespace {

void draw_modes(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  const TensorModel& model = *viewer.tensor().model;
  for (const TensorModeInfo& info : tensor_modes()) {
    if (info.needs_both && !model.has_b()) continue;
    const std::string name = fmt::format("mode.{}", info.name);
    if (small_button(ui, info.title.data(), name.c_str(), viewer.tensor().mode == info.mode))
      viewer.set_tensor_mode(info.mode);
    tooltip(info.meaning.data());
    ImGui::SameLine(0, 3 * ui.scale);
  }
}

void axis_combo(Ui& ui, const char* name, int axis, bool is_row) {
  TensorModel& model = *ui.viewer->tensor().model;
  ImGui::SetNextItemWidth(76 * ui.scale);
  const std::string label = fmt::format("{} {}", is_row ? "row" : "col", axis);
  if (ImGui::BeginCombo(name, label.c_str())) {
    for (int i = 0; i < static_cast<int>(model.shape().rank()); ++i) {
      if (!ImGui::Selectable(fmt::format("axis {} ({})", i, model.shape()[static_cast<size_t>(i)]).c_str(), i == axis))
        continue;
      if (is_row) {
        model.set_axes(i, model.column_axis());
      } else {
        model.set_axes(model.row_axis(), i);
      }
      ui.heat_zoom = 0;
      ui.viewer->refresh_range();
    }
    ImGui::EndCombo();
  }
  ui.mark(is_row ? "axis.row" : "axis.column");
  ImGui::SameLine(0, 4 * ui.scale);
}

// Which two axes are shown, and where the others stand.
void draw_slice(Ui& ui) {
  TensorModel& model = *ui.viewer->tensor().model;
  if (model.shape().rank() < 2) return;
  axis_combo(ui, "##row", model.row_axis(), true);
  axis_combo(ui, "##column", model.column_axis(), false);
  for (int axis = 0; axis < static_cast<int>(model.shape().rank()); ++axis) {
    const int64_t size = model.shape()[static_cast<size_t>(axis)];
    if (axis == model.row_axis() || axis == model.column_axis() || size <= 1) continue;
    int64_t at = model.index()[static_cast<size_t>(axis)];
    const int64_t least = 0, most = size - 1;
    ImGui::SetNextItemWidth(110 * ui.scale);
    if (ImGui::SliderScalar(fmt::format("##axis{}", axis).c_str(), ImGuiDataType_S64, &at, &least, &most,
                            fmt::format("axis {}: %lld of {}", axis, size).c_str())) {
      model.set_index(axis, at);
      ui.viewer->tensor().element = -1;
      ui.viewer->refresh_range();
    }
    ui.mark(fmt::format("axis.{}", axis));
    ImGui::SameLine(0, 4 * ui.scale);
  }
}

void draw_title(Ui& ui) {
  const Viewer& viewer = *ui.viewer;
  const TensorModel& model = *viewer.tensor().model;
  const ValueRow& row = viewer.document()->rows[static_cast<size_t>(viewer.row())];
  const std::string text = fmt::format("{}  {}{}", row.path, name_of(model.dtype()), model.shape().to_string());
  const float left = ImGui::GetContentRegionAvail().x - 12 * ui.scale;
  if (left < 60) return ImGui::NewLine();
  ImGui::AlignTextToFramePadding();
  ImGui::TextDisabled("%s", cut_text(ui.fonts.base, ui.fonts.base->FontSize, text, left).c_str());
  tooltip(text.c_str());
}

// Pictures and lists are made again only when what they show has changed.
void refresh(Ui& ui) {
  TensorPane& pane = ui.viewer->tensor();
  if (ui.heat_version == pane.version) return;
  ui.heat_version = pane.version;
  ui.heat_image = pane.model->image(pane.mode, pane.range);
  ui.histogram = pane.model->histogram();
  ui.worst = pane.model->worst(pane.mode, 1000);
  ui.heat_zoom = 0;
  if (pane.specials_only) {
    for (uint32_t& pixel : ui.heat_image.pixels) {
      const Colour colour{static_cast<uint8_t>(pixel), static_cast<uint8_t>(pixel >> 8),
                          static_cast<uint8_t>(pixel >> 16)};
      const bool special = colour == kNanColour || colour == kPositiveInfColour || colour == kNegativeInfColour;
      const auto grey = static_cast<uint32_t>(60 + luminance(colour) * 120);
      if (!special) pixel = grey | grey << 8 | grey << 16 | 0xFF000000U;
    }
  }
  if (ui.make_texture && !ui.heat_image.pixels.empty()) {
    ui.heat = ui.make_texture(ui.heat, ui.heat_image.width, ui.heat_image.height, ui.heat_image.pixels.data());
  }
}

}  // namespace

void draw_tensor(Ui& ui) {
  TensorPane& pane = ui.viewer->tensor();
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {6 * ui.scale, 4 * ui.scale});
  ImGui::SetCursorPos({8 * ui.scale, 5 * ui.scale});
  ImGui::BeginGroup();
  if (!pane.model.has_value()) {
    ImGui::TextDisabled("%s", pane.problem.empty() ? "Select a value to see its elements." : pane.problem.c_str());
    ImGui::EndGroup();
    ImGui::PopStyleVar();
    return;
  }
  refresh(ui);
  draw_modes(ui);
  ImGui::SameLine(0, 12 * ui.scale);
  draw_slice(ui);
  draw_title(ui);
  if (!pane.problem.empty()) ImGui::TextDisabled("%s", pane.problem.c_str());
  const ImVec2 area{ImGui::GetContentRegionAvail().x - 8 * ui.scale, ImGui::GetContentRegionAvail().y - 6 * ui.scale};
  const float gap = 8 * ui.scale;
  const float side = std::clamp(area.x * 0.25F, 190 * ui.scale, 340 * ui.scale),
              table = std::clamp(area.x * 0.4F, 230 * ui.scale, 620 * ui.scale);
  ImGui::BeginChild("heat", {std::max(80.0F, area.x - side - table - 2 * gap), area.y}, false,
                    ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  draw_heat_map(ui);
  ImGui::EndChild();
  ImGui::SameLine(0, gap);
  ImGui::BeginChild("figures", {side, area.y});
  draw_range(ui);
  draw_histogram(ui);
  draw_element(ui);
  ImGui::EndChild();
  ImGui::SameLine(0, gap);
  ImGui::BeginChild("elements", {table, area.y});
  draw_elements(ui);
  ImGui::EndChild();
  ImGui::EndGroup();
  ImGui::PopStyleVar();
}

}  // namespace parallax::gui
