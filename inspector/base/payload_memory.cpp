// SPDX-License-Identifier: Apache-2.0
// Large arrays are mapped one by one: on the heap, freed ones would be between small blocks that live longer. Small
// ones come from malloc and are aligned by hand: glibc's aligned_alloc (before 2.38) does not find the hole that a
// freed block of the same size left, takes no thread's cache, and so lets the heap grow. A block knows the budget that
// it was charged to, for it may be freed by any thread, and after the job.
#include "inspector/base/payload_memory.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include <sys/mman.h>

#include "inspector/base/memory_budget.h"

namespace parallax {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kMostBytes = static_cast<size_t>(std::numeric_limits<ptrdiff_t>::max()) - 2 * kPage;  // asked for

// The sanitizers watch only the heap.
#ifdef PARALLAX_SANITIZED
constexpr size_t kMappedBytes = std::numeric_limits<size_t>::max();
#else
constexpr size_t kMappedBytes = size_t{64} << 10;
#endif

// The last mappings that were freed, for the next payloads of their sizes: a run's values come and go in the same few
// sizes, and to touch fresh pages costs more than to fill them. They are small compared with any model that has such
// payloads.
class FreedMappings {
 public:
  static FreedMappings& instance() {
    static auto* const mappings = new FreedMappings;  // payloads may outlive every static object
    return *mappings;
  }

  std::byte* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto found =
        std::find_if(kept_.rbegin(), kept_.rend(), [=](const auto& kept) { return kept.size() == bytes; });
    if (found == kept_.rend()) return nullptr;
    std::byte* memory = found->data();
    kept_.erase(std::next(found).base());
    kept_bytes_ -= bytes;
    return memory;
  }

  void give(std::byte* memory, size_t bytes) {
    const std::lock_guard lock(mutex_);
    while (!kept_.empty() && bytes <= kMostKept && kept_bytes_ + bytes > kMostKept) {
      ::munmap(kept_.front().data(), kept_.front().size());
      kept_bytes_ -= kept_.front().size();
      kept_.erase(kept_.begin());
    }
    if (bytes > kMostKept) {
      ::munmap(memory, bytes);
      return;
    }
    kept_.push_back({memory, bytes});
    kept_bytes_ += bytes;
  }

 private:
  static constexpr size_t kMostKept = size_t{16} << 20;
  std::mutex mutex_;
  std::vector<std::span<std::byte>> kept_;  // the last freed at the end
  size_t kept_bytes_ = 0;
};

// The budgets of mappings that were charged to one.
class ChargedMappings {
 public:
  static ChargedMappings& instance() {
    static auto* const mappings = new ChargedMappings;
    return *mappings;
  }

  void add(const std::byte* memory, MemoryBudget* budget) {
    const std::lock_guard lock(mutex_);
    budgets_.emplace(memory, budget);
    count_.fetch_add(1, std::memory_order_relaxed);
  }

  MemoryBudget* take(const std::byte* memory) {
    if (count_.load(std::memory_order_relaxed) == 0) return nullptr;
    const std::lock_guard lock(mutex_);
    const auto found = budgets_.find(memory);
    if (found == budgets_.end()) return nullptr;
    MemoryBudget* const budget = found->second;
    budgets_.erase(found);
    count_.fetch_sub(1, std::memory_order_relaxed);
    return budget;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<const std::byte*, MemoryBudget*> budgets_;
  std::atomic<size_t> count_{0};
};

size_t whole_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

bool begins_page(const std::byte* memory) { return reinterpret_cast<uintptr_t>(memory) % kPage == 0; }

std::byte* map_fresh(size_t bytes) {
  void* fresh = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return fresh == MAP_FAILED ? nullptr : static_cast<std::byte*>(fresh);
}

// From a multiple of kHugePage on, in huge pages where the system has some: a walk over megabytes looks up fewer
// addresses, and far fewer pages are cleared one by one.
std::byte* map_huge(size_t bytes) {
  std::byte* const fresh = map_fresh(bytes + kHugePage);
  if (fresh == nullptr) return nullptr;
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(fresh) % kHugePage) % kHugePage;
  if (before > 0) ::munmap(fresh, before);
  ::munmap(fresh + before + bytes, kHugePage - before);
  ::madvise(fresh + before, bytes, MADV_HUGEPAGE);
  return fresh + before;
}

std::byte* map_pages(size_t bytes) {
  if (std::byte* kept = FreedMappings::instance().take(bytes)) return kept;
  return bytes < kHugePage ? map_fresh(bytes) : map_huge(bytes);
}

constexpr ptrdiff_t kBudgetOffset = -16;  // malloc aligns to 16 bytes, so that there are as many before the payload

// The byte before the payload holds its distance from the block's beginning, a word further before it the budget. Never
// at the beginning of a page: that is how mappings are known.
std::byte* take_from_heap(size_t bytes, MemoryBudget* budget) {
  auto* block = static_cast<std::byte*>(std::malloc(bytes + 2 * kPayloadAlignment));
  if (block == nullptr) return nullptr;
  size_t offset = kPayloadAlignment - reinterpret_cast<uintptr_t>(block) % kPayloadAlignment;  // 1 to 64
  if (begins_page(block + offset)) offset += kPayloadAlignment;
  block[offset - 1] = static_cast<std::byte>(offset);
  std::memcpy(block + offset + kBudgetOffset, &budget, sizeof budget);
  return block + offset;
}

MemoryBudget* budget_of_heap_block(const std::byte* memory) {
  MemoryBudget* budget = nullptr;
  std::memcpy(&budget, memory + kBudgetOffset, sizeof budget);
  return budget;
}

// To the end of the line after the last byte, and never zero.
size_t whole_lines(size_t bytes) { return (bytes / kPayloadAlignment + 1) * kPayloadAlignment; }

std::byte* take_lines(size_t lines, MemoryBudget* budget) {
  if (lines >= kMappedBytes) {
    if (std::byte* memory = map_pages(whole_pages(lines))) {
      if (budget != nullptr) ChargedMappings::instance().add(memory, budget);
      return memory;  // mappings are limited in number: then the heap
    }
  }
  return take_from_heap(lines, budget);
}

}  // namespace

std::byte* allocate_payload(size_t bytes) {
  if (bytes > kMostBytes) return nullptr;
  const size_t lines = whole_lines(bytes);
  MemoryBudget* const budget = MemoryBudget::current();
  if (budget == nullptr) return take_lines(lines, nullptr);
  if (!budget->take(static_cast<int64_t>(lines))) return nullptr;
  std::byte* const memory = take_lines(lines, budget);
  if (memory == nullptr) budget->give_back(static_cast<int64_t>(lines));
  return memory;
}

std::byte* allocate_scratch(size_t bytes) {
  return bytes > kMostBytes ? nullptr : take_from_heap(whole_lines(bytes), nullptr);
}

void free_payload(std::byte* memory, size_t bytes) {
  if (memory == nullptr) return;
  const bool is_mapping = begins_page(memory);
  MemoryBudget* const budget = is_mapping ? ChargedMappings::instance().take(memory) : budget_of_heap_block(memory);
  if (budget != nullptr) budget->give_back(static_cast<int64_t>(whole_lines(bytes)));
  if (is_mapping) {
    FreedMappings::instance().give(memory, whole_pages(whole_lines(bytes)));
  } else {
    std::free(memory - std::to_integer<size_t>(memory[-1]));
  }
}

std::shared_ptr<std::byte> shared_payload(size_t bytes) {
  std::byte* memory = allocate_payload(bytes);
  if (memory == nullptr) return nullptr;
  return {memory, [bytes](std::byte* pointer) { free_payload(pointer, bytes); }};
}

}  // namespace parallax
