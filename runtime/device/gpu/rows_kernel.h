// SPDX-License-Identifier: Apache-2.0
// fold_rows and scan_rows on a GPU. Sums run along a row in one order inside each thread, then over threads in a fixed
// tree: the same bits in every run.
#pragma once

#include "runtime/device/cpu/find.h"
#include "runtime/device/cpu/rows/rows.h"
#include "runtime/device/gpu/block.h"
#include "runtime/device/gpu/map_kernel.h"
#include "runtime/device/gpu/memory.h"
#include "runtime/device/gpu/running_kernel.h"

namespace parallax::runtime {
namespace gpu {

template <class Fold, class State, class C>
PX_HD State folded(const Fold& fold, State state, C value, int64_t location) {
  if constexpr (requires { fold.step(state, value, location); }) {
    return fold.step(state, value, location);
  } else {
    return fold.step(state, value);
  }
}

// A block for each row.
template <class Device, class C, class Fold>
struct FoldRowsKernel {
  static constexpr const char* kName = "fold_rows";
  using State = decltype(std::declval<const Fold&>().template init<C>());
  Fold fold;
  Source in;
  Target out;
  int64_t rows, length, inner;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    const auto slots = launch.template shared<Slot>(launch.threads());
    for (int64_t row = launch.block(); row < rows; row += launch.blocks()) {
      const int64_t start = row / inner * length * inner + row % inner;
      State state = fold.template init<C>();
      for (int64_t i = launch.thread(); i < length; i += launch.threads()) {
        state = folded(fold, state, load<Device, C>(in, start + i * inner), i);
      }
      state = merge_block(launch, slots, state, [&](const State& a, const State& b) { return fold.merge(a, b); });
      if (launch.thread() == 0) store<Device>(out, row, fold.finish(state, length));
    }
  }
};

// A thread for each row, for rows whose neighbors are next to each other.
template <class Device, class C, class Fold>
struct FoldColumnsKernel {
  static constexpr const char* kName = "fold_columns";
  Fold fold;
  Source in;
  Target out;
  int64_t rows, length, inner;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, rows, [&](int64_t row) {
      const int64_t start = row / inner * length * inner + row % inner;
      auto state = fold.template init<C>();
      for (int64_t i = 0; i < length; ++i) {
        state = folded(fold, state, load<Device, C>(in, start + i * inner), i);
      }
      store<Device>(out, row, fold.finish(state, length));
    });
  }
};

// A block at work on one row: HostTeam's members (rows.h) for a GPU.
template <class Device, class Launch, class C, class R>
class BlockTeam {
 public:
  using Value = C;
  using Slots = decltype(std::declval<Launch&>().template shared<Slot>(0));
  PX_HD BlockTeam(Launch& launch, const Source& in, R* out, int64_t length, int64_t inner)
      : launch_(launch),
        slots_(launch.template shared<Slot>(launch.threads())),
        in_(in),
        out_{out},
        length_(length),
        inner_(inner) {}

  PX_HD void begin_row(int64_t row) {
    start_ = row / inner_ * length_ * inner_ + row % inner_;
    launch_.barrier();
  }

  PX_HD int64_t length() const { return length_; }
  PX_HD C in(int64_t i) const { return load<Device, C>(in_, start_ + i * inner_); }

  template <class Fold>
  PX_HD C fold(const Fold& fold) {
    C state = fold.template init<C>();
    for (int64_t i = launch_.thread(); i < length_; i += launch_.threads()) state = fold.step(state, in(i));
    return merge_block(launch_, slots_, state, [&](C a, C b) { return fold.merge(a, b); });
  }
  template <class Fold>
  PX_HD R fold_emitted(const Fold& fold) {
    R state = fold.template init<R>();
    for (int64_t i = launch_.thread(); i < length_; i += launch_.threads()) state = fold.step(state, out(i));
    return merge_block(launch_, slots_, state, [&](R a, R b) { return fold.merge(a, b); });
  }
  template <class Fold>
  PX_HD auto fold_elements(const Fold& fold) {
    auto state = fold.template init<C>();
    for (int64_t i = launch_.thread(); i < length_; i += launch_.threads()) state = fold.step(state, in(i), i);
    using State = decltype(state);
    return merge_block(launch_, slots_, state, [&](const State& a, const State& b) { return fold.merge(a, b); });
  }
  template <class F>
  PX_HD void emit(const F& f) {
    for (int64_t i = launch_.thread(); i < length_; i += launch_.threads()) out(i) = static_cast<R>(f(in(i), i));
  }
  template <class Make>
  PX_HD void emit_runs(int64_t run_length, const Make& make) {
    for (int64_t i = launch_.thread(); i < length_; i += launch_.threads()) {
      out(i) = static_cast<R>(make(i / run_length)(in(i)));
    }
  }
  template <class F>
  PX_HD void change_emitted(const F& f) {
    for (int64_t i = launch_.thread(); i < length_; i += launch_.threads()) out(i) = f(out(i));
  }

  // Piece by piece of a value a thread: within a piece each thread adds the value 1, 2, 4, ... before it (Hillis and
  // Steele, 1986), then the total of all earlier pieces.
  template <class Combine>
  PX_HD void emit_running(const Combine& combine, C start, bool exclusive, bool reverse) {
    const int threads = launch_.threads();
    const int thread = launch_.thread();
    const SlotsAs<C, Slots> partial{slots_};
    C carried = start;
    for (int64_t piece = 0; piece < length_; piece += threads) {
      const int64_t step = piece + thread;
      const int64_t i = reverse ? length_ - 1 - step : step;
      partial[thread] = step < length_ ? in(i) : C(0);
      launch_.barrier();
      for (int lanes = 1; lanes < threads; lanes *= 2) {
        const C own = partial[thread];
        const C sum = thread >= lanes ? combine(partial[thread - lanes], own) : own;
        launch_.barrier();
        partial[thread] = sum;
        launch_.barrier();
      }
      const C before = thread > 0 ? combine(carried, partial[thread - 1]) : carried;
      const C upto = combine(carried, partial[thread]);
      if (step < length_) out(i) = static_cast<R>(exclusive ? before : upto);
      carried = combine(carried, partial[threads - 1]);
      launch_.barrier();
    }
  }

  template <class T>
  PX_HD void store(const Target& target, int64_t index, T value) {
    if (launch_.thread() == 0) gpu::store<Device, T>(target, index, value);
  }

 private:
  PX_HD R& out(int64_t i) const { return out_[start_ + i * inner_]; }

  Launch& launch_;
  Slots slots_;
  Source in_;
  Elements<Device, R> out_;
  int64_t length_;
  int64_t inner_;
  int64_t start_ = 0;
};

template <class Device, class C, class R, class F>
struct ScanRowsKernel {
  static constexpr const char* kName = "scan_rows";
  F f;
  Source in;
  R* out;
  int64_t rows, length, inner;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    BlockTeam<Device, Launch, C, R> team(launch, in, out, length, inner);
    for (int64_t row = launch.block(); row < rows; row += launch.blocks()) {
      team.begin_row(row);
      f(team, row);
    }
  }
};

// The smallest index that the predicate holds for.
template <class C, class Predicate>
struct FirstIndex {
  static constexpr int64_t kNone = INT64_MAX;
  Predicate holds;
  template <class>
  PX_HD int64_t init() const {
    return kNone;
  }
  PX_HD int64_t step(int64_t found, C value, int64_t location) const {
    return location < found && holds(value, location) ? location : found;
  }
  PX_HD int64_t merge(int64_t a, int64_t b) const { return a < b ? a : b; }
  PX_HD int64_t finish(int64_t found, int64_t) const { return found == kNone ? -1 : found; }
};

}  // namespace gpu

template <class C, class Fold, GpuDevice Gpu>
void fold_elements(Queue<Gpu>& queue, const Fold& fold, const RowLayout& layout, const MutableView& out,
                   const TensorView& in) {
  const int64_t rows = layout.row_count();
  if (rows == 0) return;
  if (layout.inner == 1) {
    const gpu::FoldRowsKernel<Gpu, C, Fold> kernel{fold, source_of(in), target_of(out), rows, layout.length, 1};
    launch(queue, kernel, gpu::size_for_rows(queue, rows, layout.length, sizeof(gpu::Slot)));
  } else {
    const gpu::FoldColumnsKernel<Gpu, C, Fold> kernel{fold, source_of(in), target_of(out),
                                                      rows, layout.length, layout.inner};
    launch(queue, kernel, gpu::size_for_items(queue, rows));
  }
}

template <class C, class Fold, GpuDevice Gpu>
void fold_rows(Queue<Gpu>& queue, const Fold& fold, const RowLayout& layout, const MutableView& out,
               const TensorView& in) {
  fold_elements<C>(queue, fold, layout, out, in);
}

template <class C, class Predicate, GpuDevice Gpu>
Result<int64_t> find_first(Queue<Gpu>& queue, const Predicate& holds, const TensorView& in,
                           WhenFound when_found = WhenFound::harms) {
  Tensor found = PX_TRY(queue.allocate(DType::int64, Shape{}));
  const bool is_recording = queue.is_recording();
  if (is_recording && when_found == WhenFound::harms) return queue.refused_in_recording("look at a value").error();
  if (is_recording) found = PX_TRY(queue.add_check());
  const gpu::FirstIndex<C, Predicate> fold{holds};
  fold_elements<C>(queue, fold, RowLayout{1, in.element_count(), 1}, writable(found), in);
  if (is_recording) return -1;  // asked after each replay
  const Tensor answer = PX_TRY(queue.to_host(found));
  return answer.as<int64_t>()[0];
}

template <class C, class R, class F, GpuDevice Gpu>
void scan_rows(Queue<Gpu>& queue, const F& f, const RowLayout& layout, const MutableView& out, const TensorView& in,
               int64_t = 2) {
  const int64_t rows = layout.row_count();
  if (rows == 0 || layout.length == 0) return;
  if constexpr (gpu::RunsIntegers<F, C, R>) {
    if (gpu::is_run_by_library(rows, layout.length)) {
      Status done = gpu::run_integers<C>(queue, f.running(), layout, out, in);
      if (!done.ok()) queue.fail(std::move(done).error());
      return;
    }
  }
  // Intermediate results are kept in R: a narrower output is rounded once, at the end.
  const bool direct = out.dtype == storage_of<R>();
  Tensor wide;
  if (!direct) {
    auto memory = queue.allocate(storage_of<R>(), out.shape);
    if (!memory.ok()) return queue.fail(std::move(memory).error());
    wide = std::move(*memory);
  }
  const MutableView results = direct ? out : writable(wide);
  const gpu::ScanRowsKernel<Gpu, C, R, F> kernel{f,    source_of(in), reinterpret_cast<R*>(results.data),
                                                 rows, layout.length, layout.inner};
  launch(queue, kernel, gpu::size_for_rows(queue, rows, layout.length, sizeof(gpu::Slot)));
  if (!direct) map_as<R, R>(queue, Same{}, out, std::array<TensorView, 1>{TensorView(results)});
}

}  // namespace parallax::runtime
