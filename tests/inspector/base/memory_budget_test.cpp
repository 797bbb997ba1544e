// SPDX-License-Identifier: Apache-2.0
// A budget: what is charged to it, for how long, in which threads; and the sentences of its refusals.
#include "inspector/base/memory_budget.h"

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "inspector/base/payload_memory.h"
#include "inspector/base/thread_pool.h"

namespace parallax {
namespace {

constexpr int64_t kMega = 1'000'000;

TEST(MemoryBudget, RefusesThePayloadThatWouldExceedIt) {
  for (const size_t bytes : {size_t{1000}, size_t{300'000}}) {  // from the heap, and mapped
    const MemoryBudget::Scope scope(static_cast<int64_t>(2 * bytes + 500));
    auto first = shared_payload(bytes);
    const auto second = shared_payload(bytes);
    ASSERT_TRUE(first != nullptr && second != nullptr);
    EXPECT_EQ(shared_payload(bytes), nullptr);
    first.reset();
    EXPECT_NE(shared_payload(bytes), nullptr);
  }
  EXPECT_NE(shared_payload(3 * kMega), nullptr);  // after the scope there is no limit
}

TEST(MemoryBudget, SaysWhatWasRefused) {
  const MemoryBudget::Scope scope(kMega);
  const auto held = MemoryBudget::reserve(kMega - 100, "'x.npy'").take();
  const auto refused = MemoryBudget::reserve(200, "'y.npy'");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::out_of_memory);
  EXPECT_EQ(
      refused.error().message.find("'y.npy' needs 200 bytes besides 999900 in use, 1000100 in all, and the memory "
                                   "limit is 1000000: raise --memory-limit"),
      0U)
      << refused.error().message;
  EXPECT_TRUE(MemoryBudget::check(100, "z").ok());
  EXPECT_FALSE(MemoryBudget::check(101, "z").ok());
}

TEST(MemoryBudget, ARefusalIsTakenOnce) {
  const MemoryBudget::Scope scope(kMega);
  EXPECT_FALSE(MemoryBudget::take_refusal("a tensor").has_value());
  EXPECT_EQ(shared_payload(2 * kMega), nullptr);
  const auto refusal = MemoryBudget::take_refusal("a tensor");
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->message.find("a tensor needs 2000"), 0U) << refusal->message;
  EXPECT_FALSE(MemoryBudget::take_refusal("a tensor").has_value());
}

TEST(MemoryBudget, AResultWithoutWhatWasRefusedIsNone) {
  const MemoryBudget::Scope scope(kMega);
  EXPECT_TRUE(scope.settled(Result<int>(1)).ok());
  EXPECT_FALSE(MemoryBudget::check(2 * kMega, "a question").ok());
  EXPECT_TRUE(scope.settle().ok());  // nothing was to be allocated
  EXPECT_EQ(shared_payload(2 * kMega), nullptr);
  EXPECT_EQ(scope.settled(Result<int>(1)).error().code, ErrorCode::out_of_memory);
}

TEST(MemoryBudget, PayloadsMayOutliveIt) {
  std::vector<std::shared_ptr<std::byte>> kept;
  {
    const MemoryBudget::Scope scope(kMega);
    kept.push_back(shared_payload(1000));
    kept.push_back(shared_payload(100'000));
  }
  std::thread([&] { kept.clear(); }).join();
  EXPECT_EQ(MemoryBudget::current(), nullptr);
}

TEST(MemoryBudget, AJobWithinAJobSharesIts) {
  const MemoryBudget::Scope outer(kMega);
  MemoryBudget* const budget = MemoryBudget::current();
  {
    const MemoryBudget::Scope inner(1);
    EXPECT_EQ(MemoryBudget::current(), budget);
    EXPECT_NE(shared_payload(1000), nullptr);
  }
  EXPECT_EQ(MemoryBudget::current(), budget);
}

TEST(MemoryBudget, AThreadChargesTheBudgetItIsGiven) {
  const MemoryBudget::Scope scope(kMega);
  std::shared_ptr<std::byte> free, charged, refused;
  std::thread([&, budget = MemoryBudget::current()] {
    free = shared_payload(2 * kMega);  // a thread of its own
    const MemoryBudget::ThreadScope same(budget);
    charged = shared_payload(kMega / 2);
    refused = shared_payload(kMega);
  }).join();
  EXPECT_TRUE(free != nullptr && charged != nullptr && refused == nullptr);
  EXPECT_FALSE(MemoryBudget::has_room(kMega / 2));
  charged.reset();
  EXPECT_TRUE(MemoryBudget::has_room(kMega));
}

TEST(MemoryBudget, TasksOfALoopCannotBeRefused) {
  const MemoryBudget::Scope scope(1000);
  std::atomic<int> refused = 0;
  for (const int64_t work : {int64_t{1}, int64_t{1'000'000}}) {  // on the caller alone, and on several threads
    parallel_for(8, work, [&](int64_t, int64_t) { refused += shared_payload(2000) == nullptr ? 1 : 0; });
  }
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(shared_payload(2000), nullptr);
}

TEST(MemoryBudget, SizesDoNotWrap) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const MemoryBudget::Scope scope(kMost);
  const auto held = MemoryBudget::reserve(kMega, "a").take();
  EXPECT_FALSE(MemoryBudget::reserve(kMost - 10, "b").ok());
  EXPECT_TRUE(MemoryBudget::has_room(kMega));
}

TEST(MemoryBudget, AnOwnerGoesWithItsReservation) {
  const MemoryBudget::Scope scope(kMega);
  auto owner = std::make_shared<int>(7);
  auto both = MemoryBudget::reserved_with(owner, kMega, "a file").take();
  EXPECT_EQ(owner.use_count(), 2);
  EXPECT_FALSE(MemoryBudget::has_room(1));
  both.reset();
  EXPECT_EQ(owner.use_count(), 1);
  EXPECT_TRUE(MemoryBudget::has_room(kMega));
}

}  // namespace
}  // namespace parallax
