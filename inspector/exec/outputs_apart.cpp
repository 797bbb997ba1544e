// Tells shared memory by the number of its owners: buffers of a session belong to whoever holds them, so one owner
// means that nobody else can reach the memory.
#include "inspector/exec/outputs_apart.h"

namespace parallax {
namespace {

Status separate_tensor(Tensor& tensor) {
  if (tensor.device().is_host() && tensor.storage().use_count() > 1) tensor = PX_TRY(tensor.clone());
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

Status separate_outputs(std::span<Value> outputs) {
  for (Value& output : outputs) PX_TRY(separate_value(output));
  return {};
}

}  // namespace parallax
