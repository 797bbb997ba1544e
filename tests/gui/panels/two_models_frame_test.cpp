// SPDX-License-Identifier: Apache-2.0
// Two models: both graphs are drawn and pressed, each with its own camera; the list selects.
#include "tests/gui/panels/frames.h"

namespace parallax::gui {
namespace {

class TwoModelsFrames : public Frames {
 protected:
  void open_pair() {
    viewer_.open({view_test::sample("fault_pair/A.onnx"), view_test::sample("fault_pair/B.onnx")});
    viewer_.wait_idle();
    frames(3);
    ASSERT_NE(viewer_.models(), nullptr);
  }
};

TEST_F(TwoModelsFrames, BothGraphsAreDrawnNextToEachOther) {
  open_pair();
  ASSERT_TRUE(ui_.widgets.contains("graph"));
  ASSERT_TRUE(ui_.widgets.contains("graph_b"));
  EXPECT_LT(ui_.widgets.find("graph")->second.greatest.x, ui_.widgets.find("graph_b")->second.least.x);
  EXPECT_TRUE(ui_.widgets.contains("differences.verdict"));
  EXPECT_TRUE(ui_.widgets.contains("legend"));
  EXPECT_TRUE(ui_.widgets.contains("difference:0"));
}

TEST_F(TwoModelsFrames, InANarrowPaneAIsAboveB) {
  open_pair();
  viewer_.preset = Preset::table;
  frames(3);
  const Widget &a = ui_.widgets.find("graph")->second, &b = ui_.widgets.find("graph_b")->second;
  EXPECT_EQ(a.least.x, b.least.x);
  EXPECT_LT(a.greatest.y, b.least.y);
}

TEST_F(TwoModelsFrames, AClickInBSelectsBothSides) {
  open_pair();
  const std::string title = viewer_.models()->b->items->item(viewer_.item_b()).title;
  viewer_.select_item(0);
  ASSERT_TRUE(click("item_b:" + title));
  EXPECT_EQ(viewer_.models()->b->items->item(viewer_.item_b()).title, title);
  EXPECT_GT(viewer_.item(), 0);
  EXPECT_EQ(viewer_.active_item(), viewer_.item_b());
}

TEST_F(TwoModelsFrames, EachGraphHasItsOwnCamera) {
  open_pair();
  const Camera before = viewer_.graph.camera;
  ImGuiIO& io = ImGui::GetIO();
  io.MousePos = ui_.widgets.find("graph_b")->second.middle();
  frames(2);
  const float zoom_b = viewer_.graph_b.camera.zoom;
  io.KeyCtrl = true;
  ui_.held.has_ctrl = true;
  io.MouseWheel = 2;
  frames(2);
  EXPECT_NE(viewer_.graph_b.camera.zoom, zoom_b);
  EXPECT_EQ(viewer_.graph.camera.zoom, before.zoom);
}

TEST_F(TwoModelsFrames, AClickInTheListSelectsTheDifference) {
  open_pair();
  viewer_.select_item(0);
  frames(2);
  ASSERT_TRUE(click("difference:0"));
  EXPECT_EQ(viewer_.difference_at(), 0);
}

TEST_F(TwoModelsFrames, WithDumpsErrorsColorBothGraphsAndTheTensorViewerHasBothSides) {
  const auto& dumps = view_test::two_graphs().dumps;
  viewer_.open({dumps.a, dumps.b});
  viewer_.wait_idle();
  frames(3);
  ASSERT_NE(viewer_.models(), nullptr);
  for (const char* name : {"graph", "graph_b", "ribbon", "legend", "tensor", "tab.differences", "tab.causes"})
    EXPECT_TRUE(ui_.widgets.contains(name)) << name;
  EXPECT_LE(ui_.widgets.find("graph_b")->second.greatest.x, ui_.widgets.find("ribbon")->second.least.x);
  ASSERT_TRUE(click("mode.b"));
  EXPECT_EQ(viewer_.tensor().mode, TensorMode::b);
  ASSERT_TRUE(click("item_b:late"));
  EXPECT_EQ(viewer_.item(), -1);
  ASSERT_TRUE(click("tab.differences"));
  ASSERT_TRUE(click("difference:0"));
  EXPECT_EQ(viewer_.difference_at(), 0);
}

}  // namespace
}  // namespace parallax::gui
