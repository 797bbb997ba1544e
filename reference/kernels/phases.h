// SPDX-License-Identifier: Apache-2.0
// Phases: pieces of work that several threads do again and again, each phase beginning when the one before is over.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace parallax::reference {

// How often each piece has been begun and done. What one thread writes in every round and another reads has a cache
// line of its own.
class Rounds {
 public:
  explicit Rounds(int64_t pieces) : begun_(static_cast<size_t>(pieces)), done_(begun_.size()) {}

 private:
  friend class RoundsMember;
  struct alignas(64) Count {
    std::atomic<uint32_t> rounds{0};
  };

  std::vector<Count> begun_, done_;
};

// Each piece has a member, a thread that does it in every round and so finds what it needs in its own processor's
// caches. A member need not be there: it may come late, be held up between rounds, or never come, and the others do its
// piece. So one thread alone gets through, and takes no longer than it would have taken without the rest.
class RoundsMember {
 public:
  RoundsMember(Rounds& rounds, int64_t piece)
      : rounds_(rounds), own_(static_cast<size_t>(piece)), is_missing_(rounds.begun_.size()) {}

  // Calls body(piece) for the member's piece and for those that nobody begins; returns once all of the round is done.
  // Every member calls it for the rounds 0, 1, 2, ...; those long over are soon gone through.
  template <class Body>
  void run(uint32_t round, const Body& body) {
    begin(own_, round, body);
    for (size_t piece = 0; piece < is_missing_.size(); ++piece) {
      if (is_missing_[piece]) is_missing_[piece] = begin(piece, round, body);
    }
    for (size_t piece = 0; piece < is_missing_.size(); ++piece) {
      for (int looks = 0; !is_done(piece, round); ++looks) {
        if (looks < kSpinLimit)
          pause();
        else if (looks == kSpinLimit)
          is_missing_[piece] = begin(piece, round, body);
        else
          sleep(piece, round);
      }
    }
  }

 private:
  static constexpr int kSpinLimit = 128;  // some two microseconds, for a member that was there in the last round

  // Returns true if no other thread had begun the piece.
  template <class Body>
  bool begin(size_t piece, uint32_t round, const Body& body) {
    uint32_t expected = round;
    if (!rounds_.begun_[piece].rounds.compare_exchange_strong(expected, round + 1, std::memory_order_relaxed))
      return false;
    body(static_cast<int64_t>(piece));
    std::atomic<uint32_t>& done = rounds_.done_[piece].rounds;
    done.store(round + 1, std::memory_order_release);
    done.notify_all();
    return true;
  }

  // A count of rounds may have begun at 0 again.
  bool is_done(size_t piece, uint32_t round) const {
    return static_cast<int32_t>(rounds_.done_[piece].rounds.load(std::memory_order_acquire) - round) > 0;
  }
  static void pause();
  void sleep(size_t piece, uint32_t round) const;

  Rounds& rounds_;
  size_t own_;
  std::vector<bool> is_missing_;  // of each piece, whether this member had to do it in the last round
};

}  // namespace parallax::reference
