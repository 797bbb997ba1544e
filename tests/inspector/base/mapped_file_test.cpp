// SPDX-License-Identifier: Apache-2.0
// Mapping and writing whole files, and what happens where that is impossible.
#include "inspector/base/mapped_file.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspector/base/signal_cleanup.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;

class MappedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("mapped_file_test." + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

TEST_F(MappedFileTest, ReadsWhatWasWritten) {
  const std::string contents("one\0two\n", 8);
  ASSERT_TRUE(write_file(path("file"), contents).ok());
  const auto file = MappedFile::open(path("file"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ((*file)->bytes().size(), 8U);
  EXPECT_EQ(read_file(path("file")).value(), contents);
  EXPECT_TRUE((*file)->is_intact());
}

TEST_F(MappedFileTest, ReleasedBytesAreReadAgain) {
  std::string contents(3 * 65536 + 5, '\0');
  for (size_t index = 0; index < contents.size(); ++index) contents[index] = static_cast<char>(index * 31 >> 4);
  ASSERT_TRUE(write_file(path("file"), contents).ok());
  const auto file = MappedFile::open(path("file"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  (*file)->release(1000, 100000);
  (*file)->release(0, contents.size() + 70000);
  const auto bytes = (*file)->bytes();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()), contents);
}

TEST_F(MappedFileTest, AnEmptyFileHasNoBytes) {
  ASSERT_TRUE(write_file(path("empty"), "").ok());
  EXPECT_EQ(read_file(path("empty")).value(), "");
}

TEST_F(MappedFileTest, MissingFilesAndFoldersAreErrorsThatNameThem) {
  const auto missing = MappedFile::open(path("gone"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::io);
  EXPECT_NE(missing.error().message.find(path("gone")), std::string::npos) << missing.error().message;
  EXPECT_FALSE(MappedFile::open(folder_.string()).ok());
  EXPECT_FALSE(MappedFile::open("/dev/zero").ok());
}

TEST_F(MappedFileTest, AFileThatWasCutIsNoticed) {
  ASSERT_TRUE(write_file(path("file"), std::string(10'000, 'x')).ok());
  const auto file = MappedFile::open(path("file")).take();
  fs::resize_file(path("file"), 5);
  EXPECT_FALSE(file->is_intact());
}

TEST_F(MappedFileTest, ALostPageEndsAProgramWithASentence) {
  std::ofstream(path("file")) << std::string(100'000, 'x');  // by nobody that the sentence would name
  EXPECT_EXIT(
      {
        clean_up_at_signals([](int, const SignalCleanup& left) {
          std::fprintf(stderr, "%s\n", lost_file_error(left).message.c_str());
        });
        const auto file = MappedFile::open(path("file")).take();
        fs::resize_file(path("file"), 5);
        std::exit(static_cast<int>(file->bytes()[90'000]));
      },
      testing::ExitedWithCode(exit_code(ErrorCode::io)),
      "'.*/file' lost bytes while it was in use: .*nothing was written");
}

TEST_F(MappedFileTest, AForeignBusErrorKillsAsBefore) {
  EXPECT_EXIT(
      {
        ::signal(SIGBUS, SIG_DFL);  // a sanitizer has a handler of its own, which would be "before"
        clean_up_at_signals({});
        ::raise(SIGBUS);
        std::exit(0);
      },
      testing::KilledBySignal(SIGBUS), "");
}

TEST_F(MappedFileTest, AnAddressLeadsToItsFile) {
  ASSERT_TRUE(write_file(path("file"), std::string(100'000, 'x')).ok());
  const auto file = MappedFile::open(path("file")).take();
  EXPECT_STREQ(MappedAddresses::path_at(file->bytes().data() + 99'999), file->path().c_str());
  EXPECT_EQ(MappedAddresses::path_at(file->bytes().data() + 100'000), nullptr);
}

TEST_F(MappedFileTest, WritingReplacesAFileAndLeavesNothingElse) {
  ASSERT_TRUE(write_file(path("file"), "old and long").ok());
  ASSERT_TRUE(write_file(path("file"), "new").ok());
  EXPECT_EQ(read_file(path("file")).value(), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(MappedFileTest, WritingWhereNoFolderIsFails) {
  const Status status = write_file(path("no/such/folder"), "x");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::io);
}

TEST_F(MappedFileTest, WritingOverAFolderFailsAndKeepsIt) {
  fs::create_directories(path("folder"));
  EXPECT_FALSE(write_file(path("folder"), "x").ok());
  EXPECT_TRUE(fs::is_directory(path("folder")));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(MappedFileTest, WritingFollowsLinksAndKeepsDevices) {
  ASSERT_TRUE(write_file(path("real"), "old").ok());
  fs::create_symlink(path("real"), path("link"));
  ASSERT_TRUE(write_file(path("link"), "new").ok());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_file(path("real")).value(), "new");
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const int reader = ::open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  EXPECT_TRUE(write_file(path("pipe"), "through").ok());
  std::string text(16, ' ');
  text.resize(static_cast<size_t>(std::max<ssize_t>(0, ::read(reader, text.data(), text.size()))));
  ::close(reader);
  EXPECT_EQ(text, "through");
  EXPECT_TRUE(fs::is_fifo(path("pipe")));
}

}  // namespace
}  // namespace parallax
