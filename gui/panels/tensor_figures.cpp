// Range, histogram, the element picked with its surroundings, and the table of worst elements.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gui/panels/tensor_parts.h"

namespace parallax::gui {
namespace {

void draw_ramp(Ui& ui, ImVec2 at, float width, float height) {
  const TensorPane& pane = ui.viewer->tensor();
  ImDrawList* list = ImGui::GetWindowDrawList();
  constexpr int kSteps = 48;
  for (int i = 0; i < kSteps; ++i) {
    const double t = (i + 0.5) / kSteps;
    const Colour colour =
        TensorModel::colour_of(pane.mode, pane.range.low + t * (pane.range.high - pane.range.low), pane.range);
    list->AddRectFilled({at.x + width * static_cast<float>(i) / kSteps, at.y},
                        {at.x + width * static_cast<float>(i + 1) / kSteps + 1, at.y + height}, to_imgui(colour));
  }
  list->AddRect(at, {at.x + width, at.y + height}, ui.theme().border);
}

void bars(ImDrawList* list, const std::vector<int64_t>& counts, double most, ImVec2 at, ImVec2 size, ImU32 colour) {
  const float step = size.x / static_cast<float>(std::max<size_t>(1, counts.size()));
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    const auto share = static_cast<float>(std::log1p(static_cast<double>(counts[i])) / most);
    const float x = at.x + step * static_cast<float>(i);
    list->AddRectFilled({x, at.y + size.y * (1 - share)}, {x + step, at.y + size.y}, colour);
  }
}

// The elements around the one picked, in colour.
void draw_context(Ui& ui, float width) {
  const TensorPane& pane = ui.viewer->tensor();
  const auto [row, column] = pane.model->place_of(pane.element);
  constexpr int64_t kReach = 4;
  const float cell = std::min(width / 9, 15 * ui.scale);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (int64_t r = -kReach; r <= kReach; ++r) {
    for (int64_t c = -kReach; c <= kReach; ++c) {
      const int64_t element = pane.model->element_at(row + r, column + c);
      if (element < 0) continue;
      const ImVec2 a{at.x + cell * static_cast<float>(c + kReach), at.y + cell * static_cast<float>(r + kReach)},
          b{a.x + cell - 1, a.y + cell - 1};
      list->AddRectFilled(
          a, b, to_imgui(TensorModel::colour_of(pane.mode, pane.model->number(pane.mode, element), pane.range)));
      if (r == 0 && c == 0) list->AddRect(a, b, ui.theme().accent, 0, 0, 2 * ui.scale);
    }
  }
  ImGui::Dummy({cell * 9, cell * 9});
}

void element_line(Ui& ui, const char* key, const std::string& text) {
  if (text.empty()) return;
  ImGui::TextDisabled("%s", key);
  ImGui::SameLine(46 * ui.scale, 0);
  ImGui::PushFont(ui.fonts.mono);
  ImGui::TextUnformatted(text.c_str());
  ImGui::PopFont();
}

// The table is begun; ends it.
void draw_worst_rows(Ui& ui, bool both) {
  TensorPane& pane = ui.viewer->tensor();
  const TensorModel& model = *pane.model;
  ImGui::TableSetupScrollFreeze(0, 1);
  for (const char* name : {"index", "A", "B", "A-B", "ULP", "sev"}) {
    ImGui::TableSetupColumn(name, ImGuiTableColumnFlags_WidthStretch,
                            name[0] == 'i'                     ? 1.35F
                            : name[0] == 's' || name[0] == 'U' ? 0.85F
                                                               : 1.0F);
    if (!both && name[0] == 'A') break;
  }
  ImGui::TableHeadersRow();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(ui.worst.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const int64_t element = ui.worst[static_cast<size_t>(i)];
      const ElementView view = model.describe(element);
      ImGui::TableNextRow();
      ImGui::TableSetColumnIndex(0);
      ImGui::PushID(i);
      if (ImGui::Selectable(view.index.c_str(), element == pane.element, ImGuiSelectableFlags_SpanAllColumns))
        ui.viewer->select_element(element);
      ui.mark(fmt::format("element:{}", i));
      ImGui::PopID();
      const std::string cells[] = {pane.hex ? view.hex_a : view.a, pane.hex ? view.hex_b : view.b, view.difference,
                                   view.ulp, view.severity};
      for (int c = 1; c < (both ? 6 : 2); ++c) {
        ImGui::TableSetColumnIndex(c);
        ImGui::TextUnformatted(cells[c - 1].c_str());
      }
    }
  }
  ImGui::EndTable();
}

}  // namespace

void draw_range(Ui& ui) {
  TensorPane& pane = ui.viewer->tensor();
  const float width = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  draw_ramp(ui, at, width, 12 * ui.scale);
  ImGui::Dummy({width, 13 * ui.scale});
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
    pane.is_auto_range = true;
    ui.viewer->refresh_range();
  }
  if (!changed || !(high > low)) return;
  pane.range = {low, high};
  pane.is_auto_range = false;
  ++pane.version;
}

void draw_histogram(Ui& ui) {
  const SliceHistogram& histogram = ui.histogram;
  const ImVec2 at = ImGui::GetCursorScreenPos(), size{ImGui::GetContentRegionAvail().x, 56 * ui.scale};
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + size.x, at.y + size.y}, ui.theme().canvas, 3);
  int64_t most = 1;
  for (int64_t count : histogram.a) most = std::max(most, count);
  for (int64_t count : histogram.b) most = std::max(most, count);
  const double scale = std::log1p(static_cast<double>(most));
  bars(list, histogram.a, scale, at, size, IM_COL32(0x43, 0x93, 0xC3, 170));
  bars(list, histogram.b, scale, at, size, IM_COL32(0xEE, 0x88, 0x66, 130));
  ImGui::Dummy(size);
  ui.mark("histogram");
  tooltip("How often values occur in this slice, on a logarithmic scale: A blue, B orange");
  const std::string low = fmt::format("{:.3g}", histogram.low), high = fmt::format("{:.3g}", histogram.high);
  ImGui::TextDisabled("%s", low.c_str());
  const char* middle = histogram.b.empty() ? "log count" : "A blue, B orange, log";
  ImGui::SameLine((size.x - ImGui::CalcTextSize(middle).x) / 2, 0);
  ImGui::TextDisabled("%s", middle);
  ImGui::SameLine(size.x - ImGui::CalcTextSize(high.c_str()).x, 0);
  ImGui::TextDisabled("%s", high.c_str());
  if (histogram.nan_a + histogram.nan_b + histogram.inf_a + histogram.inf_b == 0) return;
  ImGui::PushStyleColor(ImGuiCol_Text, to_imgui(kNanColour));
  const std::string specials = histogram.b.empty() ? fmt::format("NaN {}   Inf {}", histogram.nan_a, histogram.inf_a)
                                                   : fmt::format("NaN {} | {}   Inf {} | {}", histogram.nan_a,
                                                                 histogram.nan_b, histogram.inf_a, histogram.inf_b);
  ImGui::TextUnformatted(specials.c_str());
  ImGui::PopStyleColor();
}

void draw_element(Ui& ui) {
  const TensorPane& pane = ui.viewer->tensor();
  if (pane.element < 0) {
    ImGui::TextDisabled("E: to the worst element");
    return;
  }
  const ElementView view = pane.model->describe(pane.element);
  element_line(ui, "at", view.index);
  element_line(ui, "A", fmt::format("{}  {}", view.a, view.hex_a));
  if (pane.model->has_b()) {
    element_line(ui, "B", fmt::format("{}  {}", view.b, view.hex_b));
    element_line(ui, "A-B", fmt::format("{}  rel {}", view.difference, view.relative));
    element_line(ui, "ULP", fmt::format("{}  sev {}", view.ulp, view.severity));
  }
  draw_context(ui, ImGui::GetContentRegionAvail().x);
}

void draw_elements(Ui& ui) {
  const TensorModel& model = *ui.viewer->tensor().model;
  const bool both = model.has_b();
  const int64_t all = model.rows() * model.columns();
  const std::string title = both ? fmt::format("{} elements differ most, of {} in the slice", ui.worst.size(), all)
                                 : fmt::format("{} largest elements, of {} in the slice", ui.worst.size(), all);
  ImGui::TextDisabled("%s", ui.worst.empty() && both ? "no element of this slice differs" : title.c_str());
  ImGui::PushFont(ui.fonts.sans[1]);
  constexpr ImGuiTableFlags kFlags = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg |
                                     ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_Resizable |
                                     ImGuiTableFlags_BordersInnerV;
  if (ImGui::BeginTable("worst", both ? 6 : 2, kFlags)) draw_worst_rows(ui, both);
  ImGui::PopFont();
}

}  // namespace parallax::gui
