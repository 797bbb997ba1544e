// SPDX-License-Identifier: Apache-2.0
// KeySort: indices of numbers in order, on the host, by keys that are compared as integers: a stable radix sort of all,
// or, of a few of many, blocks of which the least key is looked at first.
#pragma once

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "runtime/device/cpu/multiversion.h"
#include "runtime/device/cpu/sort_key.h"

namespace parallax::runtime {

template <class C>
class KeySort {
 public:
  explicit KeySort(NumberOrder order) : order_(order) {}

  // Rows of more have indices that do not fit next to a key.
  static bool takes(int64_t length) { return sizeof(Key) == sizeof(int64_t) || length <= int64_t{UINT32_MAX}; }

  // The indices of the first k of a row, k <= length.
  void operator()(const C* row, int64_t length, int64_t k, int64_t* locations) {
    if (k == 0) return;
    if (k < length / kManyOf) {
      pick_few(row, length, k);
    } else {
      entries_.resize(static_cast<size_t>(length));
      for (int64_t i = 0; i < length; ++i) entries_.data()[i] = entry(row, i);
      if (k < length) std::nth_element(entries_.begin(), entries_.begin() + k, entries_.end(), Precedes());
      if (k < length || length < kFewForRadix) {
        std::sort(entries_.begin(), entries_.begin() + k, Precedes());
      } else {
        sort_by_digits();
      }
    }
    for (int64_t i = 0; i < k; ++i) locations[i] = static_cast<int64_t>(entries_.data()[i].location);
  }

 private:
  using Key = decltype(gpu::sort_key(C{}, NumberOrder::ascending));
  struct Entry {
    Key key;
    Key location;
  };
  static constexpr int64_t kManyOf = 8;
  static constexpr int64_t kBlock = 16;
  static constexpr int64_t kFewForRadix = 256;
  static constexpr size_t kDigits = sizeof(Key);

  struct Precedes {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.key != b.key ? a.key < b.key : a.location < b.location;
    }
  };
  Entry entry(const C* row, int64_t location) const {
    return {gpu::sort_key(row[location], order_), static_cast<Key>(location)};
  }

  void note_least_keys(const C* row, int64_t blocks) {
    least_.resize(static_cast<size_t>(blocks));
    Key* least = least_.data();
    vectorized(0, blocks, [=, order = order_](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        Key key = ~Key{0};
        for (int64_t i = block * kBlock; i < (block + 1) * kBlock; ++i) {
          const Key other = gpu::sort_key(row[i], order);
          key = other < key ? other : key;
        }
        least[block] = key;
      }
    });
  }

  // A heap of the best so far, which hardly any later one enters: an equal one comes after.
  void pick_few(const C* row, int64_t length, int64_t k) {
    const int64_t blocks = length / kBlock;
    note_least_keys(row, blocks);
    entries_.clear();
    for (int64_t i = 0; i < k; ++i) entries_.push_back(entry(row, i));
    std::make_heap(entries_.begin(), entries_.end(), Precedes());
    for (int64_t i = k; i < length;) {
      const int64_t block = i / kBlock;
      const int64_t end = std::min(length, (block + 1) * kBlock);
      if (block < blocks && least_.data()[block] >= entries_.front().key) {
        i = end;
        continue;
      }
      for (; i < end; ++i) {
        const Entry next = entry(row, i);
        if (next.key >= entries_.front().key) continue;
        std::pop_heap(entries_.begin(), entries_.end(), Precedes());
        entries_.back() = next;
        std::push_heap(entries_.begin(), entries_.end(), Precedes());
      }
    }
    std::sort_heap(entries_.begin(), entries_.end(), Precedes());
  }

  // All entries, from the lowest byte of the keys up; bytes that all of them share are passed over.
  void sort_by_digits() {
    std::array<std::array<size_t, 256>, kDigits> counts{};
    for (const Entry& entry : entries_) {
      for (size_t digit = 0; digit < kDigits; ++digit) ++counts[digit][entry.key >> (8 * digit) & 0xFF];
    }
    spare_.resize(entries_.size());
    for (size_t digit = 0; digit < kDigits; ++digit) {
      auto& begins = counts[digit];
      if (begins[entries_.front().key >> (8 * digit) & 0xFF] == entries_.size()) continue;
      size_t begin = 0;
      for (size_t& count : begins) begin += std::exchange(count, begin);
      for (const Entry& entry : entries_) spare_.data()[begins[entry.key >> (8 * digit) & 0xFF]++] = entry;
      entries_.swap(spare_);
    }
  }

  NumberOrder order_;
  std::vector<Entry> entries_, spare_;
  std::vector<Key> least_;
};

}  // namespace parallax::runtime
