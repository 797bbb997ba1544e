// SPDX-License-Identifier: Apache-2.0
// The list of differences between two models, each with its sentences.
#include <fmt/format.h>

#include "gui/panels/panels.h"
#include "inspector/render/structure_report.h"

namespace parallax::gui {
namespace {

void draw_difference(Ui& ui, const ModelDifference& difference, int index) {
  Viewer& viewer = *ui.viewer;
  const float width = ImGui::GetContentRegionAvail().x - 8 * ui.scale, indent = 11 * ui.scale;
  const bool is_selected = viewer.difference_at() == index;
  ImGui::PushID(index);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImFont* font = ui.fonts.base;
  const std::string title = cut_text(font, font->FontSize, difference.title, width - indent);
  ImGui::Indent(indent);
  if (ImGui::Selectable((title + "##title").c_str(), is_selected)) viewer.select_difference(index);
  ui.mark(fmt::format("difference:{}", index));
  copy_menu(ui, "copy",
            {{"Copy the name", [&] { return difference.title; }},
             {"Copy the difference", [&] {
                std::string text = fmt::format("{}: {}", text_of(difference.kind), difference.title);
                for (const std::string& sentence : difference.sentences) text += "\n  " + sentence;
                return text;
              }}});
  if (title != difference.title) tooltip(difference.title.c_str());
  if (is_selected && ui.scrolled_difference != index) {
    ImGui::SetScrollHereY(0.4F);
    ui.scrolled_difference = index;
  }
  ImGui::PushStyleColor(ImGuiCol_Text, ui.theme().dim);
  if (difference.sentences.empty()) ImGui::TextUnformatted(text_of(difference.kind));
  for (const std::string& sentence : difference.sentences) wrapped_text(sentence, width - indent);
  ImGui::PopStyleColor();
  ImGui::Unindent(indent);
  const float foot = ImGui::GetItemRectMax().y;
  const auto [fill, border] = colors_of(difference.kind);
  ImGui::GetWindowDrawList()->AddRectFilled({at.x, at.y}, {at.x + 5 * ui.scale, foot}, to_imgui(color_from_hex(fill)),
                                            2);
  ImGui::GetWindowDrawList()->AddRect({at.x, at.y}, {at.x + 5 * ui.scale, foot}, to_imgui(color_from_hex(border)), 2);
  ImGui::Dummy({0, 2 * ui.scale});
  ImGui::PopID();
}

}  // namespace

void draw_differences(Ui& ui) {
  const TwoModels& models = *ui.viewer->models();
  wrapped_text(models.verdict_text(), ImGui::GetContentRegionAvail().x - 8 * ui.scale);
  ui.mark("differences.verdict");
  ImGui::Dummy({0, 4 * ui.scale});
  for (size_t i = 0; i < models.differences.size(); ++i)
    draw_difference(ui, models.differences[i], static_cast<int>(i));
}

}  // namespace parallax::gui
