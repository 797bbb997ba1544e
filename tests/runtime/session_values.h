// SPDX-License-Identifier: Apache-2.0
// Values that tests of sessions give and compare, and an observer that keeps what it is shown.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>

#include "inspector/exec/observer.h"

namespace parallax::session_values {

// Numbers in [-1, 1), the same for the same seed.
inline Value filled(const Shape& shape, uint32_t seed) {
  Tensor tensor = Tensor::allocate(DType::float32, shape).take();
  for (float& element : tensor.mutable_as<float>()) {
    seed = seed * 1664525U + 1013904223U;
    element = static_cast<float>(seed >> 8) / 8388608.0F - 1.0F;
  }
  return tensor;
}

// Shape and every bit.
inline bool same(const Value& a, const Value& b) {
  const auto x = a.tensor().view().bytes(), y = b.tensor().view().bytes();
  return a.tensor().shape() == b.tensor().shape() && std::equal(x.begin(), x.end(), y.begin(), y.end());
}

// Keeps copies of all tensors, by path.
class Recorder : public Observer {
 public:
  CaptureLevel wants(const ValueInfo&) override { return CaptureLevel::all; }
  Status observe(const Observation& seen) override {
    if (seen.value.is_tensor()) values[seen.path()] = seen.value.tensor().clone().take();
    return {};
  }
  std::map<std::string, Tensor> values;
};

}  // namespace parallax::session_values
