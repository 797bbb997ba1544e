// sort_rows: the first k of each row in a wanted order, as values and as places.
#pragma once

#include <algorithm>
#include <numeric>

#include "runtime/device/rows.h"

namespace parallax::runtime {

// before(value a, place a, value b, place b) orders all elements of a row; `values` and `places` (int64) have k along
// the row's axis.
template <class C, class Before>
void sort_rows(Queue<Cpu>&, const Before& before, const RowLayout& layout, const TensorView& in, int64_t k,
               const MutableView& values, const MutableView& places) {
  const RowLayout out_layout{layout.outer, k, layout.inner};
  parallel_for(layout.row_count(), layout.length * 20, [&](int64_t begin, int64_t end) {
    std::vector<C> buffer;
    std::vector<int64_t> order(static_cast<size_t>(layout.length));
    std::vector<C> best(static_cast<size_t>(k));
    for (int64_t row = begin; row < end; ++row) {
      const C* from = load_row<C>(in, layout, row, buffer);
      std::iota(order.begin(), order.end(), int64_t{0});
      std::partial_sort(order.begin(), order.begin() + k, order.end(),
                        [&](int64_t a, int64_t b) { return before(from[a], a, from[b], b); });
      for (int64_t i = 0; i < k; ++i) best.data()[i] = from[order.data()[i]];
      store_row<C>(values, out_layout, row, best.data());
      store_row<int64_t>(places, out_layout, row, order.data());
    }
  });
}

}  // namespace parallax::runtime
