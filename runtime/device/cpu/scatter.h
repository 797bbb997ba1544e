// SPDX-License-Identifier: Apache-2.0
// scatter: out[f(i)] = combine(out[f(i)], updates[i]) in the order of i, so that repeated indices give one and the same
// result.
#pragma once

#include <cstring>

#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/copy.h"

namespace parallax::runtime {

enum class Combine : uint8_t { replace, add, multiply, maximum, minimum };

namespace scatter_detail {
template <class C>
PX_HD C combined(Combine combine, C a, C b) {
  switch (combine) {
    case Combine::replace:
      return b;
    case Combine::add:
      if constexpr (std::is_integral_v<C>) return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
      return a + b;
    case Combine::multiply:
      if constexpr (std::is_integral_v<C>) return static_cast<C>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
      return a * b;
    case Combine::maximum:
      return (a > b || a != a) ? a : b;
    case Combine::minimum:
      return (a < b || a != a) ? a : b;
  }
  return b;
}

// Elements [at, at + count) of `out` with those from `from` on.
template <class C>
void combine_blocks(Combine combine, const MutableView& out, int64_t at, const TensorView& updates, int64_t from,
                    int64_t count) {
  constexpr int64_t kAtOnce = 256;
  C old[kAtOnce], update[kAtOnce];
  for (int64_t first = 0; first < count; first += kAtOnce) {
    const int64_t some = std::min(kAtOnce, count - first);
    load_block<C>(out.dtype, out.data, at + first, 1, some, old);
    load_block<C>(updates.dtype, updates.data, from + first, 1, some, update);
    for (int64_t i = 0; i < some; ++i) old[i] = combined(combine, old[i], update[i]);
    store_block<C>(out.dtype, out.data, at + first, some, old);
  }
}
}  // namespace scatter_detail

// Blocks of `block_elements`: block i of `updates` goes to block f(i) of `out`.
template <class C, class F>
void scatter(Queue<Cpu>&, const F& f, Combine combine, const MutableView& out, const TensorView& updates,
             int64_t block_elements) {
  const int64_t blocks = block_elements == 0 ? 0 : updates.element_count() / block_elements;
  const int64_t bytes = element_bytes(out.dtype) * block_elements;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t location = f(block);
    if (combine == Combine::replace) {
      std::memcpy(out.data + location * bytes, updates.data + block * bytes, static_cast<size_t>(bytes));
      continue;
    }
    scatter_detail::combine_blocks<C>(combine, out, location * block_elements, updates, block * block_elements,
                                      block_elements);
  }
}

}  // namespace parallax::runtime
