// SPDX-License-Identifier: Apache-2.0
// parallel_for covers each index once, from many callers, nested, and with any number of threads.
#include "inspector/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/base/thread_team.h"

namespace parallax {
namespace {

constexpr int64_t kHeavy = 1'000'000;  // work per item that makes every loop worth all threads

class ThreadPool : public testing::Test {
 protected:
  void TearDown() override { set_thread_count(0); }
};

void expect_each_index_once(int64_t count, int64_t work_per_item) {
  std::vector<std::atomic<int>> visits(static_cast<size_t>(count));
  parallel_for(count, work_per_item, [&](int64_t begin, int64_t end) {
    ASSERT_LE(begin, end);
    for (int64_t index = begin; index < end; ++index) ++visits[static_cast<size_t>(index)];
  });
  for (size_t index = 0; index < visits.size(); ++index) ASSERT_EQ(visits[index], 1) << "index " << index;
}

TEST_F(ThreadPool, CoversEachIndexOnceForAnyThreadCount) {
  for (const int threads : {1, 2, 3, 8}) {
    set_thread_count(threads);
    EXPECT_EQ(thread_count(), threads);
    for (const int64_t count : {0, 1, 2, 7, 64, 1000}) expect_each_index_once(count, kHeavy);
  }
}

TEST_F(ThreadPool, ZeroThreadsMeansOnePerCore) {
  set_thread_count(0);
  EXPECT_EQ(thread_count(), static_cast<int>(std::max(1U, std::thread::hardware_concurrency())));
}

TEST_F(ThreadPool, LittleWorkStaysOnItsCaller) {
  set_thread_count(8);
  const std::thread::id caller = std::this_thread::get_id();
  int calls = 0;
  parallel_for(100, 1, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(end - begin, 100);
    ++calls;
  });
  EXPECT_EQ(calls, 1);
}

// Two items that wait for each other end only when two threads run them.
TEST_F(ThreadPool, MuchWorkIsSpread) {
  set_thread_count(2);
  std::atomic<int> arrived = 0;
  parallel_for(2, kHeavy, [&](int64_t begin, int64_t end) {
    arrived += static_cast<int>(end - begin);
    while (arrived < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 2);
}

TEST_F(ThreadPool, NestedLoopsRunOnTheirCaller) {
  set_thread_count(4);
  std::atomic<int64_t> sum = 0;
  parallel_for(16, kHeavy, [&](int64_t begin, int64_t end) {
    for (int64_t outer = begin; outer < end; ++outer) {
      const std::thread::id caller = std::this_thread::get_id();
      parallel_for(10, kHeavy, [&](int64_t inner_begin, int64_t inner_end) {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        sum += inner_end - inner_begin;
      });
    }
  });
  EXPECT_EQ(sum, 160);
}

TEST_F(ThreadPool, ManyCallersAtOnce) {
  set_thread_count(4);
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> callers(6);
  for (std::thread& caller : callers) {
    caller = std::thread([&] {
      for (int round = 0; round < 50; ++round) {
        parallel_for(20, kHeavy, [&](int64_t begin, int64_t end) { sum += end - begin; });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 6 * 50 * 20);
}

// The caller sees the body's writes without any further synchronization; ThreadSanitizer checks this one.
TEST_F(ThreadPool, WritesAreVisibleAfterTheLoop) {
  set_thread_count(4);
  std::vector<int64_t> squares(500);
  for (int round = 0; round < 20; ++round) {
    parallel_for(500, kHeavy, [&](int64_t begin, int64_t end) {
      for (int64_t index = begin; index < end; ++index) squares[static_cast<size_t>(index)] = index * index + round;
    });
    for (size_t index = 0; index < squares.size(); ++index) {
      ASSERT_EQ(squares[index], static_cast<int64_t>(index * index) + round);
    }
  }
}

// Members that wait for each other end only when all of them run, whatever else the pool does.
void expect_team_meets(int threads) {
  std::barrier<> barrier(threads);
  std::vector<std::atomic<int>> visits(static_cast<size_t>(threads));
  run_team(threads, [&](int index) {
    barrier.arrive_and_wait();
    ++visits[static_cast<size_t>(index)];
    barrier.arrive_and_wait();
  });
  for (const std::atomic<int>& visit : visits) EXPECT_EQ(visit, 1);
}

TEST_F(ThreadPool, ATeamRunsAtTheSameTime) {
  set_thread_count(2);
  const std::thread::id caller = std::this_thread::get_id();
  run_team(3, [&](int index) { EXPECT_TRUE(index != 0 || std::this_thread::get_id() == caller); });
  for (const int threads : {1, 2, 3, 8}) expect_team_meets(threads);
}

// Members that do not wait are made by whoever is there, each once.
TEST_F(ThreadPool, EveryMemberOfATeamIsMadeOnce) {
  set_thread_count(2);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::atomic<int>> visits(4);
    run_team(4, [&](int index) { ++visits[static_cast<size_t>(index)]; });
    for (const std::atomic<int>& visit : visits) ASSERT_EQ(visit, 1);
  }
}

TEST_F(ThreadPool, TeamsMeetDuringLoopsAndOtherTeams) {
  set_thread_count(4);
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> callers(4);
  for (size_t caller = 0; caller < callers.size(); ++caller) {
    callers[caller] = std::thread([&, caller] {
      for (int round = 0; round < 100; ++round) {
        if (caller % 2 == 0) {
          expect_team_meets(4);
        } else {
          parallel_for(20, kHeavy, [&](int64_t begin, int64_t end) { sum += end - begin; });
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 2 * 100 * 20);
}

TEST_F(ThreadPool, ATeamWithinALoopIsWholeAndALoopWithinATeamIsAlone) {
  set_thread_count(4);
  std::atomic<int> loops = 0;
  parallel_for(4, kHeavy, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) expect_team_meets(3);
  });
  run_team(3, [&](int) {
    const std::thread::id caller = std::this_thread::get_id();
    parallel_for(10, kHeavy, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      EXPECT_EQ(end - begin, 10);
      ++loops;
    });
  });
  EXPECT_EQ(loops, 3);
}

}  // namespace
}  // namespace parallax
