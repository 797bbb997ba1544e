// SPDX-License-Identifier: Apache-2.0
// Int8 lookup tables: functions of one quantized value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace parallax::runtime {

// y[i] = table[x[i] as an unsigned number]; x and y may be the same.
using Int8LookupTable = std::array<uint8_t, 256>;
void look_up_bytes(const Int8LookupTable& table, int64_t count, const std::byte* x, std::byte* y);

}  // namespace parallax::runtime
