// The statistics of a tensor on the host, alone or in the pass that copies it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inspector/tensor/statistics.h"
#include "inspector/tensor/tensor.h"
#include "inspector/tensor/value.h"

namespace parallax {

// Where a tensor lies channels last (inspector/tensor/channels_last.h), statistics and copies are those of the
// row-major one. Of a text, whose strings are no numbers, the projections are those of 1 + CRC-32C of each string, so
// that texts can be told apart by them; everything else stays empty.
TensorStatistics compute_statistics(const TensorView& view);

// Of all elements of a sequence, an optional or a map (its keys first), whose tensors' projections are added with signs
// of their own, so that order counts.
TensorStatistics value_statistics(const Value& value);

// The same while copying the payload to `target` (size_bytes() long), in one pass over the source.
struct CheckedCopy {
  TensorStatistics statistics;
  uint32_t crc = 0;  // CRC-32C of the payload
};
CheckedCopy copy_with_statistics(const TensorView& view, std::byte* target);

}  // namespace parallax
