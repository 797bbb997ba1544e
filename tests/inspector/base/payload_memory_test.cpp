// SPDX-License-Identifier: Apache-2.0
// Memory for arrays: its alignment, its use up to the end of a cache line, and that it is found again.
#include "inspector/base/payload_memory.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace parallax {
namespace {

constexpr std::array<size_t, 10> kSizes = {0, 1, 63, 64, 65, 4096, 100'000, 262'080, 262'144, 3'000'000};

TEST(PayloadMemory, BeginsACacheLineAndMayBeUsedToItsEnd) {
  for (const size_t bytes : kSizes) {
    for (int round = 0; round < 6; ++round) {  // blocks of both kinds in turn, each given back as what it is
      std::byte* memory = round % 2 == 0 ? allocate_payload(bytes) : allocate_scratch(bytes);
      ASSERT_NE(memory, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % kPayloadAlignment, 0U);
      std::memset(memory, 0xA5, (bytes / kPayloadAlignment + 1) * kPayloadAlignment);
      free_payload(memory, bytes);
    }
  }
  free_payload(nullptr, 0);
}

TEST(PayloadMemory, WhatTheSystemLacksIsNull) {
  EXPECT_EQ(allocate_payload(std::numeric_limits<size_t>::max()), nullptr);
  EXPECT_EQ(allocate_payload(std::numeric_limits<size_t>::max() / 2), nullptr);
  EXPECT_EQ(shared_payload(std::numeric_limits<size_t>::max()), nullptr);
  EXPECT_EQ(allocate_scratch(std::numeric_limits<size_t>::max()), nullptr);
}

TEST(PayloadMemory, BlocksOfSeveralThreadsDoNotOverlap) {
  const auto use = [](unsigned char mark) {
    for (int round = 0; round < 200; ++round) {
      std::vector<std::shared_ptr<std::byte>> blocks;
      for (const size_t bytes : kSizes) {
        blocks.push_back(shared_payload(bytes));
        std::memset(blocks.back().get(), mark, bytes);
      }
      for (size_t index = 0; index < kSizes.size(); ++index) {
        const std::byte* block = blocks[index].get();
        for (size_t at = 0; at < kSizes[index]; at += 997) ASSERT_EQ(std::to_integer<unsigned char>(block[at]), mark);
      }
    }
  };
  std::thread other(use, static_cast<unsigned char>(1));
  use(2);
  other.join();
}

}  // namespace
}  // namespace parallax
