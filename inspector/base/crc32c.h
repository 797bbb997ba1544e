// CRC-32C (Castagnoli, polynomial 0x1EDC6F41 reflected, as in RFC 3720 appendix B.4): the check of every dump record.
#pragma once

#include <cstddef>
#include <cstdint>

namespace parallax {

// Continues `crc` (0 to start) over `size` bytes. Uses the CPU's instruction where there is one.
uint32_t crc32c(const void* data, size_t size, uint32_t crc = 0);

// The same by tables alone: the twin that the tests hold the fast one against.
uint32_t crc32c_portable(const void* data, size_t size, uint32_t crc = 0);

}  // namespace parallax
