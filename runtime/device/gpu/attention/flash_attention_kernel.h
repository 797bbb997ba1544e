// SPDX-License-Identifier: Apache-2.0
// flash_attention (flash_attention.h): its kernel (flash_kernel.h), what is looked for before it, and what merges the
// parts that the keys may come in.
#pragma once

#include <algorithm>
#include <tuple>

#include "runtime/device/gpu/attention/flash_kernel.h"

namespace parallax::runtime {
namespace gpu {

// Tiles of values with an element that is no finite number: a flag for each tile of each key head.
template <class Device, class T>
struct UnboundedTilesKernel {
  static constexpr const char* kName = "unbounded_tiles";
  FlashRows<Device, T> values;
  Elements<Device, int32_t> flags;
  int64_t count, tiles, keys, heads, group;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    const auto found = launch.template shared<uint32_t>(flash::kThreads / kWarp);
    const int thread = launch.thread();
    for (int64_t item = launch.block(); item < count; item += launch.blocks()) {
      const int64_t matrix = item / tiles, first = item % tiles * flash::kKeys;
      const int64_t begin = values.at.matrix(matrix / heads, matrix % heads * group);
      const int quads = (values.columns + flash::kPerQuad<T> - 1) / flash::kPerQuad<T>;
      bool is_unbounded = false;
      for (int i = thread; i < flash::kKeys * quads; i += flash::kThreads) {
        const int64_t key = first + i / quads;
        if (key >= keys) break;
        const Quad quad = values.quad(begin + key * values.at.row, i % quads * flash::kPerQuad<T>);
        for (const uint32_t word : quad.words) is_unbounded = is_unbounded || has_unbounded(word);
      }
      const uint32_t lanes = launch.ballot(is_unbounded);
      if (thread % kWarp == 0) found[thread / kWarp] = lanes;
      launch.barrier();
      if (thread == 0) flags[item] = (found[0] | found[1] | found[2] | found[3]) != 0 ? 1 : 0;
      launch.barrier();
    }
  }

 private:
  // Infinity and NaN have an exponent of ones.
  PX_HD static bool has_unbounded(uint32_t word) {
    if constexpr (std::is_same_v<T, float>) return (word & 0x7F800000U) == 0x7F800000U;
    constexpr uint32_t kOnes = std::is_same_v<T, Float16> ? 0x7C00U : 0x7F80U;
    return (word & kOnes) == kOnes || (word >> 16 & kOnes) == kOnes;
  }
};

// The parts of each row, in their order; a thread has an element of the result.
template <class Device, class T>
struct FlashMergeKernel {
  static constexpr const char* kName = "flash_merge";
  FlashCall<Device, T> call;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, call.rows * call.value_size, [&](int64_t item) {
      const int64_t index = item / call.value_size, column = item % call.value_size;
      float highest = -std::numeric_limits<float>::infinity();
      for (int64_t part = 0; part < call.part_count; ++part) {
        highest = math::maximum(highest, call.parts.highest[part * call.rows + index]);
      }
      const float shift = highest == -std::numeric_limits<float>::infinity() ? 0.0F : highest;
      float total = 0.0F, sum = 0.0F;
      for (int64_t part = 0; part < call.part_count; ++part) {
        const int64_t own = part * call.rows + index;
        const float factor = math::exp_nonpositive(call.parts.highest[own] - shift);
        total = std::fma(factor, call.parts.total[own], total);
        sum = std::fma(factor, call.parts.sums[own * call.value_size + column], sum);
      }
      const int64_t matrix = index / call.queries, query = index % call.queries;
      const int64_t begin = call.y_at.matrix(matrix / call.heads, matrix % call.heads) + query * call.y_at.row;
      call.y[begin + column * call.y_at.column] = call.result(sum, total);
    });
  }
};

template <class Device, class T>
FlashRows<Device, T> flash_rows(const std::byte* data, const HeadStrides& at, int64_t columns) {
  const auto is_whole = [&](int64_t elements) { return elements % flash::kPerQuad<T> == 0; };
  const bool is_wide = at.column == 1 && is_whole(at.start) && is_whole(at.sample) && is_whole(at.head) &&
                       is_whole(at.row) && is_whole(columns) && reinterpret_cast<uintptr_t>(data) % sizeof(Quad) == 0;
  return {data, at, static_cast<int>(columns), is_wide};
}

// How many parts the keys come in: so many that the device is busy, none shorter than two tiles.
template <GpuDevice Gpu>
int64_t flash_parts(int64_t blocks, int64_t tiles) {
  constexpr int64_t kBusy = 264;  // two blocks for each of the 132 multiprocessors of an H100
  const int64_t wanted = Queue<Gpu>::kMaxBlocks < kBusy ? Queue<Gpu>::kMaxBlocks : kBusy;
  return std::clamp<int64_t>(wanted / std::max<int64_t>(1, blocks), 1, std::max<int64_t>(1, tiles / 2));
}

// True where a tile of keys may be hidden from all rows of a block.
inline bool may_leave_out(const FlashAttention& attention) {
  const AttentionProblem& problem = attention.problem;
  if (attention.lengths != nullptr) return problem.keys >= flash::kKeys;
  for (int64_t sample = 0; sample < attention.samples; ++sample) {
    const int64_t position = attention.rule.past + (attention.positions.empty() ? 0 : attention.positions[sample]);
    const int64_t end = attention.ends.empty() ? problem.keys : attention.ends[sample];
    const SeenKeys low = attention.rule.seen(position, end);
    const SeenKeys high = attention.rule.seen(position + problem.queries - 1, end);
    if (low.end <= problem.keys - flash::kKeys || high.first >= flash::kKeys) return true;
  }
  return false;
}

template <GpuDevice Gpu>
bool may_use_tf32(const Queue<Gpu>& queue) {
  if constexpr (requires { queue.options().tf32; }) return queue.options().tf32;
  return false;
}

// Everything but the memory that the launch itself needs.
template <GpuDevice Gpu, class T>
FlashCall<Gpu, T> flash_call(const FlashAttention& attention) {
  const AttentionProblem& problem = attention.problem;
  const auto strides = [&](const MatrixOffsets& locations) {
    return *head_strides(locations, attention.samples, attention.heads);
  };
  const auto change = [&](const std::byte* data, const MatrixOffsets& locations, DType dtype) -> FlashChange<Gpu> {
    if (data == nullptr) return {};
    return {data, strides(locations), dtype == DType::float32};
  };
  FlashCall<Gpu, T> call{};
  HeadStrides keys = strides(problem.k);
  std::swap(keys.row, keys.column);
  call.q = flash_rows<Gpu, T>(attention.q, strides(problem.q), problem.size);
  call.k = flash_rows<Gpu, T>(attention.k, keys, problem.size);
  call.v = flash_rows<Gpu, T>(attention.v, strides(problem.v), problem.value_size);
  call.y = {reinterpret_cast<T*>(attention.y)};
  call.y_at = strides(problem.y);
  call.added[0] = change(attention.added, attention.added_locations, attention.added_dtype);
  call.added[1] = change(attention.added_again, attention.added_again_locations, attention.added_again_dtype);
  call.hiding = change(attention.hiding, attention.hiding_locations, DType::bool_);
  call.rule = attention.rule;
  call.rule.keys = std::min(attention.rule.keys, problem.keys);
  call.sinks = {attention.sinks};
  // Only heads that share both keys and values are one block's.
  call.group = keys.sharing == call.v.at.sharing ? keys.sharing : 1;
  call.queries = problem.queries;
  call.keys = problem.keys;
  call.heads = attention.heads;
  call.rows = attention.samples * attention.heads * problem.queries;
  call.value_size = static_cast<int>(problem.value_size);
  call.scale = static_cast<float>(problem.scale);
  call.softcap = static_cast<float>(attention.softcap);
  call.hidden_value = attention.hidden_value;
  call.hides_where = attention.hides_where;
  call.hidden_is_zero = attention.hidden_is_zero;
  call.no_number_is_zero = problem.no_number_is_zero;
  call.matrices = attention.samples * attention.heads / call.group;
  call.tiles = (problem.keys + flash::kKeys - 1) / flash::kKeys;
  call.row_tiles = (call.group * problem.queries + flash::kRows - 1) / flash::kRows;
  call.column_blocks = (problem.value_size + flash::kColumns - 1) / flash::kColumns;
  call.part_count = flash_parts<Gpu>(call.matrices * call.row_tiles * call.column_blocks, call.tiles);
  call.items = call.matrices * call.row_tiles * call.column_blocks * call.part_count;
  return call;
}

// The flags of a call's tiles, where one may be left out; the memory is the caller's to keep.
template <GpuDevice Gpu, class T>
Result<Tensor> find_unbounded(Queue<Gpu>& queue, const FlashAttention& attention, FlashCall<Gpu, T>& call) {
  if (!may_leave_out(attention)) return Tensor();
  const Tensor flags = PX_TRY(queue.allocate(DType::int32, Shape{call.matrices, call.tiles}));
  int32_t* const found = writable(flags).template as<int32_t>();
  call.unbounded = {found};
  const UnboundedTilesKernel<Gpu, T> kernel{
      call.v, {found}, flags.element_count(), call.tiles, call.keys, call.heads / call.group, call.group};
  constexpr size_t kShared = flash::kThreads / kWarp * sizeof(uint32_t);
  launch(queue, kernel, LaunchSize{std::min<int64_t>(kernel.count, Queue<Gpu>::kMaxBlocks), flash::kThreads, kShared});
  return flags;
}

template <class Engine, GpuDevice Gpu>
Result<bool> flash_attention_by(Queue<Gpu>& queue, const FlashAttention& attention) {
  using T = typename Engine::Storage;
  const size_t shared_bytes = FlashKernel<Gpu, Engine>::shared_bytes(attention.problem.size);
  if (static_cast<int64_t>(shared_bytes) > most_shared_bytes(queue)) return false;
  FlashKernel<Gpu, Engine> kernel{flash_call<Gpu, T>(attention)};
  FlashCall<Gpu, T>& call = kernel.call;
  Tensor positions, ends;
  for (const auto& [numbers, kept, table] :
       {std::tuple{&attention.positions, &positions, &call.positions}, {&attention.ends, &ends, &call.ends}}) {
    if (numbers->empty()) continue;
    *kept = PX_TRY(queue.to_device(Tensor::vector<int64_t>(*numbers)));
    *table = {reinterpret_cast<const int64_t*>(kept->view().data)};
  }
  if (attention.lengths != nullptr) {
    call.positions = call.ends = {attention.lengths};
    call.rule.past -= call.queries;
  }
  const Tensor flags = PX_TRY(find_unbounded(queue, attention, call));
  Tensor sums, bounds;
  if (call.part_count > 1) {
    sums = PX_TRY(queue.allocate(DType::float32, Shape{call.part_count, call.rows, attention.problem.value_size}));
    bounds = PX_TRY(queue.allocate(DType::float32, Shape{2, call.part_count, call.rows}));
    float* const highest = writable(bounds).template as<float>();
    call.parts = {{highest}, {highest + call.part_count * call.rows}, {writable(sums).template as<float>()}};
  }
  launch(queue, kernel,
         LaunchSize{std::min<int64_t>(call.items, Queue<Gpu>::kMaxBlocks), flash::kThreads, shared_bytes});
  if (call.part_count == 1) return true;
  const FlashMergeKernel<Gpu, T> merge{call};
  launch(queue, merge, size_for_items(queue, call.rows * call.value_size));
  return true;
}

}  // namespace gpu

template <GpuDevice Gpu>
Result<bool> flash_attention(Queue<Gpu>& queue, const FlashAttention& attention) {
  if (!is_for_flash(attention)) return false;
  switch (attention.dtype) {
    case DType::float16:
      return gpu::flash_attention_by<gpu::MmaEngine<Float16>>(queue, attention);
    case DType::bfloat16:
      return gpu::flash_attention_by<gpu::MmaEngine<BFloat16>>(queue, attention);
    default:
      if (gpu::may_use_tf32(queue)) return gpu::flash_attention_by<gpu::MmaEngine<float>>(queue, attention);
      return gpu::flash_attention_by<gpu::FmaEngine>(queue, attention);
  }
}

}  // namespace parallax::runtime