// SPDX-License-Identifier: Apache-2.0
// Copies tensor by tensor, whatever holds them.
#include "inspector/dump/host_copy.h"

#include "inspector/tensor/channels_last.h"

namespace parallax::dump {

Result<Value> on_host(const Value& value, void* stream, const DeviceCopy& copy_from_device) {
  const auto all_on_host = [&](const std::vector<Value>& values) -> Result<std::vector<Value>> {
    std::vector<Value> copies;
    for (const Value& item : values) copies.push_back(PX_TRY(on_host(item, stream, copy_from_device)));
    return copies;
  };
  if (value.is_tensor()) {
    const Tensor& tensor = value.tensor();
    if (tensor.device().is_host() || is_channels_last(tensor)) return value;
    if (!copy_from_device)
      return unsupported("it is on a device that this dump writer cannot read; copy it to the host first");
    Tensor copy = PX_TRY(Tensor::allocate(tensor.dtype(), tensor.shape()));
    PX_TRY(copy_from_device(tensor.view(), stream, copy.mutable_data()));
    return Value(std::move(copy));
  }
  if (value.is_sequence()) {
    SequenceValue copy{value.sequence().element_type, {}};
    copy.items = PX_TRY(all_on_host(value.sequence().items));
    return Value(std::move(copy));
  }
  if (value.is_optional()) {
    OptionalValue copy{value.optional().element_type, {}};
    copy.item = PX_TRY(all_on_host(value.optional().item));
    return Value(std::move(copy));
  }
  if (value.is_map()) {
    MapValue copy{value.map().keys, value.map().value_type, {}};
    copy.values = PX_TRY(all_on_host(value.map().values));
    return Value(std::move(copy));
  }
  return value;
}

}  // namespace parallax::dump
