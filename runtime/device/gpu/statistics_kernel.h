// SPDX-License-Identifier: Apache-2.0
// The statistics of a tensor's chunks, taken on its device: the additions of the host's kernel
// (inspector/dump/statistics/statistics_kernel_body.h) in the same order, so that it gives the same bits.
#pragma once

#include <limits>

#include "inspector/tensor/chunk_statistics.h"
#include "inspector/tensor/element_order.h"
#include "runtime/device/gpu/launch.h"
#include "runtime/device/gpu/memory.h"

namespace parallax::runtime {
namespace gpu {

PX_HD inline bool is_finite(double x) { return x - x == 0.0; }

// The positions of elements that are counted one after another: in order, or [N, C, spatial...] counted with C last.
// The chunk's other elements of a line belong to other positions of its channels, and are read from the cache.
struct CountedElements {
  int64_t channels = 0;  // 0: in order
  int64_t locations = 0;
  int parts = 1;           // numbers of an element: complex ones have two
  bool is_narrow = false;  // all positions fit into 32 bits, which a GPU divides in a fraction of the time

  PX_HD int64_t position(int64_t index) const {
    if (channels == 0) return index;
    return is_narrow ? position_as<uint32_t>(index) : position_as<int64_t>(index);
  }

 private:
  template <class Index>
  PX_HD int64_t position_as(int64_t at) const {
    const auto index = static_cast<Index>(at), numbers = static_cast<Index>(parts), all = static_cast<Index>(channels);
    const Index element = index / numbers, row = element / all, batch = row / static_cast<Index>(locations);
    const Index channel = batch * all + element % all, location = row % static_cast<Index>(locations);
    return (channel * static_cast<Index>(locations) + location) * numbers + index % numbers;
  }
};

// A block for each chunk. All its threads bring a bundle of it to shared memory; then the first two warps add up the
// bundle's part of the projections, an element of a lane each; the third adds up the squares, the last the results of
// comparisons, a lane each.
template <class Device>
struct ChunkStatisticsKernel {
  static constexpr const char* kName = "chunk_statistics";
  static constexpr int kThreads = 4 * kWarp;
  static constexpr int kGroups = statistics::kGroups;
  static constexpr int kRows = statistics::kRows;
  static constexpr int kGroupElements = static_cast<int>(statistics::kGroupElements);
  static constexpr int kPieceElements = static_cast<int>(statistics::kBundleElements);
  static constexpr int kLanes = statistics::kLanes;
  static constexpr int kProjections = statistics::kSignSequences;
  // The rows of the lanes' results: projections, then these, of eight lanes each.
  enum Row : int { kSum = kProjections, kSquares, kMin, kMax, kZeros, kNan, kPositiveInf, kNegativeInf, kRowCount };
  // The elements of a bundle, and what they held before any group was subtracted.
  static constexpr int kPositions = kPieceElements + kRowCount * kLanes;
  static constexpr int kAdded = kPositions + kGroupElements;
  static constexpr int kShared = kAdded + kGroupElements + 2;
  static_assert(kProjections * kLanes == 2 * kWarp && kRows == kProjections);

  Source in;
  Elements<Device, statistics::ChunkStatistics> out;
  int64_t count, chunks;
  CountedElements counted;

  // One thread's part: its lane, and what it adds up.
  struct Partial {
    double sum = 0;        // of the lane's projection, or of the squares of its even rows
    double other_sum = 0;  // of the lane's numbers, or of the squares of its odd rows
    double min = INFINITY, max = -INFINITY;
    double zeros = 0, nan = 0, positive_inf = 0, negative_inf = 0;
  };

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    const auto memory = launch.template shared<double>(kShared);
    for (int64_t chunk = launch.block(); chunk < chunks; chunk += launch.blocks()) {
      const int64_t first = chunk * statistics::kChunkElements;
      const int64_t left = count - first;
      const int64_t length = left < statistics::kChunkElements ? left : statistics::kChunkElements;
      summarize(launch, memory, chunk, first, length);
    }
  }

 private:
  PX_HD double number(int64_t index) const { return load<Device, double>(in, counted.position(index)); }

  // Calls add(bundle, groups) for every bundle of the chunk, of whose groups these are whole, in shared memory.
  template <class Launch, class Memory, class Add>
  PX_HD void for_each_bundle(Launch& launch, const Memory& memory, int64_t first, int64_t groups,
                             const Add& add) const {
    for (int64_t begin = 0; begin < groups; begin += kGroups) {
      const auto here = static_cast<int>(groups - begin < kGroups ? groups - begin : kGroups);
      const int elements = here * kGroupElements;
      for (int i = launch.thread(); i < elements; i += launch.threads())
        memory[i] = number(first + begin * kGroupElements + i);
      launch.barrier();
      add(begin / kGroups, here);
      launch.barrier();
    }
  }

  template <class Launch, class Memory>
  PX_HD void summarize(Launch& launch, const Memory& memory, int64_t chunk, int64_t first, int64_t length) const {
    const int thread = launch.thread();
    const int64_t groups = length / kGroupElements;
    const int64_t first_bundle = first / statistics::kBundleElements;
    Partial partial;
    for_each_bundle(launch, memory, first, groups, [&](int64_t bundle, int here) {
      if (thread < kGroupElements) {
        add_location(memory, thread, here);
      } else if (thread % kWarp < kLanes) {
        add_lane(memory, thread, here * kRows, partial);
      }
      launch.barrier();
      if (thread < kGroupElements) add_projection(memory, thread, first_bundle + bundle, partial);
    });
    if (thread / kWarp == 2) partial.sum += partial.other_sum;
    put(memory, thread, partial);
    launch.barrier();
    const int64_t tail = first + groups * kGroupElements;
    if (thread == 0) fold(memory, chunk, tail, length, groups);
    launch.barrier();
    center(launch, memory, chunk, first, groups, tail, first + length);
  }

  // Adds the results of a bundle's groups for one element of one lane.
  template <class Memory>
  PX_HD static void add_location(const Memory& memory, int thread, int groups) {
    const int location = thread / kLanes;
    double sum = 0, added = 0;
    for (int group = 0; group < groups; ++group) {
      const int row = statistics::row_index(group, location);  // which undoes itself
      const double value = memory[group * kGroupElements + row * kLanes + thread % kLanes];
      const double x = is_finite(value) ? value : 0.0;
      sum = group < statistics::kAddedGroups ? sum + x : sum - x;
      if (group < statistics::kAddedGroups) added = sum;
    }
    memory[kPositions + thread] = sum;
    memory[kAdded + thread] = added;
  }

  template <class Memory>
  PX_HD static void add_lane(const Memory& memory, int thread, int rows, Partial& partial) {
    for (int row = 0; row < rows; ++row) {
      const double x = memory[row * kLanes + thread % kWarp];
      if (thread / kWarp == 3) {
        compare(x, partial);
      } else if (is_finite(x)) {
        (row % 2 == 0 ? partial.sum : partial.other_sum) += x * x;
      }
    }
  }

  // The lane's sum over the elements with the signs of row k of the Hadamard matrix, added pair by pair as the
  // butterflies of the transform do.
  template <class Memory>
  PX_HD static void add_projection(const Memory& memory, int thread, int64_t bundle, Partial& partial) {
    const int lane = thread % kLanes, k = thread / kLanes;
    double x[kRows];
    for (int location = 0; location < kRows; ++location) x[location] = memory[kPositions + location * kLanes + lane];
    for (int step = 1; step < kRows; step *= 2) {
      const bool differs = (k & step) != 0;
      for (int row = 0; row < kRows; row += 2 * step)
        x[row] = differs ? x[row] - x[row + step] : x[row] + x[row + step];
    }
    const bool is_negative = (statistics::bundle_sign_bits(bundle) >> k & 1U) != 0;
    partial.sum += is_negative ? -x[0] : x[0];
    if (k != 0) return;
    const auto added = [&](int location) -> double { return memory[kAdded + location * kLanes + lane]; };
    const double sum =
        ((added(0) + added(1)) + (added(2) + added(3))) + ((added(4) + added(5)) + (added(6) + added(7)));
    partial.other_sum += sum + (sum - x[0]);
  }

  template <class Found>
  PX_HD static void compare(double x, Found& found) {
    found.min = x < found.min ? x : found.min;
    found.max = x > found.max ? x : found.max;
    found.zeros += x == 0.0 ? 1 : 0;
    found.nan += x != x ? 1 : 0;
    found.positive_inf += x == INFINITY ? 1 : 0;
    found.negative_inf += x == -INFINITY ? 1 : 0;
  }

  template <class Memory>
  PX_HD static auto row_of(const Memory& memory, int row) {
    return [&memory, row](int lane) -> double& { return memory[kPieceElements + row * kLanes + lane]; };
  }

  template <class Memory>
  PX_HD static void put(const Memory& memory, int thread, const Partial& partial) {
    const int lane = thread % kLanes;
    const int k = thread / kLanes;
    if (k < kProjections) row_of(memory, k)(lane) = partial.sum;
    if (k == 0) row_of(memory, kSum)(lane) = partial.other_sum;
    if (thread % kWarp >= kLanes) return;
    if (thread / kWarp == 2) row_of(memory, kSquares)(lane) = partial.sum;
    if (thread / kWarp != 3) return;
    const double found[] = {partial.min, partial.max,          partial.zeros,
                            partial.nan, partial.positive_inf, partial.negative_inf};
    for (int row = kMin; row < kRowCount; ++row) row_of(memory, row)(lane) = found[row - kMin];
  }

  template <class Memory>
  PX_HD static double sum_of(const Memory& memory, int row) {
    const auto x = row_of(memory, row);
    return ((x(0) + x(1)) + (x(2) + x(3))) + ((x(4) + x(5)) + (x(6) + x(7)));
  }
  template <class Memory>
  PX_HD static int64_t count_of(const Memory& memory, int row) {
    return static_cast<int64_t>(sum_of(memory, row));
  }

  // The lanes, then the elements of the last, incomplete group one by one.
  template <class Memory>
  PX_HD void fold(const Memory& memory, int64_t chunk, int64_t tail, int64_t length, int64_t groups) const {
    statistics::ChunkStatistics total{};
    total.min = INFINITY;
    total.max = -INFINITY;
    for (int lane = 0; lane < kLanes; ++lane) {
      const double least = row_of(memory, kMin)(lane);
      const double most = row_of(memory, kMax)(lane);
      total.min = least < total.min ? least : total.min;
      total.max = most > total.max ? most : total.max;
    }
    total.sum = sum_of(memory, kSum);
    total.sum_of_squares = sum_of(memory, kSquares);
    total.zeros = count_of(memory, kZeros);
    total.nan = count_of(memory, kNan);
    total.positive_inf = count_of(memory, kPositiveInf);
    total.negative_inf = count_of(memory, kNegativeInf);
    for (int k = 0; k < kProjections; ++k) {
      for (int lane = 0; lane < kLanes; ++lane) {
        total.projections[k] += statistics::lane_sign(k, lane) * row_of(memory, k)(lane);
      }
    }
    const int64_t end = chunk * statistics::kChunkElements + length;
    const int64_t bundle = tail / statistics::kBundleElements;
    const auto group = static_cast<int>(groups % kGroups);
    for (int64_t i = tail; i < end; ++i) add_element(number(i), static_cast<int>(i - tail), group, bundle, total);
    finish(memory, chunk, length, total);
  }

  PX_HD static void add_element(double x, int position, int group, int64_t bundle, statistics::ChunkStatistics& total) {
    compare(x, total);
    if (!is_finite(x)) return;
    total.sum += x;
    total.sum_of_squares += x * x;
    const int location = statistics::row_index(group, position / kLanes);
    const double signed_x = statistics::group_sign(group) * x;
    for (int k = 0; k < kProjections; ++k) {
      const double bundle_sign = (statistics::bundle_sign_bits(bundle) >> k & 1U) != 0 ? -1.0 : 1.0;
      total.projections[k] +=
          bundle_sign * statistics::row_sign(k, location) * statistics::lane_sign(k, position % kLanes) * signed_x;
    }
  }

  // The mean is left in shared memory where the squares around it need a pass of their own.
  template <class Memory>
  PX_HD void finish(const Memory& memory, int64_t chunk, int64_t length, statistics::ChunkStatistics& total) const {
    total.count = length - total.nan - total.positive_inf - total.negative_inf;
    bool needs_pass = false;
    if (total.count > 0) {
      const double mean = total.sum / static_cast<double>(total.count);
      total.centered_squares = total.sum_of_squares - total.sum * mean;
      needs_pass = total.centered_squares < statistics::kLeastDeviation * total.sum_of_squares;
      memory[kShared - 1] = mean;
    }
    memory[kShared - 2] = needs_pass ? 1.0 : 0.0;
    out[chunk] = total;
  }

  // For chunks whose spread is small compared with their mean.
  template <class Launch, class Memory>
  PX_HD void center(Launch& launch, const Memory& memory, int64_t chunk, int64_t first, int64_t groups, int64_t tail,
                    int64_t end) const {
    const bool needs_pass = memory[kShared - 2] != 0.0;
    const double mean = memory[kShared - 1];
    launch.barrier();  // nobody writes the next chunk's before all have read this one's
    if (!needs_pass) return;
    const int thread = launch.thread();
    double sum = 0;
    for_each_bundle(launch, memory, first, groups, [&](int64_t, int here) {
      if (thread >= kLanes) return;
      for (int row = 0; row < here * kRows; ++row) {
        const double x = memory[row * kLanes + thread];
        if (is_finite(x)) sum += (x - mean) * (x - mean);
      }
    });
    if (thread < kLanes) row_of(memory, kSquares)(thread) = sum;
    launch.barrier();
    if (thread == 0) {
      double squares = sum_of(memory, kSquares);
      for (int64_t i = tail; i < end; ++i) {
        const double x = number(i);
        if (is_finite(x)) squares += (x - mean) * (x - mean);
      }
      out[chunk].centered_squares = squares;
    }
    launch.barrier();
  }
};

// The kernel's view of a tensor: complex ones as twice as many real ones.
struct StatisticsSource {
  DType dtype = DType::undefined;
  int64_t count = 0;
  CountedElements counted = {};
};
inline StatisticsSource statistics_source(const TensorView& view, ElementOrder order) {
  StatisticsSource source{view.dtype, view.element_count(), {}};
  if (view.dtype == DType::complex64) source.dtype = DType::float32;
  if (view.dtype == DType::complex128) source.dtype = DType::float64;
  if (source.dtype != view.dtype) source.counted.parts = 2;
  source.count *= source.counted.parts;
  if (order == ElementOrder::row_major || source.count == 0) return source;
  source.counted.channels = view.shape[1];
  source.counted.locations = view.element_count() / (view.shape[0] * view.shape[1]);
  source.counted.is_narrow = source.count <= std::numeric_limits<uint32_t>::max();
  return source;
}

}  // namespace gpu

// The statistics of each chunk of the view, counted in that order, as bytes; an undefined tensor where elements of its
// type are not read on the device.
template <GpuDevice Gpu>
Result<Tensor> chunk_statistics_by_kernel(Queue<Gpu>& queue, const TensorView& view, ElementOrder order) {
  using Kernel = gpu::ChunkStatisticsKernel<Gpu>;
  const gpu::StatisticsSource source = gpu::statistics_source(view, order);
  if (source.count == 0 || !storage::visit_storage(source.dtype, [](auto*) {})) return Tensor();
  const int64_t chunks = (source.count + statistics::kChunkElements - 1) / statistics::kChunkElements;
  const auto bytes = chunks * static_cast<int64_t>(sizeof(statistics::ChunkStatistics));
  Tensor result = PX_TRY(queue.allocate(DType::uint8, Shape{bytes}));
  auto* out = reinterpret_cast<statistics::ChunkStatistics*>(result.storage().get());
  const Kernel kernel{{view.data, source.dtype}, {out}, source.count, chunks, source.counted};
  const int64_t blocks = std::min<int64_t>(chunks, Queue<Gpu>::kMaxBlocks);
  launch(queue, kernel, gpu::LaunchSize{blocks, Kernel::kThreads, Kernel::kShared * sizeof(double)});
  PX_TRY(queue.take_failure());
  return result;
}

}  // namespace parallax::runtime
