// SPDX-License-Identifier: Apache-2.0
// One element of a payload, for functors that read payloads themselves, whatever the device.
#pragma once

#include "runtime/device/gpu/memory.h"

namespace parallax::runtime {

template <class Device, class C>
PX_HD C element_of(const Source& source, int64_t index) {
  if constexpr (GpuDevice<Device>) {
    return gpu::load<Device, C>(source, index);
  } else {
    return load_element<C>(source.dtype, source.data, index);
  }
}

}  // namespace parallax::runtime
