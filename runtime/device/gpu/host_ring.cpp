// SPDX-License-Identifier: Apache-2.0
// Positions count bytes for ever; the offset in the block is the remainder.
#include "runtime/device/gpu/host_ring.h"

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

namespace parallax::runtime {

struct HostRing::State {
  struct Piece {
    uint64_t end = 0;  // the space skipped before it included
    bool is_held = true;
  };

  State(std::shared_ptr<std::byte> its_memory, size_t its_bytes) : memory(std::move(its_memory)), bytes(its_bytes) {}

  // The begin of a new piece: a piece is never cut in two, so the rest of the block is skipped where it is too short.
  std::optional<uint64_t> location_for(size_t wanted) const {
    if (wanted > bytes) return std::nullopt;
    const uint64_t rest = bytes - head % bytes;
    const uint64_t begin = wanted <= rest ? head : head + rest;
    return begin + wanted - tail <= bytes ? std::optional(begin) : std::nullopt;
  }

  void let_go(uint64_t number) {
    const std::lock_guard lock(mutex);
    pieces[static_cast<size_t>(number - first)].is_held = false;
    while (!pieces.empty() && !pieces.front().is_held) {
      tail = pieces.front().end;
      pieces.pop_front();
      ++first;
    }
    if (pieces.empty()) head = tail = 0;
  }

  mutable std::mutex mutex;
  std::shared_ptr<std::byte> memory;
  size_t bytes;
  uint64_t head = 0, tail = 0;  // taken up to, free again up to
  uint64_t first = 0;           // number of the first of `pieces`
  std::deque<Piece> pieces;
};

namespace {

size_t rounded(size_t bytes) {
  return (bytes + HostRing::kAlignment - 1) / HostRing::kAlignment * HostRing::kAlignment;
}

}  // namespace

HostRing::HostRing(std::shared_ptr<std::byte> memory, size_t bytes)
    : state_(std::make_shared<State>(std::move(memory), bytes / kAlignment * kAlignment)) {}

size_t HostRing::bytes() const { return state_ == nullptr ? 0 : state_->bytes; }

size_t HostRing::bytes_in_use() const {
  if (state_ == nullptr) return 0;
  const std::lock_guard lock(state_->mutex);
  return static_cast<size_t>(state_->head - state_->tail);
}

bool HostRing::has_room(size_t bytes) const {
  if (state_ == nullptr) return false;
  const std::lock_guard lock(state_->mutex);
  return state_->location_for(rounded(bytes)).has_value();
}

std::shared_ptr<std::byte> HostRing::take(size_t bytes) {
  if (state_ == nullptr || bytes == 0) return nullptr;
  const std::lock_guard lock(state_->mutex);
  const auto begin = state_->location_for(rounded(bytes));
  if (!begin.has_value()) return nullptr;
  state_->head = *begin + rounded(bytes);
  const uint64_t number = state_->first + state_->pieces.size();
  state_->pieces.push_back({state_->head, true});
  return {state_->memory.get() + *begin % state_->bytes,
          [state = state_, number](std::byte*) { state->let_go(number); }};
}

}  // namespace parallax::runtime
