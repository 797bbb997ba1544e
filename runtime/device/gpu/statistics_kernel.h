// SPDX-License-Identifier: Apache-2.0
// The statistics of a tensor's chunks, taken on its device: the additions of the host's kernel
// (inspector/dump/statistics/statistics_kernel_body.h) in the same order, so that it gives the same bits.
#pragma once

#include <cmath>

#include "inspector/tensor/chunk_statistics.h"
#include "runtime/device/gpu/block.h"
#include "runtime/device/gpu/launch.h"
#include "runtime/device/gpu/memory.h"
#include "runtime/device/gpu/statistics_source.h"

namespace parallax::runtime {
namespace gpu {

PX_HD inline bool is_finite(double x) { return x - x == 0.0; }

// A block for two chunks, half of its threads for each. They bring a stage of it to shared memory and compare its
// elements on the way, which needs no order. What is summed in order follows: of each bundle a thread for each position
// adds up the groups, then one for each lane of a projection takes its sign from the transform; the squares of both
// chunks take one warp, a thread for each lane of the even and of the odd rows.
// S: the storage type of floats, which are read in packs of 16 bytes; void for all others.
template <class Device, class S>
struct ChunkStatisticsKernel {
  static constexpr const char* kName = "chunk_statistics";
  static constexpr bool kIsTyped = !std::is_void_v<S>;
  using Number = std::conditional_t<kIsTyped, float, double>;  // the values that are compared and kept
  using Stored = std::conditional_t<kIsTyped, S, double>;
  static constexpr int kPack = kIsTyped ? 16 / static_cast<int>(sizeof(Stored)) : 4;  // elements of a thread and stage
  static constexpr int kHalf = 4 * kWarp;
  static constexpr int kThreads = 2 * kHalf;
  static constexpr int kGroups = statistics::kGroups;
  static constexpr int kRows = statistics::kRows;
  static constexpr int kGroupElements = static_cast<int>(statistics::kGroupElements);
  static constexpr int kStageElements = kHalf * kPack;
  static constexpr int kBundles = kStageElements / static_cast<int>(statistics::kBundleElements);  // of a stage
  static constexpr int kLeastBlocks = kBundles > 1 ? 2 : 3;  // sums of squares wait for one another: hidden by others
  static constexpr int kChunkBundles = static_cast<int>(statistics::kChunkElements / statistics::kBundleElements);
  static constexpr int kLanes = statistics::kLanes;
  static constexpr int kProjections = statistics::kSignSequences;
  static_assert(kBundles >= 1 && kStageElements % kGroupElements == 0 && kBundles * kGroupElements <= kHalf);
  static_assert(kProjections * kLanes == 2 * kWarp && kRows == kProjections && 4 * kLanes == kWarp);
  // The numbers of a half besides elements: what positions hold before the transform, and what they held before any
  // group was subtracted; the results of lanes; what the warps found.
  enum Row : int { kSum = kProjections, kEvenSquares, kOddSquares, kRowCount };
  enum Kind : int { kMin, kMax, kZeros, kNan, kPositiveInf, kNegativeInf, kFoundCount };
  static constexpr int kAdded = kBundles * kGroupElements;
  static constexpr int kResults = 2 * kAdded;
  static constexpr int kFound = kResults + kRowCount * kLanes;
  static constexpr int kNeedsPass = kFound + kHalf / kWarp * kFoundCount;
  static constexpr int kMean = kNeedsPass + 1;
  static constexpr int kNumbers = kMean + 1;
  static constexpr size_t kSharedBytes =
      2 * (kStageElements * sizeof(Number) + kNumbers * sizeof(double) + kChunkBundles * sizeof(uint32_t));

  Source in;
  bool is_packed;  // elements follow one another, from an address that packs may have
  Elements<Device, statistics::ChunkStatistics> out;
  int64_t count, chunks;
  CountedElements counted;

  struct alignas(16) Pack {
    Stored values[kPack];
  };
  struct alignas(16) Quad {  // of numbers of a pack, in shared memory
    Number values[4];
  };

  // The results of a thread's comparisons.
  struct Found {
    Number min = INFINITY, max = -INFINITY;
    uint32_t zeros = 0, nan = 0, positive_inf = 0, negative_inf = 0;
  };
  // One thread's sums: of its lane's projection and numbers, or of the squares of its rows.
  struct Partial {
    double sum = 0, other_sum = 0, squares = 0;
  };

  // The block's memory and where its half of the threads stands.
  template <class Launch>
  struct Half {
    decltype(std::declval<Launch&>().template shared<Number>(0)) all_elements;
    decltype(std::declval<Launch&>().template shared<double>(0)) all_numbers;
    decltype(std::declval<Launch&>().template shared<uint32_t>(0)) all_signs;
    int index = 0, thread = 0;
    int64_t chunk = 0, first = 0, length = 0;  // no length: this half has no chunk

    PX_HD Number& element(int half, int i) const { return all_elements[half * kStageElements + i]; }
    PX_HD double& number(int half, int i) const { return all_numbers[half * kNumbers + i]; }
    PX_HD double& number(int i) const { return number(index, i); }
    PX_HD double& result(int row, int lane) const { return number(kResults + row * kLanes + lane); }
    PX_HD uint32_t& signs(int bundle) const { return all_signs[index * kChunkBundles + bundle]; }
    PX_HD int groups() const { return static_cast<int>(length) / kGroupElements; }
    PX_HD int64_t tail() const { return first + groups() * kGroupElements; }
  };

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    Half<Launch> half{launch.template shared<Number>(2 * kStageElements), launch.template shared<double>(2 * kNumbers),
                      launch.template shared<uint32_t>(2 * kChunkBundles)};
    half.index = launch.thread() / kHalf;
    half.thread = launch.thread() % kHalf;
    for (int64_t pair = launch.block(); 2 * pair < chunks; pair += launch.blocks()) {
      half.chunk = 2 * pair + half.index;
      half.first = half.chunk * statistics::kChunkElements;
      half.length = length_of(half.chunk);
      summarize(launch, half, groups_of(2 * pair), groups_of(2 * pair + 1));
    }
  }

 private:
  PX_HD int64_t length_of(int64_t chunk) const {
    const int64_t left = count - chunk * statistics::kChunkElements;
    return left < 0 ? 0 : (left < statistics::kChunkElements ? left : statistics::kChunkElements);
  }
  PX_HD int groups_of(int64_t chunk) const { return static_cast<int>(length_of(chunk)) / kGroupElements; }
  PX_HD static int groups_at(int groups, int begin) {  // of a stage that begins there
    const int left = groups - begin;
    return left < 0 ? 0 : (left < kBundles * kGroups ? left : kBundles * kGroups);
  }

  PX_HD double number(int64_t index) const { return load<Device, double>(in, counted.position(index)); }
  PX_HD Stored stored(int64_t index) const {
    if constexpr (kIsTyped) {
      return Elements<Device, const S>{reinterpret_cast<const S*>(in.data)}[counted.position(index)];
    } else {
      return number(index);
    }
  }
  PX_HD static Number compared(Stored value) {
    if constexpr (std::is_arithmetic_v<Stored>)
      return value;
    else
      return storage::decode(value);
  }

  // This thread's part of the `elements` from `first` on: neighbors, or every kHalf-th.
  PX_HD Pack fetch(int thread, int64_t first, int elements) const {
    Pack pack{};
    if (is_packed) {
      const int begin = thread * kPack;
      if (begin < elements)
        pack = Elements<Device, const Pack>{reinterpret_cast<const Pack*>(in.data)}[(first + begin) / kPack];
    } else {
      for (int i = 0; i < kPack; ++i) {
        if (i * kHalf + thread < elements) pack.values[i] = stored(first + i * kHalf + thread);
      }
    }
    return pack;
  }

  // Keeps the elements for the sums, of which those that are not finite are no part.
  template <class Launch>
  PX_HD void keep(const Half<Launch>& half, const Pack& pack, int elements, Found& found) const {
    Number x[kPack];
    for (int i = 0; i < kPack; ++i) x[i] = compared(pack.values[i]);
    if (!is_packed) {
      for (int i = 0; i < kPack; ++i) {
        const int index = i * kHalf + half.thread;
        if (index < elements) compare<1>(x + i, found);
        if (index < elements) half.element(half.index, index) = x[i];
      }
    } else if (half.thread * kPack < elements) {  // then all of the pack: groups are several packs
      compare<kPack>(x, found);
      for (int i = 0; i < kPack; i += 4) {
        *reinterpret_cast<Quad*>(&half.element(half.index, half.thread * kPack + i)) = {x[i], x[i + 1], x[i + 2],
                                                                                        x[i + 3]};
      }
    }
  }

  template <int kCount>
  PX_HD static void compare(Number* x, Found& found) {
    bool are_finite = true;
    for (int i = 0; i < kCount; ++i) {
      found.min = std::fmin(found.min, x[i]);
      found.max = std::fmax(found.max, x[i]);
      found.zeros += x[i] == Number(0) ? 1 : 0;
      are_finite &= std::fabs(x[i]) < Number(INFINITY);
    }
    if (are_finite) return;
    for (int i = 0; i < kCount; ++i) {
      found.nan += x[i] != x[i] ? 1 : 0;
      found.positive_inf += x[i] == Number(INFINITY) ? 1 : 0;
      found.negative_inf += x[i] == Number(-INFINITY) ? 1 : 0;
      x[i] = std::fabs(x[i]) < Number(INFINITY) ? x[i] : Number(0);
    }
  }

  // Calls add(begin) for every stage of the chunks that begins at this group, with its elements in shared memory; the
  // next ones are on their way meanwhile.
  template <class Launch, class Add>
  PX_HD void for_each_stage(Launch& launch, const Half<Launch>& half, int stage_groups, Found& found,
                            const Add& add) const {
    const auto elements_at = [&](int begin) { return groups_at(half.groups(), begin) * kGroupElements; };
    Pack next = fetch(half.thread, half.first, elements_at(0));
    for (int begin = 0; begin < stage_groups; begin += kBundles * kGroups) {
      keep(half, next, elements_at(begin), found);
      launch.barrier();
      const int after = begin + kBundles * kGroups;
      if (after < stage_groups) next = fetch(half.thread, half.first + after * kGroupElements, elements_at(after));
      add(begin);
    }
  }

  template <class Launch>
  PX_HD void summarize(Launch& launch, const Half<Launch>& half, int even_groups, int odd_groups) const {
    const int thread = half.thread;
    const int64_t first_bundle = half.first / statistics::kBundleElements;
    if (thread < kChunkBundles) half.signs(thread) = statistics::bundle_sign_bits(first_bundle + thread);
    Partial partial;
    Found found;
    for_each_stage(launch, half, even_groups, found, [&](int begin) {
      const int here = groups_at(half.groups(), begin);
      if (thread < kBundles * kGroupElements) add_groups(half, here);
      if (launch.thread() / kWarp == 2) {
        const int whose = thread % kWarp / (2 * kLanes);
        add_squares(half, whose, groups_at(whose == 0 ? even_groups : odd_groups, begin) * kRows, partial);
      }
      launch.barrier();
      if (thread < kGroupElements) {
        for (int bundle = 0; bundle * kGroups < here; ++bundle)
          add_projection(half, bundle, begin / kGroups + bundle, partial);
      }
    });
    put(launch, half, partial, found);
    launch.barrier();
    const double zero = first_zero(launch, half);
    if (half.length > 0) fold(half, zero);
    launch.barrier();
    center(launch, half, even_groups);
  }

  // Adds the results of a bundle's groups for one element of one lane.
  template <class Launch>
  PX_HD static void add_groups(const Half<Launch>& half, int groups_of_stage) {
    const int position = half.thread % kGroupElements, bundle = half.thread / kGroupElements;
    const int groups = groups_of_stage - bundle * kGroups;
    double sum = 0, added = 0;
    const auto add = [&](int group) {
      // Row j of a group goes to row_index(group, j), which undoes itself.
      const int element = position ^ (statistics::row_index(group, 0) * kLanes);
      const auto x =
          static_cast<double>(half.element(half.index, (bundle * kGroups + group) * kGroupElements + element));
      sum = group < statistics::kAddedGroups ? sum + x : sum - x;
      if (group < statistics::kAddedGroups) added = sum;
    };
    if (groups >= kGroups) {
      for (int group = 0; group < kGroups; ++group) add(group);
    } else {
      for (int group = 0; group < groups; ++group) add(group);
    }
    half.number(half.thread) = sum;
    half.number(kAdded + half.thread) = added;
  }

  // Each thread of the warp has a lane of the even or of the odd rows of one half. The squares of narrower floats are
  // exact, so that one rounding is as good as two.
  template <class Launch>
  PX_HD static void add_squares(const Half<Launch>& half, int whose, int rows, Partial& partial) {
    const int begin = half.thread % (2 * kLanes);
    const int end = rows * kLanes;
    for (int i = begin; i < end; i += 2 * kLanes) {
      const auto x = static_cast<double>(half.element(whose, i));
      if constexpr (kIsTyped) {
        partial.squares = std::fma(x, x, partial.squares);
      } else {
        partial.squares += x * x;
      }
    }
  }

  // The lane's sum over the elements with the signs of row k of the Hadamard matrix, added pair by pair as the
  // butterflies of the transform do; a product with a sign is exact.
  template <class Launch>
  PX_HD static void add_projection(const Half<Launch>& half, int bundle, int bundle_of_chunk, Partial& partial) {
    const int lane = half.thread % kLanes, k = half.thread / kLanes;
    const int positions = bundle * kGroupElements + lane;
    double x[kRows];
    for (int location = 0; location < kRows; ++location) x[location] = half.number(positions + location * kLanes);
    for (int step = 1; step < kRows; step *= 2) {
      const double sign = (k & step) != 0 ? -1.0 : 1.0;
      for (int row = 0; row < kRows; row += 2 * step) x[row] = std::fma(sign, x[row + step], x[row]);
    }
    const bool is_negative = (half.signs(bundle_of_chunk) >> k & 1U) != 0;
    partial.sum += is_negative ? -x[0] : x[0];
    if (k != 0) return;
    const auto added = [&](int location) -> double { return half.number(kAdded + positions + location * kLanes); };
    const double sum =
        ((added(0) + added(1)) + (added(2) + added(3))) + ((added(4) + added(5)) + (added(6) + added(7)));
    partial.other_sum += sum + (sum - x[0]);
  }

  template <class Launch>
  PX_HD static void put(Launch& launch, const Half<Launch>& half, const Partial& partial, const Found& found) {
    const int lane = half.thread % kLanes, k = half.thread / kLanes;
    if (k < kProjections) half.result(k, lane) = partial.sum;
    if (k == 0) half.result(kSum, lane) = partial.other_sum;
    if (launch.thread() / kWarp == 2) {
      const int row = k % 2 == 0 ? kEvenSquares : kOddSquares;
      half.number(half.thread % kWarp / (2 * kLanes), kResults + row * kLanes + lane) = partial.squares;
    }
    const Found all = merge_warp(launch, found, [](const Found& a, const Found& b) {
      return Found{std::fmin(a.min, b.min), std::fmax(a.max, b.max),         a.zeros + b.zeros,
                   a.nan + b.nan,           a.positive_inf + b.positive_inf, a.negative_inf + b.negative_inf};
    });
    if (half.thread % kWarp != 0) return;
    const Number numbers[kFoundCount] = {
        all.min, all.max, Number(all.zeros), Number(all.nan), Number(all.positive_inf), Number(all.negative_inf)};
    for (int i = 0; i < kFoundCount; ++i)
      half.number(kFound + half.thread / kWarp * kFoundCount + i) = static_cast<double>(numbers[i]);
  }

  // The results of one kind that the half's warps have found, in any order.
  template <class Launch, class Merge>
  PX_HD static double found_in(const Half<Launch>& half, int kind, const Merge& merge) {
    double result = half.number(kFound + kind);
    for (int warp = 1; warp < kHalf / kWarp; ++warp)
      result = merge(result, half.number(kFound + warp * kFoundCount + kind));
    return result;
  }
  template <class Launch>
  PX_HD static int64_t count_of(const Half<Launch>& half, int kind) {
    return static_cast<int64_t>(found_in(half, kind, [](double a, double b) { return a + b; }));
  }
  template <class Launch>
  PX_HD static double min_of(const Half<Launch>& half) {
    return found_in(half, kMin, [](double a, double b) { return std::fmin(a, b); });
  }
  template <class Launch>
  PX_HD static double max_of(const Half<Launch>& half) {
    return found_in(half, kMax, [](double a, double b) { return std::fmax(a, b); });
  }

  // The zero that a minimum or maximum of zero takes its sign from: the first in the lanes' order.
  template <class Launch>
  PX_HD double first_zero(Launch& launch, const Half<Launch>& half) const {
    if (half.thread >= kWarp || (min_of(half) != 0.0 && max_of(half) != 0.0)) return 0.0;
    const int64_t rows = half.groups() * kRows;
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int64_t begin = 0; begin < rows; begin += kWarp) {
        const int64_t row = begin + half.thread;
        const bool is_zero = row < rows && number(half.first + row * kLanes + lane) == 0.0;
        const uint32_t zeros = launch.ballot(is_zero);
        if (zeros == 0) continue;
        int first = 0;
        while ((zeros >> first & 1U) == 0) ++first;
        return number(half.first + (begin + first) * kLanes + lane);
      }
    }
    return 0.0;
  }

  template <class Launch>
  PX_HD static double sum_of(const Half<Launch>& half, int row) {
    const auto x = [&](int lane) { return half.result(row, lane); };
    return ((x(0) + x(1)) + (x(2) + x(3))) + ((x(4) + x(5)) + (x(6) + x(7)));
  }

  // The lanes, then the elements of the last, incomplete group one by one: a thread for each projection, one for
  // others.
  template <class Launch>
  PX_HD void fold(const Half<Launch>& half, double zero) const {
    if (half.thread < kProjections) out[half.chunk].projections[half.thread] = projection(half, half.thread);
    if (half.thread == kProjections) finish(half, zero);
  }

  template <class Launch>
  PX_HD double projection(const Half<Launch>& half, int k) const {
    double sum = 0;
    for (int lane = 0; lane < kLanes; ++lane) sum += statistics::lane_sign(k, lane) * half.result(k, lane);
    const int64_t tail = half.tail();
    const int group = half.groups() % kGroups;
    const auto left = static_cast<int>(half.first + half.length - tail);
    const unsigned bits = statistics::bundle_sign_bits(tail / statistics::kBundleElements);
    const double sign = ((bits >> k & 1U) != 0 ? -1.0 : 1.0) * statistics::group_sign(group);
    for (int position = 0; position < left; ++position) {
      const double x = number(tail + position);
      if (!is_finite(x)) continue;
      const int location = statistics::row_index(group, position / kLanes);
      sum += sign * statistics::row_sign(k, location) * statistics::lane_sign(k, position % kLanes) * x;
    }
    return sum;
  }

  // The mean is left in shared memory, for chunks whose squares need a pass of their own.
  template <class Launch>
  PX_HD void finish(const Half<Launch>& half, double zero) const {
    double min = min_of(half) == 0.0 ? zero : min_of(half);
    double max = max_of(half) == 0.0 ? zero : max_of(half);
    for (int lane = 0; lane < kLanes; ++lane) half.result(kEvenSquares, lane) += half.result(kOddSquares, lane);
    double sum = sum_of(half, kSum), squares = sum_of(half, kEvenSquares);
    int64_t zeros = count_of(half, kZeros), nan = count_of(half, kNan);
    int64_t positive_inf = count_of(half, kPositiveInf), negative_inf = count_of(half, kNegativeInf);
    for (int64_t i = half.tail(); i < half.first + half.length; ++i) {
      const double x = number(i);
      min = x < min ? x : min;
      max = x > max ? x : max;
      zeros += x == 0.0 ? 1 : 0;
      nan += x != x ? 1 : 0;
      positive_inf += x == INFINITY ? 1 : 0;
      negative_inf += x == -INFINITY ? 1 : 0;
      sum += is_finite(x) ? x : 0.0;
      squares += is_finite(x) ? x * x : 0.0;
    }
    const int64_t finite = half.length - nan - positive_inf - negative_inf;
    const double mean = finite > 0 ? sum / static_cast<double>(finite) : 0.0;
    const double centered = finite > 0 ? squares - sum * mean : 0.0;
    half.number(kMean) = mean;
    half.number(kNeedsPass) = finite > 0 && centered < statistics::kLeastDeviation * squares ? 1.0 : 0.0;
    statistics::ChunkStatistics& total = out[half.chunk];
    total.min = min;
    total.max = max;
    total.sum = sum;
    total.sum_of_squares = squares;
    total.centered_squares = centered;
    total.zeros = zeros;
    total.nan = nan;
    total.positive_inf = positive_inf;
    total.negative_inf = negative_inf;
    total.count = finite;
  }

  // For chunks whose spread is small compared with their mean.
  template <class Launch>
  PX_HD void center(Launch& launch, const Half<Launch>& half, int stage_groups) const {
    const auto needs_pass = [&](int which) {
      return length_of(half.chunk - half.index + which) > 0 && half.number(which, kNeedsPass) != 0.0;
    };
    const bool own = needs_pass(half.index), either = needs_pass(0) || needs_pass(1);
    const double mean = own ? half.number(kMean) : 0.0;
    launch.barrier();  // nobody writes the next chunk's before all have read this one's
    if (!either) return;
    const int thread = half.thread;
    double sum = 0;
    Found unused;
    // Elements that are not finite were kept as zeros, and are told apart by a look at the input.
    for_each_stage(launch, half, stage_groups, unused, [&](int begin) {
      const int elements = thread < kLanes && own ? groups_at(half.groups(), begin) * kGroupElements : 0;
      for (int i = thread; i < elements; i += kLanes) {
        const auto x = static_cast<double>(half.element(half.index, i));
        if (x == 0.0 && !is_finite(number(half.first + begin * kGroupElements + i))) continue;
        sum += (x - mean) * (x - mean);
      }
      launch.barrier();
    });
    if (thread < kLanes) half.result(kEvenSquares, thread) = sum;
    launch.barrier();
    if (thread == 0 && own) {
      double squares = sum_of(half, kEvenSquares);
      const int64_t end = half.first + half.length;
      for (int64_t i = half.tail(); i < end; ++i) {
        const double x = number(i);
        if (is_finite(x)) squares += (x - mean) * (x - mean);
      }
      out[half.chunk].centered_squares = squares;
    }
    launch.barrier();
  }
};

}  // namespace gpu

// The statistics of each chunk of the view, counted in that order, as bytes; an undefined tensor where elements of its
// type are not read on the device.
template <GpuDevice Gpu>
Result<Tensor> chunk_statistics_by_kernel(Queue<Gpu>& queue, const TensorView& view, ElementOrder order) {
  const gpu::StatisticsSource source = gpu::statistics_source(view, order);
  if (source.count == 0 || !storage::visit_storage(source.dtype, [](auto*) {})) return Tensor();
  const int64_t chunks = (source.count + statistics::kChunkElements - 1) / statistics::kChunkElements;
  const auto bytes = chunks * static_cast<int64_t>(sizeof(statistics::ChunkStatistics));
  Tensor result = PX_TRY(queue.allocate(DType::uint8, Shape{bytes}));
  auto* out = reinterpret_cast<statistics::ChunkStatistics*>(result.storage().get());
  const auto run = [&]<class S>(S*) {
    using Kernel = gpu::ChunkStatisticsKernel<Gpu, S>;
    const bool is_packed = Kernel::kIsTyped && source.counted.channels == 0 &&
                           reinterpret_cast<uintptr_t>(view.data) % sizeof(typename Kernel::Pack) == 0;
    const Kernel kernel{{view.data, source.dtype}, is_packed, {out}, source.count, chunks, source.counted};
    const int64_t blocks = std::min<int64_t>((chunks + 1) / 2, Queue<Gpu>::kMaxBlocks);
    launch(queue, kernel, gpu::LaunchSize{blocks, Kernel::kThreads, Kernel::kSharedBytes});
  };
  switch (source.dtype) {
    case DType::float32:
      run(static_cast<float*>(nullptr));
      break;
    case DType::float16:
      run(static_cast<Float16*>(nullptr));
      break;
    case DType::bfloat16:
      run(static_cast<BFloat16*>(nullptr));
      break;
    default:
      run(static_cast<void*>(nullptr));
  }
  PX_TRY(queue.take_failure());
  return result;
}

}  // namespace parallax::runtime
