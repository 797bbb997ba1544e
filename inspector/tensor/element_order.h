// SPDX-License-Identifier: Apache-2.0
// The two orders of a tensor's elements that executors and statistics know.
#pragma once

#include <cstdint>

namespace parallax {

// The order of a tensor [N, C, spatial...]: as ONNX has it, or [N, spatial..., C].
enum class ElementOrder : uint8_t { row_major, channels_last };

}  // namespace parallax
