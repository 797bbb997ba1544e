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

Result<Tensor> take_sample(const Tensor& tensor, int64_t limit) {
  const int64_t total = tensor.element_count();
  const int64_t count = std::min(total, limit);
  Tensor sample = PX_TRY(Tensor::zeros(tensor.dtype(), Shape{count}));
  const int bits = bits_of(tensor.dtype());
  const auto element_bytes = static_cast<size_t>(bits / 8);
  for (int64_t position = 0; position < count; ++position) {
    const int64_t index = sampled_element(position, count, total);
    if (tensor.dtype() == DType::string) {
      sample.mutable_as<std::string>()[static_cast<size_t>(position)] =
          tensor.as<std::string>()[static_cast<size_t>(index)];
    } else if (bits < 8) {
      store_packed(sample.mutable_data(), bits, position, load_packed(tensor.view().data, bits, index));
    } else {
      std::memcpy(sample.mutable_data() + static_cast<size_t>(position) * element_bytes,
                  tensor.view().data + static_cast<size_t>(index) * element_bytes, element_bytes);
    }
  }
  return sample;
}

}  // namespace dump
}  // namespace parallax
