// SPDX-License-Identifier: Apache-2.0
// Elements of any storage type in device memory.
#pragma once

#include "runtime/device/cpu/blocks.h"
#include "runtime/device/elements.h"
#include "runtime/device/storage.h"

namespace parallax::runtime {

namespace gpu {

template <class Device, class C>
PX_HD C load(const Source& source, int64_t index) {
  if (source.dtype == storage_of<C>()) {
    return Elements<Device, const C>{reinterpret_cast<const C*>(source.data)}[index];
  }
  C value{};
  storage::visit_storage(source.dtype, [&](auto* type) {
    const auto* elements = reinterpret_cast<const std::remove_pointer_t<decltype(type)>*>(source.data);
    value = storage::from_storage<C>(Elements<Device, const std::remove_pointer_t<decltype(type)>>{elements}[index]);
  });
  return value;
}

template <class Device, class R>
PX_HD void store(const Target& target, int64_t index, R value) {
  if (target.dtype == storage_of<R>()) {
    Elements<Device, R>{reinterpret_cast<R*>(target.data)}[index] = value;
    return;
  }
  storage::visit_storage(target.dtype, [&](auto* type) {
    using S = std::remove_pointer_t<decltype(type)>;
    Elements<Device, S>{reinterpret_cast<S*>(target.data)}[index] = storage::to_storage<S>(value);
  });
}

}  // namespace gpu
}  // namespace parallax::runtime
