// SPDX-License-Identifier: Apache-2.0
// A value with each of its tensors replaced: how values cross between host and device.
#pragma once

#include "inspector/tensor/value.h"

namespace parallax::runtime {

// `move` returns the tensor that replaces a tensor. Maps stay: only the host has them.
template <class Move>
Result<Value> move_value(const Value& value, const Move& move) {
  if (value.is_tensor()) {
    Tensor tensor = PX_TRY(move(value.tensor()));
    return Value(std::move(tensor));
  }
  if (value.is_sequence()) {
    SequenceValue moved{value.sequence().element_type, {}};
    for (const Value& item : value.sequence().items) moved.items.push_back(PX_TRY(move_value(item, move)));
    return Value(std::move(moved));
  }
  if (value.is_optional()) {
    OptionalValue moved{value.optional().element_type, {}};
    for (const Value& item : value.optional().item) moved.item.push_back(PX_TRY(move_value(item, move)));
    return Value(std::move(moved));
  }
  return value;
}

}  // namespace parallax::runtime
