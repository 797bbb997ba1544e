// SPDX-License-Identifier: Apache-2.0
// The statistics of a tensor on the host, alone or in the pass that copies it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "inspector/tensor/statistics.h"
#include "inspector/tensor/tensor.h"
#include "inspector/tensor/value.h"

namespace parallax {

// The elements are counted in `order`, in whichever of the two the tensor is stored (inspector/tensor/channels_last.h):
// it costs least where they are the same. Channels last only from rank 3 on, and where elements are whole bytes. Copies
// are row-major. Of a text, whose strings are no numbers, the projections are those of 1 + CRC-32C of each string, so
// that texts can be told apart by them; everything else stays empty.
TensorStatistics compute_statistics(const TensorView& view, ElementOrder order = ElementOrder::row_major);

// The statistics of all elements of a sequence, an optional or a map (its keys first), whose tensors' projections are
// added with signs of their own, so that order counts.
TensorStatistics value_statistics(const Value& value);

// The order in which a payload is copied: as stored where its elements are counted so, else row-major.
ElementOrder payload_order(const TensorView& view, ElementOrder order);

// The statistics, taken while copying the payload to `target` (size_bytes() long), in one pass over the source but for
// row-major tensors that are counted channels last.
struct CheckedCopy {
  TensorStatistics statistics;
  uint32_t crc = 0;  // CRC-32C of the payload in that order
};
CheckedCopy copy_with_statistics(const TensorView& view, std::byte* target,
                                 ElementOrder order = ElementOrder::row_major);

}  // namespace parallax
