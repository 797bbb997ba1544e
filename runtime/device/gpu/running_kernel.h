// SPDX-License-Identifier: Apache-2.0
// Running sums and products along rows that are long and few. Integers are laid out in their order, combined by the
// library, and put where they belong. Floats are not the library's: of a scan over the whole device CUB says that
// "results for pseudo-associative operators may vary from run to run" (cub/device/device_scan.cuh). Their rows are cut
// in pieces, whose totals give where each begins: another order than the host's, but the same in every run, and in
// float64, so that a float32 result is within its last bit or so of the exact one.
#pragma once

#include "runtime/device/cpu/rows/rows.h"
#include "runtime/device/gpu/launch.h"
#include "runtime/device/gpu/library_rows.h"
#include "runtime/device/gpu/memory.h"
#include "runtime/device/gpu/row_pieces.h"
#include "runtime/device/gpu/row_team.h"

namespace parallax::runtime::gpu {

// A functor of scan_rows whose work the library may do.
template <class F, class C, class R>
concept RunsIntegers = std::is_integral_v<C> && std::is_same_v<C, R> && requires(const F& f) {
  { f.running() } -> std::same_as<Running>;
};

template <class F, class C>
concept RunsFloats = std::is_floating_point_v<C> && requires(const F& f) {
  { f.running() } -> std::same_as<Running>;
};

// A value of [row][step] in the tensor.
struct RunningIndex {
  int64_t length, inner;
  bool reverse;
  PX_HD int64_t operator()(int64_t row, int64_t step) const {
    return (row / inner * length + (reverse ? length - 1 - step : step)) * inner + row % inner;
  }
};

template <class Device, class C>
struct RunningInKernel {
  static constexpr const char* kName = "running_in";
  RunningIndex location;
  Source in;
  Elements<Device, uint64_t> values;
  int64_t count;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, count, [&](int64_t item) {
      const int64_t from = location(item / location.length, item % location.length);
      values[item] = static_cast<uint64_t>(load<Device, C>(in, from));
    });
  }
};

template <class Device, class C>
struct RunningOutKernel {
  static constexpr const char* kName = "running_out";
  RunningIndex location;
  Running running;
  Elements<Device, const uint64_t> values;
  Target out;
  int64_t count;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, count, [&](int64_t item) {
      const int64_t step = item % location.length;
      uint64_t value = running.is_product ? 1 : 0;
      if (!running.exclusive || step > 0) value = values[running.exclusive ? item - 1 : item];
      store<Device, C>(out, location(item / location.length, step), static_cast<C>(value));
    });
  }
};

template <class C, GpuDevice Gpu>
Status run_integers(Queue<Gpu>& queue, const Running& running, const RowLayout& layout, const MutableView& out,
                    const TensorView& in) {
  const int64_t count = in.element_count();
  const Tensor values = PX_TRY(queue.allocate(DType::uint64, in.shape));
  const Elements<Gpu, uint64_t> elements{reinterpret_cast<uint64_t*>(values.storage().get())};
  const RunningIndex location{layout.length, layout.inner, running.reverse};
  launch(queue, RunningInKernel<Gpu, C>{location, source_of(in), elements, count}, size_for_items(queue, count));
  PX_TRY(run_rows(queue, layout.row_count(), layout.length, running.is_product, writable(values)));
  const RunningOutKernel<Gpu, C> kernel{location, running, {elements.data}, target_of(out), count};
  launch(queue, kernel, size_for_items(queue, count));
  return {};
}

struct SumOrProduct {
  bool is_product;
  template <class T>
  PX_HD T operator()(T a, T b) const {
    return is_product ? a * b : a + b;
  }
};

// The totals of pieces are [row][piece], in the order of steps. Without them the kernel makes them.
template <class Device, class C, class R, bool kEmits>
struct RunPiecesKernel {
  static constexpr const char* kName = kEmits ? "run_pieces" : "run_totals";
  Running running;
  Source in;
  Target out;
  Elements<Device, RunningValue<C>> totals;
  int64_t rows, length, inner;
  Pieces pieces;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    BlockTeam<Device, Launch, C, R> team(launch, in, out, length, inner);
    const SumOrProduct combine{running.is_product};
    const RunningValue<C> nothing = running.is_product ? 1 : 0;
    for (int64_t item = launch.block(); item < rows * pieces.count; item += launch.blocks()) {
      const int64_t row = item / pieces.count, piece = item % pieces.count;
      const int64_t begin = piece * pieces.length;
      const int64_t end = begin + pieces.length < length ? begin + pieces.length : length;
      team.begin_row(row);
      if constexpr (kEmits) {
        const RunningValue<C> start =
            merge_states(launch, team.slots(), totals, row * pieces.count, piece, nothing, combine);
        team.emit_steps(combine, start, begin, end, running.exclusive, running.reverse);
      } else {
        const RunningValue<C> total = team.total_of_steps(combine, nothing, begin, end, running.reverse);
        if (launch.thread() == 0) totals[item] = total;
      }
    }
  }
};

template <class C, class R, GpuDevice Gpu>
Status run_floats(Queue<Gpu>& queue, const Running& running, const RowLayout& layout, const Pieces& pieces,
                  const Target& out, const Source& in) {
  const int64_t rows = layout.row_count(), length = layout.length, inner = layout.inner;
  const Tensor memory = PX_TRY(piece_states<RunningValue<C>>(queue, rows * pieces.count));
  const Elements<Gpu, RunningValue<C>> totals{reinterpret_cast<RunningValue<C>*>(memory.storage().get())};
  const LaunchSize size = size_for_blocks(queue, rows * pieces.count, pieces.length / kRowPack);
  launch(queue, RunPiecesKernel<Gpu, C, R, false>{running, in, out, totals, rows, length, inner, pieces}, size);
  launch(queue, RunPiecesKernel<Gpu, C, R, true>{running, in, out, totals, rows, length, inner, pieces}, size);
  return {};
}

}  // namespace parallax::runtime::gpu
