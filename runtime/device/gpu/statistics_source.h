// SPDX-License-Identifier: Apache-2.0
// A tensor as statistics_kernel.h reads it: numbers of one type, in row-major order or with the channels last.
#pragma once

#include <limits>

#include "inspector/tensor/element_order.h"
#include "runtime/device/devices.h"

namespace parallax::runtime::gpu {

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

}  // namespace parallax::runtime::gpu
