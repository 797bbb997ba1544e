// SPDX-License-Identifier: Apache-2.0
// Counting of payloads by their address.
#include "reference/memory_meter.h"

#include <algorithm>

#include "inspector/base/memory_budget.h"

namespace parallax::reference {

Status MemoryMeter::reserve(const Value& value) const {
  const auto wanted = static_cast<int64_t>(payload_bytes(value));
  if (limit_bytes_ <= 0 || bytes_ + wanted <= limit_bytes_) return {};
  return over_memory_limit("a value", wanted, bytes_, limit_bytes_);
}

void MemoryMeter::count(const Tensor& tensor, int64_t step) {
  if (!tensor.defined()) return;
  Payload& payload = payloads_[tensor.storage().get()];
  if (payload.holders == 0) {
    payload.bytes = static_cast<int64_t>(tensor.size_bytes());
    bytes_ += payload.bytes;
    peak_bytes_ = std::max(peak_bytes_, bytes_);
  }
  payload.holders += step;
  if (payload.holders > 0) return;
  bytes_ -= payload.bytes;
  payloads_.erase(tensor.storage().get());
}

void MemoryMeter::count(const Value& value, int64_t step) {
  if (value.is_tensor()) count(value.tensor(), step);
  if (value.is_sequence()) {
    for (const Value& item : value.sequence().items) count(item, step);
  }
  if (value.is_optional()) {
    for (const Value& item : value.optional().item) count(item, step);
  }
  if (value.is_map()) {
    count(value.map().keys, step);
    for (const Value& item : value.map().values) count(item, step);
  }
}

}  // namespace parallax::reference
