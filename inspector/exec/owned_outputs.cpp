// SPDX-License-Identifier: Apache-2.0
// Tells shared memory by the number of its owners: buffers of a session belong to whoever holds them, so one owner
// means that nobody else can reach the memory.
#include "inspector/exec/owned_outputs.h"

#include <algorithm>

namespace parallax {
namespace {

bool owns_memory(const Tensor& tensor) { return tensor.storage().use_count() <= 1; }

Status separate_tensor(Tensor& tensor) {
  if (tensor.device().is_host() && !owns_memory(tensor)) tensor = PX_TRY(tensor.clone());
  return {};
}

Status separate_value(Value& value) {
  if (value.is_tensor()) return separate_tensor(value.tensor());
  if (value.is_sequence()) return separate_outputs(value.sequence().items);
  if (value.is_optional()) {
    OptionalValue optional = value.optional();
    value = Value();
    PX_TRY(separate_outputs(optional.item));
    value = Value(std::move(optional));
  } else if (value.is_map()) {
    MapValue map = value.map();
    value = Value();
    PX_TRY(separate_tensor(map.keys));
    PX_TRY(separate_outputs(map.values));
    value = Value(std::move(map));
  }
  return {};
}

}  // namespace

bool owns_memory(const Value& value) {
  const auto owns = [](const Value& item) { return owns_memory(item); };
  if (value.is_tensor()) return owns_memory(value.tensor());
  if (value.is_sequence()) return std::ranges::all_of(value.sequence().items, owns);
  if (value.is_optional()) return std::ranges::all_of(value.optional().item, owns);
  return !value.is_map() || (owns_memory(value.map().keys) && std::ranges::all_of(value.map().values, owns));
}

Status separate_outputs(std::span<Value> outputs) {
  for (Value& output : outputs) PX_TRY(separate_value(output));
  return {};
}

}  // namespace parallax
