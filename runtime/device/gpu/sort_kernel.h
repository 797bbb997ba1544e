// sort_rows and scatter on a GPU: a bitonic sort (Batcher, 1968) of keys and places in device memory, a block a row;
// equal keys keep the order of their places, so that every result is the same in every run.
#pragma once

#include "runtime/device/gpu/copy_kernel.h"
#include "runtime/device/gpu/rows_kernel.h"
#include "runtime/device/scatter.h"
#include "runtime/device/sort.h"

namespace parallax::runtime {
namespace gpu {

// keys[row][i], places[row][i] for i < padded, a power of two; places are -1 behind the row's end.
template <class Device, class C>
struct SortItems {
  Elements<Device, C> keys;
  Elements<Device, int64_t> places;
  int64_t padded;
};

template <class Device, class C, class Before>
struct SortKernel {
  static constexpr const char* kName = "sort_rows";
  Before before;
  SortItems<Device, C> items;
  int64_t rows;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for (int64_t row = launch.block(); row < rows; row += launch.blocks()) {
      for (int64_t sorted = 2; sorted <= items.padded; sorted *= 2) {
        for (int64_t distance = sorted / 2; distance > 0; distance /= 2) {
          for (int64_t i = launch.thread(); i < items.padded; i += launch.threads()) {
            if ((i & distance) == 0) exchange(row * items.padded, i, i + distance, (i & sorted) == 0);
          }
          launch.barrier();
        }
      }
    }
  }

 private:
  PX_HD bool in_order(C key_a, int64_t place_a, C key_b, int64_t place_b) const {
    if (place_a < 0 || place_b < 0) return place_b < 0;
    return before(key_a, place_a, key_b, place_b);
  }
  PX_HD void exchange(int64_t start, int64_t a, int64_t b, bool ascending) const {
    const C key_a = items.keys[start + a];
    const C key_b = items.keys[start + b];
    const int64_t place_a = items.places[start + a];
    const int64_t place_b = items.places[start + b];
    const bool swap = ascending ? in_order(key_b, place_b, key_a, place_a) : in_order(key_a, place_a, key_b, place_b);
    if (!swap || (place_a < 0 && place_b < 0)) return;
    items.keys[start + a] = key_b;
    items.keys[start + b] = key_a;
    items.places[start + a] = place_b;
    items.places[start + b] = place_a;
  }
};

// keys[row][i] = key(row, i) for i < length
template <class Device, class C, class Key>
struct SortKeysKernel {
  static constexpr const char* kName = "sort_keys";
  Key key;
  SortItems<Device, C> items;
  int64_t rows, length;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, rows * items.padded, [&](int64_t item) {
      const int64_t i = item % items.padded;
      items.keys[item] = i < length ? key(item / items.padded, i) : C(0);
      items.places[item] = i < length ? i : -1;
    });
  }
};

template <class Device, class C>
struct RowKey {
  Source in;
  int64_t length, inner;
  PX_HD C operator()(int64_t row, int64_t i) const {
    return load<Device, C>(in, (row / inner * length + i) * inner + row % inner);
  }
};

template <class Device, class F>
struct PlaceKey {
  F f;
  PX_HD int64_t operator()(int64_t, int64_t i) const { return f(i); }
};

// The first k of each sorted row, as values and as places.
template <class Device, class C>
struct TopOfRowsKernel {
  static constexpr const char* kName = "top_of_rows";
  SortItems<Device, C> items;
  Target values, places;
  int64_t rows, k, inner;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, rows * k, [&](int64_t item) {
      const int64_t row = item / k;
      const int64_t i = item % k;
      const int64_t to = (row / inner * k + i) * inner + row % inner;
      store<Device, C>(values, to, items.keys[row * items.padded + i]);
      store<Device, int64_t>(places, to, items.places[row * items.padded + i]);
    });
  }
};

struct SmallerKey {
  PX_HD bool operator()(int64_t key_a, int64_t place_a, int64_t key_b, int64_t place_b) const {
    return key_a != key_b ? key_a < key_b : place_a < place_b;
  }
};

// Updates sorted by target: the thread at a target's first update applies all of them, in order.
template <class Device, class C>
struct ScatterKernel {
  static constexpr const char* kName = "scatter";
  SortItems<Device, int64_t> items;
  Combine combine;
  Target out;
  Source updates;
  int64_t bytes, blocks, block_elements;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, blocks * block_elements, [&](int64_t item) {
      const int64_t first = item / block_elements;
      const int64_t within = item % block_elements;
      const int64_t target = items.keys[first];
      if (first > 0 && items.keys[first - 1] == target) return;
      const int64_t to = target * block_elements + within;
      for (int64_t at = first; at < blocks && items.keys[at] == target; ++at) {
        const int64_t from = items.places[at] * block_elements + within;
        if (combine == Combine::replace) {
          move_element<Device>(bytes, out.data, to, updates.data, from);
        } else {
          const C old = load<Device, C>(Source{out.data, out.dtype}, to);
          store<Device, C>(out, to, scatter_detail::combined(combine, old, load<Device, C>(updates, from)));
        }
      }
    });
  }
};

// Memory for the items of `rows` rows; both tensors own it.
template <class Device, class C>
struct SortMemory {
  Tensor keys, places;
  SortItems<Device, C> items;
};

template <class C, GpuDevice Gpu>
Result<SortMemory<Gpu, C>> sort_memory(Queue<Gpu>& queue, int64_t rows, int64_t length) {
  int64_t padded = 1;
  while (padded < length) padded *= 2;
  const Shape shape = PX_TRY(Shape::create(std::array<int64_t, 2>{rows, padded}));
  SortMemory<Gpu, C> memory;
  memory.keys = PX_TRY(queue.allocate(storage_of<C>(), shape));
  memory.places = PX_TRY(queue.allocate(DType::int64, shape));
  memory.items = {{reinterpret_cast<C*>(memory.keys.storage().get())},
                  {reinterpret_cast<int64_t*>(memory.places.storage().get())},
                  padded};
  return memory;
}

template <class C, class Key, class Before, GpuDevice Gpu>
void sort_items(Queue<Gpu>& queue, const Key& key, const Before& before, const SortItems<Gpu, C>& items, int64_t rows,
                int64_t length) {
  const SortKeysKernel<Gpu, C, Key> keys{key, items, rows, length};
  launch(queue, keys, size_for_items(queue, rows * items.padded));
  const SortKernel<Gpu, C, Before> sort{before, items, rows};
  launch(queue, sort, size_for_rows(queue, rows, items.padded, 0));
}

}  // namespace gpu

template <class C, class Before, GpuDevice Gpu>
void sort_rows(Queue<Gpu>& queue, const Before& before, const RowLayout& layout, const TensorView& in, int64_t k,
               const MutableView& values, const MutableView& places) {
  const int64_t rows = layout.row_count();
  if (rows == 0 || layout.length == 0 || k == 0) return;
  auto memory = gpu::sort_memory<C>(queue, rows, layout.length);
  if (!memory.ok()) return queue.fail(std::move(memory).error());
  const gpu::RowKey<Gpu, C> key{source_of(in), layout.length, layout.inner};
  gpu::sort_items<C>(queue, key, before, memory->items, rows, layout.length);
  const gpu::TopOfRowsKernel<Gpu, C> top{memory->items, target_of(values), target_of(places), rows, k, layout.inner};
  launch(queue, top, gpu::size_for_items(queue, rows * k));
}

template <class C, class F, GpuDevice Gpu>
void scatter(Queue<Gpu>& queue, const F& f, Combine combine, const MutableView& out, const TensorView& updates,
             int64_t block_elements) {
  const int64_t blocks = block_elements == 0 ? 0 : updates.element_count() / block_elements;
  if (blocks == 0) return;
  auto memory = gpu::sort_memory<int64_t>(queue, 1, blocks);
  if (!memory.ok()) return queue.fail(std::move(memory).error());
  const gpu::PlaceKey<Gpu, F> key{f};
  gpu::sort_items<int64_t>(queue, key, gpu::SmallerKey{}, memory->items, 1, blocks);
  const gpu::ScatterKernel<Gpu, C> kernel{
      memory->items, combine, target_of(out), source_of(updates), element_bytes(out.dtype), blocks, block_elements};
  launch(queue, kernel, gpu::size_for_items(queue, blocks * block_elements));
}

}  // namespace parallax::runtime
