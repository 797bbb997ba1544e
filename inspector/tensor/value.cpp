// SPDX-License-Identifier: Apache-2.0
// Types and sizes of run-time values.
#include "inspector/tensor/value.h"

namespace parallax {
namespace {

TypeInfo type_of_tensor(const Tensor& tensor) {
  TypeInfo type = TypeInfo::tensor(tensor.dtype());
  type.dims.emplace();
  for (int64_t dim : tensor.shape()) type.dims->push_back({dim, {}});
  return type;
}

size_t bytes_of_tensor(const Tensor& tensor) {
  if (tensor.dtype() != DType::string) return tensor.size_bytes();
  size_t bytes = 0;
  for (const std::string& text : tensor.as<std::string>()) bytes += text.size();
  return bytes;
}

size_t bytes_of_all(const std::vector<Value>& values) {
  size_t bytes = 0;
  for (const Value& value : values) bytes += payload_bytes(value);
  return bytes;
}

}  // namespace

TypeInfo type_of(const Value& value) {
  if (value.is_tensor()) return type_of_tensor(value.tensor());
  if (value.is_sequence()) return TypeInfo::sequence(value.sequence().element_type);
  if (value.is_optional()) return TypeInfo::optional(value.optional().element_type);
  if (value.is_map()) return TypeInfo::map(value.map().keys.dtype(), value.map().value_type);
  return {};
}

size_t payload_bytes(const Value& value) {
  if (value.is_tensor()) return bytes_of_tensor(value.tensor());
  if (value.is_sequence()) return bytes_of_all(value.sequence().items);
  if (value.is_optional()) return bytes_of_all(value.optional().item);
  if (value.is_map()) return bytes_of_tensor(value.map().keys) + bytes_of_all(value.map().values);
  return 0;
}

}  // namespace parallax
