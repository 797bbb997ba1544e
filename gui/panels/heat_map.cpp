// SPDX-License-Identifier: Apache-2.0
// Heat maps: textures, zoomed and dragged together with the mouse, with numbers in cells that have room for them.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "gui/panels/tensor_parts.h"

namespace parallax::gui {
namespace {

constexpr float kNumbersFrom = 44, kNumbersHigh = 16;  // pixels of a cell that holds a number
constexpr float kThinnest = 0.25F;  // share of the pane's height (or width) that a long and thin slice is stretched to

struct Location {
  ImVec2 corner, size;  // of the pane
  ImVec2 cell;          // pixels an element
  ImVec2 origin;        // of element (0, 0) on the screen
  TensorMode mode;
  ValueRange range;
};

void fit(TensorUi& tensor, const TensorModel& model, ImVec2 size, float scale) {
  const auto rows = static_cast<float>(std::max<int64_t>(1, model.rows())),
             columns = static_cast<float>(std::max<int64_t>(1, model.columns()));
  tensor.zoom = std::min({size.x / columns, size.y / rows, 48 * scale});
  if (tensor.zoom > 2) tensor.zoom = std::floor(tensor.zoom);  // cells of equal size
  // Three rows of thousands would be a line: their cells are drawn higher than wide.
  const auto stretch = [&](float count, float pane) {
    const float highest = std::min(pane * kThinnest / count, 28 * scale);
    return count * tensor.zoom < pane * kThinnest ? std::max(1.0F, highest / tensor.zoom) : 1.0F;
  };
  tensor.stretch = {stretch(columns, size.x), stretch(rows, size.y)};
  if (tensor.stretch.x > 1 && tensor.stretch.y > 1) tensor.stretch = {1, 1};  // a few elements in much room
  tensor.origin = {std::floor(std::max(0.0F, (size.x - columns * tensor.cell().x) / 2)),
                   std::floor(std::max(0.0F, (size.y - rows * tensor.cell().y) / 2))};
  tensor.size = size;
  tensor.is_fitted = true;
}

// Fits the picture where a zoom of 0 asked for it. Zooming and drawing set a size.
void fit_where_asked(TensorUi& tensor, const TensorModel& model, ImVec2 size, float scale) {
  const bool is_placed = tensor.zoom > 0 && std::isfinite(tensor.origin.x) && std::isfinite(tensor.origin.y);
  if (!is_placed) fit(tensor, model, size, scale);
}

void zoom_and_drag(Ui& ui, ImVec2 corner, ImVec2 size) {
  TensorUi& tensor = ui.tensor;
  const ImGuiIO& io = ImGui::GetIO();
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left)) {
    tensor.is_fitted = false;
    tensor.origin.x += io.MouseDelta.x;
    tensor.origin.y += io.MouseDelta.y;
  }
  if (ImGui::IsItemHovered() && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left)) tensor.zoom = 0;
  if (!ImGui::IsItemHovered() || io.MouseWheel == 0) return;
  const float least = std::min(size.x / 20000.0F, 0.05F);
  const float zoom = std::clamp(tensor.zoom * std::pow(1.25F, io.MouseWheel), least, 140 * ui.scale);
  const ImVec2 at{io.MousePos.x - corner.x, io.MousePos.y - corner.y}, before = tensor.cell();
  // Stretched cells first grow in their short direction, until they are square.
  const float grown = zoom / tensor.zoom;
  tensor.stretch = {std::max(1.0F, tensor.stretch.x / std::max(1.0F, grown)),
                    std::max(1.0F, tensor.stretch.y / std::max(1.0F, grown))};
  tensor.zoom = zoom;
  tensor.origin.x = at.x - (at.x - tensor.origin.x) * tensor.cell().x / before.x;
  tensor.origin.y = at.y - (at.y - tensor.origin.y) * tensor.cell().y / before.y;
  tensor.is_fitted = false;
}

// visit(row, column, element) over the cells in sight.
template <class Visit>
void for_cells(const TensorModel& model, const Location& location, Visit visit) {
  const auto first = [](float at, float begin, float cell) {
    return std::max<int64_t>(0, static_cast<int64_t>((begin - at) / cell));
  };
  const int64_t row_begin = first(location.origin.y, location.corner.y, location.cell.y),
                column_begin = first(location.origin.x, location.corner.x, location.cell.x);
  const int64_t row_end =
      std::min(model.rows(), row_begin + static_cast<int64_t>(location.size.y / location.cell.y) + 2);
  const int64_t column_end =
      std::min(model.columns(), column_begin + static_cast<int64_t>(location.size.x / location.cell.x) + 2);
  for (int64_t row = row_begin; row < row_end; ++row) {
    for (int64_t column = column_begin; column < column_end; ++column) {
      if (const int64_t element = model.element_at(row, column); element >= 0) visit(row, column, element);
    }
  }
}

ImVec2 corner_of(const Location& location, int64_t row, int64_t column) {
  return {location.origin.x + location.cell.x * static_cast<float>(column),
          location.origin.y + location.cell.y * static_cast<float>(row)};
}

bool holds_numbers(const Ui& ui, const Location& location) {
  return location.cell.x >= kNumbersFrom * ui.scale && location.cell.y >= kNumbersHigh * ui.scale;
}

void draw_numbers(Ui& ui, const Location& location, ImDrawList* list) {
  const TensorPane& pane = ui.viewer->tensor();
  if (!holds_numbers(ui, location)) return;
  const ImFont* font = ui.fonts.small;
  for_cells(*pane.model, location, [&](int64_t row, int64_t column, int64_t element) {
    if (!pane.model->passes(pane.filter, location.mode, element)) return;
    const std::string text = pane.model->cell_text(location.mode, element);
    const Color fill = TensorModel::color_of(location.mode, pane.model->number(location.mode, element), location.range,
                                             ui.viewer->is_dark);
    const ImVec2 extent = font->CalcTextSizeA(font->FontSize, 1e6F, 0, text.c_str());
    if (extent.x > location.cell.x) return;  // the picked element is shown in full next to the picture
    const ImVec2 cell = corner_of(location, row, column);
    list->AddText(
        font, font->FontSize,
        {std::floor(cell.x + (location.cell.x - extent.x) / 2), std::floor(cell.y + (location.cell.y - extent.y) / 2)},
        to_imgui(readable_on(fill)), text.c_str());
  });
}

// Small cells may be missed: NaN and infinities get a mark that does not depend on color.
void draw_special_marks(Ui& ui, const Location& location, ImDrawList* list) {
  const TensorPane& pane = ui.viewer->tensor();
  const SliceHistogram& histogram = ui.tensor.figures.histogram;
  const bool has_specials = histogram.nan_a + histogram.nan_b + histogram.inf_a + histogram.inf_b > 0;
  const float side = std::min(location.cell.x, location.cell.y);
  if (!has_specials || side < 8 * ui.scale || holds_numbers(ui, location)) return;
  for_cells(*pane.model, location, [&](int64_t row, int64_t column, int64_t element) {
    const double number = pane.model->number(location.mode, element);
    if (std::isfinite(number)) return;
    const ImVec2 cell = corner_of(location, row, column);
    const ImVec2 a{cell.x + location.cell.x / 2 - side / 4, cell.y + location.cell.y / 2 - side / 4},
        b{a.x + side / 2, a.y + side / 2};
    if (std::isnan(number)) {
      list->AddLine(a, b, IM_COL32_WHITE, 1.5F);
      list->AddLine({a.x, b.y}, {b.x, a.y}, IM_COL32_WHITE, 1.5F);
    } else {
      const float tip = number > 0 ? a.y : b.y, foot = number > 0 ? b.y : a.y;
      list->AddTriangleFilled({(a.x + b.x) / 2, tip}, {a.x, foot}, {b.x, foot}, IM_COL32_WHITE);
    }
  });
}

void draw_picked(Ui& ui, const Location& location, ImDrawList* list) {
  const TensorPane& pane = ui.viewer->tensor();
  if (pane.element < 0) return;
  const auto [row, column] = pane.model->location_of(pane.element);
  const ImVec2 around{std::max(location.cell.x, 7 * ui.scale), std::max(location.cell.y, 7 * ui.scale)};
  const ImVec2 cell = corner_of(location, row, column);
  const ImVec2 middle{cell.x + location.cell.x / 2, cell.y + location.cell.y / 2};
  const ImVec2 a{middle.x - around.x / 2, middle.y - around.y / 2}, b{middle.x + around.x / 2, middle.y + around.y / 2};
  list->AddRect({a.x - 1, a.y - 1}, {b.x + 1, b.y + 1}, IM_COL32_BLACK, 0, 0, 3 * ui.scale);
  list->AddRect(a, b, IM_COL32_WHITE, 0, 0, 1.5F * ui.scale);
}

void show_element_under_mouse(Ui& ui, const Location& location, const HeatImage& image) {
  const TensorModel& model = *ui.viewer->tensor().model;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const auto row = static_cast<int64_t>(std::floor((mouse.y - location.origin.y) / location.cell.y)),
             column = static_cast<int64_t>(std::floor((mouse.x - location.origin.x) / location.cell.x));
  const int64_t element = model.element_at(row, column);
  if (element < 0) return;
  const ElementView view = model.describe(element);
  std::string text = fmt::format("{}\n{} {}", view.index, only_side(ui.viewer->tensor()), view.a);
  if (model.has_b()) {
    text += fmt::format("\nB {}\nA-B {}\nrel {}   ULP {}   sev {}", view.b, view.difference, view.relative, view.ulp,
                        view.severity);
  }
  if (image.block_rows * image.block_columns > 1) {
    text += fmt::format("\na pixel shows the worst of {}x{} elements", image.block_rows, image.block_columns);
  }
  show_tooltip(text);
  if (ImGui::IsMouseClicked(ImGuiMouseButton_Left)) ui.viewer->select_element(element);
}

// One pane. `title` stands in its corner where there are several.
void draw_heat_map(Ui& ui, size_t slot, TensorMode mode, const char* name, const char* title, ImVec2 size) {
  const TensorModel& model = *ui.viewer->tensor().model;
  ImGui::InvisibleButton(name, size);
  ui.mark(name);
  const ImVec2 corner = ImGui::GetItemRectMin(), end{corner.x + size.x, corner.y + size.y};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(corner, end, ui.theme().canvas, 4);
  // While a key is held over the picture, that side is seen in its place.
  const ImGuiIO& io = ImGui::GetIO();
  const bool flips = slot == 2 && model.has_b() && ImGui::IsItemHovered() && io.MouseWheel == 0;
  if (flips && io.KeyShift != io.KeyCtrl) {
    mode = io.KeyShift ? TensorMode::a : TensorMode::b;
    slot = io.KeyShift ? 0 : 1;
    title = io.KeyShift ? "A" : "B";
  }
  const TensorUi::Heat& heat = heat_of(ui, slot, mode);
  TensorUi& tensor = ui.tensor;
  fit_where_asked(tensor, model, size, ui.scale);
  zoom_and_drag(ui, corner, size);
  fit_where_asked(tensor, model, size, ui.scale);
  const Location location{
      corner, size, tensor.cell(), {corner.x + tensor.origin.x, corner.y + tensor.origin.y}, mode, heat.shown.range};
  const ImVec2 far_end = corner_of(location, model.rows(), model.columns());
  list->PushClipRect(corner, end, true);
  const bool is_made = !heat.work.is_running();
  if (heat.texture != nullptr && is_made) list->AddImage(heat.texture, location.origin, far_end);
  if (model.montage_axis() < 0) list->AddRect(location.origin, far_end, ui.theme().border);
  if (is_made) {
    draw_numbers(ui, location, list);
    draw_special_marks(ui, location, list);
  } else {
    busy_mark(ui, corner, end, fmt::format("drawing {} elements", model.slice_count()));
  }
  draw_picked(ui, location, list);
  if (*title != 0) {
    const ImVec2 extent = ImGui::CalcTextSize(title), at{corner.x + 4 * ui.scale, corner.y + 3 * ui.scale};
    list->AddRectFilled(at, {at.x + extent.x + 8 * ui.scale, at.y + extent.y + 2}, faded(ui.theme().panel, 0.9F), 3);
    list->AddText({at.x + 4 * ui.scale, at.y}, ui.theme().text, title);
  }
  list->PopClipRect();
  if (ImGui::IsItemHovered()) show_element_under_mouse(ui, location, heat.shown.image);
}

}  // namespace

const TensorUi::Heat& heat_of(Ui& ui, size_t slot, TensorMode mode) {
  const TensorPane& pane = ui.viewer->tensor();
  TensorUi::Heat& heat = ui.tensor.heats[slot];
  if (heat.version != pane.version || heat.range_version != pane.range_version || heat.mode != mode ||
      heat.is_dark != ui.viewer->is_dark) {
    heat.is_dark = ui.viewer->is_dark;
    heat.version = pane.version;
    heat.range_version = pane.range_version;
    heat.mode = mode;
    // A and B share a range: equal colors mean equal values.
    const bool is_shared = mode == pane.mode || (mode < TensorMode::difference && pane.mode < TensorMode::difference);
    const std::optional<ValueRange> range = is_shared ? std::optional(pane.range) : std::nullopt;
    const auto make = [model = *pane.model, mode, range, filter = pane.filter,
                       is_dark = heat.is_dark](const CancelToken& stop) mutable {
      model.stop_when(stop);
      HeatPicture picture;
      picture.range = range.has_value() ? *range : model.autofit(mode);
      picture.image = model.image(mode, picture.range, filter, kMostPixels, is_dark);
      return picture;
    };
    heat.work.start(make, pane.model->is_short(mode), ui.viewer->wake);
  }
  if (auto made = heat.work.take()) {
    heat.shown = *std::move(made);
    const HeatImage& image = heat.shown.image;
    if (ui.make_texture && !image.pixels.empty())
      heat.texture = ui.make_texture(heat.texture, image.width, image.height, image.pixels.data());
  }
  return heat;
}

void draw_heat_maps(Ui& ui, ImVec2 size) {
  const TensorPane& pane = ui.viewer->tensor();
  const TensorModel& model = *pane.model;
  if (model.shape().element_count() == 0) {
    ImGui::TextDisabled("this tensor has no elements");
    return;
  }
  const bool is_split = pane.is_split && model.has_b();
  // Wide slices are stacked, others are side by side, whichever shows them larger.
  const float gap = 4 * ui.scale;
  const auto rows = static_cast<float>(model.rows()), columns = static_cast<float>(model.columns());
  const float zoom_around = std::min((size.x - 2 * gap) / 3 / columns, size.y / rows),
              zoom_above = std::min(size.x / columns, (size.y - 2 * gap) / 3 / rows);
  const bool is_above = zoom_above > zoom_around;
  ImVec2 each = size;
  if (is_split && is_above) each.y = (size.y - 2 * gap) / 3;
  if (is_split && !is_above) each.x = (size.x - 2 * gap) / 3;
  if (each.x < 4 || each.y < 4) return;
  const bool was_resized = ui.tensor.size.x != each.x || ui.tensor.size.y != each.y;
  if (was_resized && ui.tensor.is_fitted) ui.tensor.zoom = 0;
  if (!is_split) return draw_heat_map(ui, 2, pane.mode, "heat", "", each);
  const bool is_value = pane.mode < TensorMode::difference;
  const TensorMode third = is_value ? TensorMode::absolute : pane.mode;
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {gap, gap});
  draw_heat_map(ui, 0, TensorMode::a, "heat.a", "A", each);
  if (!is_above) ImGui::SameLine();
  draw_heat_map(ui, 1, TensorMode::b, "heat.b", "B", each);
  if (!is_above) ImGui::SameLine();
  draw_heat_map(ui, 2, third, "heat", tensor_modes()[static_cast<size_t>(third)].title.data(), each);
  ImGui::PopStyleVar();
}

}  // namespace parallax::gui
