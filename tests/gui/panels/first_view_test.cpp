// SPDX-License-Identifier: Apache-2.0
// The first picture of a model: nodes that can be read, whole, at every size of the window; and shapes on edges.
#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "tests/gui/panels/frames.h"
#include "tests/gui/viewmodel/exported_models.h"

namespace parallax::gui {
namespace {

struct Size {
  float width, height, scale;
};
constexpr Size kSizes[] = {{1280, 720, 1}, {1920, 1080, 1}, {3840, 2160, 1}, {3840, 2160, 2}, {800, 600, 1}};

class FirstView : public Frames, public testing::WithParamInterface<std::tuple<size_t, Size>> {};

struct Seen {
  int whole = 0, cut = 0;
};

// Boxes of nodes and closed blocks on the canvas. Whole ones count where their text is drawn in letters of 8 pixels.
Seen seen_in(Viewer& viewer, const Fonts& fonts) {
  Seen seen;
  GraphView& graph = viewer.graph;
  const Camera& camera = graph.camera;
  const ImFont* font = fonts.at(13 * camera.zoom);
  for (const SceneBox& box : graph.scene().boxes) {
    if (box.is_open) continue;
    const float left = (box.x - camera.x) * camera.zoom, top = (box.y - camera.y) * camera.zoom;
    const float right = left + box.width * camera.zoom, bottom = top + box.height * camera.zoom;
    if (right <= 0 || bottom <= 0 || left >= graph.canvas_width || top >= graph.canvas_height) continue;
    const bool is_whole = left >= 0 && top >= 0 && right <= graph.canvas_width && bottom <= graph.canvas_height;
    const bool is_node = graph.items().item(box.item).kind == GraphItem::Kind::node ||
                         graph.items().item(box.item).kind == GraphItem::Kind::group;
    seen.cut += !is_whole;
    seen.whole += is_whole && is_node && font != nullptr && font->FontSize >= 8;
  }
  return seen;
}

TEST_P(FirstView, ShowsWholeNodesThatCanBeRead) {
  const auto& [index, size] = GetParam();
  ImGui::GetIO().DisplaySize = {size.width, size.height};
  ui_.screen_scale = size.scale;
  size_fonts(ui_);
  unsigned char* pixels = nullptr;
  int width = 0, height = 0;
  ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
  viewer_.open({view_test::written(view_test::exported_models()[index])});
  viewer_.wait_idle();
  frames(3);
  ASSERT_TRUE(viewer_.graph.has_graph()) << (viewer_.messages.empty() ? "" : viewer_.messages.back());
  const Seen seen = seen_in(viewer_, ui_.fonts);
  EXPECT_GE(seen.whole, 3);
  EXPECT_EQ(seen.cut, 0);
}

std::string name_of(const testing::TestParamInfo<std::tuple<size_t, Size>>& tested) {
  const size_t model = std::get<0>(tested.param);
  const Size size = std::get<1>(tested.param);
  return fmt::format("{}_{}x{}_at_{}", view_test::exported_models()[model].name, size.width, size.height, size.scale);
}

INSTANTIATE_TEST_SUITE_P(Models, FirstView, testing::Combine(testing::Range<size_t>(0, 6), testing::ValuesIn(kSizes)),
                         name_of);

TEST_F(Frames, ZoomIsOfTheScale) {
  open(view_test::llama_fault());
  for (const float scale : {1.0F, 2.0F}) {
    ui_.scale = scale;
    viewer_.graph.camera.zoom = 0.9F * scale;
    EXPECT_EQ(zoom_text(ui_), "90 %");
  }
}

TEST_F(Frames, ShapesOnEdgesAreSwitchedByAKey) {
  open(view_test::llama_fault());
  press("F2");
  frames(2);
  const int before = ImGui::GetDrawData()->TotalVtxCount;
  press("D");
  frames(2);
  EXPECT_TRUE(viewer_.graph.shows_shapes);
  EXPECT_GT(ImGui::GetDrawData()->TotalVtxCount, before);
  viewer_.close();  // the switch is kept
  EXPECT_TRUE(viewer_.graph.shows_shapes);
  press("D");
  EXPECT_FALSE(viewer_.graph.shows_shapes);
}

}  // namespace
}  // namespace parallax::gui
