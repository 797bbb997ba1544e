// SPDX-License-Identifier: Apache-2.0
// Dialogs by the keyboard alone, and the file chooser by keyboard and mouse.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/gui/panels/frames.h"

namespace parallax::gui {
namespace {

class Dialogs : public Frames {
 protected:
  Dialogs() : folder_(view_test::scratch("dialog files")) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/run");
    std::filesystem::create_directories(folder_ + "/net/test_data_set_0");
    std::filesystem::copy_file(view_test::nan_fault().a, folder_ + "/run/A-reference.plx");
    std::filesystem::copy_file(view_test::nan_fault().b, folder_ + "/run/B-cpu.plx");
    std::filesystem::copy_file(view_test::sample("cnn/model.onnx"), folder_ + "/net/model.onnx");
    std::ofstream(folder_ + "/net/notes.txt") << "x";
  }
  std::vector<std::string> files() const {
    return viewer_.document() == nullptr ? std::vector<std::string>{} : viewer_.document()->files;
  }
  void open_chooser() {
    press("Ctrl+O");
    type(folder_ + "/");
    frames(2);
  }
  std::string folder_;
};

TEST_F(Dialogs, TabReachesAllOfTheRunDialog) {
  frames(2);
  press("Ctrl+R");
  std::vector<std::string> reached;
  for (int i = 0; i < 20; ++i) {
    frames(2);
    reached.push_back(ui_.focus.at);
    press("Tab");
  }
  const std::vector<std::string> order = {
      "run.model",         "run.model.browse", "run.against",    "run.against.browse", "run.inputs",
      "run.inputs.browse", "run.executor_a",   "run.executor_b", "run.observe_all",    "run.keep_values",
      "run.fallback",      "run.seed",         "run.dims",       "run.shapes",         "run.ranges",
      "run.rtol",          "run.atol",         "run.only",       "run.dumps",          "run.ok"};
  EXPECT_EQ(reached, order);
  for (int i = 0; i < 10; ++i) press("Shift+Tab");
  EXPECT_EQ(ui_.focus.at, "run.fallback");
  press("Space");
  EXPECT_TRUE(viewer_.run_form.falls_back);
  for (int i = 0; i < 4; ++i) press("Shift+Tab");
  EXPECT_EQ(ui_.focus.at, "run.executor_a");
  press("Down");
  EXPECT_EQ(viewer_.run_form.executor_a, "reference:double");
  for (int i = 0; i < 6; ++i) press("Shift+Tab");
  type("x");
  EXPECT_EQ(viewer_.run_form.model, "x");  // a field has the keyboard when Tab leads back to it
  press("Shift+Tab");
  EXPECT_EQ(ui_.focus.at, "run.cancel");
  press("Enter");
  EXPECT_FALSE(viewer_.show_run);
  EXPECT_FALSE(viewer_.is_busy());
}

TEST_F(Dialogs, AProgramOfItsOwnHasAField) {
  frames(2);
  press("Ctrl+R");
  frames(2);
  viewer_.run_form.executor_b = "cmd:COMMAND";
  std::vector<std::string> reached;
  for (int i = 0; i < 21; ++i) {
    frames(2);
    reached.push_back(ui_.focus.at);
    press("Tab");
  }
  EXPECT_EQ(std::ranges::count(reached, "run.program_b"), 1);
  EXPECT_EQ(std::ranges::count(reached, "run.program_a"), 0);
}

TEST_F(Dialogs, ThePathIsCompletedByTab) {
  frames(2);
  press("Ctrl+O");
  type(folder_ + "/n");
  press("Tab");
  EXPECT_EQ(ui_.path_field, folder_ + "/net/");
  type("m");
  press("Tab");
  EXPECT_EQ(ui_.path_field, folder_ + "/net/model.onnx");
  press("Enter");
  viewer_.wait_idle();
  EXPECT_EQ(files(), std::vector<std::string>{folder_ + "/net/model.onnx"});
}

TEST_F(Dialogs, AFolderIsWalkedThroughByArrows) {
  open_chooser();
  press("Down");
  press("Enter");
  ASSERT_TRUE(viewer_.show_open);
  EXPECT_EQ(ui_.path_field, folder_ + "/net/");
  frames(2);
  EXPECT_FALSE(ui_.widgets.contains("open.entry:notes.txt"));
  press("Alt+Up");
  frames(2);
  EXPECT_EQ(ui_.path_field, folder_ + "/");
  press("Down");
  press("Down");
  press("Enter");
  viewer_.wait_idle();
  EXPECT_EQ(files(), (std::vector<std::string>{folder_ + "/run/A-reference.plx", folder_ + "/run/B-cpu.plx"}));
}

TEST_F(Dialogs, FilesAreChosenByTheMouse) {
  open_chooser();
  ASSERT_TRUE(click("open.entry:net"));
  frames(3);
  ASSERT_TRUE(click("open.kind:all"));
  frames(2);
  EXPECT_TRUE(ui_.widgets.contains("open.entry:notes.txt"));
  ASSERT_TRUE(click("open.entry:model.onnx"));
  EXPECT_EQ(ui_.path_field, folder_ + "/net/model.onnx");
  ASSERT_TRUE(click("open.ok"));
  viewer_.wait_idle();
  EXPECT_EQ(files(), std::vector<std::string>{folder_ + "/net/model.onnx"});
}

TEST_F(Dialogs, TwoFilesAreChosenWithControl) {
  press("Ctrl+O");
  type(folder_ + "/run/");
  frames(2);
  ASSERT_TRUE(click("open.entry:A-reference.plx"));
  ImGui::GetIO().KeyCtrl = true;
  ASSERT_TRUE(click("open.entry:B-cpu.plx"));
  ImGui::GetIO().KeyCtrl = false;
  EXPECT_EQ(paths_in(ui_.path_field),
            (std::vector<std::string>{folder_ + "/run/A-reference.plx", folder_ + "/run/B-cpu.plx"}));
}

TEST_F(Dialogs, TheDataSetNextToAModelIsOffered) {
  frames(2);
  press("Ctrl+R");
  type(folder_ + "/net/model.onnx");
  frames(2);
  ASSERT_TRUE(click("run.data_set"));
  EXPECT_EQ(viewer_.run_form.inputs, folder_ + "/net/test_data_set_0");
}

TEST_F(Dialogs, AFieldOfTheRunDialogIsFilledByTheChooser) {
  frames(2);
  press("Ctrl+R");
  ASSERT_TRUE(click("run.model.browse"));
  frames(3);
  ASSERT_TRUE(viewer_.show_open);
  type(folder_ + "/net/model.onnx");
  press("Enter");
  EXPECT_TRUE(viewer_.show_run);
  EXPECT_EQ(viewer_.run_form.model, folder_ + "/net/model.onnx");
  ASSERT_TRUE(click("run.inputs.browse"));
  press("Escape");
  frames(2);
  EXPECT_TRUE(viewer_.show_run);
  EXPECT_TRUE(viewer_.run_form.inputs.empty());
}

TEST_F(Dialogs, TheRunDialogStaysWithWhatCannotBeRead) {
  frames(2);
  press("Ctrl+R");
  type(folder_ + "/net/model.onnx");
  viewer_.run_form.seed = "many";
  press("Enter");
  frames(2);
  EXPECT_TRUE(viewer_.show_run);
  EXPECT_NE(ui_.run_problem.find("'many'"), std::string::npos);
  viewer_.run_form.seed = "3";
  press("Enter");
  EXPECT_FALSE(viewer_.show_run);
  viewer_.wait_idle();
  EXPECT_NE(viewer_.document()->comparison, nullptr);
}

TEST_F(Dialogs, RecentFilesAreInTheMenuAndTheStartIsReachedAgain) {
  open(view_test::nan_fault());
  viewer_.recent = {folder_ + "/net/model.onnx"};
  ASSERT_TRUE(click("menu.File"));
  ASSERT_TRUE(click("file.recent"));
  frames(30);
  ASSERT_TRUE(click("file.recent:0"));
  viewer_.wait_idle();
  EXPECT_EQ(files(), std::vector<std::string>{folder_ + "/net/model.onnx"});
  frames(3);
  press("Ctrl+W");
  frames(3);
  EXPECT_EQ(viewer_.document(), nullptr);
  EXPECT_TRUE(ui_.widgets.contains("welcome.open"));
  open(view_test::nan_fault());
  EXPECT_TRUE(viewer_.document()->is_pair());
}

}  // namespace
}  // namespace parallax::gui
