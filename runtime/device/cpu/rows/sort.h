// SPDX-License-Identifier: Apache-2.0
// sort_rows: the first k of each row in a wanted order, as values and as indices.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/device/cpu/rows/number_order.h"
#include "runtime/device/cpu/rows/rows.h"

namespace parallax::runtime {

namespace sort_detail {

// Indices of elements in any order, by comparing. Few of many: a heap of the best so far, which hardly any later one
// enters.
template <class C, class Before>
class CompareSort {
 public:
  explicit CompareSort(const Before& before) : before_(before) {}

  void operator()(const C* row, int64_t length, int64_t k, int64_t* locations) {
    const auto precedes = [&](const Entry& a, const Entry& b) {
      return before_(a.value, a.location, b.value, b.location);
    };
    constexpr int64_t kManyOf = 8;
    const bool is_few = k < length / kManyOf;
    if (k == 0) return;
    entries_.clear();
    for (int64_t i = 0; i < (is_few ? k : length); ++i) entries_.push_back({row[i], i});
    if (!is_few) {
      if (k < length) std::nth_element(entries_.begin(), entries_.begin() + k, entries_.end(), precedes);
      std::sort(entries_.begin(), entries_.begin() + k, precedes);
    } else {
      std::make_heap(entries_.begin(), entries_.end(), precedes);
      for (int64_t i = k; i < length; ++i) {
        if (!precedes({row[i], i}, entries_.front())) continue;
        std::pop_heap(entries_.begin(), entries_.end(), precedes);
        entries_.back() = {row[i], i};
        std::push_heap(entries_.begin(), entries_.end(), precedes);
      }
      std::sort_heap(entries_.begin(), entries_.end(), precedes);
    }
    for (int64_t i = 0; i < k; ++i) locations[i] = entries_.data()[i].location;
  }

 private:
  struct Entry {
    C value;
    int64_t location;
  };
  const Before& before_;
  std::vector<Entry> entries_;
};

}  // namespace sort_detail

// before(value a, index a, value b, index b) orders all elements of a row; `values` and `locations` (int64 indices)
// have k along the row's axis.
template <class C, class Before>
void sort_rows(Queue<Cpu>&, const Before& before, const RowLayout& layout, const TensorView& in, int64_t k,
               const MutableView& values, const MutableView& locations) {
  const RowLayout out_layout{layout.outer, k, layout.inner};
  parallel_for(layout.row_count(), layout.length * 20, [&](int64_t begin, int64_t end) {
    sort_detail::CompareSort<C, Before> sort(before);
    std::vector<C> buffer;
    std::vector<C> best(static_cast<size_t>(k));
    std::vector<int64_t> order(static_cast<size_t>(k));
    for (int64_t row = begin; row < end; ++row) {
      const C* elements = load_row<C>(in, layout, row, buffer);
      sort(elements, layout.length, k, order.data());
      for (int64_t i = 0; i < k; ++i) best.data()[i] = elements[order.data()[i]];
      store_row<C>(values, out_layout, row, best.data());
      store_row<int64_t>(locations, out_layout, row, order.data());
    }
  });
}

}  // namespace parallax::runtime
