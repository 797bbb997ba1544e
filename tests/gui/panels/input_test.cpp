// SPDX-License-Identifier: Apache-2.0
// The queue of events: all that comes within a frame has its effect, in the order in which it came.
#include <filesystem>

#include "tests/gui/panels/frames.h"

namespace parallax::gui {
namespace {

class Input : public Frames {
 protected:
  void enqueue(const std::string& chord, const std::string& text = "") { ui_.input.push_back({chord, text}); }
  void move(ImVec2 at) { ui_.input.push_back({.kind = InputEvent::Kind::move, .at = at}); }
  void button(bool is_down) { ui_.input.push_back({.kind = InputEvent::Kind::button, .is_down = is_down}); }
};

TEST_F(Input, EveryPasteWithinAFrameArrives) {
  frames(3);
  ImGui::SetClipboardText("ab");
  enqueue("Ctrl+O");
  for (int i = 0; i < 12; ++i) enqueue("Ctrl+V");
  frames(3);
  EXPECT_EQ(ui_.path_field, "abababababababababababab");
}

TEST_F(Input, KeysThatEditATextKeepTheirOrder) {
  frames(3);
  ImGui::SetClipboardText("/new");
  enqueue("Ctrl+O");
  enqueue("", "/old/path");
  enqueue("Ctrl+A");
  enqueue("Delete");
  enqueue("Ctrl+V");
  enqueue("", "er");
  for (const char* key : {"Left", "Left", "Backspace", "Home", "Delete"}) enqueue(key);
  enqueue("End");
  enqueue("", "x");
  enqueue("Shift+Left");
  enqueue("Ctrl+C");
  frames(3);
  EXPECT_EQ(ui_.path_field, "neerx");
  EXPECT_STREQ(ImGui::GetClipboardText(), "x");
}

TEST_F(Input, CopyingFromATextFieldIsNoCommand) {
  open(view_test::llama_fault());
  enqueue("Ctrl+F");
  enqueue("", "norm");
  enqueue("Ctrl+A");
  enqueue("Ctrl+C");
  frames(3);
  EXPECT_STREQ(ImGui::GetClipboardText(), "norm");
  EXPECT_TRUE(viewer_.clipboard.empty());
  EXPECT_TRUE(viewer_.note.empty());
}

TEST_F(Input, ADoubleClickWithinAFrameOpensABlock) {
  open(view_test::loop_fault());
  const int32_t loop = viewer_.graph.items().find_node("", "decode");
  viewer_.graph.set_open(loop, false);
  viewer_.select_item(loop);
  frames(3);
  ASSERT_TRUE(ui_.widgets.contains("item:decode"));
  move(ui_.widgets.at("item:decode").middle());
  for (const bool is_down : {true, false, true, false}) button(is_down);
  frames(3);
  EXPECT_TRUE(viewer_.graph.is_open(loop));
}

TEST_F(Input, APressBetweenTwoMovesIsSeenAtItsPoint) {
  open(view_test::llama_fault());
  ASSERT_TRUE(ui_.widgets.contains("tab.causes"));
  move(ui_.widgets.at("tab.causes").middle());
  button(true);
  button(false);
  move({5, 700});
  frames(3);
  EXPECT_EQ(viewer_.left_tab, LeftTab::causes);
}

TEST_F(Input, AWheelTakesTheModifiersOfItsTime) {
  open(view_test::llama_fault());
  const Camera before = viewer_.graph.camera;
  move(ui_.widgets.at("graph").middle());
  ui_.input.push_back({.kind = InputEvent::Kind::modifiers, .has_ctrl = true});
  ui_.input.push_back({.kind = InputEvent::Kind::wheel, .at = {0, 1}});
  ui_.input.push_back({.kind = InputEvent::Kind::modifiers});
  ui_.input.push_back({.kind = InputEvent::Kind::wheel, .at = {0, -1}});
  frames(3);
  EXPECT_GT(viewer_.graph.camera.zoom, before.zoom);
  EXPECT_FALSE(ImGui::GetIO().KeyCtrl);
}

TEST_F(Input, CommandsOutsideATextTakeNoFrameEach) {
  open(view_test::llama_fault());
  const int32_t row = viewer_.row();
  enqueue("LeftBracket");
  enqueue("LeftBracket");
  begin_frame(ui_);
  EXPECT_EQ(viewer_.row(), row - 2);
  draw_frame(ui_);
  ImGui::Render();
}

}  // namespace
}  // namespace parallax::gui
