// SPDX-License-Identifier: Apache-2.0
// copy, fill, index_map and scatter on a GPU: elements moved by their size alone.
#pragma once

#include "runtime/device/cpu/choose.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/gpu/launch.h"
#include "runtime/device/gpu/memory.h"

namespace parallax::runtime {
namespace gpu {

struct Bytes16 {
  uint64_t words[2];
};

// Calls visit with a null pointer of a type of that size; the switch is the same for all threads of a launch.
template <class Visit>
PX_HD void visit_size(int64_t bytes, const Visit& visit) {
  switch (bytes) {
    case 1:
      return visit(static_cast<uint8_t*>(nullptr));
    case 2:
      return visit(static_cast<uint16_t*>(nullptr));
    case 4:
      return visit(static_cast<uint32_t*>(nullptr));
    case 8:
      return visit(static_cast<uint64_t*>(nullptr));
    default:
      return visit(static_cast<Bytes16*>(nullptr));
  }
}

// target[to] = source[from]
template <class Device>
PX_HD void move_element(int64_t bytes, std::byte* target, int64_t to, const std::byte* source, int64_t from) {
  visit_size(bytes, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    Elements<Device, T>{reinterpret_cast<T*>(target)}[to] =
        Elements<Device, const T>{reinterpret_cast<const T*>(source)}[from];
  });
}

// An element that the host knows, passed by value.
struct KnownElement {
  Bytes16 bits{};
  PX_HD const std::byte* data() const { return reinterpret_cast<const std::byte*>(&bits); }
};
inline KnownElement known_element(const std::byte* element, int64_t bytes) {
  KnownElement known;
  if (element != nullptr) std::memcpy(&known.bits, element, static_cast<size_t>(bytes));
  return known;
}

template <class Device>
PX_HD void put_element(int64_t bytes, std::byte* target, int64_t to, const KnownElement& element) {
  visit_size(bytes, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    Elements<Device, T>{reinterpret_cast<T*>(target)}[to] = *reinterpret_cast<const T*>(element.data());
  });
}

template <class Device>
struct CopyStridedKernel {
  static constexpr const char* kName = "copy_strided";
  std::byte* target;
  const std::byte* source;
  int64_t bytes, count;
  int axes;
  int64_t dims[kMaxAxes], target_strides[kMaxAxes], source_strides[kMaxAxes];

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, count, [&](int64_t i) {
      int64_t to = 0, from = 0, rest = i;
      for (int axis = axes - 1; axis >= 0; --axis) {
        const int64_t position = rest % dims[axis];
        rest /= dims[axis];
        to += position * target_strides[axis];
        from += position * source_strides[axis];
      }
      move_element<Device>(bytes, target, to, source, from);
    });
  }
};

template <class Device>
struct FillKernel {
  static constexpr const char* kName = "fill";
  std::byte* target;
  KnownElement element;
  int64_t bytes, count;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, count, [&](int64_t i) { put_element<Device>(bytes, target, i, element); });
  }
};

template <class Device>
struct ChooseKernel {
  static constexpr const char* kName = "choose";
  const std::byte* in[3];
  std::byte* out;
  int64_t bytes, count;
  int axes;
  int64_t dims[kMaxAxes], strides[3][kMaxAxes];

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, count, [&](int64_t i) {
      int64_t offsets[3] = {};
      int64_t rest = i;
      for (int axis = axes - 1; axis >= 0; --axis) {
        const int64_t position = rest % dims[axis];
        rest /= dims[axis];
        for (int operand = 0; operand < 3; ++operand) offsets[operand] += position * strides[operand][axis];
      }
      const bool first = Elements<Device, const uint8_t>{reinterpret_cast<const uint8_t*>(in[0])}[offsets[0]] != 0;
      move_element<Device>(bytes, out, i, in[first ? 1 : 2], offsets[first ? 1 : 2]);
    });
  }
};

template <class Device, class F>
struct IndexMapKernel {
  static constexpr const char* kName = "index_map";
  F f;
  std::byte* target;
  const std::byte* source;
  const std::byte* fill_element;  // on the device; null: zero
  int64_t bytes, block_elements, count;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, count, [&](int64_t i) {
      const int64_t block = f(i / block_elements);
      if (block >= 0) {
        move_element<Device>(bytes, target, i, source, block * block_elements + i % block_elements);
      } else if (fill_element != nullptr) {
        move_element<Device>(bytes, target, i, fill_element, 0);
      } else {
        put_element<Device>(bytes, target, i, KnownElement{});
      }
    });
  }
};

}  // namespace gpu

template <GpuDevice Gpu>
void copy_strided(Queue<Gpu>& queue, int64_t bytes_per_element, const Ints& dims, const StridedTarget& target,
                  const StridedSource& source) {
  const int64_t count = product(dims);
  if (count == 0) return;
  Ints merged = dims;
  std::array<Ints, 2> strides{target.strides, source.strides};
  merge_axes(merged, strides);
  gpu::CopyStridedKernel<Gpu> kernel{target.data + target.offset * bytes_per_element,
                                     source.data + source.offset * bytes_per_element,
                                     bytes_per_element,
                                     count,
                                     static_cast<int>(merged.size()),
                                     {},
                                     {},
                                     {}};
  for (int64_t axis = 0; axis < merged.size(); ++axis) {
    kernel.dims[axis] = merged[axis];
    kernel.target_strides[axis] = strides[0][axis];
    kernel.source_strides[axis] = strides[1][axis];
  }
  launch(queue, kernel, gpu::size_for_items(queue, count));
}

template <GpuDevice Gpu>
void choose(Queue<Gpu>& queue, const MutableView& out, const std::array<TensorView, 3>& in) {
  if (out.element_count() == 0) return;
  const MapPlan<3> plan = plan_map(out.shape, in);
  gpu::ChooseKernel<Gpu> kernel{{in[0].data, in[1].data, in[2].data},
                                out.data,
                                element_bytes(out.dtype),
                                out.element_count(),
                                static_cast<int>(plan.dims.size()),
                                {},
                                {}};
  for (int64_t axis = 0; axis < plan.dims.size(); ++axis) {
    kernel.dims[axis] = plan.dims[axis];
    for (size_t operand = 0; operand < 3; ++operand) kernel.strides[operand][axis] = plan.strides[operand][axis];
  }
  launch(queue, kernel, gpu::size_for_items(queue, kernel.count));
}

// Every element of `out` becomes the one at `element`, which is on the host; null: zero.
template <GpuDevice Gpu>
void fill(Queue<Gpu>& queue, const MutableView& out, const std::byte* element) {
  const int64_t bytes = element_bytes(out.dtype);
  const int64_t count = out.element_count();
  if (count == 0) return;
  const gpu::FillKernel<Gpu> kernel{out.data, gpu::known_element(element, bytes), bytes, count};
  launch(queue, kernel, gpu::size_for_items(queue, count));
}

template <class F, GpuDevice Gpu>
void index_map(Queue<Gpu>& queue, const F& f, const MutableView& out, const std::byte* source, int64_t block_elements,
               const std::byte* fill_element = nullptr) {
  const int64_t count = out.element_count();
  if (count == 0) return;
  const gpu::IndexMapKernel<Gpu, F> kernel{
      f, out.data, source, fill_element, element_bytes(out.dtype), block_elements, count};
  launch(queue, kernel, gpu::size_for_items(queue, count));
}

namespace gpu {
template <class F>
struct ElementOfRows {
  F f;
  int64_t columns;
  PX_HD int64_t operator()(int64_t element) const { return f.row(element / columns)(element % columns); }
};
}  // namespace gpu

template <class F, GpuDevice Gpu>
void index_rows(Queue<Gpu>& queue, const F& f, const MutableView& out, const std::byte* source, int64_t columns,
                const std::byte* fill_element = nullptr) {
  index_map(queue, gpu::ElementOfRows<F>{f, columns}, out, source, 1, fill_element);
}

}  // namespace parallax::runtime
