// SPDX-License-Identifier: Apache-2.0
// Statistics of a payload while it is handed on, for who writes files by calls and not through memory.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "inspector/base/result.h"
#include "inspector/dump/statistics/statistics.h"

namespace parallax {

// As copy_with_statistics, but hands the payload to `write`, part by part and in order, each while it is in the cache.
// Ends with the first error of `write`.
using PayloadWriter = std::function<Status(uint64_t offset, std::span<const std::byte> part)>;
Result<CheckedCopy> write_with_statistics(const TensorView& view, const PayloadWriter& write,
                                          ElementOrder order = ElementOrder::row_major);

}  // namespace parallax
