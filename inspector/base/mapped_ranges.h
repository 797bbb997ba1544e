// SPDX-License-Identifier: Apache-2.0
// Memory of mapped files by address: for readers that pass over weights once and know no file.
#pragma once

#include <cstddef>

namespace parallax {

// Gives the memory of these bytes back to the system where they are in a MappedFile; bytes that are touched again are
// read from the file again. Does nothing to other memory.
void release_if_mapped(const std::byte* data, size_t count);

}  // namespace parallax
