// SPDX-License-Identifier: Apache-2.0
// A pending value: on its way to the observer, or there.
#pragma once

#include <optional>

#include "inspector/tensor/statistics.h"
#include "inspector/tensor/value.h"
#include "runtime/device/gpu/host_copies.h"

namespace parallax::runtime {

struct PendingValue {
  Value value;  // what the observer is shown, once it is there
  std::optional<TensorStatistics> statistics;
  std::optional<HostCopy> copy;  // of `value`, or of the statistics of its chunks, while it is under way
  // The summary of a tensor: the copy holds its statistics chunk by chunk.
  struct Summary {
    int64_t count = 0;
    ElementOrder order = ElementOrder::row_major;
  };
  std::optional<Summary> summary;
};

}  // namespace parallax::runtime
