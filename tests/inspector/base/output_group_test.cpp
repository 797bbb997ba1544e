// SPDX-License-Identifier: Apache-2.0
// Files that get their names together, or not at all.
#include "inspector/base/output_group.h"

#include <filesystem>
#include <set>

#include <gtest/gtest.h>

#include "inspector/base/mapped_file.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;

class OutputGroupTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_->file(name); }
  std::set<std::string> names() const {
    std::set<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_->path()))
      found.insert(fs::relative(entry.path(), folder_->path()).string());
    return found;
  }

  std::unique_ptr<TemporaryPath> folder_ = TemporaryPath::make_folder("output_group_test").value();
};

TEST_F(OutputGroupTest, FilesHaveTheirNamesWhenItIsFinished) {
  OutputGroup group;
  ASSERT_TRUE(make_output_folder(path("new/inner/")).ok());
  ASSERT_TRUE(write_file(path("new/inner/a"), "1").ok());
  ASSERT_TRUE(write_file(path("b"), "2").ok());
  EXPECT_FALSE(fs::exists(path("b")));
  ASSERT_TRUE(group.finish().ok());
  EXPECT_EQ(names(), (std::set<std::string>{"b", "new", "new/inner", "new/inner/a"}));
}

TEST_F(OutputGroupTest, WithoutFinishNothingIsThereAndEarlierFilesAreAsTheyWere) {
  ASSERT_TRUE(write_file(path("earlier"), "before").ok());
  {
    OutputGroup group;
    ASSERT_TRUE(make_output_folder(path("new/inner")).ok());
    ASSERT_TRUE(write_file(path("new/inner/a"), "1").ok());
    ASSERT_TRUE(write_file(path("earlier"), "after").ok());
    group.replace(path("earlier"));
  }
  EXPECT_EQ(names(), std::set<std::string>{"earlier"});
  EXPECT_EQ(*read_file(path("earlier")), "before");
}

TEST_F(OutputGroupTest, ANameThatCannotBeGivenTakesTheNewOnesBack) {
  ASSERT_TRUE(write_file(path("earlier"), "before").ok());
  {
    OutputGroup group;
    for (const char* name : {"new", "earlier", "taken"}) ASSERT_TRUE(write_file(path(name), "after").ok());
    fs::create_directories(path("taken/by a folder"));
    const Status finished = group.finish();
    ASSERT_FALSE(finished.ok());
    EXPECT_NE(finished.error().message.find("taken'"), std::string::npos) << finished.error().message;
  }
  EXPECT_EQ(names(), (std::set<std::string>{"earlier", "taken", "taken/by a folder"}));
}

TEST_F(OutputGroupTest, AnInnerGroupWaitsForTheOuterOne) {
  for (const char* name : {"old_1", "old_2"}) ASSERT_TRUE(write_file(path(name), "before").ok());
  OutputGroup outer;
  {
    OutputGroup inner;
    for (const char* name : {"old_1", "old_2"}) inner.replace(path(name));
    ASSERT_TRUE(write_file(path("old_1"), "after").ok());
    ASSERT_TRUE(inner.finish().ok());
  }
  EXPECT_EQ(*read_file(path("old_1")), "before");
  ASSERT_TRUE(outer.finish().ok());
  EXPECT_EQ(names(), std::set<std::string>{"old_1"});
  EXPECT_EQ(*read_file(path("old_1")), "after");
}

}  // namespace
}  // namespace parallax
