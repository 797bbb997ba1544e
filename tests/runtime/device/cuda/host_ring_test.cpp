// SPDX-License-Identifier: Apache-2.0
// A ring of host memory: pieces in order round the block, none of them over another that is still held.
#include "runtime/device/gpu/host_ring.h"

#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace parallax::runtime {
namespace {

std::shared_ptr<std::byte> block(size_t bytes) {
  return {static_cast<std::byte*>(std::aligned_alloc(256, bytes)), [](std::byte* memory) { std::free(memory); }};
}

TEST(HostRing, GoesRoundTheBlock) {
  HostRing ring(block(1024), 1024);
  const auto first = ring.take(300);  // 512 of the 1024
  auto second = ring.take(256);
  EXPECT_EQ(second.get() - first.get(), 512);
  EXPECT_EQ(ring.take(512), nullptr) << "256 bytes are left";
  EXPECT_FALSE(ring.has_room(257));
  EXPECT_TRUE(ring.has_room(256));
  const auto third = ring.take(200);
  EXPECT_EQ(third.get() - first.get(), 768);
  EXPECT_EQ(ring.take(1), nullptr);
}

// The rest of the block is too short: it is skipped, and comes back with the piece that skipped it.
TEST(HostRing, NeverCutsAPiece) {
  HostRing ring(block(1024), 1024);
  auto first = ring.take(512);
  std::byte* const start = first.get();
  auto second = ring.take(256);
  first.reset();
  auto third = ring.take(512);
  ASSERT_NE(third, nullptr);
  EXPECT_EQ(third.get(), start);
  EXPECT_EQ(ring.bytes_in_use(), 1024U) << "256 of the second, 256 skipped, 512 of the third";
  second.reset();
  EXPECT_EQ(ring.bytes_in_use(), 768U);
  third.reset();
  EXPECT_EQ(ring.bytes_in_use(), 0U);
  EXPECT_NE(ring.take(1024), nullptr);
}

TEST(HostRing, WaitsForWhatIsStillHeld) {
  HostRing ring(block(1024), 1024);
  auto first = ring.take(256);
  auto second = ring.take(768);
  second.reset();
  EXPECT_FALSE(ring.has_room(256)) << "the pieces after the first are not free before it";
  first.reset();
  EXPECT_TRUE(ring.has_room(1024));
}

TEST(HostRing, NothingFitsThatIsLarger) {
  HostRing ring(block(1024), 1024);
  EXPECT_EQ(ring.take(1025), nullptr);
  EXPECT_FALSE(ring.has_room(1025));
  EXPECT_EQ(HostRing().take(1), nullptr);
}

TEST(HostRing, OutlivesItsMaker) {
  std::shared_ptr<std::byte> piece;
  {
    HostRing ring(block(1024), 1024);
    piece = ring.take(1024);
  }
  std::memset(piece.get(), 1, 1024);
  EXPECT_EQ(piece.get()[1023], std::byte{1});
}

// Many pieces taken and let go in any order: each keeps what was written to it for as long as it is held.
TEST(HostRing, PiecesNeverShareBytes) {
  constexpr size_t kBytes = 64 << 10;
  HostRing ring(block(kBytes), kBytes);
  struct Held {
    std::shared_ptr<std::byte> piece;
    size_t bytes;
    std::byte mark;
  };
  std::vector<Held> held;
  std::mt19937 random(7);
  int refused = 0;
  for (int turn = 0; turn < 20000; ++turn) {
    const size_t bytes = 1 + random() % 9000;
    const bool has_room = ring.has_room(bytes);
    auto piece = ring.take(bytes);
    ASSERT_EQ(piece != nullptr, has_room);
    refused += piece == nullptr ? 1 : 0;
    if (piece != nullptr) {
      const auto mark = static_cast<std::byte>(turn);
      std::memset(piece.get(), static_cast<int>(mark), bytes);
      held.push_back({std::move(piece), bytes, mark});
    }
    while (!held.empty() && (refused % 2 == 1 || held.size() > 12 || random() % 3 == 0)) {
      const auto chosen = held.begin() + static_cast<std::ptrdiff_t>(random() % std::min<size_t>(held.size(), 3));
      for (size_t i = 0; i < chosen->bytes; ++i) ASSERT_EQ(chosen->piece.get()[i], chosen->mark) << "turn " << turn;
      held.erase(chosen);
      if (refused % 2 == 1) ++refused;
    }
  }
  EXPECT_GT(refused, 100) << "the ring was never full";
}

}  // namespace
}  // namespace parallax::runtime
