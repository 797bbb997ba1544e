// SPDX-License-Identifier: Apache-2.0
// GrowingFile: a file that is written through its own mapping, or much at once by calls. Blocks are reserved before
// they are mapped, so that a full disk is an error here and never a signal there; what is stored survives the process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "inspector/base/mapped_addresses.h"
#include "inspector/base/output_file.h"
#include "inspector/base/result.h"

namespace parallax::dump {

// One thread appends (reserve, prepare_together), another may work ahead of it and after it (prepare, holds, release,
// punch).
class GrowingFile {
 public:
  // Reserved, touched and given back at a time: one system call for many small records, a lock that is never held for
  // long, and what a huge page is on most CPUs.
  static constexpr uint64_t kStepBytes = uint64_t{2} << 20;

  // Makes the file. Where one has the name already, it keeps it until publish(): the new file has none, from keep() on
  // an unfinished one next to it (OutputFile::keep_unfinished).
  // Errors: usage (admit_output), io.
  static Result<std::unique_ptr<GrowingFile>> create(const std::string& path);
  ~GrowingFile();  // unmaps and closes; the file keeps its reserved length unless finish() was called
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  // The address of [begin, end), contiguous and backed by the disk until release() passes it. `begin` never goes back.
  // Errors (io): no space left, file too large for a limit, not mappable.
  Result<std::byte*> reserve(uint64_t begin, uint64_t end);

  // True where large payloads are better stored by write() than through the mapping: for all files but those in memory
  // with huge pages. write() needs neither a page fault for each page nor cleared pages.
  bool prefers_writes() const { return !has_huge_pages_.load(std::memory_order_relaxed); }
  enum class Caching : uint8_t { kept, dropped };
  // Stores `bytes` at `begin` of what is reserved. `dropped`: the disk shall have them at once and the cache give them
  // up, where Linux can (6.14); for what is not read again soon. Errors (io): what a disk may answer.
  Status write(uint64_t begin, std::span<const std::byte> bytes, Caching caching);

  // The bytes that the file system has left for such files; 0 where it does not say.
  uint64_t available_bytes() const;
  // Reserves up to `end` and, where write() is not preferred, takes its page faults, as far as disk and address space
  // allow; failing is left to reserve().
  void prepare(uint64_t end);
  // Prepares huge pages of a file in memory, spread over the pool's threads and done on return; elsewhere nothing.
  void prepare_together(uint64_t end);
  uint64_t prepared_end() const { return prepared_end_.load(std::memory_order_relaxed); }
  void release(uint64_t end);                      // unmaps all before `end`; nobody may use it any more
  void punch(uint64_t begin, uint64_t end) const;  // gives whole blocks back to the disk, where the file system can

  // Fills `target` with what stands at `begin` of the file, released or not, without mapping it again.
  Status read(uint64_t begin, std::span<std::byte> target) const;
  // True where `bytes` are stored at `begin` of the file, released or not.
  bool holds(uint64_t begin, std::span<const std::byte> bytes) const;

  bool is_published() const { return unpublished_ == nullptr; }
  Status keep();     // gives the file a name, so that it outlives the process: for one that holds a record
  Status publish();  // gives the file its own name: for one that is whole

  Status finish(uint64_t end, bool sync);  // cuts the file to `end` bytes

  const std::string& path() const { return path_; }
  // The name that the file has: its own, or that of keep(); empty where it has none yet.
  const std::string& current_path() const { return is_published() ? path_ : unpublished_->unfinished_path(); }

 private:
  // Address space for a part of the file, both beginning at a multiple of a step. Only what is reserved is backed.
  struct Region {
    uint64_t file_begin;
    uint64_t size_bytes;
    std::byte* address;
    uint64_t released_end;
    std::unique_ptr<MappedAddresses> addresses;  // another process may cut the file
    uint64_t file_end() const { return file_begin + size_bytes; }
  };

  GrowingFile(std::string path, int descriptor);
  Error failure(const char* action, int error_number) const;
  int extend(uint64_t end);  // 0 or an error number, like the next ones
  int extend_step(uint64_t begin, uint64_t end);
  int map(uint64_t begin, uint64_t end) const;
  bool extend_by_huge_page(uint64_t begin, uint64_t end) const;
  bool put_huge_page(uint64_t begin) const;
  Status extend_with_slack(uint64_t end);
  Status open_region(uint64_t begin, uint64_t end);
  Status write_all(uint64_t begin, std::span<const std::byte> bytes, int flags);

  std::string path_;
  int descriptor_;
  std::unique_ptr<OutputFile> unpublished_;  // the file as long as another has its name
  int replaced_ = -1;                        // the file that has the name, locked so that nobody else replaces it
  uint64_t page_bytes_;
  std::mutex mutex_;  // guards growth; the appending thread reads regions_ without it, being the only one to add
  std::vector<Region> regions_;       // only the newest grows
  bool has_slack_ = true;             // until reserving more than was needed failed
  std::atomic<bool> has_huge_pages_;  // a file in memory, until there was none for it; changed under mutex_
  bool can_drop_ = true;              // until Linux or the file system answered otherwise
  std::atomic<uint64_t> reserved_end_{0};
  std::atomic<uint64_t> prepared_end_{0};
};

}  // namespace parallax::dump
