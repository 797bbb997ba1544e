// SPDX-License-Identifier: Apache-2.0
// At the right of the tensor viewer, one at a time: the worst elements, all elements, figures by channel, and what
// stands around the element picked.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gui/panels/tensor_parts.h"
#include "inspector/render/compact_numbers.h"

namespace parallax::gui {
namespace {

constexpr int64_t kPage =
    50'000;  // rows of a page: positions in windows are floats, which lose pixels beyond a million
constexpr ImGuiTableFlags kTable = ImGuiTableFlags_ScrollY | ImGuiTableFlags_RowBg | ImGuiTableFlags_SizingStretchProp |
                                   ImGuiTableFlags_Resizable | ImGuiTableFlags_BordersInnerV;

// By its first cell: further right, borders of columns take the mouse.
void mark_row(Ui& ui, std::string name) {
  const ImVec2 least = ImGui::GetItemRectMin();
  ui.mark(std::move(name), least, {least.x + 24 * ui.scale, ImGui::GetItemRectMax().y});
}

// A number that is cut off would be another number: where there is too little room it is rounded, and says so.
void draw_cell(const Ui& ui, const std::string& text, bool is_number) {
  const ImFont* font = ui.fonts.small;
  const float room = ImGui::GetContentRegionAvail().x;
  const std::string shown =
      is_number ? fitted_number(text, [&](const std::string& t) { return ImGui::CalcTextSize(t.c_str()).x <= room; })
                : text;
  ImGui::TextUnformatted(cut_text(font, font->FontSize, shown, room).c_str());
  if (ImGui::CalcTextSize(text.c_str()).x > room) tooltip(text.c_str());
}

// A table of elements, each given by `element_of(position)`.
template <class ElementOf>
void draw_table(Ui& ui, const char* name, int64_t count, ElementOf element_of) {
  TensorPane& pane = ui.viewer->tensor();
  const TensorModel& model = *pane.model;
  const bool both = model.has_b();
  if (!ImGui::BeginTable(name, both ? 6 : 2, kTable)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  struct Column {
    const char* title;
    float share;
  };
  const Column columns[] = {{"index", 1.1F}, {only_side(pane), 1.25F}, {"B", 1.25F}, {"A-B", 1.2F}, {"ULP", 0.8F},
                            {"sev", 0.8F}};
  for (const Column& column : std::span(columns).first(both ? 6 : 2))
    ImGui::TableSetupColumn(column.title, ImGuiTableColumnFlags_WidthStretch, column.share);
  ImGui::TableHeadersRow();
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(count));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const int64_t element = element_of(i);
      const ElementView view = model.describe(element);
      ImGui::TableNextRow();
      ImGui::TableSetColumnIndex(0);
      ImGui::PushID(i);
      const ImFont* font = ui.fonts.small;
      const std::string index = cut_front(font, font->FontSize, view.index, ImGui::GetContentRegionAvail().x);
      if (ImGui::Selectable(index.c_str(), element == pane.element, ImGuiSelectableFlags_SpanAllColumns))
        ui.viewer->select_element(element);
      mark_row(ui, fmt::format("element:{}", i));
      copy_menu(ui, "copy",
                {{"Copy the index", [&] { return view.index; }},
                 {"Copy the row", [&] {
                    return both ? fmt::format("{}\t{}\t{}\t{}\t{}\t{}", view.index, view.a, view.b, view.difference,
                                              view.ulp, view.severity)
                                : fmt::format("{}\t{}", view.index, view.a);
                  }}});
      ImGui::PopID();
      const std::string cells[] = {pane.hex ? view.hex_a : view.a, pane.hex ? view.hex_b : view.b, view.difference,
                                   view.ulp, view.severity};
      for (int c = 1; c < (both ? 6 : 2); ++c) {
        ImGui::TableSetColumnIndex(c);
        draw_cell(ui, cells[c - 1], !(pane.hex && c <= 2));
      }
    }
  }
  ImGui::EndTable();
}

std::string filter_text(const TensorPane& pane) {
  std::string text;
  if (pane.filter.specials_only) text = ", NaN and Inf alone (M)";
  if (pane.filter.brush.has_value()) {
    text +=
        fmt::format(", {} to {} (C: all)", short_number(pane.filter.brush->low), short_number(pane.filter.brush->high));
  }
  return text;
}

void headline(const Ui& ui, const std::string& text) {
  const ImFont* font = ui.fonts.small;
  ImGui::TextDisabled("%s", cut_text(font, font->FontSize, text, ImGui::GetContentRegionAvail().x).c_str());
  tooltip(text.c_str());
}

const char* scope_of(const TensorPane& pane) { return pane.counts_whole() ? "" : " in this slice"; }

void draw_worst(Ui& ui) {
  const TensorPane& pane = ui.viewer->tensor();
  const bool both = pane.model->has_b();
  const size_t count = ui.tensor.figures.worst.size();
  const TensorMode order = pane.model->order_of_worst(pane.mode);
  const char* first = order == TensorMode::severity ? "error / limit" : order == TensorMode::ulp ? "ULP" : "rel";
  const int64_t all = pane.counted().slice_count();
  const std::string what = both ? fmt::format("of {} elements{} {}, largest {} first", all, scope_of(pane),
                                              count == 1 ? "differs" : "differ", first)
                                : fmt::format("largest of {} elements{}", all, scope_of(pane));
  const std::string more = count == kMostWorst && both ? "at least " : "";
  const bool none = both && count == 0 && !pane.filter.is_set();
  headline(ui, none ? "no element of what is shown differs"
                    : fmt::format("{}{} {}{}", more, count, what, filter_text(pane)));
  draw_table(ui, "worst", static_cast<int64_t>(count),
             [&](int i) { return ui.tensor.figures.worst[static_cast<size_t>(i)]; });
}

void draw_values(Ui& ui) {
  const TensorPane& pane = ui.viewer->tensor();
  const bool is_filtered = pane.filter.is_set();
  const TensorModel counted = pane.counted();
  const int64_t all = is_filtered ? static_cast<int64_t>(ui.tensor.figures.passing.size()) : counted.slice_count();
  const auto pages = static_cast<int>(std::max<int64_t>(1, (all + kPage - 1) / kPage));
  ui.tensor.page = std::clamp(ui.tensor.page, 0, pages - 1);
  std::string text = is_filtered ? fmt::format("{} of {} elements{}", ui.tensor.figures.passing_total,
                                               counted.slice_count(), filter_text(pane))
                                 : fmt::format("all {} elements{}, in order", all, scope_of(pane));
  if (is_filtered && ui.tensor.figures.passing_total > all) text += fmt::format("; the first {} are listed", all);
  headline(ui, text);
  if (pages > 1) {
    int64_t page = ui.tensor.page;
    const std::string label = fmt::format("elements {} to {}", page * kPage, std::min(all, (page + 1) * kPage) - 1);
    if (index_slider(ui, "values.page", label, page, pages, ImGui::GetContentRegionAvail().x))
      ui.tensor.page = static_cast<int>(page);
  }
  const int64_t begin = ui.tensor.page * kPage;
  draw_table(ui, "values", std::min(kPage, all - begin), [&](int i) {
    return is_filtered ? ui.tensor.figures.passing[static_cast<size_t>(begin + i)]
                       : counted.element_in_slice(begin + i);
  });
}

double figure(const ChannelRow& row, int column) {
  const double figures[] = {static_cast<double>(row.index),         row.min,    row.max, row.mean, row.std,
                            static_cast<double>(row.nan + row.inf), row.max_abs};
  return figures[column];
}

void sort_channels(std::vector<ChannelRow>& rows) {
  ImGuiTableSortSpecs* specs = ImGui::TableGetSortSpecs();
  if (specs == nullptr || !specs->SpecsDirty || specs->SpecsCount == 0) return;
  const int column = specs->Specs[0].ColumnIndex;
  const bool descending = specs->Specs[0].SortDirection == ImGuiSortDirection_Descending;
  std::stable_sort(rows.begin(), rows.end(), [&](const ChannelRow& a, const ChannelRow& b) {
    return descending ? figure(b, column) < figure(a, column) : figure(a, column) < figure(b, column);
  });
  specs->SpecsDirty = false;
}

void draw_channel_rows(Ui& ui, int axis, bool both) {
  const TensorModel& model = *ui.viewer->tensor().model;
  auto& rows = ui.tensor.channels;
  sort_channels(rows);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(rows.size()));
  while (clipper.Step()) {
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const ChannelRow& row = rows[static_cast<size_t>(i)];
      const bool is_shown = model.index()[static_cast<size_t>(axis)] == row.index;
      ImGui::TableNextRow();
      ImGui::TableSetColumnIndex(0);
      if (ImGui::Selectable(std::to_string(row.index).c_str(), is_shown, ImGuiSelectableFlags_SpanAllColumns))
        ui.viewer->show_channel(axis, row.index);
      mark_row(ui, fmt::format("channel:{}", row.index));
      for (int c = 1; c < (both ? 7 : 6); ++c) {
        ImGui::TableSetColumnIndex(c);
        const double number = figure(row, c);
        draw_cell(ui, c < 5 && row.min > row.max ? "" : short_number(number), true);  // no finite elements
      }
    }
  }
}

// They are of the whole tensor, not of the slice.
bool has_channels(Ui& ui, int axis) {
  TensorUi& tensor = ui.tensor;
  const TensorModel& model = *ui.viewer->tensor().model;
  constexpr int64_t kShort = 1 << 18;
  if (tensor.channels_version != ui.viewer->tensor_loads() || tensor.channels_axis != axis) {
    tensor.channels_axis = axis;
    tensor.channels_version = ui.viewer->tensor_loads();
    const auto make = [model = TensorModel(model), axis](const CancelToken& stop) mutable {
      model.stop_when(stop);
      return model.channels(axis);
    };
    tensor.channels_work.start(make, model.shape().element_count() <= kShort, ui.viewer->wake);
  }
  if (auto made = tensor.channels_work.take()) tensor.channels = *std::move(made);
  if (!tensor.channels_work.is_running()) return true;
  const ImVec2 at = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  busy_mark(ui, at, {at.x + size.x, at.y + size.y}, "figures by channel");
  return false;
}

void draw_channels(Ui& ui) {
  TensorPane& pane = ui.viewer->tensor();
  const TensorModel& model = *pane.model;
  const auto rank = static_cast<int>(model.shape().rank());
  if (rank == 0) return headline(ui, "a scalar has no channels");
  const int axis = pane.channel_axis >= 0 && pane.channel_axis < rank ? pane.channel_axis : model.channel_axis();
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x);
  const auto title = [&](int i) {
    return fmt::format("along axis {}: {} channels", i, model.shape()[static_cast<size_t>(i)]);
  };
  if (ImGui::BeginCombo("##axis", title(axis).c_str())) {
    close_on_escape(ui);
    for (int i = 0; i < rank; ++i) {
      if (ImGui::Selectable(title(i).c_str(), i == axis)) pane.channel_axis = i;
    }
    ImGui::EndCombo();
  }
  ui.mark("channels.axis");
  if (!has_channels(ui, axis)) return;
  const bool both = model.has_b();
  if (!ImGui::BeginTable("channels", both ? 7 : 6, kTable | ImGuiTableFlags_Sortable)) return;
  ImGui::TableSetupScrollFreeze(0, 1);
  const std::string side = both ? " A" : "";  // of one side where there are two
  ImGui::TableSetupColumn("#");
  for (const char* name : {"min", "max", "mean", "std", "NaN, Inf"}) ImGui::TableSetupColumn((name + side).c_str());
  if (both) ImGui::TableSetupColumn("max |A-B|", ImGuiTableColumnFlags_PreferSortDescending);
  ImGui::TableHeadersRow();
  draw_channel_rows(ui, axis, both);
  ImGui::EndTable();
}

// Nine by nine elements, in color and in numbers.
void draw_around(Ui& ui) {
  const TensorPane& pane = ui.viewer->tensor();
  if (pane.element < 0) return headline(ui, "pick an element, or press E for the worst");
  const auto [row, column] = pane.model->location_of(pane.element);
  headline(ui, fmt::format("around {}: {}", pane.model->describe(pane.element).index,
                           tensor_modes()[static_cast<size_t>(pane.mode)].title));
  constexpr int64_t kReach = 4;
  const ImVec2 room = ImGui::GetContentRegionAvail(), at = ImGui::GetCursorScreenPos();
  const ImVec2 cell{std::floor(std::min(room.x / 9, 72 * ui.scale)), std::floor(std::min(room.y / 9, 30 * ui.scale))};
  if (cell.x < 4 || cell.y < 4) return;
  const ImFont* font = ui.fonts.small;
  ImDrawList* list = ImGui::GetWindowDrawList();
  for (int64_t r = -kReach; r <= kReach; ++r) {
    for (int64_t c = -kReach; c <= kReach; ++c) {
      const int64_t element = pane.model->element_at(row + r, column + c);
      if (element < 0) continue;
      const ImVec2 a{at.x + cell.x * static_cast<float>(c + kReach), at.y + cell.y * static_cast<float>(r + kReach)},
          b{a.x + cell.x - 1, a.y + cell.y - 1};
      const Color fill =
          TensorModel::color_of(pane.mode, pane.model->number(pane.mode, element), pane.range, ui.viewer->is_dark);
      list->AddRectFilled(a, b, to_imgui(fill));
      const std::string text = cut_text(font, font->FontSize, pane.model->cell_text(pane.mode, element), cell.x);
      const ImVec2 extent = font->CalcTextSizeA(font->FontSize, 1e6F, 0, text.c_str());
      list->AddText(font, font->FontSize,
                    {std::floor(a.x + (cell.x - extent.x) / 2), std::floor(a.y + (cell.y - extent.y) / 2)},
                    to_imgui(readable_on(fill)), text.c_str());
      if (r == 0 && c == 0) list->AddRect(a, b, ui.theme().accent, 0, 0, 2 * ui.scale);
    }
  }
  ImGui::InvisibleButton("around", {cell.x * 9, cell.y * 9});
  ui.mark("around");
  if (!ImGui::IsItemClicked()) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  const int64_t element = pane.model->element_at(row + static_cast<int64_t>((mouse.y - at.y) / cell.y) - kReach,
                                                 column + static_cast<int64_t>((mouse.x - at.x) / cell.x) - kReach);
  if (element >= 0) ui.viewer->select_element(element);
}

}  // namespace

void draw_lists_of_elements(Ui& ui) {
  TensorPane& pane = ui.viewer->tensor();
  struct Tab {
    const char *title, *name;
    void (*draw)(Ui&);
  };
  constexpr Tab kTabs[] = {{"worst", "list.worst", draw_worst},
                           {"all", "list.values", draw_values},
                           {"channels", "list.channels", draw_channels},
                           {"around", "list.around", draw_around}};
  for (size_t i = 0; i < std::size(kTabs); ++i) {
    if (i > 0) same_line_if_fits(ui, kTabs[i].title, 3 * ui.scale);
    const auto tab = static_cast<TensorTab>(i);
    if (small_button(ui, kTabs[i].title, kTabs[i].name, pane.tab == tab)) pane.tab = tab;
  }
  ImGui::PushFont(ui.fonts.small);
  if (pane.tab == TensorTab::worst || pane.tab == TensorTab::values) {
    same_line_if_fits(ui, "bits", 10 * ui.scale);
    if (small_button(ui, "bits", "list.hex", pane.hex)) pane.hex = !pane.hex;
    tooltip("The elements' bits instead of decimals (X)");
  }
  kTabs[static_cast<size_t>(pane.tab)].draw(ui);
  ImGui::PopFont();
}

}  // namespace parallax::gui
