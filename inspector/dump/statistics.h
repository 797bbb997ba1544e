// The statistics of a tensor on the host, alone or in the pass that copies it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inspector/tensor/statistics.h"
#include "inspector/tensor/tensor.h"

namespace parallax {

TensorStatistics compute_statistics(const TensorView& view);

// The same while copying the payload to `target` (size_bytes() long), in one pass over the source.
struct CheckedCopy {
  TensorStatistics statistics;
  uint32_t crc = 0;  // CRC-32C of the payload
};
CheckedCopy copy_with_statistics(const TensorView& view, std::byte* target);

}  // namespace parallax
