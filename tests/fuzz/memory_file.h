// SPDX-License-Identifier: Apache-2.0
// A file that lives in memory only, so that parsers of files can be fuzzed without touching a disk.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "inspector/base/check.h"

namespace parallax {

class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::byte> bytes) : descriptor_(::memfd_create("fuzzed", MFD_CLOEXEC)) {
    PX_CHECK(descriptor_ >= 0);
    PX_CHECK(::write(descriptor_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace parallax
