// sort_rows: the first k of each row in a wanted order, as values and as places.
#pragma once

#include <algorithm>
#include <vector>

#include "runtime/device/rows.h"

namespace parallax::runtime {

// How numbers stand: NaN counts as the largest, zeros of either sign are equal, equal ones keep the order of their
// places.
enum class NumberOrder : uint8_t { ascending, descending };

// Numbers in one of these orders. That it says which lets GPU devices sort keys (gpu/sort_key.h) in its place.
struct TopFirst {
  bool largest;
  NumberOrder number_order() const { return largest ? NumberOrder::descending : NumberOrder::ascending; }
  template <class C>
  PX_HD bool operator()(C x, int64_t place_x, C y, int64_t place_y) const {
    const bool x_nan = x != x;
    const bool y_nan = y != y;
    if (x_nan != y_nan) return largest ? x_nan : y_nan;
    if (x != y && !x_nan) return largest ? x > y : x < y;
    return place_x < place_y;
  }
};

namespace sort_detail {

template <class C>
struct Entry {
  C value;
  int64_t place;
};

// The first k of a row in order. Few of many: a heap of the best so far, which hardly any later one enters.
template <class C, class Before>
void sort_first(const Before& before, const C* row, int64_t length, int64_t k, std::vector<Entry<C>>& entries) {
  const auto precedes = [&](const Entry<C>& a, const Entry<C>& b) {
    return before(a.value, a.place, b.value, b.place);
  };
  constexpr int64_t kManyOf = 8;
  const bool is_few = k < length / kManyOf;
  entries.clear();
  for (int64_t i = 0; i < (is_few ? k : length); ++i) entries.push_back({row[i], i});
  if (!is_few) {
    if (k < length) std::nth_element(entries.begin(), entries.begin() + k, entries.end(), precedes);
    std::sort(entries.begin(), entries.begin() + k, precedes);
    return;
  }
  if (k == 0) return;
  std::make_heap(entries.begin(), entries.end(), precedes);
  Entry<C> last = entries.front();
  for (int64_t i = k; i < length; ++i) {
    if (!before(row[i], i, last.value, last.place)) continue;
    std::pop_heap(entries.begin(), entries.end(), precedes);
    entries.back() = {row[i], i};
    std::push_heap(entries.begin(), entries.end(), precedes);
    last = entries.front();
  }
  std::sort_heap(entries.begin(), entries.end(), precedes);
}

}  // namespace sort_detail

// before(value a, place a, value b, place b) orders all elements of a row; `values` and `places` (int64) have k along
// the row's axis.
template <class C, class Before>
void sort_rows(Queue<Cpu>&, const Before& before, const RowLayout& layout, const TensorView& in, int64_t k,
               const MutableView& values, const MutableView& places) {
  const RowLayout out_layout{layout.outer, k, layout.inner};
  parallel_for(layout.row_count(), layout.length * 20, [&](int64_t begin, int64_t end) {
    std::vector<C> buffer;
    std::vector<sort_detail::Entry<C>> entries;
    std::vector<C> best(static_cast<size_t>(k));
    std::vector<int64_t> order(static_cast<size_t>(k));
    for (int64_t row = begin; row < end; ++row) {
      sort_detail::sort_first(before, load_row<C>(in, layout, row, buffer), layout.length, k, entries);
      for (int64_t i = 0; i < k; ++i) {
        best.data()[i] = entries.data()[i].value;
        order.data()[i] = entries.data()[i].place;
      }
      store_row<C>(values, out_layout, row, best.data());
      store_row<int64_t>(places, out_layout, row, order.data());
    }
  });
}

}  // namespace parallax::runtime
