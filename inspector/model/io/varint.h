// SPDX-License-Identifier: Apache-2.0
// Numbers of variable length as protobuf's wire format has them. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace parallax {

// The number that begins at `at`, which then is the byte after it; nothing where it does not end before `end`.
inline std::optional<uint64_t> read_varint(std::span<const std::byte> bytes, size_t& at, size_t end) {
  constexpr int kMostBits = 70;
  uint64_t value = 0;
  for (int shift = 0; shift < kMostBits && at < end; shift += 7) {
    const auto byte = static_cast<uint64_t>(bytes[at++]);
    if (shift < 64) value |= (byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return std::nullopt;
}

}  // namespace parallax
