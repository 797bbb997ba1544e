// SPDX-License-Identifier: Apache-2.0
// copy, fill, choose and index_map on a GPU: elements moved by their size alone, several at once where they are
// neighbors. Kernels without a functor are launched by each device's own copy_strided, fill and choose
// (`..._by_kernel`), so that they are compiled once.
#pragma once

#include "runtime/device/cpu/choose.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/gpu/copy_plan.h"
#include "runtime/device/gpu/map_kernel.h"

namespace parallax::runtime {
namespace gpu {

struct alignas(16) Bytes16 {  // every tensor of a GPU begins at a multiple of 256 (memory_plan.h)
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

// An element that the host knows, as often as it fits 16 bytes, passed by value.
struct KnownElement {
  Pack<16> bits{};
  PX_HD const std::byte* data() const { return reinterpret_cast<const std::byte*>(&bits); }
};
inline KnownElement known_element(const std::byte* element, int64_t bytes) {
  KnownElement known;
  if (element == nullptr) return known;
  for (int64_t at = 0; at < 16; at += bytes) {
    std::memcpy(reinterpret_cast<std::byte*>(&known.bits) + at, element, static_cast<size_t>(bytes));
  }
  return known;
}

template <class Device>
PX_HD void put_element(int64_t bytes, std::byte* target, int64_t to, const KnownElement& element) {
  visit_size(bytes, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    Elements<Device, T>{reinterpret_cast<T*>(target)}[to] = *reinterpret_cast<const T*>(element.data());
  });
}

template <class Device, class T>
struct CopyStridedKernel {
  static constexpr const char* kName = "copy_strided";
  static constexpr int kTogether = sizeof(T) >= 16 ? 1 : 4;  // under way at once, of each thread
  Elements<Device, T> target;
  Elements<Device, const T> source;
  uint32_t count;
  Walk<2> walk;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    const auto step = static_cast<uint32_t>(launch.blocks() * launch.threads());
    const auto begin = static_cast<uint32_t>(launch.block() * launch.threads() + launch.thread());
    for (uint32_t first = begin; first < count; first += kTogether * step) {
      T elements[kTogether]{};
      int32_t to[kTogether]{};
      for (int each = 0; each < kTogether; ++each) {
        const uint32_t index = first + static_cast<uint32_t>(each) * step;
        if (index >= count) break;
        int32_t at[2];
        walk.offsets(index, at);
        to[each] = at[0];
        elements[each] = source[at[1]];
      }
      for (int each = 0; each < kTogether; ++each) {
        if (first + static_cast<uint32_t>(each) * step < count) target[to[each]] = elements[each];
      }
    }
  }
};

// A copy whose source is contiguous along the rows' axis and its target along the columns': by square tiles in the
// block's memory, whose rows have a few elements more, so that neither side meets a bank of it twice at a time.
template <class Device, class T>
struct TransposeKernel {
  static constexpr const char* kName = "transpose";
  static constexpr int kSide = sizeof(T) <= 2 ? 64 : 32;
  static constexpr int kPitch = kSide + (sizeof(T) < 4 ? 4 / static_cast<int>(sizeof(T)) : 1);
  static constexpr int kWarps = Queue<Device>::kThreads / kWarp;
  static constexpr int kParts = kSide / kWarp;
  static constexpr int kEach = kSide / kWarps * kParts;
  static constexpr size_t kSharedBytes = size_t{kSide} * kPitch * sizeof(T);
  Elements<Device, T> target;
  Elements<Device, const T> source;
  int64_t tiles;
  int32_t rows, columns;
  int64_t target_row, source_column;
  Walk<4> walk;  // over tiles: where it begins in the target and in the source, its first row and column

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    const auto tile = launch.template shared<T>(kSide * kPitch);
    const int lane = launch.thread() % kWarp, warp = launch.thread() / kWarp;
    for (int64_t index = launch.block(); index < tiles; index += launch.blocks()) {
      int32_t at[4];
      walk.offsets(static_cast<uint32_t>(index), at);
      const int height = rows - at[2], width = columns - at[3];  // those of the last tiles are below kSide
      T elements[kEach]{};
      for (int each = 0; each < kEach; ++each) {
        const int row = lane + each % kParts * kWarp, column = warp + each / kParts * kWarps;
        if (row < height && column < width) elements[each] = source[at[1] + row + column * source_column];
      }
      for (int each = 0; each < kEach; ++each) {
        const int row = lane + each % kParts * kWarp, column = warp + each / kParts * kWarps;
        if (row < height && column < width) tile[column * kPitch + row] = elements[each];
      }
      launch.barrier();
      for (int each = 0; each < kEach; ++each) {
        const int row = warp + each / kParts * kWarps, column = lane + each % kParts * kWarp;
        if (row < height && column < width) target[at[0] + row * target_row + column] = tile[column * kPitch + row];
      }
      launch.barrier();
    }
  }
};

template <class Device>
struct FillKernel {
  static constexpr const char* kName = "fill";
  std::byte* target;
  KnownElement element;
  int64_t bytes, packs, count;  // packs of 16 bytes, then single elements up to `count`

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, packs, [&](int64_t i) {
      Elements<Device, Pack<16>>{reinterpret_cast<Pack<16>*>(target)}[i] = element.bits;
    });
    const int64_t first = packs * (16 / bytes);
    for_each_item(launch, count - first, [&](int64_t i) { put_element<Device>(bytes, target, first + i, element); });
  }
};

template <class T>
struct Chosen {
  static constexpr const char* kName = "choose";
  PX_HD T operator()(uint8_t condition, T when_true, T when_false) const {
    return condition != 0 ? when_true : when_false;
  }
};

template <class Device, class F>
struct IndexMapKernel {
  static constexpr const char* kName = "index_map";
  F f;
  std::byte* target;
  const std::byte* source;
  const std::byte* fill_element;  // on the device; null: zero
  int64_t bytes, count;           // of what is moved at once
  Divisor block;                  // so many of it

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, count, [&](int64_t i) {
      const int64_t index = block.quotient(i);
      const int64_t from = f(index);
      if (from >= 0) {
        move_element<Device>(bytes, target, i, source, from * block.value + (i - index * block.value));
      } else if (fill_element != nullptr) {
        move_element<Device>(bytes, target, i, fill_element, 0);
      } else {
        put_element<Device>(bytes, target, i, KnownElement{});
      }
    });
  }
};

// Calls visit with a zero of a type of that size, on the host.
template <class Visit>
void visit_element(int64_t bytes, const Visit& visit) {
  switch (bytes) {
    case 1:
      return visit(uint8_t{});
    case 2:
      return visit(uint16_t{});
    case 4:
      return visit(uint32_t{});
    case 8:
      return visit(uint64_t{});
    default:
      return visit(Bytes16{});
  }
}

template <class T, GpuDevice Gpu>
void transpose_tiles(Queue<Gpu>& queue, const CopyPlan& plan, T* target, const T* source) {
  using Kernel = TransposeKernel<Gpu, T>;
  constexpr int64_t kSide = Kernel::kSide;
  const int64_t last = plan.dims.size() - 1, source_axis = plan.source_axis;
  Ints tiles = plan.dims;
  std::array<Ints, 4> strides{plan.strides[0], plan.strides[1], Ints(last + 1), Ints(last + 1)};
  for (const int64_t axis : {source_axis, last}) {
    tiles[axis] = (plan.dims[axis] + kSide - 1) / kSide;
    strides[0][axis] *= kSide;
    strides[1][axis] *= kSide;
  }
  strides[2][source_axis] = kSide;
  strides[3][last] = kSide;
  for (const WalkPart& part : narrow_parts(tiles, strides, Queue<Gpu>::kMostNarrow)) {
    const auto left = [&](int64_t axis, int64_t offset) {  // from the part on; all that tiles reach is narrow
      return static_cast<int32_t>(std::min(plan.dims[axis] - offset, part.dims[axis] * kSide));
    };
    const Kernel kernel{{target + part.offsets[0]},  {source + part.offsets[1]},
                        product(part.dims),          left(source_axis, part.offsets[2]),
                        left(last, part.offsets[3]), plan.strides[0][source_axis],
                        plan.strides[1][last],       {part.dims, strides}};
    launch(queue, kernel,
           {std::min<int64_t>(kernel.tiles, Queue<Gpu>::kMaxBlocks), Queue<Gpu>::kThreads, Kernel::kSharedBytes});
  }
}

template <GpuDevice Gpu>
void copy_strided_by_kernel(Queue<Gpu>& queue, int64_t bytes_per_element, const Ints& dims, const StridedTarget& target,
                            const StridedSource& source) {
  if (product(dims) == 0) return;
  const CopyPlan plan = plan_copy(bytes_per_element, dims, target, source);
  std::byte* to = target.data + target.offset * bytes_per_element;
  const std::byte* from = source.data + source.offset * bytes_per_element;
  visit_element(plan.bytes, [&]<class T>(T) {
    auto* typed_to = reinterpret_cast<T*>(to);
    const auto* typed_from = reinterpret_cast<const T*>(from);
    if (plan.source_axis >= 0) return transpose_tiles(queue, plan, typed_to, typed_from);
    for (const WalkPart& part : narrow_parts(plan.dims, plan.strides, Queue<Gpu>::kMostNarrow)) {
      const CopyStridedKernel<Gpu, T> kernel{{typed_to + part.offsets[0]},
                                             {typed_from + part.offsets[1]},
                                             static_cast<uint32_t>(product(part.dims)),
                                             {part.dims, plan.strides}};
      launch(queue, kernel, size_for_items(queue, kernel.count));
    }
  });
}

template <GpuDevice Gpu>
void choose_by_kernel(Queue<Gpu>& queue, const MutableView& out, const std::array<TensorView, 3>& in) {
  if (out.element_count() == 0) return;
  const MapPlan<3> plan = plan_map(out.shape, in);
  visit_element(element_bytes(out.dtype), [&]<class T>(T) {
    constexpr int kCount = static_cast<int>(16 / sizeof(T));
    if constexpr (kCount > 1) {
      if (map_packs<kCount, T, uint8_t, T, T>(queue, Chosen<T>{}, out, in, plan)) return;
    }
    map_packs<1, T, uint8_t, T, T>(queue, Chosen<T>{}, out, in, plan);
  });
}

template <GpuDevice Gpu>
void fill_by_kernel(Queue<Gpu>& queue, const MutableView& out, const std::byte* element) {
  const int64_t bytes = element_bytes(out.dtype);
  const int64_t count = out.element_count();
  if (count == 0) return;
  const int64_t packs = is_aligned(out.data, 16) ? count * bytes / 16 : 0;
  const FillKernel<Gpu> kernel{out.data, known_element(element, bytes), bytes, packs, count};
  launch(queue, kernel, size_for_items(queue, packs > 0 ? packs : count));
}

}  // namespace gpu

template <class F, GpuDevice Gpu>
void index_map(Queue<Gpu>& queue, const F& f, const MutableView& out, const std::byte* source, int64_t block_elements,
               const std::byte* fill_element = nullptr) {
  const int64_t element = element_bytes(out.dtype), count = out.element_count();
  if (count == 0) return;
  int64_t bytes = element;  // as many as divide a block and both addresses
  while (fill_element == nullptr && bytes < 16 && block_elements * element % (2 * bytes) == 0 &&
         gpu::is_aligned(out.data, 2 * bytes) && gpu::is_aligned(source, 2 * bytes)) {
    bytes *= 2;
  }
  const gpu::IndexMapKernel<Gpu, F> kernel{f,
                                           out.data,
                                           source,
                                           fill_element,
                                           bytes,
                                           count * element / bytes,
                                           gpu::Divisor(block_elements * element / bytes)};
  launch(queue, kernel, gpu::size_for_items(queue, kernel.count));
}

namespace gpu {
template <class F>
struct ElementOfRows {
  F f;
  Divisor columns;
  PX_HD int64_t operator()(int64_t element) const {
    const int64_t row = columns.quotient(element);
    return f.row(row)(element - row * columns.value);
  }
};
}  // namespace gpu

template <class F, GpuDevice Gpu>
void index_rows(Queue<Gpu>& queue, const F& f, const MutableView& out, const std::byte* source, int64_t columns,
                const std::byte* fill_element = nullptr) {
  index_map(queue, gpu::ElementOfRows<F>{f, gpu::Divisor(columns)}, out, source, 1, fill_element);
}

}  // namespace parallax::runtime
