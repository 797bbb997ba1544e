// SPDX-License-Identifier: Apache-2.0
// Operations of a library on rows of integers: sorts, and running sums and products. On a GPU that is CUB
// (sort_cuda.cu), in the emulation plain loops of the host. Nothing waits, and memory depends on shapes alone, so that
// runs can be recorded.
#pragma once

#include "runtime/device/devices.h"

namespace parallax::runtime::gpu {

constexpr int64_t kMostInBlock = 2048;              // elements that one block sorts in its shared memory
constexpr int64_t kFillsDevice = int64_t{1} << 20;  // elements that keep a device busy by themselves

// True where each row gets the whole device, one after the other, instead of a block each. A row of its own costs a few
// launches, about what a block takes for `kMostInBlock` elements; the blocks of all rows run side by side. An estimate:
// it has not been measured on a GPU.
constexpr bool is_for_whole_device(int64_t rows, int64_t length) {
  return length >= kFillsDevice || length / kMostInBlock > rows;
}

// Running sums and products of the other rows take a block each. Older CUBs count the elements of a scan in
// int; longer rows are left alone.
constexpr bool is_run_by_library(int64_t rows, int64_t length) {
  return length <= INT32_MAX && is_for_whole_device(rows, length);
}

enum class SortWay : uint8_t {
  in_blocks,    // many short rows: a block each, in shared memory
  by_segments,  // a block each, too, in passes over device memory
  row_by_row,
};
constexpr SortWay sort_way(int64_t rows, int64_t length) {
  if (length <= kMostInBlock) return SortWay::in_blocks;
  return is_for_whole_device(rows, length) ? SortWay::row_by_row : SortWay::by_segments;
}

// The lowest `bits` of the keys are looked at; all others are zero.
struct RadixRows {
  int64_t rows, length;  // a row has less than 2^32
  int bits;
};
struct RadixItems {
  MutableView keys;       // uint32, or uint64 for more than 32 bits
  MutableView locations;  // uint32
};

// Each row of `out` has the items of `in` by rising keys, equal ones in the order in which they stood.
template <GpuDevice Gpu>
Status radix_sort(Queue<Gpu>& queue, const RadixRows& problem, const RadixItems& in, const RadixItems& out);

// Running sums or products of rows for which is_run_by_library holds: values[i] becomes the sum or product of all up to
// i, modulo 2^64, which is right for signed integers, too; uint64.
template <GpuDevice Gpu>
Status run_rows(Queue<Gpu>& queue, int64_t rows, int64_t length, bool is_product, const MutableView& values);

}  // namespace parallax::runtime::gpu
