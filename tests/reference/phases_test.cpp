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

// Numbers that follow from all those of the phase before, so that a piece done twice, or too early, shows.
class Numbers {
 public:
  void advance(uint32_t phase, int64_t piece) {
    const auto& before = numbers_[static_cast<size_t>(phase % 2)];
    uint64_t sum = 0;
    for (const uint64_t number : before) sum = sum * 31 + number;
    auto& own = numbers_[static_cast<size_t>(1 - phase % 2)][static_cast<size_t>(piece)];
    own = sum + static_cast<uint64_t>(piece);
    ++done_;
  }
  int64_t done() const { return done_; }
  const std::array<uint64_t, kPieces>& after(uint32_t phases) const {
    return numbers_[static_cast<size_t>(phases % 2)];
  }

 private:
  std::array<std::array<uint64_t, kPieces>, 2> numbers_{};
  std::atomic<int64_t> done_{0};
};

void attend(Phases& phases, int64_t piece, Numbers& numbers) {
  PhasesMember member(phases, piece);
  for (uint32_t phase = 0; phase < kRounds; ++phase)
    member.run(phase, [&](int64_t any) { numbers.advance(phase, any); });
}

void expect_same(const Numbers& numbers) {
  Numbers expected;
  for (uint32_t phase = 0; phase < kRounds; ++phase) {
    for (int64_t piece = 0; piece < kPieces; ++piece) expected.advance(phase, piece);
  }
  EXPECT_EQ(numbers.after(kRounds), expected.after(kRounds));
  EXPECT_EQ(numbers.done(), kPieces * kRounds);
}

TEST(Phases, AllMembersAtOnce) {
  Phases phases(kPieces);
  Numbers numbers;
  std::vector<std::thread> threads;
  for (int64_t piece = 0; piece < kPieces; ++piece)
    threads.emplace_back([&, piece] { attend(phases, piece, numbers); });
  for (std::thread& thread : threads) thread.join();
  expect_same(numbers);
}

TEST(Phases, OneMemberDoesItAllAndTheOthersComeWhenItIsOver) {
  Phases phases(kPieces);
  Numbers numbers;
  attend(phases, 1, numbers);
  expect_same(numbers);
  attend(phases, 0, numbers);
  attend(phases, 2, numbers);
  expect_same(numbers);
}

// The others begin when the first is half through, and go on together with it.
TEST(Phases, MembersComeLate) {
  Phases phases(kPieces);
  Numbers numbers;
  std::vector<std::thread> late;
  PhasesMember member(phases, 0);
  for (uint32_t phase = 0; phase < kRounds; ++phase) {
    for (int64_t piece = 1; phase == kRounds / 2 && piece < kPieces; ++piece)
      late.emplace_back([&, piece] { attend(phases, piece, numbers); });
    member.run(phase, [&](int64_t any) { numbers.advance(phase, any); });
  }
  for (std::thread& thread : late) thread.join();
  expect_same(numbers);
}

}  // namespace
}  // namespace parallax::reference
