// SPDX-License-Identifier: Apache-2.0
// Copies single elements; packed ones bit by bit.
#include "inspector/dump/sample.h"

#include <algorithm>
#include <cstring>

#include "inspector/dump/dump_reader.h"
#include "inspector/tensor/elements.h"

namespace parallax {

__extension__ using Int128 = __int128;  // a position times an element count may exceed 64 bits

int64_t sampled_element(int64_t position, int64_t sample_count, int64_t element_count) {
  return static_cast<int64_t>(static_cast<Int128>(position) * element_count / sample_count);
}

namespace dump {

Result<Tensor> take_elements(const Tensor& tensor, std::span<const int64_t> locations) {
  Tensor taken = PX_TRY(Tensor::zeros(tensor.dtype(), Shape{static_cast<int64_t>(locations.size())}));
  const int bits = bits_of(tensor.dtype());
  const auto element_bytes = static_cast<size_t>(bits / 8);
  for (size_t position = 0; position < locations.size(); ++position) {
    const auto location = static_cast<size_t>(locations[position]);
    if (tensor.dtype() == DType::string) {
      taken.mutable_as<std::string>()[position] = tensor.as<std::string>()[location];
    } else if (bits < 8) {
      store_packed(taken.mutable_data(), bits, static_cast<int64_t>(position),
                   load_packed(tensor.view().data, bits, locations[position]));
    } else {
      std::memcpy(taken.mutable_data() + position * element_bytes, tensor.view().data + location * element_bytes,
                  element_bytes);
    }
  }
  return taken;
}

std::vector<int64_t> sampled_indices(int64_t sample_count, int64_t element_count) {
  std::vector<int64_t> locations(static_cast<size_t>(sample_count));
  for (int64_t position = 0; position < sample_count; ++position)
    locations[static_cast<size_t>(position)] = sampled_element(position, sample_count, element_count);
  return locations;
}

Result<Tensor> take_sample(const Tensor& tensor, int64_t limit) {
  const int64_t total = tensor.element_count();
  return take_elements(tensor, sampled_indices(std::min(total, limit), total));
}

}  // namespace dump
}  // namespace parallax
