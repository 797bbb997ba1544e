// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli, polynomial 0x1EDC6F41 reflected, as in RFC 3720 appendix B.4): the check of every dump record.
#pragma once

#include <cstddef>
#include <cstdint>

namespace parallax {

// Continues `crc` (0 to start) over `size` bytes. Uses the CPU's instruction where there is one.
uint32_t crc32c(const void* data, size_t size, uint32_t crc = 0);

// The CRC of a message from those of its first part and of its second, which is `second_bytes` long.
uint32_t crc32c_joined(uint32_t first, uint32_t second, size_t second_bytes);

// crc32c by tables alone: the twin that the tests hold the fast one against.
uint32_t crc32c_portable(const void* data, size_t size, uint32_t crc = 0);

}  // namespace parallax
