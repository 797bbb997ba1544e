// SPDX-License-Identifier: Apache-2.0
// Contrast of all text that is drawn: of each letter against what was drawn before it at its middle. WCAG 2.1 asks for
// 4.5 to 1.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "tests/gui/panels/frames.h"

namespace parallax::gui {
namespace {

constexpr double kLeastContrast = 4.5;

struct Blend {
  double r = 0, g = 0, b = 0;
  void cover(const ImVec4& color) {
    const double alpha = color.w;
    r += (color.x - r) * alpha;
    g += (color.y - g) * alpha;
    b += (color.z - b) * alpha;
  }
  Color color() const {
    const auto byte = [](double channel) { return static_cast<uint8_t>(std::lround(channel * 255)); };
    return {byte(r), byte(g), byte(b)};
  }
};

struct Triangle {
  ImDrawVert corners[3];
  ImVec4 clip;
  // The color at a point; nothing outside.
  bool color_at(ImVec2 at, ImVec4& color) const {
    if (at.x < clip.x || at.y < clip.y || at.x >= clip.z || at.y >= clip.w) return false;
    const ImVec2 a = corners[0].pos, b = corners[1].pos, c = corners[2].pos;
    const float area = (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);
    if (area == 0) return false;
    const float u = ((b.x - at.x) * (c.y - at.y) - (b.y - at.y) * (c.x - at.x)) / area,
                v = ((c.x - at.x) * (a.y - at.y) - (c.y - at.y) * (a.x - at.x)) / area, w = 1 - u - v;
    if (u < 0 || v < 0 || w < 0) return false;
    const ImVec4 x = ImGui::ColorConvertU32ToFloat4(corners[0].col), y = ImGui::ColorConvertU32ToFloat4(corners[1].col),
                 z = ImGui::ColorConvertU32ToFloat4(corners[2].col);
    color = {x.x * u + y.x * v + z.x * w, x.y * u + y.y * v + z.y * w, x.z * u + y.z * v + z.z * w,
             x.w * u + y.w * v + z.w * w};
    return true;
  }
};

class Contrast : public Frames {
 protected:
  struct Pair {
    double contrast = 0;
    ImVec2 at{0, 0};
    int letters = 0;
  };

  // By the two colors, those below the limit.
  std::map<std::string, Pair> too_weak(int& letters) {
    frames(1);
    const ImDrawData* data = ImGui::GetDrawData();
    std::set<std::pair<float, float>> glyphs;  // texture coordinates of their upper left corners
    for (const ImFont* font : ImGui::GetIO().Fonts->Fonts) {
      for (const ImFontGlyph& glyph : font->Glyphs) glyphs.emplace(glyph.U0, glyph.V0);
    }
    std::vector<Triangle> drawn;
    std::map<std::string, Pair> weak;
    for (int l = 0; l < data->CmdListsCount; ++l) {
      const ImDrawList& list = *data->CmdLists[l];
      for (const ImDrawCmd& command : list.CmdBuffer) {
        for (unsigned i = 0; i + 2 < command.ElemCount; i += 3) {
          Triangle triangle{{}, command.ClipRect};
          for (unsigned c = 0; c < 3; ++c)
            triangle.corners[c] = list.VtxBuffer[static_cast<int>(
                command.VtxOffset + list.IdxBuffer[static_cast<int>(command.IdxOffset + i + c)])];
          const ImDrawVert& first = triangle.corners[0];
          const bool is_letter = glyphs.contains({first.uv.x, first.uv.y});
          if (!is_letter) {
            drawn.push_back(triangle);
            continue;
          }
          const ImDrawVert& across = triangle.corners[2];
          const ImVec2 middle{(first.pos.x + across.pos.x) / 2, (first.pos.y + across.pos.y) / 2};
          i += 3;  // a letter has two triangles
          check(drawn, middle, first.col, command.ClipRect, weak, letters);
        }
      }
    }
    return weak;
  }

  void expect_readable(const std::string& view) {
    for (const bool is_dark : {true, false}) {
      viewer_.is_dark = is_dark;
      frames(2);
      int letters = 0;
      for (const auto& [colors, pair] : too_weak(letters)) {
        ADD_FAILURE() << view << (is_dark ? ", dark: " : ", light: ") << colors << " has a contrast of "
                      << pair.contrast << " in " << pair.letters << " letters, one of them at " << pair.at.x << ", "
                      << pair.at.y;
      }
      EXPECT_GT(letters, 200) << view;
    }
  }

 private:
  static void check(const std::vector<Triangle>& drawn, ImVec2 at, ImU32 ink, const ImVec4& clip,
                    std::map<std::string, Pair>& weak, int& letters) {
    if (at.x < clip.x || at.y < clip.y || at.x >= clip.z || at.y >= clip.w) return;
    ++letters;
    Blend ground;
    ImVec4 color;
    for (const Triangle& triangle : drawn) {
      if (triangle.color_at(at, color)) ground.cover(color);
    }
    Blend text = ground;
    text.cover(ImGui::ColorConvertU32ToFloat4(ink));
    const Color a = text.color(), b = ground.color();
    const double found = contrast(a, b);
    if (found >= kLeastContrast) return;
    Pair& pair = weak[fmt::format("#{:02X}{:02X}{:02X} on #{:02X}{:02X}{:02X}", a.r, a.g, a.b, b.r, b.g, b.b)];
    pair = {found, at, pair.letters + 1};
  }
};

TEST_F(Contrast, OfEveryPaneIsEnough) {
  open(view_test::llama_fault());
  for (const Preset preset : {Preset::all, Preset::graph, Preset::tensor, Preset::table}) {
    viewer_.preset = preset;
    expect_readable("preset " + std::to_string(static_cast<int>(preset)));
  }
  viewer_.left_tab = LeftTab::table;
  viewer_.set_search("diverged");
  expect_readable("table");
  viewer_.preset = Preset::all;
  viewer_.left_tab = LeftTab::causes;
  expect_readable("causes");
}

TEST_F(Contrast, OfNodesIsEnoughWhateverColorsAreBy) {
  open(view_test::llama_fault());
  viewer_.preset = Preset::graph;
  for (const ColorByInfo& info : colorings()) {
    viewer_.graph.set_color_by(info.by);
    viewer_.graph.focus_on(viewer_.item());
    expect_readable(std::string(info.name));
    viewer_.graph.move(0, 400);
    expect_readable(std::string(info.name));
  }
}

TEST_F(Contrast, OfLoopsAndNaNIsEnough) {
  open(view_test::loop_fault());
  expect_readable("loop");
  open(view_test::nan_fault());
  viewer_.tensor().is_split = true;
  expect_readable("NaN");
}

TEST_F(Contrast, OfAModelAndOfDialogsIsEnough) {
  viewer_.open({view_test::sample("llama_layer/model.onnx")});
  viewer_.wait_idle();
  expect_readable("model");
  viewer_.fail(Error{ErrorCode::io, "something could not be read, and this sentence says so at some length", {}, {}});
  expect_readable("message");
  for (bool* dialog : {&viewer_.show_help, &viewer_.show_palette, &viewer_.show_open, &viewer_.show_run}) {
    *dialog = true;
    frames(3);
    expect_readable("dialog");
    *dialog = false;
    frames(3);
  }
}

}  // namespace
}  // namespace parallax::gui
