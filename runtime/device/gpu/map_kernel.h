// SPDX-License-Identifier: Apache-2.0
// map on a GPU: a thread for each element of the output.
#pragma once

#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/device/gpu/launch.h"
#include "runtime/device/gpu/memory.h"

namespace parallax::runtime {
namespace gpu {

template <class Device, class C, class R, class F, size_t N>
struct MapKernel {
  static constexpr const char* kName = "map";
  F f;
  Source in[N];
  Target out;
  int64_t count;
  int axes;
  int64_t dims[kMaxAxes];
  int64_t strides[N][kMaxAxes];

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, count, [&](int64_t i) {
      int64_t offsets[N] = {};
      int64_t rest = i;
      for (int axis = axes - 1; axis >= 0; --axis) {
        const int64_t position = axis == 0 ? rest : rest % dims[axis];
        rest /= dims[axis];
        for (size_t operand = 0; operand < N; ++operand) offsets[operand] += position * strides[operand][axis];
      }
      store<Device, R>(out, i, call(offsets, std::make_index_sequence<N>()));
    });
  }

 private:
  template <size_t... I>
  PX_HD R call(const int64_t* offsets, std::index_sequence<I...>) const {
    return static_cast<R>(f(load<Device, C>(in[I], offsets[I])...));
  }
};

template <class Device, class R, class F>
struct TabulateKernel {
  static constexpr const char* kName = "tabulate";
  F f;
  Target out;
  int64_t count;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, count, [&](int64_t i) { store<Device, R>(out, i, f(i)); });
  }
};

}  // namespace gpu

template <class R, class F, GpuDevice Gpu>
void tabulate(Queue<Gpu>& queue, const F& f, const MutableView& out) {
  const gpu::TabulateKernel<Gpu, R, F> kernel{f, target_of(out), out.element_count()};
  launch(queue, kernel, gpu::size_for_items(queue, kernel.count));
}

template <class C, class R, class F, GpuDevice Gpu, size_t N>
void map_as(Queue<Gpu>& queue, const F& f, const MutableView& out, const std::array<TensorView, N>& in) {
  if (out.element_count() == 0) return;
  const MapPlan<N> plan = plan_map(out.shape, in);
  gpu::MapKernel<Gpu, C, R, F, N> kernel{
      f, {}, target_of(out), out.element_count(), static_cast<int>(plan.dims.size()), {}, {}};
  for (int64_t axis = 0; axis < plan.dims.size(); ++axis) kernel.dims[axis] = plan.dims[axis];
  for (size_t operand = 0; operand < N; ++operand) {
    kernel.in[operand] = source_of(in[operand]);
    for (int64_t axis = 0; axis < plan.dims.size(); ++axis) kernel.strides[operand][axis] = plan.strides[operand][axis];
  }
  launch(queue, kernel, gpu::size_for_items(queue, kernel.count));
}

// The payload as C: itself, or a converted copy (kept for the queue's life when `is_constant`).
template <class C, GpuDevice Gpu>
Result<std::shared_ptr<const C>> converted(Queue<Gpu>& queue, const TensorView& view, bool is_constant) {
  if (view.dtype == storage_of<C>()) {
    return std::shared_ptr<const C>(std::shared_ptr<const C>(), reinterpret_cast<const C*>(view.data));
  }
  const auto make = [&]() -> Result<Tensor> {
    Tensor copy = PX_TRY(queue.allocate(storage_of<C>(), view.shape));
    map_as<C, C>(queue, Same{}, writable(copy), std::array<TensorView, 1>{view});
    return copy;
  };
  const Tensor copy = PX_TRY(is_constant ? queue.cached(view, storage_of<C>(), make) : make());
  return std::shared_ptr<const C>(copy.storage(), reinterpret_cast<const C*>(copy.view().data));
}

}  // namespace parallax::runtime
