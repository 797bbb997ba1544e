// SPDX-License-Identifier: Apache-2.0
// Parts next to the heat map: the range its colors span, how often values occur, and the element picked.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gui/panels/tensor_parts.h"
#include "inspector/render/compact_numbers.h"

namespace parallax::gui {
namespace {

constexpr ImU32 kSideA = IM_COL32(0x43, 0x93, 0xC3, 200), kSideB = IM_COL32(0xEE, 0x88, 0x66, 255);

// The range of the bar: all values, and the range where it reaches beyond them.
ValueRange bar_of(const Ui& ui) {
  const ValueRange range = ui.viewer->tensor().range;
  return {std::min(ui.tensor.figures.whole.low, range.low), std::max(ui.tensor.figures.whole.high, range.high)};
}

void fill_bar(const Ui& ui, ImVec2 at, ImVec2 size, TensorMode mode, ValueRange bar, ValueRange colors) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  constexpr int kSteps = 64;
  for (int i = 0; i < kSteps; ++i) {
    const double t = (i + 0.5) / kSteps;
    const Color color = TensorModel::color_of(mode, bar.low + t * (bar.high - bar.low), colors, ui.viewer->is_dark);
    list->AddRectFilled({at.x + size.x * static_cast<float>(i) / kSteps, at.y},
                        {at.x + size.x * static_cast<float>(i + 1) / kSteps + 1, at.y + size.y}, to_imgui(color));
  }
  list->AddRect(at, {at.x + size.x, at.y + size.y}, ui.theme().border);
}

// The colors along the bar, with a handle at each end of the range that the mouse drags.
void draw_bar(Ui& ui, float width, float height) {
  const TensorPane& pane = ui.viewer->tensor();
  ImGui::InvisibleButton("##range", {width, height});
  ui.mark("range");
  const ImVec2 at = ImGui::GetItemRectMin();
  const ValueRange bar = bar_of(ui);
  ImDrawList* list = ImGui::GetWindowDrawList();
  fill_bar(ui, at, {width, height - 3 * ui.scale}, pane.mode, bar, pane.range);
  const auto location = [&](double value) {
    const double span = bar.high / 2 - bar.low / 2;  // of all doubles the whole would be infinite
    const double share = span > 0 ? (value / 2 - bar.low / 2) / span : 0.5;
    return at.x + width * static_cast<float>(std::clamp(share, 0.0, 1.0));
  };
  const float handles[2] = {location(pane.range.low), location(pane.range.high)}, mouse = ImGui::GetIO().MousePos.x;
  for (const float x : handles) {
    list->AddTriangleFilled({x, at.y + height - 8 * ui.scale}, {x - 5 * ui.scale, at.y + height},
                            {x + 5 * ui.scale, at.y + height}, ui.theme().accent);
  }
  if (ImGui::IsItemActivated())
    ui.tensor.dragged_handle = std::abs(mouse - handles[0]) <= std::abs(mouse - handles[1]) ? 0 : 1;
  if (ImGui::IsItemActive() && ImGui::IsMouseDragging(ImGuiMouseButton_Left, 1)) {
    const double value = bar.low + (bar.high - bar.low) * std::clamp((mouse - at.x) / width, 0.0F, 1.0F);
    ValueRange range = pane.range;
    (ui.tensor.dragged_handle == 0 ? range.low : range.high) = value;
    ui.viewer->set_range(range);
  }
  tooltip("Drag the ends: which values the colors span");
}

// The colors of the other scale and what they span, where panes are split and their pictures have two.
void draw_other_bar(Ui& ui, float width) {
  const TensorPane& pane = ui.viewer->tensor();
  const bool is_value = pane.mode < TensorMode::difference;
  const TensorUi::Heat& heat = ui.tensor.heats[is_value ? 2 : 0];
  if (heat.version != pane.version || heat.work.is_running()) return;
  const float height = 10 * ui.scale;
  ImGui::InvisibleButton("##other range", {width, height});
  ui.mark("range.other");
  const ImVec2 at = ImGui::GetItemRectMin();
  const ValueRange range = heat.shown.range;
  fill_bar(ui, at, {width, height}, heat.mode, range, range);
  tooltip(is_value ? "The colors of the difference" : "The colors of A and of B");
  const std::string low = short_number(range.low), high = short_number(range.high),
                    title = is_value ? tensor_modes()[static_cast<size_t>(heat.mode)].title.data() : "A and B";
  ImGui::PushFont(ui.fonts.small);
  ImGui::TextDisabled("%s", low.c_str());
  ImGui::SameLine((width - ImGui::CalcTextSize(title.c_str()).x) / 2, 0);
  ImGui::TextDisabled("%s", title.c_str());
  ImGui::SameLine(width - ImGui::CalcTextSize(high.c_str()).x, 0);
  ImGui::TextDisabled("%s", high.c_str());
  ImGui::PopFont();
}

// How high a count stands, 0 to 1.
struct CountScale {
  int64_t most = 1;
  bool is_linear = false;
  float share(int64_t count) const {
    const auto number = static_cast<double>(count), all = static_cast<double>(most);
    return static_cast<float>(is_linear ? number / all : std::log1p(number) / std::log1p(all));
  }
};

void filled(ImDrawList* list, const std::vector<int64_t>& counts, const CountScale& scale, ImVec2 at, ImVec2 size,
            ImU32 color) {
  const float step = size.x / static_cast<float>(std::max<size_t>(1, counts.size()));
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const float share = std::max(scale.share(counts[i]), 1 / size.y);  // the fewest are seen, too
    const float x = at.x + step * static_cast<float>(i);
    list->AddRectFilled({x, at.y + size.y * (1 - share)}, {x + step - (step > 3 ? 1.0F : 0.0F), at.y + size.y}, color);
  }
}

// As stairs over what is filled, so that both are seen where they cover each other.
void outlined(ImDrawList* list, const std::vector<int64_t>& counts, const CountScale& scale, ImVec2 at, ImVec2 size,
              ImU32 color, float thickness) {
  const float step = size.x / static_cast<float>(std::max<size_t>(1, counts.size()));
  std::vector<ImVec2> stairs;
  for (size_t i = 0; i < counts.size(); ++i) {
    const float share = scale.share(counts[i]);
    const float y = at.y + (size.y - 1) * (1 - share);
    stairs.push_back({at.x + step * static_cast<float>(i), y});
    stairs.push_back({at.x + step * static_cast<float>(i + 1), y});
  }
  list->AddPolyline(stairs.data(), static_cast<int>(stairs.size()), color, 0, thickness);
}

// A drag over the histogram chooses values; a click without one chooses all of them again.
void brush(Ui& ui, ImVec2 at, ImVec2 size) {
  Viewer& viewer = *ui.viewer;
  const SliceHistogram& histogram = ui.tensor.figures.histogram;
  ImDrawList* list = ImGui::GetWindowDrawList();
  const float share = std::clamp((ImGui::GetIO().MousePos.x - at.x) / size.x, 0.0F, 1.0F);
  const auto band = [&](float from, float to) {
    list->AddRectFilled({at.x + size.x * from, at.y}, {at.x + size.x * to, at.y + size.y},
                        faded(ui.theme().accent, 0.25F));
  };
  if (ImGui::IsItemActivated()) ui.tensor.brush_from = share;
  const float from = std::min(ui.tensor.brush_from, share), to = std::max(ui.tensor.brush_from, share);
  if (ImGui::IsItemActive()) band(from, to);
  if (ImGui::IsItemDeactivated() && ui.tensor.brush_from >= 0) {
    ui.tensor.brush_from = -1;
    const bool is_click = (to - from) * size.x < 4;
    viewer.set_brush(is_click ? std::nullopt : std::optional(ValueRange{histogram.at(from), histogram.at(to)}));
  }
  const auto& chosen = viewer.tensor().filter.brush;
  if (!chosen.has_value() || ImGui::IsItemActive()) return;
  const auto share_of = [&](double value) {
    const double low = histogram.location(histogram.low), high = histogram.location(histogram.high);
    const double location = histogram.location(std::max(value, histogram.low));
    return std::clamp(high > low ? static_cast<float>((location - low) / (high - low)) : 0.0F, 0.0F, 1.0F);
  };
  band(share_of(chosen->low), share_of(chosen->high));
}

// Below the bars: where they begin and end, and what they count.
void draw_axis(const SliceHistogram& histogram, float width, bool is_linear) {
  const std::string low = short_number(histogram.low), high = short_number(histogram.high);
  ImGui::TextDisabled("%s", low.c_str());
  const float room = width - ImGui::CalcTextSize(low.c_str()).x - ImGui::CalcTextSize(high.c_str()).x;
  std::string middle;
  for (const char* part : {histogram.b.empty() ? "" : "A filled, B line", histogram.is_logarithmic ? "log axis" : "",
                           is_linear ? "linear counts" : "log counts"}) {
    const std::string longer = middle + (middle.empty() || *part == 0 ? "" : ", ") + part;
    if (ImGui::CalcTextSize(longer.c_str()).x < room - ImGui::GetFontSize()) middle = longer;
  }
  ImGui::SameLine((width - ImGui::CalcTextSize(middle.c_str()).x) / 2, 0);
  ImGui::TextDisabled("%s", middle.c_str());
  ImGui::SameLine(width - ImGui::CalcTextSize(high.c_str()).x, 0);
  ImGui::TextDisabled("%s", high.c_str());
}

void element_line(Ui& ui, const char* key, const std::string& text) {
  if (text.empty()) return;
  ImGui::TextDisabled("%s", key);
  ImGui::SameLine(38 * ui.scale, 0);
  ImGui::PushFont(ui.fonts.mono);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopFont();
}

}  // namespace

void draw_range(Ui& ui) {
  const TensorPane& pane = ui.viewer->tensor();
  const float width = ImGui::GetContentRegionAvail().x;
  if (pane.is_split && pane.model->has_b()) draw_other_bar(ui, width);
  draw_bar(ui, width, 16 * ui.scale);
  const float fit = ImGui::CalcTextSize("fit").x + ImGui::GetStyle().FramePadding.x * 2;
  const float field = (width - fit - 12 * ui.scale) / 2;
  double low = pane.range.low, high = pane.range.high;
  ImGui::SetNextItemWidth(field);
  bool changed = ImGui::InputDouble("##low", &low, 0, 0, "%.4g", ImGuiInputTextFlags_EnterReturnsTrue);
  ui.mark("range.low");
  ImGui::SameLine(0, 6 * ui.scale);
  ImGui::SetNextItemWidth(field);
  changed = ImGui::InputDouble("##high", &high, 0, 0, "%.4g", ImGuiInputTextFlags_EnterReturnsTrue) || changed;
  ui.mark("range.high");
  ImGui::SameLine(0, 6 * ui.scale);
  if (small_button(ui, "fit", "range.fit", pane.is_auto_range)) {
    ui.viewer->tensor().is_auto_range = true;
    ui.viewer->refresh_range();
  }
  if (changed) ui.viewer->set_range({low, high});
}

void draw_histogram(Ui& ui, float height) {
  const SliceHistogram& histogram = ui.tensor.figures.histogram;
  const ImVec2 size{ImGui::GetContentRegionAvail().x, height};
  ImGui::InvisibleButton("##histogram", size);
  ui.mark("histogram");
  const ImVec2 at = ImGui::GetItemRectMin();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + size.x, at.y + size.y}, ui.theme().canvas, 3);
  CountScale scale{1, ui.viewer->tensor().linear_counts};
  for (int64_t count : histogram.a) scale.most = std::max(scale.most, count);
  for (int64_t count : histogram.b) scale.most = std::max(scale.most, count);
  filled(list, histogram.a, scale, at, size, kSideA);
  if (!histogram.b.empty()) outlined(list, histogram.b, scale, at, size, kSideB, 1.5F * ui.scale);
  brush(ui, at, size);
  tooltip(fmt::format("How often values occur in what is shown, at most {} in a bin; counts on a {} scale (H),\n"
                      "values on a {} axis (Alt+H). Drag: only these values",
                      scale.most, scale.is_linear ? "linear" : "logarithmic",
                      histogram.is_logarithmic ? "logarithmic" : "linear")
              .c_str());
  ImGui::PushFont(ui.fonts.small);
  const bool is_empty = !histogram.a.empty() && std::ranges::count(histogram.a, 0) == std::ssize(histogram.a) &&
                        std::ranges::count(histogram.b, 0) == std::ssize(histogram.b);
  if (is_empty) {
    ImGui::TextDisabled(
        "%s", histogram.zeros > 0 ? fmt::format("all {} are equal", histogram.zeros).c_str() : "no finite value");
  } else {
    draw_axis(histogram, size.x, scale.is_linear);
  }
  std::string counts;
  if (histogram.zeros > 0 && !is_empty) counts += fmt::format("equal {}   ", histogram.zeros);
  if (histogram.nan_a + histogram.nan_b + histogram.inf_a + histogram.inf_b > 0) {
    counts += histogram.b.empty() ? fmt::format("NaN {}   Inf {}", histogram.nan_a, histogram.inf_a)
                                  : fmt::format("NaN {} | {}   Inf {} | {}", histogram.nan_a, histogram.nan_b,
                                                histogram.inf_a, histogram.inf_b);
  }
  if (!counts.empty()) {
    const bool is_special = counts.find("NaN") != std::string::npos;
    ImGui::PushStyleColor(ImGuiCol_Text, is_special ? to_imgui(kNanColor) : ui.theme().dim);
    ImGui::TextUnformatted(counts.c_str());
    ImGui::PopStyleColor();
  }
  ImGui::PopFont();
}

void draw_element(Ui& ui) {
  const TensorPane& pane = ui.viewer->tensor();
  if (pane.element < 0) {
    ImGui::TextDisabled("E: to the worst element");
    return;
  }
  const ElementView view = pane.model->describe(pane.element);
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {6 * ui.scale, 2 * ui.scale});
  element_line(ui, "at", view.index);
  element_line(ui, only_side(pane), fmt::format("{:<13} {}", view.a, view.hex_a));
  if (pane.model->has_b()) {
    element_line(ui, "B", fmt::format("{:<13} {}", view.b, view.hex_b));
    element_line(ui, "A-B", fmt::format("{:<13} rel {}", view.difference, view.relative));
    element_line(ui, "ULP", fmt::format("{:<13} sev {}", view.ulp, view.severity));
  }
  ImGui::PopStyleVar();
}

}  // namespace parallax::gui
