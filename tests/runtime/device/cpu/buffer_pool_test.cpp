// SPDX-License-Identifier: Apache-2.0
// BufferPool: reuse, limits, accounting, and that a buffer with an owner is never handed out again.
#include "runtime/device/cpu/buffer_pool.h"

#include <cstring>
#include <random>

#include <gtest/gtest.h>

namespace parallax::runtime {
namespace {

TEST(BufferPool, ReusesWhatWasLetGo) {
  const auto pool = BufferPool::create({});
  std::byte* first = nullptr;
  {
    const auto buffer = pool->allocate(1000).take();
    first = buffer.get();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0U);
  }
  EXPECT_EQ(pool->live_bytes(), 0);
  EXPECT_EQ(pool->allocate(1000).take().get(), first);
}

TEST(BufferPool, NeverSharesLiveMemory) {
  const auto pool = BufferPool::create({.poison = true});
  std::mt19937 random(1);
  std::vector<std::pair<std::shared_ptr<std::byte>, std::pair<size_t, int>>> live;
  for (int step = 0; step < 3000; ++step) {
    if (live.size() < 20 || random() % 2 == 0) {
      const size_t bytes = random() % 5000;
      auto buffer = pool->allocate(bytes).take();
      std::memset(buffer.get(), step & 0x7F, bytes);
      live.push_back({std::move(buffer), {bytes, step & 0x7F}});
    } else {
      const size_t at = random() % live.size();
      const auto& [buffer, contents] = live[at];
      for (size_t i = 0; i < contents.first; ++i) ASSERT_EQ(static_cast<int>(buffer.get()[i]), contents.second);
      live.erase(live.begin() + static_cast<ptrdiff_t>(at));
    }
  }
}

TEST(BufferPool, OutlivesItsMakerAsLongAsABufferDoes) {
  auto pool = BufferPool::create({});
  auto buffer = pool->allocate(64).take();
  pool.reset();
  std::memset(buffer.get(), 1, 64);
  EXPECT_EQ(buffer.get()[63], std::byte{1});
}

TEST(BufferPool, KeepsToItsLimit) {
  const auto pool = BufferPool::create({});
  pool->set_limit(5096, 1000);
  const auto first = pool->allocate(3000).take();
  const auto second = pool->allocate(3000);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::out_of_memory);
  EXPECT_NE(
      second.error().message.find("a value needs 3072 bytes besides 4072 in use, 7144 in all, and the memory limit is "
                                  "5096: "),
      std::string::npos)
      << second.error().message;
  pool->set_limit(7144, 1000);
  EXPECT_TRUE(pool->allocate(3000).ok());
}

TEST(BufferPool, ReportsThePeak) {
  const auto pool = BufferPool::create({});
  { const auto a = pool->allocate(1024).take(), b = pool->allocate(2048).take(); }
  EXPECT_EQ(pool->peak_bytes(), 3072);
  EXPECT_EQ(pool->live_bytes(), 0);
  pool->reset_peak();
  EXPECT_EQ(pool->peak_bytes(), 0);
  EXPECT_EQ(pool->held_bytes(), 3072);
}

}  // namespace
}  // namespace parallax::runtime
