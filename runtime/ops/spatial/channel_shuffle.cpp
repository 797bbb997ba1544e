// SPDX-License-Identifier: Apache-2.0
// ChannelShuffle: channels of several groups dealt out in turn (Zhang et al.: ShuffleNet, 2018), in one walk with the
// Concat before and the Split after it. On the host alone.
#include <fmt/format.h>

#include "inspector/base/thread_pool.h"
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/channels_last.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/ops/fused_families.h"
#include "runtime/ops/op_context.h"
#include "runtime/ops/orders.h"

namespace parallax::runtime {
namespace {

// Channel c of a group's run is at data + c * channel_step; rows (channels last) or batch elements are `step` elements
// from each other.
struct ShuffledGroup {
  const float* data = nullptr;
  int64_t step = 0;
};

struct Shuffle {
  int64_t batch = 0, locations = 0;
  int64_t per_group = 0;  // channels
  std::vector<ShuffledGroup> groups;
  std::vector<Tensor> inputs;  // in one layout
  bool channels_last = false;
};

Result<Shuffle> shuffle_of(OpContext<Cpu>& op) {
  Shuffle shuffle;
  const Shape& first = op.input(0).shape();
  const int64_t count = op.integer("groups"), inputs = op.input_count();
  if (first.rank() < 3) return wrong_input(op, 0, "have rank 3 or more");
  if (count < 1 || (inputs != 1 && inputs != count) || (inputs == 1 && first[1] % count != 0))
    return execution_error(
        fmt::format("there are {} inputs of shape {}; they must be {} groups of channels, as many as 'groups' says",
                    inputs, first.to_string(), count));
  int64_t last = 0;
  for (int64_t i = 0; i < inputs; ++i) {
    if (!(op.input(i).shape() == first))
      return wrong_input(op, i, "have the shape of the first one, {}", first.to_string());
    last += is_channels_last(op.input(i)) ? 1 : 0;
  }
  shuffle.channels_last = last > 0;
  shuffle.batch = first[0];
  shuffle.locations = first.element_count() / std::max<int64_t>(1, first[0] * first[1]);
  shuffle.per_group = inputs == 1 ? first[1] / count : first[1];
  const int64_t channel_step = shuffle.channels_last ? 1 : shuffle.locations;
  for (int64_t i = 0; i < inputs; ++i) {
    const Tensor& x = op.input(i);
    shuffle.inputs.push_back(shuffle.channels_last ? PX_TRY(to_channels_last(op.queue(), x))
                                                   : PX_TRY(to_row_major(op.queue(), x)));
  }
  for (int64_t group = 0; group < count; ++group) {
    const Tensor& x = shuffle.inputs[static_cast<size_t>(inputs == 1 ? 0 : group)];
    const int64_t offset = inputs == 1 ? group * shuffle.per_group * channel_step : 0;
    shuffle.groups.push_back({reinterpret_cast<const float*>(x.storage().get()) + offset, first[1] * channel_step});
  }
  return shuffle;
}

// to[i * groups + g] = group g's channel first + i of that row.
void deal_row(const Shuffle& shuffle, int64_t row, int64_t first, int64_t count, float* to) {
  const size_t groups = shuffle.groups.size();
  if (groups == 2) {
    const float* const a = shuffle.groups[0].data + row * shuffle.groups[0].step + first;
    const float* const b = shuffle.groups[1].data + row * shuffle.groups[1].step + first;
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = 0; i < count; ++i) {
      to[2 * i] = a[i];
      to[2 * i + 1] = b[i];
    }
    return;
  }
  for (size_t group = 0; group < groups; ++group) {
    const float* const from = shuffle.groups[group].data + row * shuffle.groups[group].step + first;
    for (int64_t i = 0; i < count; ++i) to[i * static_cast<int64_t>(groups) + static_cast<int64_t>(group)] = from[i];
  }
}

void shuffle_channels_last(const Shuffle& shuffle, std::span<float* const> outputs) {
  const int64_t count = shuffle.per_group / static_cast<int64_t>(outputs.size());  // of each group, in one output
  const int64_t width = count * static_cast<int64_t>(shuffle.groups.size());
  parallel_for(shuffle.batch * shuffle.locations, width * static_cast<int64_t>(outputs.size()) / 2,
               [&](int64_t begin, int64_t end) {
                 vectorized(begin, end, [&](int64_t first, int64_t last) {
                   for (int64_t row = first; row < last; ++row) {
                     for (size_t output = 0; output < outputs.size(); ++output)
                       deal_row(shuffle, row, static_cast<int64_t>(output) * count, count,
                                outputs[output] + row * width);
                   }
                 });
               });
}

void shuffle_planes(const Shuffle& shuffle, std::span<float* const> outputs) {
  const auto groups = static_cast<int64_t>(shuffle.groups.size()), parts = static_cast<int64_t>(outputs.size());
  const int64_t width = shuffle.per_group * groups / parts;
  parallel_for(shuffle.batch * width * parts, shuffle.locations / 4, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      const int64_t element = plane / (width * parts), channel = plane % (width * parts);
      const ShuffledGroup& group = shuffle.groups[static_cast<size_t>(channel % groups)];
      float* const to =
          outputs[static_cast<size_t>(channel / width)] + (element * width + channel % width) * shuffle.locations;
      std::copy_n(group.data + element * group.step + channel / groups * shuffle.locations, shuffle.locations, to);
    }
  });
}

Status channel_shuffle(OpContext<Cpu>& op) {
  const Shuffle shuffle = PX_TRY(shuffle_of(op));
  const auto groups = static_cast<int64_t>(shuffle.groups.size()), parts = op.output_count();
  if (shuffle.per_group % parts != 0)
    return wrong_value("the number of channels of a group", shuffle.per_group, "be a multiple of the {} outputs",
                       parts);
  Ints dims(op.input(0).shape());
  dims[1] = shuffle.per_group * groups / parts;
  const Shape shape = PX_TRY(shape_of(dims));
  std::vector<float*> outputs;
  for (int64_t i = 0; i < parts; ++i) {
    const MutableView y = shuffle.channels_last ? PX_TRY(make_channels_last_output(op, i, shape))
                                                : PX_TRY(op.make_output(i, DType::float32, shape));
    outputs.push_back(reinterpret_cast<float*>(y.data));
  }
  shuffle.channels_last ? shuffle_channels_last(shuffle, outputs) : shuffle_planes(shuffle, outputs);
  return {};
}

constexpr KernelRow<Cpu> shuffle_row() {
  KernelRow<Cpu> made{"ChannelShuffle", dtype_bit(DType::float32), channel_shuffle};
  made.domain = "parallax.fused";
  made.order.channels_last_inputs = ~uint32_t{0};
  return made;
}

constexpr KernelRow<Cpu> kShuffleRows[] = {shuffle_row()};

}  // namespace

template <>
Rows<Cpu> channel_shuffle_rows<Cpu>() {
  return kShuffleRows;
}

}  // namespace parallax::runtime
