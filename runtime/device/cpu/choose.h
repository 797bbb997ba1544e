// SPDX-License-Identifier: Apache-2.0
// choose: out[i] = c[i] ? x[i] : y[i] with broadcasting. Elements are moved, never read.
#pragma once

#include <array>

#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/map.h"

namespace parallax::runtime {

namespace choose_detail {

// `count` elements of a payload from `index` on, or the one at `index` repeated when stride is 0.
template <class T>
const T* run_of(const TensorView& view, int64_t index, int64_t stride, int64_t count, T* buffer) {
  const T* source = reinterpret_cast<const T*>(view.data) + index;
  if (stride == 1) return source;
  std::fill_n(buffer, count, *source);
  return buffer;
}

struct Wide {
  uint64_t words[2];
};

// T stands for the elements' size.
template <class T>
void choose_as(const MutableView& out, const std::array<TensorView, 3>& in) {
  const MapPlan<3> plan = plan_map(out.shape, in);
  const int64_t run = plan.run();
  parallel_for(out.element_count(), 2, [&](int64_t begin, int64_t end) {
    uint8_t conditions[kBlockElements];
    T first[kBlockElements];
    T second[kBlockElements];
    for (int64_t index = begin; index < end;) {
      const int64_t within = index % run;
      const int64_t count = std::min({run - within, end - index, kBlockElements});
      int64_t offsets[3];
      for (size_t operand = 0; operand < 3; ++operand) {
        const Ints& strides = plan.strides[operand];
        offsets[operand] = within * strides.back();
        int64_t rest = index / run;
        for (int64_t axis = plan.dims.size() - 2; axis >= 0; --axis) {
          offsets[operand] += rest % plan.dims[axis] * strides[axis];
          rest /= plan.dims[axis];
        }
      }
      const uint8_t* c = run_of(in[0], offsets[0], plan.strides[0].back(), count, conditions);
      const T* x = run_of(in[1], offsets[1], plan.strides[1].back(), count, first);
      const T* y = run_of(in[2], offsets[2], plan.strides[2].back(), count, second);
      T* target = reinterpret_cast<T*>(out.data) + index;
      vectorized(0, count, [c, x, y, target](int64_t from, int64_t to) {
        const uint8_t* const condition = c;  // copies of its own: no store can change them
        const T *const own_x = x, *const own_y = y;
        T* const own_target = target;
        PX_INDEPENDENT_ITERATIONS
        for (int64_t i = from; i < to; ++i) {
          const T when_true = own_x[i], when_false = own_y[i];
          own_target[i] = condition[i] != 0 ? when_true : when_false;
        }
      });
      index += count;
    }
  });
}

}  // namespace choose_detail

// in[0] is bool; in[1] and in[2] have the type of `out`.
inline void choose(Queue<Cpu>&, const MutableView& out, const std::array<TensorView, 3>& in) {
  switch (element_bytes(out.dtype)) {
    case 1:
      return choose_detail::choose_as<uint8_t>(out, in);
    case 2:
      return choose_detail::choose_as<uint16_t>(out, in);
    case 4:
      return choose_detail::choose_as<uint32_t>(out, in);
    case 8:
      return choose_detail::choose_as<uint64_t>(out, in);
    default:
      return choose_detail::choose_as<choose_detail::Wide>(out, in);
  }
}

}  // namespace parallax::runtime
