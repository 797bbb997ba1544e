// SPDX-License-Identifier: Apache-2.0
// NumberFormat: the floating-point formats that vector kernels read. No inline code that is not constant.
#pragma once

#include <cstddef>
#include <cstdint>

namespace parallax {

enum class NumberFormat : uint8_t { float64, float32, float16, bfloat16 };

static constexpr size_t element_bytes(NumberFormat format) {
  return format == NumberFormat::float64 ? 8 : format == NumberFormat::float32 ? 4 : 2;
}

}  // namespace parallax
