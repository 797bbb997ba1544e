// SPDX-License-Identifier: Apache-2.0
// Sorts and running sums of rows by CUB, whose headers are read here alone: they take long to compile. Keys of 8 and 16
// bits are stored in 32, of which only these are compared, so that there are two types of keys. CUB says of the radix
// sorts that they are stable (device_radix_sort.cuh, block_radix_sort.cuh), so their result is but one.
// DeviceSegmentedSort is not used: without dynamic parallelism it waits for the stream (dispatch_segmented_sort.cuh,
// SortWithPartitioning).
#include <algorithm>

#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_store.cuh>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <cuda_runtime.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

#include "runtime/device/cuda/queue_cuda.h"
#include "runtime/device/gpu/library_rows.h"

namespace parallax::runtime::gpu {
namespace {

Status checked(cudaError_t error) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // reported here, and not by the next launch
  return cuda_error("CUB", error);
}

// call(part, memory, bytes) says with a null pointer how much memory it needs, and works with it. The first part is the
// largest; the others get the same memory, one after the other.
template <class Call>
Status for_each_part(Queue<Cuda>& queue, int64_t parts, const Call& call) {
  size_t bytes = 0;
  PX_TRY(checked(call(0, nullptr, bytes)));
  const Tensor memory = PX_TRY(queue.allocate(DType::uint8, Shape{std::max<int64_t>(1, static_cast<int64_t>(bytes))}));
  for (int64_t part = 0; part < parts; ++part) PX_TRY(checked(call(part, memory.storage().get(), bytes)));
  return {};
}

template <class Key>
struct Rows {
  const Key* keys_in;
  const uint32_t* positions_in;
  Key* keys_out;
  uint32_t* positions_out;
  int64_t rows, length;
  int bits;
  cudaStream_t stream;
};

// A block for each row. The padding of the block after a row has the largest key, and stays after equal ones.
template <class Key, int kThreads, int kItems>
__global__ void sort_short_rows(Rows<Key> problem) {
  using Load = cub::BlockLoad<Key, kThreads, kItems, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using LoadElements = cub::BlockLoad<uint32_t, kThreads, kItems, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Sort = cub::BlockRadixSort<Key, kThreads, kItems, uint32_t>;
  __shared__ union {
    typename Load::TempStorage load;
    typename LoadElements::TempStorage load_positions;
    typename Sort::TempStorage sort;
  } memory;
  Key keys[kItems];
  uint32_t locations[kItems];
  const int length = static_cast<int>(problem.length);
  for (int64_t row = blockIdx.x; row < problem.rows; row += gridDim.x) {
    const int64_t start = row * problem.length;
    Load(memory.load).Load(problem.keys_in + start, keys, length, static_cast<Key>(~Key{0}));
    __syncthreads();
    LoadElements(memory.load_positions).Load(problem.positions_in + start, locations, length, 0U);
    __syncthreads();
    Sort(memory.sort).SortBlockedToStriped(keys, locations, 0, problem.bits);
    cub::StoreDirectStriped<kThreads>(static_cast<int>(threadIdx.x), problem.keys_out + start, keys, length);
    cub::StoreDirectStriped<kThreads>(static_cast<int>(threadIdx.x), problem.positions_out + start, locations, length);
    __syncthreads();
  }
}

template <class Key>
Status sort_in_blocks(const Rows<Key>& problem) {
  constexpr int kFewThreads = 64, kFewItems = 4, kThreads = 256;
  constexpr int kItems = static_cast<int>(kMostInBlock) / kThreads;
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(problem.rows, INT32_MAX));
  if (problem.length <= kFewThreads * kFewItems) {
    sort_short_rows<Key, kFewThreads, kFewItems><<<blocks, kFewThreads, 0, problem.stream>>>(problem);
  } else {
    sort_short_rows<Key, kThreads, kItems><<<blocks, kThreads, 0, problem.stream>>>(problem);
  }
  return checked(cudaGetLastError());
}

struct RowStart {
  int length;
  __host__ __device__ int operator()(int row) const { return row * length; }
};

// CUB counts the elements of a call in int: as many rows at once as that allows.
template <class Key>
Status sort_by_segments(Queue<Cuda>& queue, const Rows<Key>& problem) {
  const int64_t at_once = std::min(problem.rows, INT32_MAX / problem.length);
  const auto length = static_cast<int>(problem.length);
  const auto starts = thrust::make_transform_iterator(thrust::make_counting_iterator(0), RowStart{length});
  const int64_t parts = (problem.rows + at_once - 1) / at_once;
  return for_each_part(queue, parts, [&](int64_t part, void* memory, size_t& bytes) {
    const auto rows = static_cast<int>(std::min(at_once, problem.rows - part * at_once));
    const int64_t start = part * at_once * problem.length;
    return cub::DeviceSegmentedRadixSort::SortPairs(
        memory, bytes, problem.keys_in + start, problem.keys_out + start, problem.positions_in + start,
        problem.positions_out + start, rows * length, rows, starts, starts + 1, 0, problem.bits, problem.stream);
  });
}

template <class Key>
Status sort_row_by_row(Queue<Cuda>& queue, const Rows<Key>& problem) {
  const auto length = static_cast<uint32_t>(problem.length);
  return for_each_part(queue, problem.rows, [&](int64_t row, void* memory, size_t& bytes) {
    const int64_t start = row * problem.length;
    return cub::DeviceRadixSort::SortPairs(memory, bytes, problem.keys_in + start, problem.keys_out + start,
                                           problem.positions_in + start, problem.positions_out + start, length, 0,
                                           problem.bits, problem.stream);
  });
}

template <class Key>
Status sort_as(Queue<Cuda>& queue, const RadixRows& problem, const RadixItems& in, const RadixItems& out) {
  const Rows<Key> rows{reinterpret_cast<const Key*>(in.keys.data),
                       reinterpret_cast<const uint32_t*>(in.locations.data),
                       reinterpret_cast<Key*>(out.keys.data),
                       reinterpret_cast<uint32_t*>(out.locations.data),
                       problem.rows,
                       problem.length,
                       problem.bits,
                       static_cast<cudaStream_t>(queue.stream())};
  switch (sort_way(problem.rows, problem.length)) {
    case SortWay::in_blocks:
      return sort_in_blocks(rows);
    case SortWay::by_segments:
      return sort_by_segments(queue, rows);
    case SortWay::row_by_row:
      return sort_row_by_row(queue, rows);
  }
  return {};
}

struct Plus {
  __host__ __device__ uint64_t operator()(uint64_t a, uint64_t b) const { return a + b; }
};
struct Times {
  __host__ __device__ uint64_t operator()(uint64_t a, uint64_t b) const { return a * b; }
};

// In place, which CUB allows (device_scan.cuh).
template <class Combine>
Status run_as(Queue<Cuda>& queue, int64_t rows, int64_t length, uint64_t* values) {
  return for_each_part(queue, rows, [&](int64_t row, void* memory, size_t& bytes) {
    return cub::DeviceScan::InclusiveScan(memory, bytes, values + row * length, values + row * length, Combine{},
                                          static_cast<int>(length), static_cast<cudaStream_t>(queue.stream()));
  });
}

}  // namespace

template <>
Status radix_sort(Queue<Cuda>& queue, const RadixRows& problem, const RadixItems& in, const RadixItems& out) {
  if (problem.bits > 32) return sort_as<uint64_t>(queue, problem, in, out);
  return sort_as<uint32_t>(queue, problem, in, out);
}

template <>
Status run_rows(Queue<Cuda>& queue, int64_t rows, int64_t length, bool is_product, const MutableView& values) {
  auto* elements = reinterpret_cast<uint64_t*>(values.data);
  return is_product ? run_as<Times>(queue, rows, length, elements) : run_as<Plus>(queue, rows, length, elements);
}

}  // namespace parallax::runtime::gpu
