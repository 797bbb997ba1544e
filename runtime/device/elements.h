// SPDX-License-Identifier: Apache-2.0
// Device memory as loops and kernels see it: every access goes through here, so that the emulation can check it.
#pragma once

#include "runtime/device/devices.h"

namespace parallax::runtime {

// The address an element is reached at. The emulated device hands out addresses that the host cannot follow; this
// answers with the true one, or with one of a spare cell when the access is out of bounds or not aligned, and remembers
// that.
std::byte* emulated_address(const std::byte* pointer, size_t bytes, size_t alignment);

// A pointer into the memory of a device, indexed.
template <class Device, class T>
struct Elements {
  T* data = nullptr;

  PX_HD T& operator[](int64_t index) const {
    if constexpr (std::is_same_v<Device, Emulated>) {
      const std::byte* pointer = reinterpret_cast<const std::byte*>(data + index);
      return *reinterpret_cast<T*>(emulated_address(pointer, sizeof(T), alignof(T)));
    } else {
      return data[index];
    }
  }
  PX_HD explicit operator bool() const { return data != nullptr; }
};

}  // namespace parallax::runtime
