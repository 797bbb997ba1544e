// SPDX-License-Identifier: Apache-2.0
// Phases: every piece is done once a phase, after all of the phase before, whichever members take part.
#include "reference/kernels/phases.h"

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace parallax::reference {
namespace {

constexpr int64_t kPieces = 3;
constexpr uint32_t kRounds = 2000;

// Numbers that follow from all those of the round before, so that a piece done twice, or too early, shows.
class Numbers {
 public:
  void advance(uint32_t round, int64_t piece) {
    const auto& before = numbers_[static_cast<size_t>(round % 2)];
    uint64_t sum = 0;
    for (const uint64_t number : before) sum = sum * 31 + number;
    auto& own = numbers_[static_cast<size_t>(1 - round % 2)][static_cast<size_t>(piece)];
    own = sum + static_cast<uint64_t>(piece);
    ++done_;
  }
  int64_t done() const { return done_; }
  const std::array<uint64_t, kPieces>& after(uint32_t rounds) const {
    return numbers_[static_cast<size_t>(rounds % 2)];
  }

 private:
  std::array<std::array<uint64_t, kPieces>, 2> numbers_{};
  std::atomic<int64_t> done_{0};
};

void attend(Rounds& rounds, int64_t piece, Numbers& numbers) {
  RoundsMember member(rounds, piece);
  for (uint32_t round = 0; round < kRounds; ++round)
    member.run(round, [&](int64_t any) { numbers.advance(round, any); });
}

void expect_same(const Numbers& numbers) {
  Numbers expected;
  for (uint32_t round = 0; round < kRounds; ++round) {
    for (int64_t piece = 0; piece < kPieces; ++piece) expected.advance(round, piece);
  }
  EXPECT_EQ(numbers.after(kRounds), expected.after(kRounds));
  EXPECT_EQ(numbers.done(), kPieces * kRounds);
}

TEST(Rounds, AllMembersAtOnce) {
  Rounds rounds(kPieces);
  Numbers numbers;
  std::vector<std::thread> threads;
  for (int64_t piece = 0; piece < kPieces; ++piece)
    threads.emplace_back([&, piece] { attend(rounds, piece, numbers); });
  for (std::thread& thread : threads) thread.join();
  expect_same(numbers);
}

TEST(Rounds, OneMemberDoesItAllAndTheOthersComeWhenItIsOver) {
  Rounds rounds(kPieces);
  Numbers numbers;
  attend(rounds, 1, numbers);
  expect_same(numbers);
  attend(rounds, 0, numbers);
  attend(rounds, 2, numbers);
  expect_same(numbers);
}

// The others begin when the first is half through, and go on together with it.
TEST(Rounds, MembersComeLate) {
  Rounds rounds(kPieces);
  Numbers numbers;
  std::vector<std::thread> late;
  RoundsMember member(rounds, 0);
  for (uint32_t round = 0; round < kRounds; ++round) {
    for (int64_t piece = 1; round == kRounds / 2 && piece < kPieces; ++piece)
      late.emplace_back([&, piece] { attend(rounds, piece, numbers); });
    member.run(round, [&](int64_t any) { numbers.advance(round, any); });
  }
  for (std::thread& thread : late) thread.join();
  expect_same(numbers);
}

}  // namespace
}  // namespace parallax::reference
