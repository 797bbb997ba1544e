// The heat map: one texture, zoomed and dragged with the mouse, with numbers in cells that have room for them.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "gui/panels/tensor_parts.h"

namespace parallax::gui {
namespace {

struct Place {
  ImVec2 corner, size;  // of the pane
  float zoom;           // pixels an element
  ImVec2 origin;        // of element (0, 0) on the screen
};

void fit(Ui& ui, const TensorModel& model, ImVec2 size) {
  const auto rows = static_cast<float>(std::max<int64_t>(1, model.rows())),
             columns = static_cast<float>(std::max<int64_t>(1, model.columns()));
  ui.heat_zoom = std::min({size.x / columns, size.y / rows, 48 * ui.scale});
  ui.heat_origin = {(size.x - columns * ui.heat_zoom) / 2, std::max(0.0F, (size.y - rows * ui.heat_zoom) / 2)};
  ui.heat_size = size;
  ui.heat_is_fitted = true;
}

void zoom_and_drag(Ui& ui, ImVec2 corner, ImVec2 size) {
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left)) {
    ui.heat_is_fitted = false;
    ui.heat_origin.x += io.MouseDelta.x;
    ui.heat_origin.y += io.MouseDelta.y;
  }
  if (!ImGui::IsItemHovered() || io.MouseWheel == 0) return;
  const float least = std::min(size.x / 20000.0F, 0.05F);
  const float zoom = std::clamp(ui.heat_zoom * std::pow(1.25F, io.MouseWheel), least, 140 * ui.scale);
  const ImVec2 at{io.MousePos.x - corner.x, io.MousePos.y - corner.y};
  ui.heat_origin.x = at.x - (at.x - ui.heat_origin.x) * zoom / ui.heat_zoom;
  ui.heat_origin.y = at.y - (at.y - ui.heat_origin.y) * zoom / ui.heat_zoom;
  ui.heat_zoom = zoom;
  ui.heat_is_fitted = false;
}

void draw_numbers(Ui& ui, const Place& place, ImDrawList* list) {
  const TensorPane& pane = ui.viewer->tensor();
  if (place.zoom < 44 * ui.scale) return;
  const TensorModel& model = *pane.model;
  const auto first = [&](float at, float begin) {
    return std::max<int64_t>(0, static_cast<int64_t>((begin - at) / place.zoom));
  };
  const int64_t row_begin = first(place.origin.y, place.corner.y), column_begin = first(place.origin.x, place.corner.x);
  const int64_t row_end = std::min(model.rows(), row_begin + static_cast<int64_t>(place.size.y / place.zoom) + 2);
  const int64_t column_end =
      std::min(model.columns(), column_begin + static_cast<int64_t>(place.size.x / place.zoom) + 2);
  for (int64_t row = row_begin; row < row_end; ++row) {
    for (int64_t column = column_begin; column < column_end; ++column) {
      const int64_t element = model.element_at(row, column);
      if (element < 0) continue;
      const std::string text = model.cell_text(pane.mode, element);
      const Colour fill = TensorModel::colour_of(pane.mode, model.number(pane.mode, element), pane.range);
      const ImFont* font = ui.fonts.sans[1];
      const ImVec2 extent = font->CalcTextSizeA(font->FontSize, 1e6F, 0, text.c_str());
      const ImVec2 at{place.origin.x + place.zoom * static_cast<float>(column) + (place.zoom - extent.x) / 2,
                      place.origin.y + place.zoom * static_cast<float>(row) + (place.zoom - extent.y) / 2};
      list->AddText(font, font->FontSize, at, to_imgui(readable_on(fill)), text.c_str());
    }
  }
}

// Small cells may be missed: NaN and infinities get a mark that does not depend on colour.
void draw_special_marks(Ui& ui, const Place& place, ImDrawList* list) {
  const TensorPane& pane = ui.viewer->tensor();
  const TensorModel& model = *pane.model;
  const bool has_specials = ui.histogram.nan_a + ui.histogram.nan_b + ui.histogram.inf_a + ui.histogram.inf_b > 0;
  if (!has_specials || place.zoom < 8 * ui.scale || place.zoom >= 44 * ui.scale) return;
  for (int64_t row = 0; row < std::min<int64_t>(model.rows(), 512); ++row) {
    for (int64_t column = 0; column < std::min<int64_t>(model.columns(), 512); ++column) {
      const int64_t element = model.element_at(row, column);
      if (element < 0) continue;
      const double number = model.number(pane.mode, element);
      if (std::isfinite(number)) continue;
      const ImVec2 a{place.origin.x + place.zoom * (static_cast<float>(column) + 0.25F),
                     place.origin.y + place.zoom * (static_cast<float>(row) + 0.25F)};
      const ImVec2 b{a.x + place.zoom / 2, a.y + place.zoom / 2};
      if (std::isnan(number)) {
        list->AddLine(a, b, IM_COL32_WHITE, 1.5F);
        list->AddLine({a.x, b.y}, {b.x, a.y}, IM_COL32_WHITE, 1.5F);
      } else {
        const float tip = number > 0 ? a.y : b.y, foot = number > 0 ? b.y : a.y;
        list->AddTriangleFilled({(a.x + b.x) / 2, tip}, {a.x, foot}, {b.x, foot}, IM_COL32_WHITE);
      }
    }
  }
}

void draw_picked(Ui& ui, const Place& place, ImDrawList* list) {
  const TensorPane& pane = ui.viewer->tensor();
  if (pane.element < 0) return;
  const auto [row, column] = pane.model->place_of(pane.element);
  const float around = std::max(place.zoom, 7 * ui.scale);
  const ImVec2 middle{place.origin.x + place.zoom * (static_cast<float>(column) + 0.5F),
                      place.origin.y + place.zoom * (static_cast<float>(row) + 0.5F)};
  const ImVec2 a{middle.x - around / 2, middle.y - around / 2}, b{middle.x + around / 2, middle.y + around / 2};
  list->AddRect({a.x - 1, a.y - 1}, {b.x + 1, b.y + 1}, IM_COL32_BLACK, 0, 0, 3 * ui.scale);
  list->AddRect(a, b, IM_COL32_WHITE, 0, 0, 1.5F * ui.scale);
}

}  // namespace

void draw_heat_map(Ui& ui) {
  TensorPane& pane = ui.viewer->tensor();
  const TensorModel& model = *pane.model;
  const ImVec2 corner = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(corner, {corner.x + size.x, corner.y + size.y}, ui.theme().canvas, 4);
  if (model.shape().element_count() == 0) {
    ImGui::TextDisabled("this tensor has no elements");
    return;
  }
  const bool was_resized = ui.heat_size.x != size.x || ui.heat_size.y != size.y;
  if (ui.heat_zoom <= 0 || (was_resized && ui.heat_is_fitted)) fit(ui, model, size);
  ImGui::InvisibleButton("heat", size);
  ui.mark("heat");
  zoom_and_drag(ui, corner, size);
  const Place place{corner, size, ui.heat_zoom, {corner.x + ui.heat_origin.x, corner.y + ui.heat_origin.y}};
  const ImVec2 end{place.origin.x + place.zoom * static_cast<float>(model.columns()),
                   place.origin.y + place.zoom * static_cast<float>(model.rows())};
  if (ui.heat != nullptr) list->AddImage(ui.heat, place.origin, end);
  list->AddRect(place.origin, end, ui.theme().border);
  draw_numbers(ui, place, list);
  draw_special_marks(ui, place, list);
  draw_picked(ui, place, list);
  if (!ImGui::IsItemHovered()) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const auto row = static_cast<int64_t>(std::floor((mouse.y - place.origin.y) / place.zoom)),
             column = static_cast<int64_t>(std::floor((mouse.x - place.origin.x) / place.zoom));
  const int64_t element = model.element_at(row, column);
  if (element < 0) return;
  const ElementView view = model.describe(element);
  std::string text = fmt::format("{}\nA {}", view.index, view.a);
  if (model.has_b()) text += fmt::format("\nB {}\nA-B {}\nsev {}", view.b, view.difference, view.severity);
  if (ui.heat_image.block_rows * ui.heat_image.block_columns > 1) {
    text += fmt::format("\na pixel shows the worst of {}x{} elements", ui.heat_image.block_rows,
                        ui.heat_image.block_columns);
  }
  ImGui::SetTooltip("%s", text.c_str());
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) ui.viewer->select_element(element);
}

}  // namespace parallax::gui
