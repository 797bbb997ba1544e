// SPDX-License-Identifier: Apache-2.0
// Memory of packed weights. A run reads all of them once, at the speed at which memory is read: from huge pages that is
// a quarter to a half faster, so that matrices smaller than such a page share some.
#pragma once

#include <cstddef>
#include <memory>

namespace parallax::runtime {

// At least `bytes` bytes from the beginning of a cache line, not set to anything; null where the system has no more.
std::shared_ptr<std::byte> weight_memory(size_t bytes);

}  // namespace parallax::runtime
