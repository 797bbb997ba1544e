// SPDX-License-Identifier: Apache-2.0
// A sorted list of what is in use: a run has few buffers at a time.
#include "runtime/device/arena.h"

#include <algorithm>

#include "inspector/base/check.h"

namespace parallax::runtime {

std::byte* Arena::claim(int64_t offset, int64_t bytes) {
  if (offset + bytes > bytes_) return nullptr;
  const auto after = std::upper_bound(claims_.begin(), claims_.end(), offset,
                                      [](int64_t begin, const Claim& claim) { return begin < claim.begin; });
  if (after != claims_.end() && after->begin < offset + bytes) return nullptr;
  if (after != claims_.begin() && std::prev(after)->end > offset) return nullptr;
  claims_.insert(after, {offset, offset + bytes});
  return memory_.get() + offset;
}

void Arena::release(const std::byte* claimed) {
  const int64_t offset = claimed - memory_.get();
  const auto found = std::lower_bound(claims_.begin(), claims_.end(), offset,
                                      [](const Claim& claim, int64_t begin) { return claim.begin < begin; });
  PX_CHECK(found != claims_.end() && found->begin == offset);
  claims_.erase(found);
}

}  // namespace parallax::runtime
