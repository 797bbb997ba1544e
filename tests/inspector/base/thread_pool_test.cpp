// parallel_for: every index once, from several callers at once, nested, and on the caller alone for small work.
#include "inspector/base/thread_pool.h"

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace parallax {
namespace {

constexpr int64_t kHeavy = 1'000'000;

TEST(ThreadPool, VisitsEveryIndexOnce) {
  for (int threads : {1, 2, 3, 8}) {
    set_thread_count(threads);
    std::vector<std::atomic<int>> visits(1003);
    parallel_for(1003, kHeavy, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) ++visits[static_cast<size_t>(index)];
    });
    for (const auto& count : visits) ASSERT_EQ(count.load(), 1);
  }
  set_thread_count(0);
}

TEST(ThreadPool, SmallWorkStaysOnTheCaller) {
  set_thread_count(4);
  const auto caller = std::this_thread::get_id();
  bool elsewhere = false;
  parallel_for(100, 1, [&](int64_t, int64_t) { elsewhere = elsewhere || std::this_thread::get_id() != caller; });
  EXPECT_FALSE(elsewhere);
  set_thread_count(0);
}

TEST(ThreadPool, NestedLoopsAndSeveralCallersFinish) {
  set_thread_count(4);
  std::atomic<int64_t> sum{0};
  const auto work = [&] {
    for (int round = 0; round < 50; ++round) {
      parallel_for(16, kHeavy, [&](int64_t begin, int64_t end) {
        for (int64_t outer = begin; outer < end; ++outer) {
          parallel_for(4, kHeavy, [&](int64_t inner_begin, int64_t inner_end) { sum += inner_end - inner_begin; });
        }
      });
    }
  };
  std::thread other(work);
  work();
  other.join();
  EXPECT_EQ(sum.load(), 2 * 50 * 16 * 4);
  set_thread_count(0);
}

TEST(ThreadPool, NothingToDo) {
  bool called = false;
  parallel_for(0, kHeavy, [&](int64_t, int64_t) { called = true; });
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace parallax
