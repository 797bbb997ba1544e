// SPDX-License-Identifier: Apache-2.0
// A forked child has a pool of its own: its loops and teams end, and so does the child.
#include <atomic>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inspector/base/thread_pool.h"
#include "inspector/base/thread_team.h"

namespace parallax {
namespace {

constexpr int64_t kCount = 1'000'000;

int64_t sum_in_parallel() {
  std::atomic<int64_t> sum{0};
  parallel_for(kCount, 1'000, [&](int64_t begin, int64_t end) {
    int64_t part = 0;
    for (int64_t i = begin; i < end; ++i) part += i;
    sum += part;
  });
  return sum;
}

int members_of_a_team() {
  std::atomic<int> members{0};
  run_team(3, [&](int) { ++members; });
  return members;
}

TEST(ForkedPool, RunsLoopsAndTeams) {
#ifdef PARALLAX_SANITIZED
  GTEST_SKIP() << "sanitizers have threads of their own, which a child lacks";
#endif
  set_thread_count(3);
  const int64_t expected = sum_in_parallel();
  EXPECT_EQ(expected, kCount * (kCount - 1) / 2);
  for (int round = 0; round < 3; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // one that waits for threads of its parent ends as a failure
      const bool is_right = sum_in_parallel() == expected && members_of_a_team() == 3 && thread_count() == 3;
      _exit(is_right ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
  EXPECT_EQ(sum_in_parallel(), expected);
  set_thread_count(0);
}

}  // namespace
}  // namespace parallax
