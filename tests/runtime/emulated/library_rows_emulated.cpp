// SPDX-License-Identifier: Apache-2.0
// Sorts and running sums of rows as the emulated device has them in place of CUB's: plain loops of the host.
#include <algorithm>
#include <numeric>

#include "runtime/device/gpu/library_rows.h"
#include "tests/runtime/emulated/queue_emulated.h"

namespace parallax::runtime::gpu {
namespace {

template <class T>
Result<std::span<T>> elements_of(const MutableView& view) {
  PX_CHECK(view.dtype == dtype_of<T>());
  std::byte* data = PX_TRY(emulation::true_address(view.data, view.size_bytes()));
  return std::span<T>(reinterpret_cast<T*>(data), static_cast<size_t>(view.element_count()));
}

template <class Key>
Status sort_on_host(const RadixRows& problem, const RadixItems& in, const RadixItems& out) {
  const std::span<Key> keys = PX_TRY(elements_of<Key>(in.keys)), sorted_keys = PX_TRY(elements_of<Key>(out.keys));
  const std::span<uint32_t> locations = PX_TRY(elements_of<uint32_t>(in.locations));
  const std::span<uint32_t> sorted_locations = PX_TRY(elements_of<uint32_t>(out.locations));
  const auto length = static_cast<size_t>(problem.length);
  if (keys.size() != static_cast<size_t>(problem.rows) * length) return execution_error("emulated: no rows of keys");
  for (const Key key : keys) {
    if (problem.bits < static_cast<int>(sizeof(Key)) * 8 && key >> problem.bits != 0)
      return execution_error("emulated: a key has more bits than its sort looks at");
  }
  std::vector<size_t> order(length);
  for (size_t start = 0; start < keys.size(); start += length) {
    std::iota(order.begin(), order.end(), start);
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return keys[a] < keys[b]; });
    for (size_t i = 0; i < length; ++i) {
      sorted_keys[start + i] = keys[order.data()[i]];
      sorted_locations[start + i] = locations[order.data()[i]];
    }
  }
  return {};
}

}  // namespace

template <>
Status radix_sort(Queue<Emulated>& queue, const RadixRows& problem, const RadixItems& in, const RadixItems& out) {
  queue.perform([=] {
    if (problem.bits > 32) return sort_on_host<uint64_t>(problem, in, out);
    return sort_on_host<uint32_t>(problem, in, out);
  });
  return {};
}

template <>
Status run_rows(Queue<Emulated>& queue, int64_t rows, int64_t length, bool is_product, const MutableView& values) {
  queue.perform([=]() -> Status {
    const std::span<uint64_t> all = PX_TRY(elements_of<uint64_t>(values));
    if (all.size() != static_cast<size_t>(rows * length)) return execution_error("emulated: no rows of values");
    for (size_t i = 1; i < all.size(); ++i) {
      if (i % static_cast<size_t>(length) == 0) continue;
      all[i] = is_product ? all[i] * all[i - 1] : all[i] + all[i - 1];
    }
    return {};
  });
  return {};
}

}  // namespace parallax::runtime::gpu
