// SPDX-License-Identifier: Apache-2.0
// Inputs by all their names, outputs that come into being whole, and whose files may be replaced.
#include "inspector/base/input_files.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspector/base/mapped_file.h"
#include "inspector/base/output_file.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;

class InputFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("input_files_test." + std::to_string(::getpid()));
    fs::create_directories(folder_ / "in/deep");
    std::ofstream(path("in/deep/model")) << "weights";
    std::ofstream(path("letter")) << "a letter";
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  static std::string refusal(const Status& status) { return status.ok() ? "" : status.error().message; }
  size_t file_count() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

TEST_F(InputFilesTest, MappedFileIsAnInputByEveryNameUntilItIsUnmapped) {
  fs::create_hard_link(path("in/deep/model"), path("hard"));
  fs::create_symlink("in/deep/model", path("soft"));
  auto file = MappedFile::open(path("in/deep/model")).take();
  for (const char* name : {"in/deep/model", "in/../in/deep/model", "hard", "soft"}) {
    const Status admitted = admit_output(path(name));
    ASSERT_FALSE(admitted.ok()) << name;
    EXPECT_EQ(admitted.error().code, ErrorCode::usage);
    EXPECT_NE(admitted.error().message.find(path("in/deep/model")), std::string::npos);
    EXPECT_FALSE(write_file(path(name), "other").ok()) << name;
  }
  EXPECT_EQ(read_file(path("hard")).value(), "weights");
  EXPECT_TRUE(admit_output(path("other")).ok());
  file.reset();
  EXPECT_TRUE(admit_output(path("hard")).ok());
}

TEST_F(InputFilesTest, ScopeKeepsWhatWasReadInIt) {
  {
    const input_files::Scope scope(true);
    ASSERT_TRUE(read_file(path("in/deep/model")).ok());
    EXPECT_FALSE(admit_output(path("in/deep/model")).ok());
    input_files::release(path("in/deep/model"));
    EXPECT_TRUE(admit_output(path("in/deep/model")).ok());
    input_files::note(path("in/deep/model"));
    EXPECT_FALSE(write_file(path("in/deep/model"), "other").ok());
  }
  EXPECT_TRUE(write_file(path("in/deep/model"), "other").ok());
}

TEST_F(InputFilesTest, FoldersThatHoldAnInputOrAreReadAreNoOutputs) {
  const input_files::Scope scope(true);
  input_files::note(path("in/deep"));
  for (const char* name : {"in", ".", "in/deep", "in/deep/new", "in/deep/../deep/new/er"})
    EXPECT_FALSE(admit_output_folder(path(name)).ok()) << name;
  EXPECT_FALSE(admit_output(path("in/deep/new")).ok());
  EXPECT_TRUE(admit_output_folder(path("out/new")).ok());
  EXPECT_TRUE(admit_output_folder(path("in/other")).ok());
  fs::create_symlink("in", path("link"));
  EXPECT_NE(refusal(admit_output_folder(path("link"))).find("holds"), std::string::npos);
  EXPECT_NE(refusal(admit_output_folder(path("link/deep/new"))).find("is inside"), std::string::npos);
}

TEST_F(InputFilesTest, WhatACommandWroteIsNoInputOfItButOneOfTheNext) {
  {
    const input_files::Scope scope(true);
    ASSERT_TRUE(write_file(path("made"), "one").ok());
    const auto verified = MappedFile::open(path("made")).take();
    EXPECT_TRUE(write_file(path("made"), "two").ok());
  }
  const input_files::Scope next(true);
  ASSERT_EQ(read_file(path("made")).value(), "two");
  EXPECT_FALSE(admit_output(path("made")).ok());
}

TEST_F(InputFilesTest, ForeignFilesAreReplacedWhereTheScopeAllows) {
  EXPECT_TRUE(admit_output(path("letter")).ok());  // without a scope
  {
    const input_files::Scope scope(false);
    EXPECT_NE(refusal(write_file(path("letter"), "report")).find("--force"), std::string::npos);
    EXPECT_EQ(fs::file_size(path("letter")), 8U);
    std::ofstream(path("empty")).flush();
    EXPECT_TRUE(write_file(path("empty"), "report").ok());
    EXPECT_TRUE(write_file(path("empty"), "again").ok());
    std::ofstream(path("old.plx"), std::ios::binary) << "\x89PLX\r\n\x1A\n and records";
    EXPECT_TRUE(write_file(path("old.plx"), "report").ok());
  }
  const input_files::Scope scope(true);
  EXPECT_TRUE(write_file(path("letter"), "report").ok());
}

TEST_F(InputFilesTest, ThreadThatBorrowsAScopeIsHeldToIt) {
  const input_files::Scope scope(false);
  const auto refused_in_a_thread = [&](input_files::Scope::State* borrowed) {
    bool is_refused = false;
    std::thread([&] {
      const input_files::BorrowedScope held(borrowed);
      is_refused = !admit_output(path("letter")).ok();
    }).join();
    return is_refused;
  };
  EXPECT_TRUE(refused_in_a_thread(input_files::current_scope()));
  EXPECT_FALSE(refused_in_a_thread(nullptr));
  {
    const input_files::BorrowedScope none(nullptr);
    EXPECT_TRUE(admit_output(path("letter")).ok());
  }
  EXPECT_FALSE(admit_output(path("letter")).ok());
}

// The inode of a file that is gone goes to the next one, on many file systems.
TEST_F(InputFilesTest, FileThatHasTheInodeOfAnOwnOneIsForeign) {
  const input_files::Scope scope(false);
  ASSERT_TRUE(write_file(path("made"), "one").ok());
  struct stat made {
  }, letter{};
  ASSERT_EQ(::stat(path("made").c_str(), &made), 0);
  bool has_same = false;
  for (int attempt = 0; attempt < 20 && !has_same; ++attempt) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // file systems do not count shorter times
    fs::remove(path(attempt == 0 ? "made" : "other"));
    std::ofstream(path("other")) << "a letter";
    has_same = ::stat(path("other").c_str(), &letter) == 0 && letter.st_ino == made.st_ino;
  }
  if (!has_same) GTEST_SKIP() << "this file system does not use inodes again";
  EXPECT_FALSE(admit_output(path("other")).ok());
}

TEST_F(InputFilesTest, FileThatSomebodyChangedIsForeignAgain) {
  const input_files::Scope scope(false);
  ASSERT_TRUE(write_file(path("made"), "one").ok());
  std::ofstream(path("made"), std::ios::app) << "and more";
  EXPECT_FALSE(write_file(path("made"), "two").ok());
}

TEST_F(InputFilesTest, NothingIsSeenOfAFileUntilItIsWhole) {
  const size_t before = file_count();
  {
    const auto file = OutputFile::create(path("letter")).take();
    ASSERT_TRUE(file->write("half of ").ok());
    EXPECT_EQ(read_file(path("letter")).value(), "a letter");
  }
  EXPECT_EQ(file_count(), before);
  EXPECT_EQ(read_file(path("letter")).value(), "a letter");
  const auto file = OutputFile::create(path("letter")).take();
  ASSERT_TRUE(file->write("another").ok());
  ASSERT_TRUE(file->finish().ok());
  EXPECT_EQ(read_file(path("letter")).value(), "another");
  EXPECT_EQ(file_count(), before);
}

TEST_F(InputFilesTest, PermissionsAreThoseOfTheFileThatIsReplacedElseOfTheUmask) {
  ASSERT_EQ(::chmod(path("letter").c_str(), 0600), 0);
  const mode_t old = ::umask(027);
  const bool written = write_file(path("letter"), "x").ok() && write_file(path("new"), "x").ok();
  ::umask(old);
  ASSERT_TRUE(written);
  struct stat info {};
  ASSERT_EQ(::stat(path("letter").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  ASSERT_EQ(::stat(path("new").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0640U);
}

TEST_F(InputFilesTest, TemporaryFoldersAreOnesOwn) {
  const auto one = TemporaryPath::make_folder("parallax-test").take();
  const auto two = TemporaryPath::make_folder("parallax-test").take();
  EXPECT_NE(one->path(), two->path());
  struct stat info {};
  ASSERT_EQ(::stat(one->path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700U);
  const auto here = TemporaryPath::make_folder(path(".values")).take();
  EXPECT_EQ(fs::path(here->path()).parent_path(), folder_);
}

}  // namespace
}  // namespace parallax
