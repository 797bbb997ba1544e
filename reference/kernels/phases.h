// SPDX-License-Identifier: Apache-2.0
// Phases: pieces of work that several threads do again and again, each phase beginning when the one before is over.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace parallax::reference {

// How often each piece has been begun and done. What one thread writes in every phase and another reads has a cache
// line of its own.
class Phases {
 public:
  explicit Phases(int64_t pieces) : begun_(static_cast<size_t>(pieces)), done_(begun_.size()) {}

 private:
  friend class PhasesMember;
  struct alignas(64) Count {
    std::atomic<uint32_t> phases{0};
  };

  std::vector<Count> begun_, done_;
};

// Each piece has a member, a thread that does it in every phase and so finds what it needs in its own processor's
// caches. A member need not be there: it may come late, be held up between phases, or never come, and the others do its
// piece. So one thread alone gets through, and takes no longer than it would have taken without the rest.
class PhasesMember {
 public:
  PhasesMember(Phases& phases, int64_t piece)
      : phases_(phases), own_(static_cast<size_t>(piece)), is_missing_(phases.begun_.size()) {}

  // Calls body(piece) for the member's piece and for those that nobody begins; returns once all of the phase is done.
  // Every member calls it for the phases 0, 1, 2, ...; those long over are soon gone through.
  template <class Body>
  void run(uint32_t phase, const Body& body) {
    begin(own_, phase, body);
    for (size_t piece = 0; piece < is_missing_.size(); ++piece) {
      if (is_missing_[piece]) is_missing_[piece] = begin(piece, phase, body);
    }
    for (size_t piece = 0; piece < is_missing_.size(); ++piece) {
      for (int spins = 0; !is_done(piece, phase); ++spins) {
        if (spins < kSpinLimit)
          pause();
        else if (spins == kSpinLimit)
          is_missing_[piece] = begin(piece, phase, body);
        else
          sleep(piece, phase);
      }
    }
  }

 private:
  static constexpr int kSpinLimit = 128;  // some two microseconds, for a member that was there in the last phase

  // Returns true if no other thread had begun the piece.
  template <class Body>
  bool begin(size_t piece, uint32_t phase, const Body& body) {
    uint32_t expected = phase;
    if (!phases_.begun_[piece].phases.compare_exchange_strong(expected, phase + 1, std::memory_order_relaxed))
      return false;
    body(static_cast<int64_t>(piece));
    std::atomic<uint32_t>& done = phases_.done_[piece].phases;
    done.store(phase + 1, std::memory_order_release);
    done.notify_all();
    return true;
  }

  // A count of phases may have begun at 0 again.
  bool is_done(size_t piece, uint32_t phase) const {
    return static_cast<int32_t>(phases_.done_[piece].phases.load(std::memory_order_acquire) - phase) > 0;
  }
  static void pause();
  void sleep(size_t piece, uint32_t phase) const;

  Phases& phases_;
  size_t own_;
  std::vector<bool> is_missing_;  // of each piece, whether this member had to do it in the last phase
};

}  // namespace parallax::reference
