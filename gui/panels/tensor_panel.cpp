// SPDX-License-Identifier: Apache-2.0
// The tensor viewer: what is looked at, in which measure and slice, and the three parts below it.
#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "gui/panels/panels.h"
#include "gui/panels/tensor_parts.h"

namespace parallax::gui {
namespace {

void draw_modes(Ui& ui) {
  Viewer& viewer = *ui.viewer;
  TensorPane& pane = viewer.tensor();
  for (const TensorModeInfo& info : tensor_modes()) {
    if (!can_show(pane, info.mode)) continue;
    const std::string name = fmt::format("mode.{}", info.name);
    if (small_button(ui, info.title.data(), name.c_str(), pane.mode == info.mode)) viewer.set_tensor_mode(info.mode);
    tooltip(info.meaning.data());
    ImGui::SameLine(0, 3 * ui.scale);
  }
  if (pane.model->has_b()) {
    ImGui::SameLine(0, 10 * ui.scale);
    if (small_button(ui, "split", "split", pane.is_split)) pane.is_split = !pane.is_split;
    tooltip("A, B and the measure side by side, zoomed together (8)");
  }
  ImGui::SameLine(0, 3 * ui.scale);
  if (!pane.model->can_tile()) return;
  if (small_button(ui, "tiles", "montage", pane.is_montage)) viewer.set_montage(!pane.is_montage);
  tooltip("All slices along the next axis as tiles (9)");
  ImGui::SameLine(0, 3 * ui.scale);
  if (small_button(ui, "whole", "whole", pane.counts_whole())) find_command("tensor.whole")->run(viewer);
  tooltip("Histogram and lists of all slices, not of the one in the picture (Shift+H)");
  ImGui::SameLine(0, 3 * ui.scale);
}

void axis_combo(Ui& ui, const char* name, int axis, bool is_row) {
  TensorModel& model = *ui.viewer->tensor().model;
  const auto name_of = [&](int of) { return ui.viewer->tensor().axis_names[static_cast<size_t>(of)]; };
  const std::string own = name_of(axis).empty() ? std::to_string(axis) : name_of(axis);
  const std::string label = fmt::format("{} {}", is_row ? "rows" : "cols", own);
  if (ImGui::GetContentRegionAvail().x < 84 * ui.scale) ImGui::NewLine();
  ImGui::SetNextItemWidth(84 * ui.scale);
  if (ImGui::BeginCombo(name, label.c_str())) {
    close_on_escape(ui);
    for (int i = 0; i < static_cast<int>(model.shape().rank()); ++i) {
      const std::string title = fmt::format("axis {}{}{} ({})", i, name_of(i).empty() ? "" : " ", name_of(i),
                                            model.shape()[static_cast<size_t>(i)]);
      if (!ImGui::Selectable(title.c_str(), i == axis)) continue;
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
    const std::string& name = ui.viewer->tensor().axis_names[static_cast<size_t>(axis)];
    const std::string title = name.empty() ? fmt::format("axis {}", axis) : name;
    if (index_slider(ui, fmt::format("axis.{}", axis).c_str(), fmt::format("{}: {} / {}", title, at, size), at, size,
                     width)) {
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
  const std::string type = "  " + model.type_text();
  const float left = ImGui::GetContentRegionAvail().x - 12 * ui.scale;
  if (left < 60) return ImGui::NewLine();
  ImGui::SameLine(0, 8 * ui.scale);
  ImGui::AlignTextToFramePadding();
  const ImFont* font = ui.fonts.base;
  const float for_path = left - ImGui::CalcTextSize(type.c_str()).x;
  const std::string shown = for_path < 40 * ui.scale ? cut_text(font, font->FontSize, type.substr(2), left)
                                                     : cut_front(font, font->FontSize, row.path, for_path) + type;
  ImGui::TextDisabled("%s", shown.c_str());
  tooltip((row.path + type).c_str());
}

// Lists and figures are made again only when what they show has changed: those of all slices stay when the slice
// changes.
void ask_for_figures(Ui& ui) {
  const TensorPane& pane = ui.viewer->tensor();
  TensorUi& tensor = ui.tensor;
  if (tensor.version == pane.version) return;
  tensor.version = pane.version;
  if (tensor.is_fitted) tensor.zoom = 0;
  const FiguresKey key{ui.viewer->tensor_loads(), pane.counts_whole() ? -1 : pane.version, pane.mode, pane.filter,
                       pane.flips_axis};
  const bool is_kept = key == tensor.figures.key;
  const TensorModel counted = pane.counted();
  const auto make = [shown = *pane.model, counted = counted, key, is_kept](const CancelToken& stop) mutable {
    shown.stop_when(stop);
    counted.stop_when(stop);
    SliceFigures figures;
    figures.whole = shown.autofit(key.mode);
    figures.key = key;
    if (is_kept) return figures;
    figures.histogram = counted.histogram(key.mode, TensorModel::kBins, key.flips_axis);
    figures.worst = counted.worst(key.mode, kMostWorst, key.filter);
    constexpr size_t kMostPassing = 1'000'000;
    if (key.filter.is_set())
      figures.passing = counted.passing(key.filter, key.mode, kMostPassing, figures.passing_total);
    return figures;
  };
  tensor.figures_work.start(make, (is_kept ? *pane.model : counted).is_short(pane.mode), ui.viewer->wake);
}

// True where the figures are those of the shown slice.
bool has_figures(Ui& ui) {
  ask_for_figures(ui);
  TensorPane& pane = ui.viewer->tensor();
  TensorUi& tensor = ui.tensor;
  if (auto made = tensor.figures_work.take()) {
    tensor.figures.whole = made->whole;
    if (made->key != tensor.figures.key) tensor.figures = *std::move(made);
    tensor.figures_version = tensor.version;
    if (std::exchange(pane.is_range_due, false)) pane.range = tensor.figures.whole;
  }
  if (tensor.figures_version != pane.version) return false;
  if (std::exchange(pane.wants_worst, false) && !tensor.figures.worst.empty())
    ui.viewer->select_element(tensor.figures.worst.front());
  return true;
}

// A change while this is drawn counts from the next frame.
void draw_parts(Ui& ui) {
  const ImVec2 area{ImGui::GetContentRegionAvail().x - 8 * ui.scale, ImGui::GetContentRegionAvail().y - 6 * ui.scale};
  if (!has_figures(ui)) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    return busy_mark(ui, at, {at.x + area.x, at.y + area.y},
                     fmt::format("looking at {} elements", ui.viewer->tensor().counted().slice_count()));
  }
  const float gap = 8 * ui.scale;
  const float side = std::clamp(area.x * 0.235F, (area.x < 620 * ui.scale ? 150 : 190) * ui.scale, 300 * ui.scale),
              table = std::clamp(area.x * 0.42F, 200 * ui.scale, 620 * ui.scale);
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
}

// Strings, and elements of sequences, next to each other.
void draw_texts(const Ui& ui, const TextLines& texts) {
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg | ImGuiTableFlags_BordersInnerV |
                                     ImGuiTableFlags_Resizable | ImGuiTableFlags_SizingStretchProp;
  if (texts.left_out > 0) ImGui::TextDisabled("%s", fmt::format("{} more are not listed", texts.left_out).c_str());
  if (!ImGui::BeginTable("texts", texts.has_b ? 3 : 2, kFlags)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableSetupColumn("index", 0, 0.15F);
  ImGui::TableSetupColumn("A", 0, 1);
  if (texts.has_b) ImGui::TableSetupColumn("B", 0, 1);
  ImGui::TableHeadersRow();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(texts.lines.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const TextLine& line = texts.lines[static_cast<size_t>(i)];
      ImGui::PushStyleColor(ImGuiCol_Text, line.are_mismatched ? ui.theme().bad : ui.theme().text);
      for (const std::string* cell : {&line.location, &line.a, &line.b}) {
        if (cell == &line.b && !texts.has_b) continue;
        ImGui::TableNextColumn();
        ImGui::TextUnformatted(cell->c_str());
        if (cell != &line.location) tooltip(cell->c_str());
      }
      ImGui::PopStyleColor();
    }
  }
  ImGui::EndTable();
}

}  // namespace

bool TensorUi::is_computing() const {
  return figures_work.is_working() || channels_work.is_working() ||
         std::ranges::any_of(heats, [](const Heat& heat) { return heat.work.is_working(); });
}

bool TensorUi::wait() {
  bool has_waited = figures_work.wait();
  has_waited = channels_work.wait() || has_waited;
  for (Heat& heat : heats) has_waited = heat.work.wait() || has_waited;
  return has_waited;
}

void draw_tensor(Ui& ui) {
  TensorPane& pane = ui.viewer->tensor();
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {6 * ui.scale, 4 * ui.scale});
  ImGui::SetCursorPos({8 * ui.scale, 5 * ui.scale});
  ImGui::BeginGroup();
  if (pane.texts.has_value()) {
    draw_texts(ui, *pane.texts);
    ImGui::EndGroup();
    ImGui::PopStyleVar();
    return;
  }
  if (!pane.model.has_value()) {
    ImGui::TextDisabled("%s", pane.problem.empty() ? "Select a value to see its elements." : pane.problem.c_str());
    ImGui::EndGroup();
    ImGui::PopStyleVar();
    return;
  }
  draw_modes(ui);
  draw_slice(ui);
  draw_title(ui);
  if (!pane.problem.empty()) ImGui::TextDisabled("%s", pane.problem.c_str());
  draw_parts(ui);
  ImGui::EndGroup();
  ImGui::PopStyleVar();
}

}  // namespace parallax::gui
