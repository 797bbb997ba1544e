// SPDX-License-Identifier: Apache-2.0
// Cleanup when an object ends, and at a signal.
#include "inspector/base/signal_cleanup.h"

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include <gtest/gtest.h>
#include <unistd.h>

#include "inspector/base/mapped_file.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;

class SignalCleanupTest : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::path(testing::TempDir()) / ("signal_cleanup_test_" + test);  // tests run at the same time
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  fs::path folder_;
};

[[noreturn]] void end_by(int signal) {
  ::raise(signal);
  for (;;) ::pause();
}

void tell(int signal, const SignalCleanup& left) { std::fprintf(stderr, "%d: %s\n", signal, to_string(left).c_str()); }

TEST_F(SignalCleanupTest, TemporaryPathsGoWithTheirObjects) {
  {
    const TemporaryPath folder(path("some"));
    fs::create_directories(folder.path() + "/deep");
    ASSERT_TRUE(write_file(folder.file("deep/file"), "x").ok());
  }
  EXPECT_FALSE(fs::exists(path("some")));
  {
    TemporaryPath file(path("kept"));
    ASSERT_TRUE(write_file(file.path(), "x").ok());
    file.keep();
  }
  EXPECT_TRUE(fs::exists(path("kept")));
}

TEST_F(SignalCleanupTest, FoldersAreNewOnes) {
  const auto one = TemporaryPath::make_folder("signal_cleanup_test").value();
  const auto two = TemporaryPath::make_folder("signal_cleanup_test").value();
  EXPECT_NE(one->path(), two->path());
  EXPECT_TRUE(fs::is_directory(two->path()));
}

TEST_F(SignalCleanupTest, ASignalRemovesWhatIsTemporaryAndNamesTheRest) {
  EXPECT_EXIT(
      {
        clean_up_at_signals(tell);
        const TemporaryPath folder(path("scratch"));
        fs::create_directories(folder.path());
        static_cast<void>(write_file(folder.file("inside"), "x"));
        static_cast<void>(write_file(path("result"), "x"));
        static_cast<void>(write_file(path("half"), "x"));
        note_output(path("half"), false);
        end_by(SIGTERM);
      },
      testing::KilledBySignal(SIGTERM),
      "15: kept '.*result' and '.*half', unfinished: what had been written can be read");
  EXPECT_FALSE(fs::exists(path("scratch")));
  EXPECT_TRUE(fs::exists(path("result")));
}

TEST_F(SignalCleanupTest, NothingMayHaveBeenWritten) {
  EXPECT_EXIT(
      {
        clean_up_at_signals(tell);
        end_by(SIGINT);
      },
      testing::KilledBySignal(SIGINT), "2: nothing was written");
}

void report(const Error& error) { std::fprintf(stderr, "%s\n", error.message.c_str()); }

TEST_F(SignalCleanupTest, AThreadWithoutMemoryEndsTheProcessWithASentence) {
  EXPECT_EXIT(
      {
        clean_up_at_exhaustion(report);
        const TemporaryPath folder(path("scratch"));
        fs::create_directories(folder.path());
        std::thread([] { throw std::bad_alloc(); }).join();
      },
      testing::ExitedWithCode(4), "the system has no more memory");
  EXPECT_FALSE(fs::exists(path("scratch")));
}

TEST_F(SignalCleanupTest, AThreadThatDoesNotStartEndsTheProcessWithASentence) {
  EXPECT_EXIT(
      {
        clean_up_at_exhaustion(report);
        std::thread([] {
          throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
        }).join();
      },
      testing::ExitedWithCode(4), "starts no more threads");
}

TEST(SignalCleanup, ManyFilesAreCounted) {
  EXPECT_EQ(to_string(SignalCleanup{{"a", "b", "c", "d", "e"}, {}}), "kept 'a', 'b', 'c' and 2 more files");
  EXPECT_EQ(to_string(SignalCleanup{{}, {"a.plx"}}), "kept 'a.plx', unfinished: what had been written can be read");
}

}  // namespace
}  // namespace parallax
