// SPDX-License-Identifier: Apache-2.0
// Plans of memory: buffers that live together never share bytes, the block is near its lower bound; and a pool that
// follows a plan hands out nothing that is still held.
#include "runtime/device/memory_plan.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

#include "runtime/device/cpu/buffer_pool.h"

namespace parallax::runtime {
namespace {

// The plan's buffer for number `request` of its step.
const PlannedBuffer& planned(const MemoryPlan& plan, int32_t step, size_t request = 0) {
  return plan.buffers[plan.first[static_cast<size_t>(step)] + request];
}

TEST(MemoryPlan, SharesWhatLivesAtDifferentTimes) {
  const std::vector<BufferLife> lives{{0, 1000, 0, 2}, {1, 1000, 1, 4}, {2, 1000, 3, 5}};
  const MemoryPlan plan = *plan_memory(lives, 3);
  EXPECT_EQ(plan.sum_bytes, 3 * 1024);
  EXPECT_EQ(plan.bound_bytes, 2 * 1024);
  EXPECT_EQ(plan.arena_bytes, 2 * 1024);
  EXPECT_EQ(planned(plan, 0).offset, planned(plan, 2).offset);
  EXPECT_NE(planned(plan, 0).offset, planned(plan, 1).offset);
}

TEST(MemoryPlan, LeavesOutWhatOutlivesTheRun) {
  const std::vector<BufferLife> lives{{0, 64, 0, 3}, {1, 6400, 1, BufferLife::kNever}, {1, 64, 2, 4}};
  const MemoryPlan plan = *plan_memory(lives, 2);
  EXPECT_EQ(plan.arena_bytes, 128);
  EXPECT_FALSE(planned(plan, 1, 0).is_inside());
  EXPECT_TRUE(planned(plan, 1, 1).is_inside());
}

TEST(MemoryPlan, KeepsApartWhatLivesTogetherAndStaysNearTheBound) {
  std::mt19937 random(7);
  std::vector<BufferLife> lives;
  for (int32_t step = 0; step < 300; ++step) {
    const int64_t begin = 3 * step;
    const int64_t span = random() % 8 == 0 ? 200 : 1 + static_cast<int64_t>(random() % 12);
    lives.push_back({step, size_t{1} << (6 + random() % 14), begin, begin + span});
  }
  const MemoryPlan plan = *plan_memory(lives, 300);
  for (int32_t a = 0; a < 300; ++a) {
    for (int32_t b = a + 1; b < 300; ++b) {
      const BufferLife &one = lives[static_cast<size_t>(a)], &other = lives[static_cast<size_t>(b)];
      if (one.end <= other.begin || other.end <= one.begin) continue;
      const PlannedBuffer &x = planned(plan, a), &y = planned(plan, b);
      ASSERT_TRUE(x.offset + static_cast<int64_t>(x.bytes) <= y.offset ||
                  y.offset + static_cast<int64_t>(y.bytes) <= x.offset)
          << a << " and " << b;
    }
  }
  EXPECT_GE(plan.arena_bytes, plan.bound_bytes);
  EXPECT_LE(static_cast<double>(plan.arena_bytes), 1.1 * static_cast<double>(plan.bound_bytes));
}

// Three steps, each with one buffer; the first is let go before the last is asked for.
RunMemory::Run run(BufferPool& pool, std::shared_ptr<const MemoryPlan> plan, size_t bytes,
                   std::shared_ptr<std::byte>* kept = nullptr) {
  pool.begin_run(std::move(plan));
  pool.enter_step(0);
  auto first = pool.allocate(bytes).take();
  std::memset(first.get(), 1, bytes);
  pool.enter_step(1);
  auto second = pool.allocate(bytes).take();
  std::memset(second.get(), 2, bytes);
  if (kept != nullptr) *kept = first;
  first.reset();
  pool.enter_step(2);
  auto third = pool.allocate(bytes).take();
  std::memset(third.get(), 3, bytes);
  EXPECT_EQ(second.get()[bytes - 1], std::byte{2});
  second.reset();
  third.reset();
  return pool.end_run();
}

TEST(PlannedPool, FollowsAPlanMadeFromItsOwnTrace) {
  const auto pool = BufferPool::create({.poison = true});
  const RunMemory::Run traced = run(*pool, nullptr, 5000);
  ASSERT_EQ(traced.trace.lives.size(), 3U);
  EXPECT_LT(traced.trace.lives[0].end, traced.trace.lives[2].begin);
  const auto plan = std::make_shared<const MemoryPlan>(*plan_memory(traced.trace.lives, 3));
  EXPECT_EQ(plan->arena_bytes, 2 * 5056);
  const RunMemory::Run followed = run(*pool, plan, 5000);
  EXPECT_EQ(followed.requests_outgrown, 0);
  EXPECT_EQ(pool->held_bytes(), plan->arena_bytes);  // what was taken one by one is given back
}

TEST(PlannedPool, NeverOverwritesWhatSomebodyStillHolds) {
  const auto pool = BufferPool::create({.poison = true});
  const auto plan = std::make_shared<const MemoryPlan>(*plan_memory(run(*pool, nullptr, 5000).trace.lives, 3));
  std::shared_ptr<std::byte> kept;
  run(*pool, plan, 5000, &kept);  // the third buffer would be at the address of the first
  EXPECT_EQ(kept.get()[0], std::byte{1});
  EXPECT_EQ(kept.get()[4999], std::byte{1});
  run(*pool, plan, 5000);
  EXPECT_EQ(kept.get()[0], std::byte{1});
}

TEST(PlannedPool, SaysWhatAPlanHadNoRoomFor) {
  const auto pool = BufferPool::create({.poison = true});
  const auto plan = std::make_shared<const MemoryPlan>(*plan_memory(run(*pool, nullptr, 5000).trace.lives, 3));
  EXPECT_EQ(run(*pool, plan, 6000).requests_outgrown, 3);
  EXPECT_EQ(run(*pool, plan, 400).requests_outgrown, 0);
}

TEST(PlannedPool, TakesBuffersOneByOneWhereTheBlockBreaksTheLimit) {
  const auto pool = BufferPool::create({});
  const auto plan = std::make_shared<const MemoryPlan>(*plan_memory(run(*pool, nullptr, 5000).trace.lives, 3));
  pool->set_limit(plan->arena_bytes - 1, 0);
  pool->begin_run(plan);
  pool->enter_step(0);
  const auto first = pool->allocate(5000);
  EXPECT_TRUE(first.ok());
  pool->enter_step(1);
  const auto second = pool->allocate(5000);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(second.error().message.find("5120 bytes"), std::string::npos);
  pool->end_run();
}

}  // namespace
}  // namespace parallax::runtime
