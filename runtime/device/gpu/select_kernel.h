// SPDX-License-Identifier: Apache-2.0
// select on a GPU: each block counts its piece, the host adds the counts up, each block writes its indices in order.
// The host waits for the counts: the shapes of what follows depend on them.
#pragma once

#include "runtime/device/cpu/select.h"
#include "runtime/device/gpu/launch.h"
#include "runtime/device/gpu/memory.h"

namespace parallax::runtime {
namespace gpu {

// The number of set bits below `lane`.
PX_HD inline int bits_below(uint32_t bits, int lane) {
  uint32_t rest = lane == 0 ? 0U : bits << (kWarp - lane);
  int count = 0;
  for (; rest != 0; rest &= rest - 1) ++count;
  return count;
}

// Pieces of `piece` elements, one after the other by each block; with `locations` they are written, else counted.
template <class Device, class C>
struct SelectKernel {
  static constexpr const char* kName = "select";
  Source in;
  int64_t count, piece;
  Elements<Device, uint32_t> counts;       // of each piece
  Elements<Device, const int64_t> begins;  // of each piece in `locations`
  Elements<Device, int64_t> locations;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    const auto before = launch.template shared<int>(launch.threads() / kWarp);
    for (int64_t number = launch.block(); number * piece < count; number += launch.blocks()) {
      const int64_t end = (number + 1) * piece < count ? (number + 1) * piece : count;
      int64_t written = 0;
      for (int64_t first = number * piece; first < end; first += launch.threads()) {
        const int64_t i = first + launch.thread();
        const bool wanted = i < end && load<Device, C>(in, i) != C(0);
        const uint32_t votes = launch.ballot(wanted);
        const int lane = launch.thread() % kWarp;
        if (lane == kWarp - 1) before[launch.thread() / kWarp] = bits_below(votes, lane) + (wanted ? 1 : 0);
        launch.barrier();
        int64_t location = written + bits_below(votes, lane);
        for (int warp = 0; warp < launch.threads() / kWarp; ++warp) {
          if (warp < launch.thread() / kWarp) location += before[warp];
          written += before[warp];
        }
        if (wanted && locations) locations[begins[number] + location] = i;
        launch.barrier();
      }
      if (!locations && launch.thread() == 0) launch.atomic_add(&counts[number], static_cast<uint32_t>(written));
    }
  }
};

}  // namespace gpu

template <class C, GpuDevice Gpu>
Result<Selection<Gpu>> select(Queue<Gpu>& queue, const TensorView& in) {
  const int64_t count = in.element_count();
  if (count == 0) return Selection<Gpu>{};
  const int64_t piece =
      std::max<int64_t>(Queue<Gpu>::kThreads, (count + Queue<Gpu>::kMaxBlocks - 1) / Queue<Gpu>::kMaxBlocks);
  const int64_t pieces = (count + piece - 1) / piece;
  const Tensor zeros = PX_TRY(Tensor::zeros(DType::uint32, Shape{pieces}));
  const Tensor counts = PX_TRY(queue.to_device(zeros));
  gpu::SelectKernel<Gpu, C> kernel{
      source_of(in), count, piece, {reinterpret_cast<uint32_t*>(counts.storage().get())}, {}, {}};
  const gpu::LaunchSize size{pieces, Queue<Gpu>::kThreads, Queue<Gpu>::kThreads / gpu::kWarp * sizeof(int)};
  launch(queue, kernel, size);
  const Tensor counted = PX_TRY(queue.to_host(counts));
  Ints begins;
  int64_t total = 0;
  for (uint32_t each : counted.template as<uint32_t>()) {
    begins.push_back(total);
    total += each;
  }
  const Tensor starts = PX_TRY(queue.to_device(Tensor::vector<int64_t>(begins)));
  const Tensor memory = PX_TRY(queue.allocate(DType::int64, Shape{total}));
  kernel.begins = {reinterpret_cast<const int64_t*>(starts.view().data)};
  kernel.locations = {reinterpret_cast<int64_t*>(memory.storage().get())};
  if (total > 0) launch(queue, kernel, size);
  return Selection<Gpu>{{kernel.locations.data}, total, memory.storage()};
}

}  // namespace parallax::runtime
