// SPDX-License-Identifier: Apache-2.0
// MemoryMeter: bytes of all payloads that values of a session hold, each payload counted once however many values share
// it.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "inspector/base/result.h"
#include "inspector/tensor/value.h"

namespace parallax::reference {

class MemoryMeter {
 public:
  explicit MemoryMeter(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // A value comes to be held, or is let go. Absent values are nothing.
  void add(const Value& value) { count(value, +1); }
  void remove(const Value& value) { count(value, -1); }

  // Errors: out_of_memory when `value` together with all that is held would exceed the limit.
  Status reserve(const Value& value) const;

  int64_t bytes() const { return bytes_; }
  int64_t peak_bytes() const { return peak_bytes_; }

 private:
  void count(const Value& value, int64_t step);
  void count(const Tensor& tensor, int64_t step);

  struct Payload {
    int64_t bytes = 0;
    int64_t holders = 0;
  };
  std::unordered_map<const void*, Payload> payloads_;
  int64_t limit_bytes_;
  int64_t bytes_ = 0;
  int64_t peak_bytes_ = 0;
};

}  // namespace parallax::reference
