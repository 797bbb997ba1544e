// SPDX-License-Identifier: Apache-2.0
// Pixels, drawn by EGL without a display: the same every time, and the right ones where they are checked. Colors are
// read at positions that widgets name, so that a pixel's shift of the layout is no failure and a wrong color is.
#include <algorithm>

#include <gtest/gtest.h>

#include "gui/app/png_file.h"
#include "tests/gui/app/screen.h"

namespace parallax::gui {
namespace {

Color at(const Picture& picture, ImVec2 location) {
  const auto x = static_cast<size_t>(location.x), y = static_cast<size_t>(location.y);
  const uint8_t* p = &picture.rgba.at((y * static_cast<size_t>(picture.width) + x) * 4);
  return {p[0], p[1], p[2]};
}

int distance(Color a, Color b) { return std::max({std::abs(a.r - b.r), std::abs(a.g - b.g), std::abs(a.b - b.b)}); }

int64_t count_of(const Picture& picture, const Widget& area, Color color) {
  int64_t count = 0;
  for (float y = area.least.y + 1; y < area.greatest.y - 1; ++y) {
    for (float x = area.least.x + 1; x < area.greatest.x - 1; ++x) count += distance(at(picture, {x, y}), color) <= 3;
  }
  return count;
}

TEST(Pictures, AreTheSameEveryTime) {
  Screen first(view_test::llama_fault());
  PX_NEEDS_EGL(first);
  const Picture a = first.shot(), b = first.shot();
  EXPECT_EQ(a.rgba, b.rgba);
}

TEST(Pictures, TheCulpritHasTheColorOfItsSeverity) {
  Screen screen(view_test::llama_fault());
  PX_NEEDS_EGL(screen);
  const Picture picture = screen.shot();
  const Widget box = screen.ui.widgets.at("item:" + view_test::llama_culprit_node());
  const Color fill = screen.viewer.graph.look(screen.viewer.item()).fill;
  EXPECT_FALSE(screen.viewer.graph.look(screen.viewer.item()).is_neutral);
  EXPECT_GT(count_of(picture, box, fill),
            static_cast<int64_t>((box.greatest.x - box.least.x) * (box.greatest.y - box.least.y) * 0.4F));
}

TEST(Pictures, NaNStandsOutInTheHeatMapAndAloneWhenAsked) {
  Screen screen(view_test::nan_fault());
  PX_NEEDS_EGL(screen);
  ASSERT_TRUE(screen.viewer.select_path("y"));
  screen.viewer.set_tensor_mode(TensorMode::b);
  const Picture picture = screen.shot();
  const Widget heat = screen.ui.widgets.at("heat");
  EXPECT_GT(count_of(picture, heat, kNanColor), 400);
  screen.viewer.set_tensor_mode(TensorMode::a);
  EXPECT_EQ(count_of(screen.shot(), heat, kNanColor), 0);
}

TEST(Pictures, ThemesDifferAndKeepTextReadable) {
  Screen screen(view_test::llama_fault());
  PX_NEEDS_EGL(screen);
  const auto mean = [](const Picture& picture) {
    double sum = 0;
    for (size_t i = 0; i < picture.rgba.size(); i += 4)
      sum += luminance({picture.rgba[i], picture.rgba[i + 1], picture.rgba[i + 2]});
    return sum / (static_cast<double>(picture.rgba.size()) / 4);
  };
  EXPECT_LT(mean(screen.shot()), 0.2);
  screen.viewer.is_dark = false;
  EXPECT_GT(mean(screen.shot()), 0.6);
}

TEST(Pictures, EveryPaneHasItsRectangleAtAnySize) {
  for (const auto& [width, height, scale] : {std::tuple{1280, 720, 1.0F}, {2560, 1440, 2.0F}, {1920, 1080, 1.0F}}) {
    Screen screen(view_test::llama_fault(), {width, height, scale});
    PX_NEEDS_EGL(screen);
    screen.shot();
    const Widget graph = screen.ui.widgets.at("graph"), heat = screen.ui.widgets.at("heat"),
                 ribbon = screen.ui.widgets.at("ribbon");
    EXPECT_LE(graph.greatest.x, ribbon.least.x + 1);
    EXPECT_LE(graph.greatest.y, heat.least.y);
    EXPECT_LE(heat.greatest.y, static_cast<float>(height));
    EXPECT_GT(graph.greatest.x - graph.least.x, static_cast<float>(width) * 0.3F);
    for (const auto& [name, widget] : screen.ui.widgets) {
      const bool may_be_outside = name.starts_with("item:");
      EXPECT_TRUE(may_be_outside || widget.greatest.x <= static_cast<float>(width) + 1) << name;
    }
  }
}

TEST(Pictures, AreWrittenAndReadAsPng) {
  Picture picture{3, 2, {}};
  for (int i = 0; i < 24; ++i) picture.rgba.push_back(static_cast<uint8_t>(i * 10));
  const std::string path = view_test::scratch("small.png");
  ASSERT_TRUE(write_png(path, picture).ok());
  const auto read = read_png(path);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->width, 3);
  EXPECT_EQ(read->rgba, picture.rgba);
  EXPECT_FALSE(write_png(view_test::scratch("no/such/folder.png"), picture).ok());
  EXPECT_FALSE(read_png(view_test::scratch("missing.png")).ok());
}

}  // namespace
}  // namespace parallax::gui
