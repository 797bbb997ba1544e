// SPDX-License-Identifier: Apache-2.0
// Copying by keys and at the right mouse button; menu items that say why they are disabled.
#include <algorithm>

#include "tests/gui/panels/frames.h"

namespace parallax::gui {
namespace {

class Copying : public Frames {
 protected:
  bool right_click(const std::string& name) {
    frames(1);
    const auto found = ui_.widgets.find(name);
    if (found == ui_.widgets.end()) return false;
    ImGuiIO& io = ImGui::GetIO();
    io.MousePos = found->second.middle();
    frames(2);
    io.MouseDown[1] = true;
    frames(2);
    io.MouseDown[1] = false;
    frames(3);
    return true;
  }
};

TEST_F(Copying, ControlCCopiesTheNameOfTheValue) {
  open(view_test::llama_fault());
  press("Ctrl+C");
  EXPECT_EQ(viewer_.clipboard, path());
  EXPECT_EQ(viewer_.note, "copied: " + path());
}

TEST_F(Copying, ARowHasACellForEachColumn) {
  open(view_test::llama_fault());
  press("Ctrl+Alt+C");
  const std::string row = viewer_.clipboard;
  EXPECT_NE(row.find(path()), std::string::npos);
  EXPECT_NE(row.find("diverged"), std::string::npos);
  ASSERT_TRUE(find_command("edit.copy_table")->run(viewer_));
  const std::string table = viewer_.clipboard;
  EXPECT_EQ(std::ranges::count(table, '\n'), static_cast<std::ptrdiff_t>(viewer_.table_rows().size()) + 1);
  EXPECT_NE(table.find(row + "\n"), std::string::npos);
  const std::string titles = table.substr(0, table.find('\n'));
  EXPECT_EQ(std::ranges::count(titles, '\t'), std::ranges::count(row, '\t'));
}

TEST_F(Copying, AnAlertAndAnElementAreCopiedAtTheRightButton) {
  open(view_test::llama_fault());
  ASSERT_TRUE(right_click("alert:1"));
  ASSERT_TRUE(click("copy:Copy the alert"));
  EXPECT_EQ(viewer_.clipboard, viewer_.alerts()[1].text);
  frames(3);
  ASSERT_TRUE(right_click("element:0"));
  ASSERT_TRUE(click("copy:Copy the row"));
  EXPECT_EQ(std::ranges::count(viewer_.clipboard, '\t'), 5);
}

TEST_F(Copying, AMessageIsCopiedWhole) {
  open(view_test::nan_fault());
  viewer_.open({view_test::scratch("nothing.plx")});
  viewer_.wait_idle();
  frames(2);
  ASSERT_TRUE(find_command("edit.copy_message")->run(viewer_));
  EXPECT_EQ(viewer_.clipboard, viewer_.messages.back());
}

TEST_F(Copying, ItemsThatHaveNothingToDoAreDisabled) {
  frames(2);
  const Command& cancel = *find_command("file.cancel");
  EXPECT_EQ(obstacle_to(viewer_, cancel), "nothing is running");
  EXPECT_EQ(obstacle_to(viewer_, *find_command("go.first_divergence")), "nothing is open");
  viewer_.open({view_test::sample("cnn/model.onnx")});
  viewer_.wait_idle();
  frames(2);
  EXPECT_NE(obstacle_to(viewer_, *find_command("go.first_divergence")).find("one side only"), std::string::npos);
  EXPECT_NE(obstacle_to(viewer_, *find_command("tensor.ulp")), "");
  EXPECT_EQ(obstacle_to(viewer_, *find_command("graph.fit")), "");
  press("N");
  EXPECT_NE(viewer_.note.find("one side only"), std::string::npos) << viewer_.note;
  ASSERT_TRUE(click("menu.Go"));
  ASSERT_TRUE(click("go.first_divergence"));
  frames(2);
  EXPECT_TRUE(ui_.widgets.contains("go.first_divergence"));  // a disabled item closes no menu
}

TEST_F(Copying, TheTitleHasTheFolderOfAModelThatIsCalledModel) {
  viewer_.open({view_test::sample("cnn/model.onnx")});
  viewer_.wait_idle();
  EXPECT_EQ(viewer_.document()->title(), "cnn/model.onnx");
  open(view_test::llama_fault());
  EXPECT_EQ(viewer_.document()->title(), "A: A-reference.plx    B: B-reference.plx");
}

TEST_F(Copying, TextGetsLargerAndSmaller) {
  frames(2);
  const float before = ui_.fonts.base->FontSize;
  press("Ctrl+Alt+Equal");
  ASSERT_TRUE(size_fonts(ui_));
  EXPECT_GT(ui_.fonts.base->FontSize, before);
  unsigned char* pixels = nullptr;
  int width = 0, height = 0;
  ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
  press("Ctrl+Alt+0");
  ASSERT_TRUE(size_fonts(ui_));
  EXPECT_EQ(ui_.fonts.base->FontSize, before);
  ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&pixels, &width, &height);
  frames(2);
}

// The mouse over a dialog's surroundings reaches nothing under it.
TEST_F(Copying, NothingUnderADialogTakesTheMouse) {
  open(view_test::llama_fault());
  const std::string before = path();
  press("Ctrl+R");
  frames(3);
  ASSERT_TRUE(click("alert:1"));
  EXPECT_EQ(path(), before);
  EXPECT_TRUE(viewer_.show_run);
  type("x");
  press("Tab");
  EXPECT_EQ(ui_.hovered_item, -1);
  EXPECT_NE(ui_.focus.at, "");
}

}  // namespace
}  // namespace parallax::gui
