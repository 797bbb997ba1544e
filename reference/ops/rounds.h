// Rounds: pieces of work that several threads do again and again, each round beginning when the one before is over.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace parallax::reference {

// How often each piece has been begun, and all together have been done.
class Rounds {
 public:
  explicit Rounds(int64_t pieces) : begun_(static_cast<size_t>(pieces)) {}

  int64_t pieces() const { return static_cast<int64_t>(begun_.size()); }

 private:
  friend class RoundsMember;
  struct alignas(64) Begun {
    std::atomic<int64_t> rounds{0};
  };

  std::vector<Begun> begun_;
  alignas(64) std::atomic<int64_t> done_{0};  // pieces of all rounds
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
  void run(int64_t round, const Body& body) {
    begin(own_, round, body);
    for (int looks = 0; !is_over(round); ++looks) {
      for (size_t piece = 0; piece < is_missing_.size(); ++piece) {
        if (is_missing_[piece] || looks == kPatience) is_missing_[piece] = begin(piece, round, body);
      }
      if (looks > kPatience)
        sleep(round);
      else
        pause();
    }
  }

 private:
  static constexpr int kPatience = 128;  // some two microseconds, for members that were there in the last round

  // Whether nobody else had begun the piece.
  template <class Body>
  bool begin(size_t piece, int64_t round, const Body& body) {
    int64_t expected = round;
    if (!rounds_.begun_[piece].rounds.compare_exchange_strong(expected, round + 1, std::memory_order_relaxed))
      return false;
    body(static_cast<int64_t>(piece));
    if (rounds_.done_.fetch_add(1, std::memory_order_acq_rel) + 1 == done_after(round)) rounds_.done_.notify_all();
    return true;
  }

  int64_t done_after(int64_t round) const { return (round + 1) * rounds_.pieces(); }
  bool is_over(int64_t round) const { return rounds_.done_.load(std::memory_order_acquire) >= done_after(round); }
  static void pause();
  void sleep(int64_t round) const;

  Rounds& rounds_;
  size_t own_;
  std::vector<bool> is_missing_;  // of each piece, whether this member had to do it in the last round
};

}  // namespace parallax::reference
