// SPDX-License-Identifier: Apache-2.0
// The views of files that are kept between two starts.
#include "gui/app/settings.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "inspector/base/mapped_file.h"
#include "tests/gui/viewmodel/view_fixture.h"

namespace parallax::gui {
namespace {

namespace fs = std::filesystem;

void open_fault(Viewer& viewer) {
  viewer.open({view_test::llama_fault().a, view_test::llama_fault().b});
  viewer.wait_idle();
}
std::string path_at(const Viewer& viewer, int32_t row) {
  return viewer.document()->rows[static_cast<size_t>(row)].path;
}
int32_t first_closed(const GraphView& graph) {
  for (size_t i = 1; i < graph.items().items().size(); ++i) {
    const auto item = static_cast<int32_t>(i);
    if (graph.can_open(item) && !graph.is_open(item)) return item;
  }
  return -1;
}

class Views : public testing::Test {
 protected:
  Views() : settings_(view_test::scratch("kept views/gui.conf")) {
    fs::remove_all(fs::path(settings_).parent_path());
    open_fault(first_);
    first_.graph.close_all(-1);
    group_ = first_closed(first_.graph);
    first_.graph.set_open(group_, true);
    first_.select_row(2);
    first_.toggle_bookmark();
    first_.select_row(3);
    first_.set_color_by(ColorBy::ulp);
    EXPECT_TRUE(save_session(settings_, first_).ok());
    open_fault(second_);
  }
  std::string kept() const { return session_path(settings_, first_.document()->files); }

  std::string settings_;
  Viewer first_, second_;
  int32_t group_ = -1;
};

TEST_F(Views, AreSeenAgainWithTheSameFiles) {
  ASSERT_NE(second_.row(), 3) << "or it proves nothing";
  restore_session(settings_, second_);
  EXPECT_EQ(path_at(second_, second_.row()), path_at(first_, 3));
  EXPECT_EQ(second_.bookmarks(), std::vector<int32_t>{2});
  EXPECT_EQ(second_.graph.color_by(), ColorBy::ulp);
  ASSERT_GE(group_, 0);
  for (size_t i = 1; i < first_.graph.items().items().size(); ++i) {
    const auto item = static_cast<int32_t>(i);
    EXPECT_EQ(second_.graph.is_open(item), first_.graph.is_open(item)) << first_.graph.items().item(item).title;
  }
}

TEST_F(Views, OfFilesThatHaveChangedKeepBookmarksAlone) {
  const int32_t selected = second_.row();
  fs::last_write_time(kept(), fs::last_write_time(view_test::llama_fault().a) - std::chrono::hours(1));
  restore_session(settings_, second_);
  EXPECT_EQ(second_.row(), selected) << "a new divergence is looked at first";
  EXPECT_EQ(second_.bookmarks(), std::vector<int32_t>{2});
}

TEST_F(Views, OfOtherFilesAndBrokenOnesChangeNothing) {
  const std::string before = session_to_json(second_);
  EXPECT_NE(session_path(settings_, std::vector<std::string>{"other.onnx"}), kept());
  ASSERT_TRUE(write_file(kept(), "{ \"select\": ").ok());
  restore_session(settings_, second_);
  EXPECT_EQ(session_to_json(second_), before);
}

TEST_F(Views, AreExportedForSomebodyElse) {
  const std::string file = view_test::scratch("view.json");
  fs::remove(file);
  ASSERT_TRUE(first_.export_to(file, ExportSubject::view).ok());
  const std::string text = *read_file(file);
  const std::vector<std::string> files = files_of_view(text);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_TRUE(fs::path(files[0]).is_absolute());
  ASSERT_TRUE(apply_view(second_, text).ok());
  EXPECT_EQ(second_.row(), 3);
}

TEST_F(Views, AreAtMostTwoHundred) {
  const fs::path folder = fs::path(kept()).parent_path();
  for (int i = 0; i < 230; ++i) ASSERT_TRUE(write_file((folder / (std::to_string(i) + ".json")).string(), "{}").ok());
  ASSERT_TRUE(save_session(settings_, first_).ok());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 200);
  EXPECT_TRUE(fs::exists(kept()));
}

}  // namespace
}  // namespace parallax::gui
