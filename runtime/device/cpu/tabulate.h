// SPDX-License-Identifier: Apache-2.0
// tabulate: out[i] = f(i), for data that follows from its index alone.
#pragma once

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/queue_cpu.h"

namespace parallax::runtime {

// A functor may say how much work one call is, in simple operations; 1 otherwise.
template <class F>
constexpr int64_t work_of() {
  if constexpr (requires { F::kWork; }) return F::kWork;
  return 1;
}

// f answers an R, which is stored with one rounding.
template <class R, class F>
void tabulate(Queue<Cpu>&, const F& f, const MutableView& out) {
  parallel_for(out.element_count(), 3 + work_of<F>(), [&](int64_t begin, int64_t end) {
    alignas(64) R block[kBlockElements];
    for (int64_t first = begin; first < end; first += kBlockElements) {
      const int64_t count = end - first < kBlockElements ? end - first : kBlockElements;
      for (int64_t i = 0; i < count; ++i) block[i] = f(first + i);
      store_block<R>(out.dtype, out.data, first, count, block);
    }
  });
}

}  // namespace parallax::runtime
