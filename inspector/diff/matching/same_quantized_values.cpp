// SPDX-License-Identifier: Apache-2.0
// int8 begins 128 below uint8.
#include "inspector/diff/matching/same_quantized_values.h"

#include <cstddef>
#include <span>

#include "inspector/tensor/elements.h"

namespace parallax::diff {

int64_t step_of(const TensorView& tensor, int64_t index) {
  return element_as_int64(tensor, index) + (tensor.dtype == DType::int8 ? 128 : 0);
}

bool are_same_quantized(const TensorView& a, const TensorView& b) {
  if (!is_byte(a.dtype) || !is_byte(b.dtype) || a.dtype == b.dtype || !(a.shape == b.shape)) return false;
  for (int64_t index = 0; index < a.shape.element_count(); ++index) {
    if (step_of(a, index) != step_of(b, index)) return false;
  }
  return true;
}

Value as_quantized_of(const Value& value, DType dtype) {
  if (!value.is_tensor() || !is_byte(value.tensor().dtype()) || value.tensor().dtype() == dtype) return value;
  auto quantized = value.tensor().clone();
  if (!quantized.ok()) return value;
  // The highest bit is all that differs between the two.
  constexpr std::byte kHighest{0x80};
  for (std::byte& element : std::span(quantized->mutable_data(), quantized->size_bytes())) element ^= kHighest;
  return Tensor::wrap(dtype, quantized->shape(), quantized->storage());
}

}  // namespace parallax::diff
