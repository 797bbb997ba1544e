// SPDX-License-Identifier: Apache-2.0
// Paths as they are typed, and what a folder offers.
#include "gui/viewmodel/file_chooser.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/gui/viewmodel/view_fixture.h"

namespace parallax {
namespace {

class FileChooser : public testing::Test {
 protected:
  FileChooser() : folder_(view_test::scratch("chooser")) {
    std::filesystem::remove_all(folder_);
    for (const char* name : {"run one", "models/deep", "models/test_data_set_0", "models/test_data_set_10"})
      std::filesystem::create_directories(folder_ + "/" + name);
    for (const char* name : {"run one/A-reference.plx", "run one/B-cpu.plx", "models/net.onnx", "models/network.onnx",
                             "models/notes.txt", "models/.hidden.onnx", "in.npz"})
      std::ofstream(folder_ + "/" + name) << "x";
  }
  static std::vector<std::string> names(const Result<std::vector<FileEntry>>& entries) {
    std::vector<std::string> result;
    for (const FileEntry& entry : *entries) result.push_back(entry.name + (entry.is_folder ? "/" : ""));
    return result;
  }
  std::string folder_;
  using Names = std::vector<std::string>;
};

TEST_F(FileChooser, TheFolderOfARunIsItsTwoDumps) {
  const Names pair = {folder_ + "/run one/A-reference.plx", folder_ + "/run one/B-cpu.plx"};
  EXPECT_EQ(pair_in(folder_ + "/run one"), pair);
  EXPECT_EQ(with_pair({folder_ + "/run one"}), pair);
  EXPECT_EQ(with_pair({folder_}), Names{folder_});
  std::ofstream(folder_ + "/run one/B-cuda.plx") << "x";
  EXPECT_TRUE(pair_in(folder_ + "/run one").empty());  // it is not known which of the two
}

TEST_F(FileChooser, TwoPathsMayHaveBlanks) {
  const std::string a = folder_ + "/run one/A-reference.plx", b = folder_ + "/run one/B-cpu.plx";
  EXPECT_EQ(paths_in(a), Names{a});
  EXPECT_EQ(paths_in(a + " " + b), (Names{a, b}));
  EXPECT_EQ(paths_in("\"" + a + "\" '" + b + "'"), (Names{a, b}));
  EXPECT_EQ(paths_in(quoted_path(a) + " " + quoted_path(b)), (Names{a, b}));
  EXPECT_EQ(paths_in("/no\\ such/x.plx"), Names{"/no such/x.plx"});
  EXPECT_EQ(paths_in("\"bad/with space.plx\" d/B.plx"), (Names{"bad/with space.plx", "d/B.plx"}));
  EXPECT_EQ(paths_in("/gone.plx"), Names{"/gone.plx"});
  EXPECT_EQ(quoted_path("/a\"b\\c"), "\"/a\\\"b\\\\c\"");
}

TEST_F(FileChooser, ATildeIsTheHomeFolder) {
  const char* home = std::getenv("HOME");
  const std::string before = home == nullptr ? "" : home;
  ::setenv("HOME", folder_.c_str(), 1);
  EXPECT_EQ(expand_path("~/in.npz"), folder_ + "/in.npz");
  EXPECT_EQ(expand_path(" \"~/in.npz\" "), folder_ + "/in.npz");
  EXPECT_EQ(paths_in("~/run one/A-reference.plx ~/run one/B-cpu.plx").size(), 2U);
  EXPECT_EQ(path_parts("~/mo").folder, folder_);
  EXPECT_EQ(complete_path("~/mo", FileKind::models), "~/models/");
  EXPECT_EQ(expand_path("a~b"), "a~b");
  ::setenv("HOME", before.c_str(), 1);
}

TEST_F(FileChooser, AFolderIsListedByKind) {
  EXPECT_EQ(names(list_folder(folder_, "", FileKind::readable)), (Names{"models/", "run one/"}));
  EXPECT_EQ(names(list_folder(folder_, "", FileKind::inputs)), (Names{"models/", "run one/", "in.npz"}));
  EXPECT_EQ(names(list_folder(folder_ + "/models", "net", FileKind::models)), (Names{"net.onnx", "network.onnx"}));
  EXPECT_EQ(names(list_folder(folder_ + "/models", ".", FileKind::models)), (Names{".hidden.onnx"}));
  EXPECT_EQ(names(list_folder(folder_ + "/models", "no", FileKind::all)), (Names{"notes.txt"}));
  EXPECT_TRUE(list_folder(folder_, "run", FileKind::readable)->front().is_pair);
  const auto missing = list_folder(folder_ + "/none", "", FileKind::all);
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("/none"), std::string::npos);
}

TEST_F(FileChooser, CompletionGoesAsFarAsAllNamesAgree) {
  EXPECT_EQ(complete_path(folder_ + "/mo", FileKind::models), folder_ + "/models/");
  EXPECT_EQ(complete_path(folder_ + "/models/n", FileKind::models), folder_ + "/models/net");
  EXPECT_EQ(complete_path(folder_ + "/models/netw", FileKind::models), folder_ + "/models/network.onnx");
  EXPECT_EQ(complete_path(folder_ + "/models/net", FileKind::models), folder_ + "/models/net");
  EXPECT_EQ(complete_path(folder_ + "/zzz", FileKind::models), folder_ + "/zzz");
}

TEST_F(FileChooser, TheDataSetNextToAModelIsFound) {
  EXPECT_EQ(data_set_of(folder_ + "/models/net.onnx"), folder_ + "/models/test_data_set_0");
  EXPECT_EQ(data_set_of(folder_ + "/in.onnx"), "");
}

}  // namespace
}  // namespace parallax
