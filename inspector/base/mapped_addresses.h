// SPDX-License-Identifier: Apache-2.0
// The addresses at which files are mapped, for a signal handler that must tell which file a fault came from.
#pragma once

#include <cstddef>
#include <string>

namespace parallax {

// Registers a mapping for as long as the object lives. Another process may cut the file and a disk may fail: Linux then
// raises SIGBUS at the address that is read.
class MappedAddresses {
 public:
  MappedAddresses(const void* begin, size_t size_bytes, std::string path);
  ~MappedAddresses();
  MappedAddresses(const MappedAddresses&) = delete;
  MappedAddresses& operator=(const MappedAddresses&) = delete;

  // The path of the file that is mapped at the address; null where there is none. For signal handlers.
  static const char* path_at(const void* address);

 private:
  struct Slot;
  static Slot* free_slot();

  std::string path_;
  Slot* slot_;
};

}  // namespace parallax
