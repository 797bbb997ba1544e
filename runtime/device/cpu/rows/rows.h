// SPDX-License-Identifier: Apache-2.0
// fold_rows and scan_rows: primitives over the rows of a tensor seen as [outer, length, inner], a row being the
// `length` elements with a stride of `inner`. Rows are independent, so they spread over threads; a sum never does.
#pragma once

#include <algorithm>
#include <vector>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/ints.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/device/cpu/queue_cpu.h"
#include "runtime/device/cpu/transpose_blocks.h"

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

// A functor of scan_rows that is but a running sum or product says so, by a member `running()`: of integers it has the
// same bits in any grouping.
struct Running {
  bool is_product;
  bool exclusive;
  bool reverse;
};

// Partial results of a fold along a contiguous row: four 512-bit vectors of floats, so that steps of one need not wait
// for those before.
constexpr int64_t kLanes = 64;

namespace rows_detail {

template <int64_t kWidth, class C, class Fold>
void merge_lanes(const Fold& fold, C* lanes) {
  for (int64_t lane = 0; lane < kWidth; ++lane) lanes[lane] = fold.merge(lanes[lane], lanes[lane + kWidth]);
  if constexpr (kWidth > 1) merge_lanes<kWidth / 2>(fold, lanes);
}

// Folds a contiguous row in kLanes interleaved parts, then the parts in pairs: the same order on every CPU.
template <class C, class Fold>
C fold_row(const Fold& fold, const C* values, int64_t length) {
  C result;
  vectorized(0, length, [&fold, &result, values](int64_t begin, int64_t end) {
    C lanes[kLanes];
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = fold.template init<C>();
    const int64_t whole = end / kLanes * kLanes;
    for (int64_t i = begin; i < whole; i += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = fold.step(lanes[lane], values[i + lane]);
    }
    for (int64_t lane = 0; lane < end - whole; ++lane) lanes[lane] = fold.step(lanes[lane], values[whole + lane]);
    merge_lanes<kLanes / 2>(fold, lanes);
    result = lanes[0];
  });
  return result;
}

// Short rows, some of them side by side: each in the order of fold_row.
constexpr int64_t kRowsAcross = 16, kShortRow = 256;

template <class C, class Fold>
void fold_rows_across(const Fold& fold, const C* in, int64_t length, int64_t count, C* out) {
  alignas(64) C lanes[kLanes * kRowsAcross], values[kLanes * kRowsAcross];
  const int64_t used = std::min(kLanes, length);
  std::fill_n(lanes, used * kRowsAcross, fold.template init<C>());
  if (count < kRowsAcross) std::fill_n(values, used * kRowsAcross, C(0));
  for (int64_t first = 0; first < length; first += kLanes) {
    const int64_t steps = std::min(kLanes, length - first);
    transpose(values, kRowsAcross, in + first, length, steps, count);
    vectorized(0, steps * kRowsAcross, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) lanes[i] = fold.step(lanes[i], values[i]);
    });
  }
  // Lanes that no value went to hold what changes nothing.
  vectorized(0, used, [&](int64_t, int64_t end) {
    for (int64_t width = kLanes / 2; width > 0; width /= 2) {
      const C* const upper = lanes + width * kRowsAcross;
      const int64_t merged = std::clamp<int64_t>(end - width, 0, width) * kRowsAcross;
      PX_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < merged; ++i) lanes[i] = fold.merge(lanes[i], upper[i]);
    }
  });
  std::copy_n(lanes, count, out);
}

template <class C>
bool are_short_rows(const RowLayout& layout, const TensorView& in) {
  return layout.inner == 1 && layout.length > 0 && layout.length <= kShortRow && layout.outer >= kRowsAcross &&
         in.dtype == storage_of<C>();
}

// Folds the elements [begin, end) of `count` neighboring rows, walking along the payload.
template <class C, class Fold>
void fold_part_of_columns(const Fold& fold, const TensorView& in, const RowLayout& layout, int64_t row, int64_t begin,
                          int64_t end, int64_t count, C* out) {
  alignas(64) C accumulators[kBlockElements];
  alignas(64) C buffer[kBlockElements];
  for (int64_t i = 0; i < count; ++i) accumulators[i] = fold.template init<C>();
  const int64_t start = layout.start(row);
  for (int64_t position = begin; position < end; ++position) {
    const int64_t index = start + position * layout.inner;
    const C* values = buffer;
    if (in.dtype == storage_of<C>()) {
      values = reinterpret_cast<const C*>(in.data) + index;
    } else {
      load_block<C>(in.dtype, in.data, index, 1, count, buffer);
    }
    vectorized(0, count, [&fold, &accumulators, values](int64_t first, int64_t last) {
      C* local = accumulators;
      for (int64_t i = first; i < last; ++i) local[i] = fold.step(local[i], values[i]);
    });
  }
  for (int64_t i = 0; i < count; ++i) out[i] = accumulators[i];
}

// Neighboring rows at once. Long ones in parts, so that no sum takes its rounding from as many steps.
template <class C, class Fold>
void fold_columns(const Fold& fold, const TensorView& in, const RowLayout& layout, int64_t row, int64_t count, C* out) {
  constexpr int64_t kPart = 512;
  alignas(64) C part[kBlockElements];
  fold_part_of_columns(fold, in, layout, row, 0, std::min(kPart, layout.length), count, out);
  for (int64_t begin = kPart; begin < layout.length; begin += kPart) {
    fold_part_of_columns(fold, in, layout, row, begin, std::min(begin + kPart, layout.length), count, part);
    for (int64_t i = 0; i < count; ++i) out[i] = fold.merge(out[i], part[i]);
  }
}

template <class C, class Fold>
void fold_short_rows(const Fold& fold, const RowLayout& layout, const MutableView& out, const TensorView& in) {
  const int64_t groups = (layout.outer + kRowsAcross - 1) / kRowsAcross;
  parallel_for(groups, layout.length * kRowsAcross / 4, [&](int64_t begin, int64_t end) {
    C results[kRowsAcross];
    for (int64_t group = begin; group < end; ++group) {
      const int64_t row = group * kRowsAcross, count = std::min(kRowsAcross, layout.outer - row);
      const C* const values = reinterpret_cast<const C*>(in.data) + row * layout.length;
      fold_rows_across(fold, values, layout.length, count, results);
      for (int64_t i = 0; i < count; ++i) results[i] = fold.finish(results[i], layout.length);
      store_block<C>(out.dtype, out.data, row, count, results);
    }
  });
}

}  // namespace rows_detail

// out[row] = finish(fold of the row, length), where Fold has init<C>(), step(accumulator, value), merge(a, b), which
// returns a where b is init<C>(), and finish(accumulator, count). `out` is [outer, inner].
template <class C, class Fold>
void fold_rows(Queue<Cpu>&, const Fold& fold, const RowLayout& layout, const MutableView& out, const TensorView& in) {
  if (layout.row_count() == 0) return;
  if constexpr (std::is_floating_point_v<C>) {
    if (rows_detail::are_short_rows<C>(layout, in)) return rows_detail::fold_short_rows<C>(fold, layout, out, in);
  }
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

// The team that works on one row: on the host one thread, on a GPU a block. All threads of a team call every member.
template <class C, class R>
class HostTeam {
 public:
  using Value = C;
  static constexpr bool kKeepsEmitted = true;  // in the cache: functors may read them again instead of computing them
  HostTeam(const C* in, R* out, int64_t length) : in_(in), out_(out), length_(length) {}

  int64_t length() const { return length_; }
  C in(int64_t i) const { return in_[i]; }

  // The fold of the row's values, as fold_rows folds them, but for `finish`.
  template <class Fold>
  C fold(const Fold& fold) const {
    return rows_detail::fold_row<C>(fold, in_, length_);
  }
  // The fold of the emitted values.
  template <class Fold>
  R fold_emitted(const Fold& fold) const {
    return rows_detail::fold_row<R>(fold, out_, length_);
  }
  // The fold of values and their indices: step(state, value, index).
  template <class Fold>
  auto fold_elements(const Fold& fold) const {
    if constexpr (requires { fold.of_row(in_, length_); }) {
      return fold.of_row(in_, length_);
    } else {
      auto state = fold.template init<C>();
      for (int64_t i = 0; i < length_; ++i) state = fold.step(state, in_[i], i);
      return state;
    }
  }
  // out[i] = f(in[i], i)
  template <class F>
  void emit(const F& f) const {
    vectorized(0, length_, [f, in = in_, out = out_](int64_t begin, int64_t end) {
      PX_INDEPENDENT_ITERATIONS
      for (int64_t i = begin; i < end; ++i) out[i] = f(in[i], i);
    });
  }
  // Emits with a functor for each run of `run_length` elements, made by make(number of the run).
  template <class Make>
  void emit_runs(int64_t run_length, const Make& make) const {
    for (int64_t run = 0; run * run_length < length_; ++run) {
      const auto f = make(run);
      vectorized(run * run_length, (run + 1) * run_length, [f, in = in_, out = out_](int64_t begin, int64_t end) {
        PX_INDEPENDENT_ITERATIONS
        for (int64_t i = begin; i < end; ++i) out[i] = f(in[i]);
      });
    }
  }
  // out[i] = f(out[i])
  template <class F>
  void change_emitted(const F& f) const {
    vectorized(0, length_, [f, out = out_](int64_t begin, int64_t end) {
      PX_INDEPENDENT_ITERATIONS
      for (int64_t i = begin; i < end; ++i) out[i] = f(out[i]);
    });
  }
  // out[i] = the values up to i combined from `start` on; without the value at i itself where `exclusive`; from the end
  // where `reverse`.
  template <class Combine>
  void emit_running(const Combine& combine, C start, bool exclusive, bool reverse) const {
    C running = start;
    for (int64_t step = 0; step < length_; ++step) {
      const int64_t i = reverse ? length_ - 1 - step : step;
      const C next = combine(running, in_[i]);
      out_[i] = static_cast<R>(exclusive ? running : next);
      running = next;
    }
  }
  // One number of the row into another tensor.
  template <class T>
  void store(const Target& target, int64_t index, T value) const {
    store_block<T>(target.dtype, target.data, index, 1, &value);
  }

 private:
  const C* in_;
  R* out_;
  int64_t length_;
};

namespace rows_detail {

template <class C, class R, class F>
void scan_row(const F& f, int64_t row, const C* values, R* results, int64_t length) {
  if constexpr (std::is_invocable_v<const F&, int64_t, const C*, R*>) {
    f(row, values, results);
  } else {
    HostTeam<C, R> team(values, results, length);
    f(team, row);
  }
}

// Rows along an axis that is not the last, a few at a time: of every line of the cache that is fetched all is used.
template <class C, class R, class F>
void scan_tiles(const F& f, const RowLayout& layout, R* out, const C* in, int64_t work_per_element) {
  constexpr int64_t kMostRows = 16, kMostElements = int64_t{1} << 18;
  const int64_t length = layout.length, inner = layout.inner;
  const int64_t rows = std::clamp(kMostElements / std::max<int64_t>(1, length), int64_t{1}, std::min(kMostRows, inner));
  const int64_t tiles = (inner + rows - 1) / rows;
  parallel_for(layout.outer * tiles, length * work_per_element * rows, [&](int64_t begin, int64_t end) {
    std::vector<C> values(static_cast<size_t>(rows * length));
    std::vector<R> results(static_cast<size_t>(rows * length));
    for (int64_t tile = begin; tile < end; ++tile) {
      const int64_t first = tile % tiles * rows, width = std::min(rows, inner - first);
      const int64_t start = tile / tiles * length * inner + first;
      for (int64_t i = 0; i < length; ++i) {
        const C* line = in + start + i * inner;
        for (int64_t row = 0; row < width; ++row) values.data()[row * length + i] = line[row];
      }
      for (int64_t row = 0; row < width; ++row) {
        scan_row<C, R>(f, tile / tiles * inner + first + row, values.data() + row * length,
                       results.data() + row * length, length);
      }
      for (int64_t i = 0; i < length; ++i) {
        R* line = out + start + i * inner;
        for (int64_t row = 0; row < width; ++row) line[row] = results.data()[row * length + i];
      }
    }
  });
}

}  // namespace rows_detail

// Calls f(team, row) for each row: what softmax, the norms and the cumulative operators are made of. Or f(row, in,
// out), for functors that only the host runs.
template <class C, class R, class F>
void scan_rows(Queue<Cpu>&, const F& f, const RowLayout& layout, const MutableView& out, const TensorView& in,
               int64_t work_per_element = 2) {
  if (layout.inner > 1 && in.dtype == storage_of<C>() && out.dtype == storage_of<R>()) {
    return rows_detail::scan_tiles<C, R>(f, layout, reinterpret_cast<R*>(out.data), reinterpret_cast<const C*>(in.data),
                                         work_per_element);
  }
  parallel_for(layout.row_count(), layout.length * work_per_element, [&](int64_t begin, int64_t end) {
    std::vector<C> in_buffer;
    std::vector<R> out_buffer;
    for (int64_t row = begin; row < end; ++row) {
      const C* values = load_row<C>(in, layout, row, in_buffer);
      const bool direct = layout.inner == 1 && out.dtype == storage_of<R>();
      if (!direct) out_buffer.resize(static_cast<size_t>(layout.length));
      R* results = direct ? reinterpret_cast<R*>(out.data) + layout.start(row) : out_buffer.data();
      rows_detail::scan_row<C, R>(f, row, values, results, layout.length);
      if (!direct) store_row<R>(out, layout, row, results);
    }
  });
}

// out[row] = finish(fold of the row's values and their indices): folds whose state is not a single value.
template <class C, class Fold>
void fold_elements(Queue<Cpu>&, const Fold& fold, const RowLayout& layout, const MutableView& out,
                   const TensorView& in) {
  parallel_for(layout.row_count(), layout.length * 2, [&](int64_t begin, int64_t end) {
    std::vector<C> buffer;
    for (int64_t row = begin; row < end; ++row) {
      const HostTeam<C, C> team(load_row<C>(in, layout, row, buffer), nullptr, layout.length);
      const auto result = fold.finish(team.fold_elements(fold), layout.length);
      store_block<std::remove_const_t<decltype(result)>>(out.dtype, out.data, row, 1, &result);
    }
  });
}

}  // namespace parallax::runtime
