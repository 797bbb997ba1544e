// SPDX-License-Identifier: Apache-2.0
// map on a GPU. Operands of the usual storage types whose rows allow it are moved by accesses of 16 bytes, a few
// neighbors a thread and step; all others by a kernel that knows any storage types and layouts, an element a thread.
#pragma once

#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/device/gpu/index_walk.h"
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
  uint32_t count;
  Walk<N> walk;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, count, [&](uint32_t i) {
      int32_t at[N];
      walk.offsets(i, at);
      store<Device, R>(out, i, call(at, std::make_index_sequence<N>()));
    });
  }

 private:
  template <size_t... I>
  PX_HD R call(const int32_t* at, std::index_sequence<I...>) const {
    return static_cast<R>(f(load<Device, C>(in[I], at[I])...));
  }
};

// f of elements as they are stored: kCount neighbors of the output at once, each operand's neighbors too or one element
// for all of them.
template <class Device, int kCount, class F, class Out, class... In>
struct PackedMapKernel {
  static constexpr const char* kName = F::kName;
  static constexpr size_t N = sizeof...(In);
  F f;
  const std::byte* in[N];
  std::byte* out;
  uint32_t packs, rest;  // `rest` elements after the packs, where there is but one axis
  bool is_repeated[N];
  Walk<N> walk;  // over packs

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, packs, [&](uint32_t pack) { compute_pack(pack, std::index_sequence_for<In...>()); });
    if constexpr (kCount > 1) {
      const auto last = static_cast<uint32_t>(launch.block() * launch.threads() + launch.thread());
      if (last < rest) compute_one(packs * kCount + last, std::index_sequence_for<In...>());
    }
  }

 private:
  template <size_t... I>
  PX_HD void compute_pack(uint32_t pack, std::index_sequence<I...>) const {
    int32_t at[N];
    walk.offsets(pack, at);
    if constexpr (kCount == 1) {
      Elements<Device, Out>{reinterpret_cast<Out*>(out)}[pack] =
          f(Elements<Device, const In>{reinterpret_cast<const In*>(in[I])}[at[I]]...);
    } else {
      using Stored = Pack<kCount* static_cast<int>(sizeof(Out))>;
      const Stored results = of_packs(load_pack<Device, In, kCount>(in[I], at[I], is_repeated[I])...);
      Elements<Device, Stored>{reinterpret_cast<Stored*>(out)}[pack] = results;
    }
  }
  template <class... Packs>
  PX_HD auto of_packs(const Packs&... loaded) const {
    Pack<kCount* static_cast<int>(sizeof(Out))> results{};
    for (int i = 0; i < kCount; ++i) results.template set<Out>(i, f(loaded.template get<In>(i)...));
    return results;
  }
  template <size_t... I>
  PX_HD void compute_one(uint32_t i, std::index_sequence<I...>) const {
    Elements<Device, Out>{reinterpret_cast<Out*>(out)}[i] =
        f(Elements<Device, const In>{reinterpret_cast<const In*>(in[I])}[is_repeated[I] ? 0 : i]...);
  }
};

// Launches PackedMapKernel where the layout suits it: rows of whole packs, or one row, and addresses that are multiples
// of what is moved at once.
template <int kCount, class Out, class... In, class F, GpuDevice Gpu>
bool map_packs(Queue<Gpu>& queue, const F& f, const MutableView& out, const std::array<TensorView, sizeof...(In)>& in,
               MapPlan<sizeof...(In)> plan) {
  constexpr size_t kOperands = sizeof...(In);
  constexpr std::array<int64_t, kOperands> kBytes{sizeof(In)...};
  const int64_t last = plan.dims.size() - 1, run = plan.dims[last];
  if (last > 0 && run % kCount != 0) return false;
  if (kCount > 1 && !is_aligned(out.data, kCount * static_cast<int64_t>(sizeof(Out)))) return false;
  std::array<bool, kOperands> is_repeated;
  for (size_t operand = 0; operand < kOperands; ++operand) {
    Ints& strides = plan.strides[operand];
    is_repeated[operand] = strides[last] == 0;
    if (kCount > 1 && !is_repeated[operand]) {
      bool suits = strides[last] == 1 && is_aligned(in[operand].data, kCount * kBytes[operand]);
      for (int64_t axis = 0; axis < last; ++axis) suits = suits && strides[axis] % kCount == 0;
      if (!suits) return false;
    }
    strides[last] *= kCount;
  }
  plan.dims[last] = run / kCount;
  std::byte* target = out.data;
  auto rest = static_cast<uint32_t>(out.element_count() % kCount);
  const std::vector<WalkPart> parts = narrow_parts(plan.dims, plan.strides, Queue<Gpu>::kMostNarrow / kCount);
  for (const WalkPart& part : parts) {
    const auto packs = static_cast<uint32_t>(product(part.dims));
    PackedMapKernel<Gpu, kCount, F, Out, In...> kernel{f, {}, target, packs, &part == &parts.back() ? rest : 0, {}, {}};
    for (size_t operand = 0; operand < kOperands; ++operand) {
      kernel.in[operand] = in[operand].data + part.offsets[static_cast<int64_t>(operand)] * kBytes[operand];
      kernel.is_repeated[operand] = is_repeated[operand];
    }
    kernel.walk = Walk<kOperands>(part.dims, plan.strides);
    launch(queue, kernel, size_for_items(queue, std::max(kernel.packs, kernel.rest)));
    target += int64_t{packs} * kCount * static_cast<int64_t>(sizeof(Out));
  }
  return true;
}

// f of stored elements: computed in C, its result rounded to Out.
template <class C, class R, class F, class Out>
struct OfStored {
  static constexpr const char* kName = "map";
  F f;
  template <class... S>
  PX_HD Out operator()(S... values) const {
    return storage::to_storage<Out>(static_cast<R>(f(storage::from_storage<C>(values)...)));
  }
};

// Storage types that the host chooses a kernel by: those of C itself, and the two of half the width where C is float.
template <class S>
constexpr DType stored_as() {
  return storage_of<S>() != DType::undefined ? storage_of<S>() : dtype_of<S>();
}

template <class S, class Out, class C, class R, class F, GpuDevice Gpu, size_t N>
bool map_stored(Queue<Gpu>& queue, const F& f, const MutableView& out, const std::array<TensorView, N>& in,
                const MapPlan<N>& plan) {
  constexpr int kWidest = static_cast<int>(sizeof(S) > sizeof(Out) ? sizeof(S) : sizeof(Out));
  constexpr int kMost = work_of<F>() < 10 ? 16 : 4;  // of code that is long there are few copies
  constexpr int kCount = 16 / kWidest < kMost ? 16 / kWidest : kMost;
  if (out.dtype != stored_as<Out>()) return false;
  for (const TensorView& each : in) {
    if (each.dtype != stored_as<S>()) return false;
  }
  const OfStored<C, R, F, Out> of_stored{f};
  return [&]<size_t... I>(std::index_sequence<I...>) {
    return map_packs<kCount, Out, std::enable_if_t<(I < N), S>...>(queue, of_stored, out, in, plan);
  }
  (std::make_index_sequence<N>());
}

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

template <class C, class R, class F, GpuDevice Gpu, size_t N>
void map_by_kernel(Queue<Gpu>& queue, const F& f, const MutableView& out, const std::array<TensorView, N>& in) {
  if (out.element_count() == 0) return;
  const MapPlan<N> plan = plan_map(out.shape, in);
  if constexpr (std::is_same_v<C, float> && std::is_same_v<R, float>) {
    if (map_stored<float, float, C, R>(queue, f, out, in, plan)) return;
    if (map_stored<Float16, Float16, C, R>(queue, f, out, in, plan)) return;
    if (map_stored<BFloat16, BFloat16, C, R>(queue, f, out, in, plan)) return;
    if constexpr (std::is_same_v<F, Same>) {
      if (map_stored<Float16, float, C, R>(queue, f, out, in, plan)) return;
      if (map_stored<BFloat16, float, C, R>(queue, f, out, in, plan)) return;
      if (map_stored<float, Float16, C, R>(queue, f, out, in, plan)) return;
      if (map_stored<float, BFloat16, C, R>(queue, f, out, in, plan)) return;
    }
  } else if constexpr (std::is_same_v<C, float>) {
    if (map_stored<float, R, C, R>(queue, f, out, in, plan)) return;
    if (map_stored<Float16, R, C, R>(queue, f, out, in, plan)) return;
    if (map_stored<BFloat16, R, C, R>(queue, f, out, in, plan)) return;
  } else if constexpr (std::is_same_v<C, int64_t> || std::is_same_v<C, uint8_t>) {
    if (map_stored<C, R, C, R>(queue, f, out, in, plan)) return;
  }
  Target target = target_of(out);
  for (const WalkPart& part : narrow_parts(plan.dims, plan.strides, Queue<Gpu>::kMostNarrow)) {
    const auto count = static_cast<uint32_t>(product(part.dims));
    MapKernel<Gpu, C, R, F, N> kernel{f, {}, target, count, {part.dims, plan.strides}};
    for (size_t operand = 0; operand < N; ++operand) {
      kernel.in[operand] = source_of(in[operand]);
      kernel.in[operand].data += part.offsets[static_cast<int64_t>(operand)] * element_bytes(in[operand].dtype);
    }
    launch(queue, kernel, size_for_items(queue, count));
    target.data += count * element_bytes(out.dtype);
  }
}

}  // namespace gpu

template <class R, class F, GpuDevice Gpu>
void tabulate(Queue<Gpu>& queue, const F& f, const MutableView& out) {
  const gpu::TabulateKernel<Gpu, R, F> kernel{f, target_of(out), out.element_count()};
  launch(queue, kernel, gpu::size_for_items(queue, kernel.count));
}

// Conversions are each device's own `convert_elements`, so that their kernels are compiled once.
template <class C, class R, class F, GpuDevice Gpu, size_t N>
void map_as(Queue<Gpu>& queue, const F& f, const MutableView& out, const std::array<TensorView, N>& in) {
  if constexpr (std::is_same_v<F, Same> && std::is_same_v<C, R>) {
    convert_elements<C>(queue, out, in[0]);
  } else {
    gpu::map_by_kernel<C, R>(queue, f, out, in);
  }
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
