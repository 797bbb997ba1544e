// SPDX-License-Identifier: Apache-2.0
// A kernel and the operations that it may use. A kernel is a struct of plain values with a `kName` and a body that is a
// template over the launch: `LaunchCuda` on the GPU, `LaunchEmulated` in the tests. A launch offers
//   block() blocks() thread() threads()    where this thread stands; threads() is a multiple of kWarp
//   shared<T>(count)                       memory of the block; every thread must ask for the same, in the same order;
//                                          at<W>(byte) of it is a W there
//   barrier()                              reached by all threads of the block or by none
//   shuffle_down(value, lanes)             of the thread `lanes` further in the warp (itself past the end)
//   shuffle_xor(value, lanes)              of the thread whose number in the warp is this one's xor `lanes`
//   ballot(flag)                           a bit for each thread of the warp
//   multiply_add<T>(c, a, b0, b1)          of the warp's fragments of a 16 x 8 product (PTX ISA, "mma"): c[4] += a b;
//                                          T is Float16 or BFloat16, two in a word (m16n8k16), or float (m16n8k8): TF32
//   to_tf32(value), pack<T>(low, high)     words of such fragments, to nearest; ties to even, those of TF32 away from 0
//   atomic_add(pointer, value)             on integers: sums of floats would depend on the order
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device/devices.h"

namespace parallax::runtime::gpu {

constexpr int kWarp = 32;
constexpr int kMaxAxes = 2 * static_cast<int>(Shape::kMaxRank);  // Tile walks two axes for each of its input

struct LaunchSize {
  int64_t blocks = 1;
  int threads = kWarp;
  size_t shared_bytes = 0;
};

// Calls f(i) for i in [0, count), spread over all threads of all blocks. `count` and the number of threads fit Index.
template <class Launch, class Index, class F>
PX_HD void for_each_item(const Launch& launch, Index count, const F& f) {
  const auto step = static_cast<Index>(launch.blocks() * launch.threads());
  for (auto i = static_cast<Index>(launch.block() * launch.threads() + launch.thread()); i < count; i += step) f(i);
}

// As many blocks as `items` need with a thread each, as long as the device has them.
template <class Queue>
LaunchSize size_for_items(const Queue&, int64_t items) {
  const int64_t blocks = (items + Queue::kThreads - 1) / Queue::kThreads;
  return {blocks < 1 ? 1 : (blocks > Queue::kMaxBlocks ? Queue::kMaxBlocks : blocks), Queue::kThreads, 0};
}

// A block for each of `rows`, with no more threads than `length` keeps busy; `bytes_per_thread` of shared memory each.
template <class Queue>
LaunchSize size_for_rows(const Queue&, int64_t rows, int64_t length, size_t bytes_per_thread) {
  const int64_t blocks = rows < 1 ? 1 : (rows > Queue::kMaxBlocks ? Queue::kMaxBlocks : rows);
  const int64_t wanted = (length + kWarp - 1) / kWarp * kWarp;
  const int threads = static_cast<int>(wanted < kWarp ? kWarp : (wanted > Queue::kThreads ? Queue::kThreads : wanted));
  return {blocks, threads, static_cast<size_t>(threads) * bytes_per_thread};
}

}  // namespace parallax::runtime::gpu
