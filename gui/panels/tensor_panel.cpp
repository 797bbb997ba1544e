// The tensor viewer: what is looked at, in which measure and slice, and the three parts below it.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gui/panels/panels.h"
#include "gui/panels/tensor_parts.h"

namespace parallax::gui {
namespace {

void draw_modes(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  TensorPane& pane = viewer.tensor();
  for (const TensorModeInfo& info : tensor_modes()) {
    if (info.needs_both && !pane.model->has_b()) continue;
    const std::string name = fmt::format("mode.{}", info.name);
    if (small_button(ui, info.title.data(), name.c_str(), pane.mode == info.mode)) viewer.set_tensor_mode(info.mode);
    tooltip(info.meaning.data());
    ImGui::SameLine(0, 3 * ui.scale);
  }
  if (pane.model->has_b()) {
    ImGui::SameLine(0, 10 * ui.scale);
    if (small_button(ui, "split", "split", pane.is_split)) pane.is_split = !pane.is_split;
    tooltip("A, B and the measure beside each other, zoomed together (8)");
  }
  ImGui::SameLine(0, 3 * ui.scale);
  if (!pane.model->can_tile()) return;
  if (small_button(ui, "tiles", "montage", pane.is_montage)) viewer.set_montage(!pane.is_montage);
  tooltip("All slices along the next axis as tiles (9)");
  ImGui::SameLine(0, 3 * ui.scale);
}

void axis_combo(Ui& ui, const char* name, int axis, bool is_row) {
  TensorModel& model = *ui.viewer->tensor().model;
  const std::string label = fmt::format("{} {}", is_row ? "rows" : "cols", axis);
  ImGui::SetNextItemWidth(84 * ui.scale);
  if (ImGui::BeginCombo(name, label.c_str())) {
    for (int i = 0; i < static_cast<int>(model.shape().rank()); ++i) {
      if (!ImGui::Selectable(fmt::format("axis {} ({})", i, model.shape()[static_cast<size_t>(i)]).c_str(), i == axis))
        continue;
      if (is_row) {
        model.set_axes(i, model.column_axis());
      } else {
        model.set_axes(model.row_axis(), i);
      }
      ui.viewer->refresh_range();
    }
    ImGui::EndCombo();
  }
  ui.mark(is_row ? "axis.row" : "axis.column");
  tooltip(is_row ? "The axis that runs downward" : "The axis that runs to the right");
  ImGui::SameLine(0, 4 * ui.scale);
}

// Which two axes are shown, and where the others stand.
void draw_slice(Ui& ui) {
  TensorModel& model = *ui.viewer->tensor().model;
  if (model.shape().rank() < 2) return;
  ImGui::SameLine(0, 10 * ui.scale);
  axis_combo(ui, "##row", model.row_axis(), true);
  axis_combo(ui, "##column", model.column_axis(), false);
  for (int axis = 0; axis < static_cast<int>(model.shape().rank()); ++axis) {
    const int64_t size = model.shape()[static_cast<size_t>(axis)];
    const bool is_shown = axis == model.row_axis() || axis == model.column_axis() || axis == model.montage_axis();
    if (is_shown || size <= 1) continue;
    const float width = 104 * ui.scale;
    if (ImGui::GetContentRegionAvail().x < width) ImGui::NewLine();
    int64_t at = model.index()[static_cast<size_t>(axis)];
    if (index_slider(ui, fmt::format("axis.{}", axis).c_str(), fmt::format("axis {}: {} / {}", axis, at, size), at,
                     size, width)) {
      model.set_index(axis, at);
      ui.viewer->tensor().element = -1;
      ui.viewer->refresh_range();
    }
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
  ImGui::SameLine(0, 8 * ui.scale);
  ImGui::AlignTextToFramePadding();
  ImGui::TextDisabled("%s", cut_text(ui.fonts.base, ui.fonts.base->FontSize, text, left).c_str());
  tooltip(text.c_str());
}

// Lists and figures are made again only when what they show has changed.
void refresh(Ui& ui) {
  const TensorPane& pane = ui.viewer->tensor();
  TensorUi& tensor = ui.tensor;
  if (tensor.version == pane.version) return;
  tensor.version = pane.version;
  tensor.whole = pane.model->autofit(pane.mode);
  tensor.histogram = pane.model->histogram(pane.mode);
  tensor.worst = pane.model->worst(pane.mode, kMostWorst, pane.filter);
  tensor.passing.clear();
  constexpr size_t kMostPassing = 1'000'000;
  if (pane.filter.is_set())
    tensor.passing = pane.model->passing(pane.filter, pane.mode, kMostPassing, tensor.passing_total);
  if (tensor.is_fitted) tensor.zoom = 0;
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
  draw_slice(ui);
  draw_title(ui);
  if (!pane.problem.empty()) ImGui::TextDisabled("%s", pane.problem.c_str());
  const ImVec2 area{ImGui::GetContentRegionAvail().x - 8 * ui.scale, ImGui::GetContentRegionAvail().y - 6 * ui.scale};
  const float gap = 8 * ui.scale;
  const float side = std::clamp(area.x * 0.235F, 190 * ui.scale, 300 * ui.scale),
              table = std::clamp(area.x * 0.42F, 230 * ui.scale, 620 * ui.scale);
  const ImVec2 heat{std::max(80.0F, area.x - side - table - 2 * gap), area.y};
  ImGui::BeginChild("heat maps", heat, false, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse);
  draw_heat_maps(ui, heat);
  ImGui::EndChild();
  ImGui::SameLine(0, gap);
  ImGui::BeginChild("figures", {side, area.y});
  draw_range(ui);
  // The histogram takes what the lines below it leave.
  const float lines = 5 * (ImGui::GetTextLineHeight() + 2 * ui.scale) + 34 * ui.scale;
  draw_histogram(ui, std::clamp(ImGui::GetContentRegionAvail().y - lines, 40 * ui.scale, 150 * ui.scale));
  draw_element(ui);
  ImGui::EndChild();
  ImGui::SameLine(0, gap);
  ImGui::BeginChild("elements", {table, area.y});
  draw_lists_of_elements(ui);
  ImGui::EndChild();
  ImGui::EndGroup();
  ImGui::PopStyleVar();
}

}  // namespace parallax::gui
