// SPDX-License-Identifier: Apache-2.0
// A file mapped for reading: how dumps, models and external data come into memory without a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "inspector/base/mapped_addresses.h"
#include "inspector/base/result.h"

namespace parallax {

class MappedFile {
 public:
  // Maps a regular file privately. An empty file gives empty bytes. Errors (io): cannot open, not a regular file,
  // cannot map.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_bytes_}; }
  const std::string& path() const { return path_; }
  // False when the file has become shorter than when it was mapped: reading the lost pages would raise SIGBUS.
  bool is_intact() const;
  // True when the file has been written to since it was mapped, or its size is another one: the bytes may be others.
  bool has_changed() const;
  // True while another process holds the lock of whoever writes a dump: the end of the file may be cut off at any time.
  bool is_being_written() const;
  // Copies bytes out of the file by reading it, so that whatever becomes of the file is an error and no signal. Errors:
  // io, also when the file has become too short.
  Status read(size_t begin, std::span<std::byte> target) const;
  // Gives the memory of these bytes back to the system; what is touched again is read from the file again. For readers
  // that pass over a large file once.
  void release(size_t begin, size_t count) const;

 private:
  MappedFile(std::string path, int descriptor, const std::byte* data, size_t size_bytes, int64_t written_at)
      : path_(std::move(path)),
        descriptor_(descriptor),
        data_(data),
        size_bytes_(size_bytes),
        written_at_(written_at),
        addresses_(data, size_bytes, path_) {}

  std::string path_;
  int descriptor_;
  const std::byte* data_;
  size_t size_bytes_;
  int64_t written_at_;  // nanoseconds since the epoch
  MappedAddresses addresses_;
};

// Whole-file helpers for small files.
Result<std::string> read_file(const std::string& path);
// Writes to a temporary name next to `path` and renames it, so that a reader never sees half a file. A symbolic link is
// followed; what is no regular file (a device, a pipe) is written to as it stands.
Status write_file(const std::string& path, std::string_view contents);
// Writes contents that come in pieces.
Status write_file(const std::string& path, std::span<const std::string_view> pieces);

}  // namespace parallax
