// SPDX-License-Identifier: Apache-2.0
// Copies to the host during the computation: no destination is written before a pending copy to it is complete, and no
// source is freed or changed under one. The emulated queue makes copies as late as it may.
#include "runtime/device/gpu/host_copies.h"

#include <cstring>
#include <deque>
#include <random>

#include <gtest/gtest.h>

#include "tests/runtime/emulated/copies_emulated.h"

namespace parallax::runtime::host_copies_test {
namespace {

constexpr HostCopySizes kSizes{4096, 512};

Tensor filled(int64_t bytes, uint8_t mark) {
  Tensor tensor = Tensor::allocate(DType::uint8, {bytes}).take();
  for (int64_t i = 0; i < bytes; ++i)
    tensor.mutable_as<uint8_t>()[static_cast<size_t>(i)] = static_cast<uint8_t>(mark + i);
  return tensor;
}

bool is_filled(const Tensor& tensor, uint8_t mark) {
  const auto bytes = tensor.as<uint8_t>();
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != static_cast<uint8_t>(mark + i)) return false;
  }
  return true;
}

TEST(HostCopies, ComeLater) {
  Queue<Emulated> queue;
  HostCopies<Emulated> copies(queue, kSizes);
  ASSERT_TRUE(copies.has_room(1000).take());
  HostCopy copy = copies.start(queue.to_device(filled(1000, 3)).take()).take();
  EXPECT_FALSE(copies.has_come(copy).take());
  EXPECT_FALSE(is_filled(copy.host, 3)) << "the emulated queue copies at once: it would hide every mistake";
  ASSERT_TRUE(copies.wait(copy).ok());
  EXPECT_TRUE(copies.has_come(copy).take());
  EXPECT_TRUE(is_filled(copy.host, 3));
  EXPECT_EQ(copies.counts().copies, 1);
  EXPECT_EQ(copies.counts().bytes, 1000);
  EXPECT_EQ(copies.counts().waits, 1);
}

// The source lives until the copy has been made, and no longer.
TEST(HostCopies, HoldTheirSource) {
  const int64_t before = emulation::live_bytes();
  Queue<Emulated> queue;
  HostCopies<Emulated> copies(queue, kSizes);
  ASSERT_TRUE(copies.has_room(500).take());
  HostCopy copy = copies.start(queue.to_device(filled(500, 9)).take()).take();
  EXPECT_EQ(emulation::live_bytes(), before + 500);
  while (!copies.has_come(copy).take()) {
  }
  EXPECT_EQ(emulation::live_bytes(), before);
  EXPECT_EQ(copies.counts().waits, 0) << "asking is not waiting";
}

// Tensors of all sizes for many times round the ring, some kept for a while by whoever was shown them.
TEST(HostCopies, NoSlotIsUsedTwiceAtOnce) {
  Queue<Emulated> queue;
  HostCopies<Emulated> copies(queue, kSizes);
  struct Sent {
    HostCopy copy;
    uint8_t mark;
  };
  std::deque<Sent> under_way;
  std::deque<Sent> kept;
  std::mt19937 random(3);
  int full = 0;
  const auto show_front = [&] {
    ASSERT_TRUE(copies.wait(under_way.front().copy).ok());
    EXPECT_TRUE(is_filled(under_way.front().copy.host, under_way.front().mark));
    if (random() % 4 == 0) kept.push_back(std::move(under_way.front()));
    under_way.pop_front();
    if (kept.size() > 2) {
      EXPECT_TRUE(is_filled(kept.front().copy.host, kept.front().mark)) << "written over while it was held";
      kept.pop_front();
    }
  };
  for (int turn = 0; turn < 500; ++turn) {
    const auto bytes = static_cast<int64_t>(1 + random() % 1500);
    const auto mark = static_cast<uint8_t>(random());
    while (!copies.has_room(static_cast<size_t>(bytes)).take()) {
      ++full;
      if (under_way.empty()) kept.clear();
      if (!under_way.empty()) show_front();
    }
    auto started = copies.start(queue.to_device(filled(bytes, mark)).take());
    ASSERT_TRUE(started.ok()) << started.error().message;
    under_way.push_back({started.take(), mark});
  }
  while (!under_way.empty()) show_front();
  EXPECT_GT(full, 50) << "the ring was hardly ever full";
}

TEST(HostCopies, InPieces) {
  Queue<Emulated> queue;
  HostCopies<Emulated> copies(queue, kSizes);
  for (const int64_t bytes : {1, 511, 512, 513, 5000, 20000}) {
    const auto brought = copies.bring_in_pieces(queue.to_device(filled(bytes, 5)).take());
    ASSERT_TRUE(brought.ok()) << brought.error().message;
    EXPECT_TRUE(is_filled(*brought, 5)) << bytes;
  }
  EXPECT_EQ(copies.counts().bytes_in_pieces, 1 + 511 + 512 + 513 + 5000 + 20000);
  EXPECT_FALSE(copies.has_room(4097).take());
}

// The tests above rely on this: the emulated queue reports a buffer that is used too early, and a source that was
// freed.
TEST(HostCopies, TheEmulationTellsOfMistakes) {
  Queue<Emulated> queue;
  const auto memory = queue.host_memory(1024).take();
  Tensor first = queue.to_device(filled(600, 1)).take();
  const Tensor second = queue.to_device(filled(600, 2)).take();
  const auto ticket = queue.start_copy_to_host(memory.get(), first.view().data, 600);
  ASSERT_TRUE(ticket.ok());
  EXPECT_FALSE(queue.start_copy_to_host(memory.get() + 599, second.view().data, 400).ok());
  EXPECT_TRUE(queue.start_copy_to_host(memory.get() + 600, second.view().data, 400).ok());
  first = Tensor();
  EXPECT_FALSE(queue.wait_copied(*ticket).ok()) << "its source was freed";
}

}  // namespace
}  // namespace parallax::runtime::host_copies_test
