// SPDX-License-Identifier: Apache-2.0
// Running sums and products of integers along rows that are long and few: laid out in their order, combined by the
// library, and put where they belong. Floats stay with BlockTeam (rows_kernel.h): of a scan over the whole device CUB
// says that "results for pseudo-associative operators may vary from run to run" (cub/device/device_scan.cuh).
#pragma once

#include "runtime/device/cpu/rows/rows.h"
#include "runtime/device/gpu/launch.h"
#include "runtime/device/gpu/library_rows.h"
#include "runtime/device/gpu/memory.h"

namespace parallax::runtime::gpu {

// A functor of scan_rows whose work the library may do.
template <class F, class C, class R>
concept RunsIntegers = std::is_integral_v<C> && std::is_same_v<C, R> && requires(const F& f) {
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

}  // namespace parallax::runtime::gpu
