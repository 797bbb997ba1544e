// Parcel: a value on its way to the observer, or there.
#pragma once

#include <optional>

#include "inspector/tensor/statistics.h"
#include "inspector/tensor/value.h"
#include "runtime/device/gpu/host_copies.h"

namespace parallax::runtime {

struct Parcel {
  Value value;  // what the observer is shown, once it is there
  std::optional<TensorStatistics> statistics;
  std::optional<HostCopy> copy;    // of `value`, or of the statistics of its chunks, while it is under way
  std::optional<int64_t> summary;  // elements that the chunks are of: the copy holds their statistics, not the value
};

}  // namespace parallax::runtime
