// SPDX-License-Identifier: Apache-2.0
// fold_rows and scan_rows on a GPU. Sums run along a row in one order inside each thread, then over threads in a fixed
// tree, then over pieces of the row: the same bits in every run.
#pragma once

#include "runtime/device/cpu/find.h"
#include "runtime/device/cpu/rows/rows.h"
#include "runtime/device/gpu/block.h"
#include "runtime/device/gpu/held_rows.h"
#include "runtime/device/gpu/map_kernel.h"
#include "runtime/device/gpu/memory.h"
#include "runtime/device/gpu/row_pieces.h"
#include "runtime/device/gpu/row_team.h"
#include "runtime/device/gpu/running_kernel.h"

namespace parallax::runtime {
namespace gpu {

// A block for each row, whose elements follow one another.
template <class Device, class C, class Fold>
struct FoldRowsKernel {
  static constexpr const char* kName = "fold_rows";
  using State = decltype(std::declval<const Fold&>().template init<C>());
  Fold fold;
  Source in;
  Target out;
  int64_t rows, length;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    const auto slots = launch.template shared<Slot>(launch.threads() / kWarp);
    for (int64_t row = launch.block(); row < rows; row += launch.blocks()) {
      State state = fold.template init<C>();
      for_each_of_row<Device, C>(launch, in, row * length, length,
                                 [&](C value, int64_t i) { state = folded(fold, state, value, i); });
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

template <class Device, class C, class R, class F>
struct ScanRowsKernel {
  static constexpr const char* kName = "scan_rows";
  F f;
  Source in;
  Target out;
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

// Functors whose rows may be cut in pieces: f.part(team) is the state of a piece; states merge from f.init<C>() on by
// f.merge(a, b); f.emit(team, state, row) emits a piece, given the state of the whole row.
template <class F, class C>
concept HasParts = requires(const F& f) {
  f.merge(f.template init<C>(), f.template init<C>());
};
template <class F, class C>
using PartOf = decltype(std::declval<const F&>().template init<C>());

template <class Device, class C, class R, class F, bool kEmits>
struct ScanPiecesKernel {
  static constexpr const char* kName = kEmits ? "scan_pieces" : "scan_parts";
  using Part = PartOf<F, C>;
  F f;
  Source in;
  Target out;
  Elements<Device, Part> parts;
  int64_t rows, length;
  Pieces pieces;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    BlockTeam<Device, Launch, C, R> team(launch, in, out, length, 1);
    for (int64_t item = launch.block(); item < rows * pieces.count; item += launch.blocks()) {
      const int64_t row = item / pieces.count, begin = item % pieces.count * pieces.length, left = length - begin;
      team.begin_piece(row, begin, left < pieces.length ? left : pieces.length);
      if constexpr (kEmits) {
        const Part whole =
            merge_states(launch, team.slots(), parts, row * pieces.count, pieces.count, f.template init<C>(),
                         [&](const Part& a, const Part& b) { return f.merge(a, b); });
        f.emit(team, whole, row);
      } else {
        const Part part = f.part(team);
        if (launch.thread() == 0) parts[item] = part;
      }
    }
  }
};

template <class C, class R, class F, GpuDevice Gpu>
Status scan_in_pieces(Queue<Gpu>& queue, const F& f, const RowLayout& layout, const Pieces& pieces, const Target& out,
                      const Source& in) {
  using Part = PartOf<F, C>;
  const int64_t items = layout.outer * pieces.count;
  const Tensor memory = PX_TRY(piece_states<Part>(queue, items));
  const Elements<Gpu, Part> parts{reinterpret_cast<Part*>(memory.storage().get())};
  const LaunchSize size = size_for_blocks(queue, items, pieces.length / kRowPack);
  launch(queue, ScanPiecesKernel<Gpu, C, R, F, false>{f, in, out, parts, layout.outer, layout.length, pieces}, size);
  launch(queue, ScanPiecesKernel<Gpu, C, R, F, true>{f, in, out, parts, layout.outer, layout.length, pieces}, size);
  return {};
}

// Functors that read nothing of what they have emitted: it is stored in the output's type at once.
template <class F, class C>
concept EmitsOnce = HasParts<F, C> || requires {
  requires F::kEmitsOnce;
};

// Functors whose rows a block may hold in registers: their parts are numbers, else registers would be spilled.
template <class F, class C>
concept MayBeHeld = HasParts<F, C> && !requires {
  requires F::kIsIndex;
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
  const gpu::Pieces pieces =
      layout.inner == 1 ? gpu::row_pieces(rows, layout.length) : gpu::column_pieces(rows, layout.length);
  if (pieces.count > 1) {
    Status done = gpu::fold_in_pieces<C>(queue, fold, layout, pieces, target_of(out), source_of(in));
    if (!done.ok()) queue.fail(std::move(done).error());
  } else if (layout.inner == 1) {
    const gpu::FoldRowsKernel<Gpu, C, Fold> kernel{fold, source_of(in), target_of(out), rows, layout.length};
    launch(queue, kernel, gpu::size_for_blocks(queue, rows, gpu::steps_of(layout)));
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
  const gpu::Pieces pieces = gpu::row_pieces(rows, layout.length);
  if constexpr (gpu::RunsFloats<F, C>) {
    if (pieces.count > 1) {
      Status done = gpu::run_floats<C, R>(queue, f.running(), layout, pieces, target_of(out), source_of(in));
      if (!done.ok()) queue.fail(std::move(done).error());
      return;
    }
  }
  if constexpr (gpu::HasParts<F, C>) {
    if (pieces.count > 1 && layout.inner == 1) {
      Status done = gpu::scan_in_pieces<C, R>(queue, f, layout, pieces, target_of(out), source_of(in));
      if (!done.ok()) queue.fail(std::move(done).error());
      return;
    }
  }
  if constexpr (gpu::MayBeHeld<F, C> && std::is_same_v<C, float> && std::is_same_v<R, float>) {
    if (gpu::is_held(queue, layout) && gpu::is_held(in.dtype) && gpu::is_held(out.dtype)) {
      const gpu::HeldRowsKernel<Gpu, F> kernel{f, source_of(in), target_of(out), rows, layout.length};
      return launch(queue, kernel, gpu::size_for_held_rows(queue, layout));
    }
  }
  // Emitted values that are read again are kept in R: a narrower output is rounded once, at the end.
  const bool direct = gpu::EmitsOnce<F, C> || out.dtype == storage_of<R>();
  Tensor wide;
  if (!direct) {
    auto memory = queue.allocate(storage_of<R>(), out.shape);
    if (!memory.ok()) return queue.fail(std::move(memory).error());
    wide = std::move(*memory);
  }
  const MutableView results = direct ? out : writable(wide);
  const gpu::ScanRowsKernel<Gpu, C, R, F> kernel{f,    source_of(in), target_of(results),
                                                 rows, layout.length, layout.inner};
  launch(queue, kernel, gpu::size_for_blocks(queue, rows, gpu::steps_of(layout)));
  if (!direct) map_as<R, R>(queue, Same{}, out, std::array<TensorView, 1>{TensorView(results)});
}

}  // namespace parallax::runtime
