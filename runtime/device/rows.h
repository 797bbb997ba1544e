// fold_rows and scan_rows: primitives over the rows of a tensor seen as [outer, length, inner], a row being the
// `length` elements that stand `inner` apart. Rows are independent, so they spread over threads; a sum never does.
#pragma once

#include <vector>

#include "inspector/base/thread_pool.h"
#include "runtime/device/blocks.h"
#include "runtime/device/ints.h"
#include "runtime/device/multiversion.h"
#include "runtime/device/queue_cpu.h"

namespace parallax::runtime {

struct RowLayout {
  int64_t outer = 1;
  int64_t length = 1;
  int64_t inner = 1;
  int64_t row_count() const { return outer * inner; }
  int64_t start(int64_t row) const { return row / inner * length * inner + row % inner; }
};

// The rows along one axis.
RowLayout rows_along(const Shape& shape, int64_t axis);

// A row as contiguous values of C: a pointer into the payload where that is one already, else a converted copy in
// `buffer`.
template <class C>
const C* load_row(const TensorView& view, const RowLayout& layout, int64_t row, std::vector<C>& buffer) {
  const int64_t start = layout.start(row);
  if (layout.inner == 1 && view.dtype == storage_of<C>()) return reinterpret_cast<const C*>(view.data) + start;
  buffer.resize(static_cast<size_t>(layout.length));
  if (layout.inner == 1) {
    load_block<C>(view.dtype, view.data, start, 1, layout.length, buffer.data());
  } else if (view.dtype == storage_of<C>()) {
    const C* source = reinterpret_cast<const C*>(view.data) + start;
    for (int64_t i = 0; i < layout.length; ++i) buffer.data()[i] = source[i * layout.inner];
  } else {
    for (int64_t i = 0; i < layout.length; ++i) {
      buffer.data()[i] = load_element<C>(view.dtype, view.data, start + i * layout.inner);
    }
  }
  return buffer.data();
}

template <class C>
void store_row(const MutableView& view, const RowLayout& layout, int64_t row, const C* values) {
  const int64_t start = layout.start(row);
  if (layout.inner == 1) return store_block<C>(view.dtype, view.data, start, layout.length, values);
  for (int64_t i = 0; i < layout.length; ++i) {
    store_block<C>(view.dtype, view.data, start + i * layout.inner, 1, values + i);
  }
}

// Calls f(row, in, out) for each row: `in` holds its values as C, `out` takes as many of R. What softmax, the norms and
// the cumulative operators are made of.
template <class C, class R, class F>
void scan_rows(Queue<Cpu>&, const F& f, const RowLayout& layout, const MutableView& out, const TensorView& in,
               int64_t work_per_element = 2) {
  parallel_for(layout.row_count(), layout.length * work_per_element, [&](int64_t begin, int64_t end) {
    std::vector<C> in_buffer;
    std::vector<R> out_buffer;
    for (int64_t row = begin; row < end; ++row) {
      const C* values = load_row<C>(in, layout, row, in_buffer);
      const bool direct = layout.inner == 1 && out.dtype == storage_of<R>();
      if (!direct) out_buffer.resize(static_cast<size_t>(layout.length));
      R* results = direct ? reinterpret_cast<R*>(out.data) + layout.start(row) : out_buffer.data();
      f(row, values, results);
      if (!direct) store_row<R>(out, layout, row, results);
    }
  });
}

constexpr int64_t kLanes = 16;  // partial results of a fold along a contiguous row: one 512-bit vector of floats

namespace rows_detail {

// Folds a contiguous row in kLanes interleaved parts, then the parts in pairs: the same order on every CPU.
template <class C, class Fold>
C fold_row(const Fold& fold, const C* values, int64_t length) {
  C lanes[kLanes];
  for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = fold.template init<C>();
  const int64_t whole = length / kLanes * kLanes;
  vectorised(0, whole, [&fold, &lanes, values](int64_t begin, int64_t end) {
    C local[kLanes];
    for (int64_t lane = 0; lane < kLanes; ++lane) local[lane] = lanes[lane];
    for (int64_t i = begin; i < end; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) local[lane] = fold.step(local[lane], values[i + lane]);
    }
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = local[lane];
  });
  for (int64_t i = whole; i < length; ++i) lanes[i - whole] = fold.step(lanes[i - whole], values[i]);
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t lane = 0; lane < width; ++lane) lanes[lane] = fold.merge(lanes[lane], lanes[lane + width]);
  }
  return lanes[0];
}

// Folds `count` neighbouring rows at once, walking along the payload.
template <class C, class Fold>
void fold_columns(const Fold& fold, const TensorView& in, const RowLayout& layout, int64_t row, int64_t count, C* out) {
  alignas(64) C accumulators[kBlockElements];
  alignas(64) C buffer[kBlockElements];
  for (int64_t i = 0; i < count; ++i) accumulators[i] = fold.template init<C>();
  const int64_t start = layout.start(row);
  for (int64_t position = 0; position < layout.length; ++position) {
    const int64_t index = start + position * layout.inner;
    const C* values = buffer;
    if (in.dtype == storage_of<C>()) {
      values = reinterpret_cast<const C*>(in.data) + index;
    } else {
      load_block<C>(in.dtype, in.data, index, 1, count, buffer);
    }
    vectorised(0, count, [&fold, &accumulators, values](int64_t begin, int64_t end) {
      C* local = accumulators;
      for (int64_t i = begin; i < end; ++i) local[i] = fold.step(local[i], values[i]);
    });
  }
  for (int64_t i = 0; i < count; ++i) out[i] = accumulators[i];
}

}  // namespace rows_detail

// out[row] = finish(fold of the row, length), where Fold has init<C>(), step(accumulator, value), merge(a, b) and
// finish(accumulator, count). `out` is [outer, inner].
template <class C, class Fold>
void fold_rows(Queue<Cpu>&, const Fold& fold, const RowLayout& layout, const MutableView& out, const TensorView& in) {
  const int64_t group = layout.inner == 1 ? 1 : std::min(layout.inner, kBlockElements);
  const int64_t groups_per_outer = (layout.inner + group - 1) / group;
  parallel_for(layout.outer * groups_per_outer, layout.length * group, [&](int64_t begin, int64_t end) {
    std::vector<C> buffer;
    alignas(64) C results[kBlockElements];
    for (int64_t index = begin; index < end; ++index) {
      const int64_t first = index % groups_per_outer * group;
      const int64_t row = index / groups_per_outer * layout.inner + first;
      const int64_t count = std::min(group, layout.inner - first);
      if (layout.inner == 1) {
        results[0] = rows_detail::fold_row<C>(fold, load_row<C>(in, layout, row, buffer), layout.length);
      } else {
        rows_detail::fold_columns<C>(fold, in, layout, row, count, results);
      }
      for (int64_t i = 0; i < count; ++i) results[i] = fold.finish(results[i], layout.length);
      store_block<C>(out.dtype, out.data, row, count, results);
    }
  });
}

}  // namespace parallax::runtime
