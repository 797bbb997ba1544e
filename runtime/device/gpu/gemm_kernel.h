// SPDX-License-Identifier: Apache-2.0
// Matrix products by our own kernel: integers on any GPU, and all types where there is no library (the emulation).
#pragma once

#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/gpu/launch.h"
#include "runtime/device/gpu/memory.h"

namespace parallax::runtime {
namespace gpu {

// A block computes tiles of the result, a thread an element; tiles of both operands pass through shared memory.
template <class Device, class C, int kTile>
struct GemmKernel {
  static constexpr const char* kName = "gemm";
  Elements<Device, const C> a, b;
  Elements<Device, C> c;
  Elements<Device, const int64_t> a_offsets, b_offsets;
  int64_t batch, m, n, k;
  bool transpose_a, transpose_b;
  C alpha, beta;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    const auto a_tile = launch.template shared<C>(kTile * kTile);
    const auto b_tile = launch.template shared<C>(kTile * kTile);
    const int64_t tile_rows = (m + kTile - 1) / kTile;
    const int64_t tile_columns = (n + kTile - 1) / kTile;
    const int row_in_tile = launch.thread() / kTile;
    const int column_in_tile = launch.thread() % kTile;
    for (int64_t tile = launch.block(); tile < batch * tile_rows * tile_columns; tile += launch.blocks()) {
      const int64_t matrix = tile / (tile_rows * tile_columns);
      const int64_t row = tile / tile_columns % tile_rows * kTile + row_in_tile;
      const int64_t column = tile % tile_columns * kTile + column_in_tile;
      C sum = C(0);
      for (int64_t first = 0; first < k; first += kTile) {
        a_tile[launch.thread()] = a_at(matrix, row, first + column_in_tile);
        b_tile[launch.thread()] = b_at(matrix, first + row_in_tile, column);
        launch.barrier();
        for (int i = 0; i < kTile; ++i) sum += a_tile[row_in_tile * kTile + i] * b_tile[i * kTile + column_in_tile];
        launch.barrier();
      }
      if (row >= m || column >= n) continue;
      C& target = c[(matrix * m + row) * n + column];
      target = beta == C(0) ? alpha * sum : alpha * sum + beta * target;
    }
  }

 private:
  PX_HD C a_at(int64_t matrix, int64_t row, int64_t i) const {
    if (row >= m || i >= k) return C(0);
    return a[a_offsets[matrix] + (transpose_a ? i * m + row : row * k + i)];
  }
  PX_HD C b_at(int64_t matrix, int64_t i, int64_t column) const {
    if (i >= k || column >= n) return C(0);
    return b[b_offsets[matrix] + (transpose_b ? column * k + i : i * n + column)];
  }
};

}  // namespace gpu

// Integers are multiplied as uint64, modulo 2^64.
template <class C, GpuDevice Gpu>
Status gemm_by_kernel(Queue<Gpu>& queue, const GemmProblem& problem, const C* a, const C* b, C* c) {
  constexpr int kTile = Queue<Gpu>::kThreads >= 256 ? 16 : 8;
  static_assert(Queue<Gpu>::kThreads >= kTile * kTile);
  if (problem.batch() * problem.m * problem.n == 0) return {};
  const Tensor a_offsets = PX_TRY(queue.to_device(Tensor::vector<int64_t>(problem.a_offsets)));
  const Tensor b_offsets = PX_TRY(queue.to_device(Tensor::vector<int64_t>(problem.b_offsets)));
  const gpu::GemmKernel<Gpu, C, kTile> kernel{{a},
                                              {b},
                                              {c},
                                              {reinterpret_cast<const int64_t*>(a_offsets.view().data)},
                                              {reinterpret_cast<const int64_t*>(b_offsets.view().data)},
                                              problem.batch(),
                                              problem.m,
                                              problem.n,
                                              problem.k,
                                              problem.transpose_a,
                                              problem.transpose_b,
                                              static_cast<C>(problem.alpha),
                                              static_cast<C>(problem.beta)};
  const int64_t tiles = problem.batch() * ((problem.m + kTile - 1) / kTile) * ((problem.n + kTile - 1) / kTile);
  const int64_t blocks = std::min<int64_t>(tiles, Queue<Gpu>::kMaxBlocks);
  launch(queue, kernel, gpu::LaunchSize{blocks, kTile * kTile, 2 * kTile * kTile * sizeof(C)});
  return {};
}

template <GpuDevice Gpu>
Status gemm(Queue<Gpu>& queue, const GemmProblem& problem, const int64_t* a, const int64_t* b, int64_t* c) {
  return gemm_by_kernel<uint64_t>(queue, problem, reinterpret_cast<const uint64_t*>(a),
                                  reinterpret_cast<const uint64_t*>(b), reinterpret_cast<uint64_t*>(c));
}

}  // namespace parallax::runtime
