// SPDX-License-Identifier: Apache-2.0
// Walks values that a parser made of foreign bytes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "inspector/base/check.h"
#include "inspector/dump/tensor_files/npy.h"

namespace parallax {

// Touches every byte that a tensor says it has.
inline void read_all(const Tensor& tensor) {
  if (tensor.dtype() == DType::string) {
    size_t size = 0;
    for (const std::string& text : tensor.as<std::string>()) size += text.size();
    PX_CHECK(size < (size_t{1} << 40));
    return;
  }
  unsigned sum = 0;
  for (const std::byte value : tensor.view().bytes()) sum += std::to_integer<unsigned>(value);
  volatile unsigned sink = sum;
  (void)sink;
}

inline void read_all(const std::vector<NamedValue>& values) {
  for (const NamedValue& value : values) read_all(value.value.tensor());
}

inline void read_all(const Result<std::vector<NamedValue>>& values) {
  if (values.ok()) return read_all(*values);
  PX_CHECK(!values.error().message.empty());
}

}  // namespace parallax
