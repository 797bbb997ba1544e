// SPDX-License-Identifier: Apache-2.0
// sort_rows and scatter on a GPU. Numbers and indices are sorted by the library, by keys (sort_key.h); what only a
// comparator orders, by a bitonic sort (Batcher, 1968) in device memory, a block a row. Equal keys keep the order of
// their indices either way, so that every result is the same in every run.
#pragma once

#include "runtime/device/cpu/rows/sort.h"
#include "runtime/device/cpu/rows/sort_key.h"
#include "runtime/device/cpu/scatter.h"
#include "runtime/device/gpu/copy_kernel.h"
#include "runtime/device/gpu/library_rows.h"
#include "runtime/device/gpu/rows_kernel.h"

namespace parallax::runtime {
namespace gpu {

// keys[row][i], locations[row][i] for i < padded, a power of two; locations are -1 after the row's end.
template <class Device, class C>
struct SortItems {
  Elements<Device, C> keys;
  Elements<Device, int64_t> locations;
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
  PX_HD bool in_order(C key_a, int64_t location_a, C key_b, int64_t location_b) const {
    if (location_a < 0 || location_b < 0) return location_b < 0;
    return before(key_a, location_a, key_b, location_b);
  }
  PX_HD void exchange(int64_t start, int64_t a, int64_t b, bool ascending) const {
    const C key_a = items.keys[start + a];
    const C key_b = items.keys[start + b];
    const int64_t location_a = items.locations[start + a];
    const int64_t location_b = items.locations[start + b];
    const bool swap =
        ascending ? in_order(key_b, location_b, key_a, location_a) : in_order(key_a, location_a, key_b, location_b);
    if (!swap || (location_a < 0 && location_b < 0)) return;
    items.keys[start + a] = key_b;
    items.keys[start + b] = key_a;
    items.locations[start + a] = location_b;
    items.locations[start + b] = location_a;
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
      items.locations[item] = i < length ? i : -1;
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

// The keys that the library sorts: of numbers, and of indices, none of which is below zero.
template <class Device>
struct NumberKey {
  Source in;
  int64_t length, inner;
  NumberOrder order;
  PX_HD uint64_t operator()(int64_t row, int64_t i) const {
    const int64_t from = (row / inner * length + i) * inner + row % inner;
    uint64_t key = 0;
    storage::visit_storage(in.dtype, [&](auto* type) {
      using S = std::remove_pointer_t<decltype(type)>;
      key = sort_key(Elements<Device, const S>{reinterpret_cast<const S*>(in.data)}[from], order);
    });
    return key;
  }
};

template <class F>
struct LocationKey {
  F f;
  PX_HD uint64_t operator()(int64_t, int64_t i) const { return static_cast<uint64_t>(f(i)); }
};

template <class Device, class Key>
struct RadixKeysKernel {
  static constexpr const char* kName = "radix_keys";
  Key key;
  Target keys;
  Elements<Device, uint32_t> locations;
  int64_t rows, length;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, rows * length, [&](int64_t item) {
      store<Device, uint64_t>(keys, item, key(item / length, item % length));
      locations[item] = static_cast<uint32_t>(item % length);
    });
  }
};

// The first k of each sorted row, as values and as indices.
template <class Device, class C>
struct TopOfRowsKernel {
  static constexpr const char* kName = "top_of_rows";
  RowKey<Device, C> value;
  Source order;  // indices, [row][stride]
  int64_t stride;
  Target values, locations;
  int64_t rows, k;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, rows * k, [&](int64_t item) {
      const int64_t row = item / k;
      const int64_t location = load<Device, int64_t>(order, row * stride + item % k);
      const int64_t to = (row / value.inner * k + item % k) * value.inner + row % value.inner;
      store<Device, C>(values, to, value(row, location));
      store<Device, int64_t>(locations, to, location);
    });
  }
};

// Updates sorted by target: the thread at a target's first update applies all of them, in order.
template <class Device, class C>
struct ScatterKernel {
  static constexpr const char* kName = "scatter";
  Source targets, order;
  Combine combine;
  Target out;
  Source updates;
  int64_t bytes, blocks, block_elements;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, blocks * block_elements, [&](int64_t item) {
      const int64_t first = item / block_elements;
      const int64_t within = item % block_elements;
      const int64_t target = target_at(first);
      if (first > 0 && target_at(first - 1) == target) return;
      const int64_t to = target * block_elements + within;
      for (int64_t at = first; at < blocks && target_at(at) == target; ++at) {
        const int64_t from = load<Device, int64_t>(order, at) * block_elements + within;
        if (combine == Combine::replace) {
          move_element<Device>(bytes, out.data, to, updates.data, from);
        } else {
          const C old = load<Device, C>(Source{out.data, out.dtype}, to);
          store<Device, C>(out, to, scatter_detail::combined(combine, old, load<Device, C>(updates, from)));
        }
      }
    });
  }

 private:
  PX_HD int64_t target_at(int64_t i) const { return load<Device, int64_t>(targets, i); }
};

// Rows in order: [row][stride].
struct SortedRows {
  Tensor keys, locations;
  int64_t stride;
};

template <class C, class Key, class Before, GpuDevice Gpu>
Result<SortedRows> sort_by_comparator(Queue<Gpu>& queue, const Key& key, const Before& before, int64_t rows,
                                      int64_t length) {
  int64_t padded = 1;
  while (padded < length) padded *= 2;
  const Shape shape = PX_TRY(Shape::create(std::array<int64_t, 2>{rows, padded}));
  const SortedRows made{PX_TRY(queue.allocate(storage_of<C>(), shape)), PX_TRY(queue.allocate(DType::int64, shape)),
                        padded};
  const SortItems<Gpu, C> items{{reinterpret_cast<C*>(made.keys.storage().get())},
                                {reinterpret_cast<int64_t*>(made.locations.storage().get())},
                                padded};
  const SortKeysKernel<Gpu, C, Key> keys{key, items, rows, length};
  launch(queue, keys, size_for_items(queue, rows * padded));
  const SortKernel<Gpu, C, Before> sort{before, items, rows};
  launch(queue, sort, size_for_rows(queue, rows, padded, 0));
  return made;
}

template <class Key, GpuDevice Gpu>
Result<SortedRows> sort_by_keys(Queue<Gpu>& queue, const Key& key, const RadixRows& problem) {
  const int64_t rows = problem.rows, length = problem.length;
  if (length > UINT32_MAX)
    return unsupported("a row to sort has " + std::to_string(length) + " elements; it must have at most 2^32 - 1");
  const Shape shape = PX_TRY(Shape::create(std::array<int64_t, 2>{rows, length}));
  const DType type = problem.bits > 32 ? DType::uint64 : DType::uint32;
  const Tensor keys = PX_TRY(queue.allocate(type, shape));
  const Tensor locations = PX_TRY(queue.allocate(DType::uint32, shape));
  const SortedRows made{PX_TRY(queue.allocate(type, shape)), PX_TRY(queue.allocate(DType::uint32, shape)), length};
  const RadixKeysKernel<Gpu, Key> kernel{
      key, target_of(writable(keys)), {reinterpret_cast<uint32_t*>(locations.storage().get())}, rows, length};
  launch(queue, kernel, size_for_items(queue, rows * length));
  PX_TRY(radix_sort(queue, problem, {writable(keys), writable(locations)},
                    {writable(made.keys), writable(made.locations)}));
  return made;
}

template <class C, class Before, GpuDevice Gpu>
Result<SortedRows> sort_all(Queue<Gpu>& queue, const Before& before, const RowLayout& layout, const TensorView& in) {
  const int64_t rows = layout.row_count();
  if constexpr (OrdersNumbers<Before>) {
    const NumberKey<Gpu> key{source_of(in), layout.length, layout.inner, before.number_order()};
    return sort_by_keys(queue, key, {rows, layout.length, key_bits(in.dtype)});
  } else {
    const RowKey<Gpu, C> key{source_of(in), layout.length, layout.inner};
    return sort_by_comparator<C>(queue, key, before, rows, layout.length);
  }
}

}  // namespace gpu

template <class C, class Before, GpuDevice Gpu>
void sort_rows(Queue<Gpu>& queue, const Before& before, const RowLayout& layout, const TensorView& in, int64_t k,
               const MutableView& values, const MutableView& locations) {
  const int64_t rows = layout.row_count();
  if (rows == 0 || layout.length == 0 || k == 0) return;
  auto sorted = gpu::sort_all<C>(queue, before, layout, in);
  if (!sorted.ok()) return queue.fail(std::move(sorted).error());
  const gpu::TopOfRowsKernel<Gpu, C> top{{source_of(in), layout.length, layout.inner},
                                         source_of(sorted->locations.view()),
                                         sorted->stride,
                                         target_of(values),
                                         target_of(locations),
                                         rows,
                                         k};
  launch(queue, top, gpu::size_for_items(queue, rows * k));
}

template <class C, class F, GpuDevice Gpu>
void scatter(Queue<Gpu>& queue, const F& f, Combine combine, const MutableView& out, const TensorView& updates,
             int64_t block_elements) {
  const int64_t blocks = block_elements == 0 ? 0 : updates.element_count() / block_elements;
  if (blocks == 0) return;
  const auto targets = static_cast<uint64_t>(out.element_count() / block_elements);
  const auto bits = static_cast<int>(std::bit_width(targets));
  auto sorted = gpu::sort_by_keys(queue, gpu::LocationKey<F>{f}, {1, blocks, bits});
  if (!sorted.ok()) return queue.fail(std::move(sorted).error());
  const gpu::ScatterKernel<Gpu, C> kernel{source_of(sorted->keys.view()),
                                          source_of(sorted->locations.view()),
                                          combine,
                                          target_of(out),
                                          source_of(updates),
                                          element_bytes(out.dtype),
                                          blocks,
                                          block_elements};
  launch(queue, kernel, gpu::size_for_items(queue, blocks * block_elements));
}

}  // namespace parallax::runtime
