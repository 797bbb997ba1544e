// SPDX-License-Identifier: Apache-2.0
// Packing: buffers that live at the same time must not overlap, and the block shall be small. The problem (dynamic
// storage allocation) is NP-hard; placing buffers one by one at the lowest free offset comes close to the bound when
// the order is good, so several orders are tried and the best is kept.
#include "runtime/device/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace parallax::runtime {
namespace {

constexpr size_t kMostBuffers = 16384;      // the packing compares each with each
constexpr size_t kMostForAllOrders = 4096;  // above, the first order alone
constexpr size_t kMostForRepairs = 1024;    // above, no second thoughts
constexpr int kRepairs = 64;

struct Block {
  size_t life = 0;  // index among the lives
  int64_t bytes = 0;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t offset = 0;
  bool overlaps_in_time(const Block& other) const { return begin < other.end && other.begin < end; }
};

// Most bytes alive at once. At one and the same event a buffer comes back or is handed out, never both.
int64_t live_bound(std::span<const Block> blocks) {
  std::vector<std::pair<int64_t, int64_t>> changes;  // (event, bytes)
  for (const Block& block : blocks) {
    changes.emplace_back(block.begin, block.bytes);
    changes.emplace_back(block.end, -block.bytes);
  }
  std::sort(changes.begin(), changes.end());
  int64_t live = 0, most = 0;
  for (const auto& [event, bytes] : changes) most = std::max(most, live += bytes);
  return most;
}

// The lowest gap that holds `block` among those placed, which are sorted by offset.
int64_t lowest_offset(const Block& block, std::span<const Block> placed) {
  int64_t offset = 0;
  for (const Block& other : placed) {
    if (!block.overlaps_in_time(other)) continue;
    if (other.offset >= offset + block.bytes) break;
    offset = std::max(offset, other.offset + other.bytes);
  }
  return offset;
}

// Assigns offsets to all in their order, and returns the size of the whole.
int64_t pack(std::vector<Block>& blocks) {
  std::vector<Block> placed;
  placed.reserve(blocks.size());
  int64_t total = 0;
  for (Block& block : blocks) {
    block.offset = lowest_offset(block, placed);
    total = std::max(total, block.offset + block.bytes);
    const auto after = std::upper_bound(placed.begin(), placed.end(), block.offset,
                                        [](int64_t offset, const Block& each) { return offset < each.offset; });
    placed.insert(after, block);
  }
  return total;
}

using Before = bool (*)(const Block& a, const Block& b);

bool larger_first(const Block& a, const Block& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.begin < b.begin; }
bool earlier_first(const Block& a, const Block& b) { return a.begin < b.begin; }
bool longer_first(const Block& a, const Block& b) {
  const int64_t a_span = a.end - a.begin, b_span = b.end - b.begin;
  return a_span != b_span ? a_span > b_span : larger_first(a, b);
}
bool more_area_first(const Block& a, const Block& b) {
  const double a_area = static_cast<double>(a.bytes) * static_cast<double>(a.end - a.begin);
  const double b_area = static_cast<double>(b.bytes) * static_cast<double>(b.end - b.begin);
  return a_area != b_area ? a_area > b_area : larger_first(a, b);
}

constexpr Before kOrders[] = {larger_first, more_area_first, longer_first, earlier_first};

// Second thoughts: what sticks out at the top is placed first in the next attempt.
void repair(std::vector<Block> blocks, int64_t bound, std::vector<Block>& best, int64_t& arena_bytes) {
  for (int attempt = 0; attempt < kRepairs && arena_bytes > bound; ++attempt) {
    const auto top = std::max_element(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) {
      return a.offset + a.bytes < b.offset + b.bytes;
    });
    std::rotate(blocks.begin(), top, std::next(top));
    const int64_t total = pack(blocks);
    if (total >= arena_bytes) continue;
    arena_bytes = total;
    best = blocks;
  }
}

std::vector<Block> best_packing(std::vector<Block> blocks, int64_t bound, int64_t& arena_bytes) {
  std::vector<Block> best;
  for (const Before before : kOrders) {
    std::sort(blocks.begin(), blocks.end(), before);
    const int64_t total = pack(blocks);
    if (best.empty() || total < arena_bytes) {
      arena_bytes = total;
      best = blocks;
    }
    if (arena_bytes == bound || blocks.size() > kMostForAllOrders) break;
    if (blocks.size() <= kMostForRepairs) repair(blocks, bound, best, arena_bytes);
  }
  return best;
}

}  // namespace

std::optional<MemoryPlan> plan_memory(std::span<const BufferLife> lives, int32_t step_count, size_t alignment) {
  if (lives.size() > kMostBuffers) return std::nullopt;
  MemoryPlan plan;
  plan.first.assign(static_cast<size_t>(step_count) + 1, 0);
  std::vector<size_t> order(lives.size());  // by step, then by request
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return lives[a].step < lives[b].step; });
  for (const BufferLife& life : lives) ++plan.first[static_cast<size_t>(life.step) + 1];
  std::partial_sum(plan.first.begin(), plan.first.end(), plan.first.begin());
  std::vector<Block> blocks;
  for (size_t position = 0; position < order.size(); ++position) {
    const BufferLife& life = lives[order[position]];
    const size_t bytes = aligned_bytes(life.bytes, alignment);
    plan.buffers.push_back({bytes});
    if (life.end == BufferLife::kNever) continue;
    blocks.push_back({position, static_cast<int64_t>(bytes), life.begin, life.end});
    plan.sum_bytes += static_cast<int64_t>(bytes);
  }
  plan.bound_bytes = live_bound(blocks);
  for (const Block& block : best_packing(std::move(blocks), plan.bound_bytes, plan.arena_bytes)) {
    plan.buffers[block.life].offset = block.offset;
  }
  return plan;
}

}  // namespace parallax::runtime
