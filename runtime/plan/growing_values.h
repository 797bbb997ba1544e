// SPDX-License-Identifier: Apache-2.0
// Values that grow in place (device/cpu/growable.h) in the memory of a platform's queue, whatever its device.
#pragma once

#include <utility>
#include <vector>

#include "runtime/device/cpu/growable.h"
#include "runtime/plan/platform.h"

namespace parallax::runtime {

template <class Device>
class GrowingValues : public Platform {
 public:
  Result<std::vector<Value>> make_growable(std::span<const GrowableShape> shapes) final {
    return values_of(runtime::make_growable(queue(), shapes));
  }
  Result<Value> refill(Value growable, const Value& value) final {
    Tensor tensor = std::exchange(growable, Value()).tensor();
    const Value stored = PX_TRY(to_device(value));
    Value filled(PX_TRY(refilled(queue(), std::move(tensor), stored.tensor())));
    PX_TRY(launched());
    return filled;
  }
  // Small values that a GPU's platform keeps on the host are joined there.
  Result<Value> open(const Value& value, int64_t axis) final {
    if (!value.is_tensor() || bits_of(value.tensor().dtype()) % 8 != 0) return value;
    const Tensor& tensor = value.tensor();
    if (is_growable(tensor)) return Value(opened(tensor));
    if (tensor.device().is_host() != is_host()) return value;
    const int64_t length = dim_of(tensor.shape(), axis);
    return Value(opened(PX_TRY(with_capacity(queue(), tensor, axis, 2 * length))));
  }
  Result<std::vector<Value>> take_growable_rows(std::span<const Value> values, std::span<const int32_t> rows) final {
    std::vector<Tensor> growable;
    for (const Value& value : values) growable.push_back(value.tensor());
    return values_of(runtime::take_growable_rows(queue(), growable, rows));
  }

 protected:
  virtual Queue<Device>& queue() = 0;
  // The value as a kernel without strides reads it.
  Result<Value> row_major(const Value& value) {
    if (!is_growable(value)) return value;
    return Value(PX_TRY(without_room(queue(), value.tensor())));
  }

 private:
  Status launched() {
    if constexpr (GpuDevice<Device>) return queue().take_failure();
    return {};
  }
  Result<std::vector<Value>> values_of(Result<std::vector<Tensor>> tensors) {
    const std::vector<Tensor> made = PX_TRY(std::move(tensors));
    PX_TRY(launched());
    return std::vector<Value>(made.begin(), made.end());
  }
};

}  // namespace parallax::runtime
