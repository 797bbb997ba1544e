// SPDX-License-Identifier: Apache-2.0
// The legend: a strip below the graph, over as many lines as it needs, so that it hides no node.
#include <algorithm>
#include <cmath>

#include "gui/panels/panels.h"

namespace parallax::gui {
namespace {

struct Entry {
  LegendEntry look;
  float x = 0;
  int line = 0;
};

struct RowTile {
  std::string title;
  std::vector<Entry> entries;
  int lines = 0;
};

struct Sizes {
  float line, swatch, pad, gap;
};

Sizes sizes_of(const Ui& ui) { return {17 * ui.scale, 11 * ui.scale, 8 * ui.scale, 14 * ui.scale}; }

float width_of(const ImFont* font, const std::string& text) {
  return font->CalcTextSizeA(font->FontSize, 1e6F, 0, text.c_str()).x;
}

RowTile row_tile_of(const Ui& ui, float width) {
  RowTile row_tile;
  const Viewer& viewer = *ui.viewer;
  if (!viewer.show_legend || viewer.document() == nullptr || !viewer.graph.has_graph()) return row_tile;
  const Sizes sizes = sizes_of(ui);
  const ImFont* font = ui.fonts.small;
  row_tile.title = colorings()[static_cast<size_t>(viewer.graph.color_by())].title;
  float x = width_of(font, row_tile.title) + sizes.gap;
  int line = 0;
  for (LegendEntry& look : viewer.graph.legend()) {
    const float needed = sizes.swatch + 5 * ui.scale + width_of(font, look.text);
    if (x > 0 && x + needed > width - 2 * sizes.pad) {
      x = 0;
      ++line;
    }
    row_tile.entries.push_back({std::move(look), x, line});
    x += needed + sizes.gap;
  }
  row_tile.lines = row_tile.entries.empty() ? 0 : line + 1;
  return row_tile;
}

}  // namespace

float legend_height(const Ui& ui, float width) {
  const int lines = row_tile_of(ui, width).lines;
  return lines == 0 ? 0 : sizes_of(ui).line * static_cast<float>(lines) + sizes_of(ui).pad;
}

void draw_legend(Ui& ui) {
  const ImVec2 corner = ImGui::GetWindowPos(), size = ImGui::GetWindowSize();
  const RowTile row_tile = row_tile_of(ui, size.x);
  const Sizes sizes = sizes_of(ui);
  const ImFont* font = ui.fonts.small;
  const Theme& theme = ui.theme();
  ImDrawList* list = ImGui::GetWindowDrawList();
  ui.mark("legend", corner, {corner.x + size.x, corner.y + size.y});
  const ImVec2 first{corner.x + sizes.pad, corner.y + sizes.pad / 2 + 2 * ui.scale};
  list->AddText(font, font->FontSize, first, theme.dim, row_tile.title.c_str());
  for (const Entry& entry : row_tile.entries) {
    const ImVec2 a{std::floor(first.x + entry.x), std::floor(first.y + sizes.line * static_cast<float>(entry.line))},
        b{a.x + sizes.swatch, a.y + sizes.swatch};
    list->AddRectFilled(a, b, entry.look.is_neutral ? theme.node : to_imgui(entry.look.fill), 3);
    if (entry.look.is_hatched) list->AddLine({a.x, b.y}, {b.x, a.y}, theme.panel, 2);
    list->AddRect(a, b, theme.border, 3);
    list->AddText(font, font->FontSize, {b.x + 5 * ui.scale, a.y}, theme.text, entry.look.text.c_str());
  }
}

}  // namespace parallax::gui
