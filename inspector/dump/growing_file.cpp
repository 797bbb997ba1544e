// SPDX-License-Identifier: Apache-2.0
// Growth by posix_fallocate, mapping by chunks into address space that was set aside, so that neighbors in the file
// are neighbors in memory.
#include "inspector/dump/growing_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mman.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "inspector/base/check.h"
#include "inspector/base/input_files.h"
#include "inspector/base/thread_pool.h"
#include "inspector/dump/format.h"

namespace parallax::dump {
namespace {

constexpr uint64_t kRegionBytes = uint64_t{64} << 30;

#ifndef RWF_DONTCACHE
#define RWF_DONTCACHE 0x00000080
#endif

bool is_shortage(int error_number) { return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG; }

// Growing past RLIMIT_FSIZE would raise SIGXFSZ; this asks first.
bool exceeds_file_limit(uint64_t end) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && end > limit.rlim_cur;
}

// Backs a part of the file with blocks; 0 or an error number.
int allocate(int descriptor, uint64_t begin, uint64_t end) {
  int error_number = EINTR;
  while (error_number == EINTR) {
    error_number = ::posix_fallocate(descriptor, static_cast<off_t>(begin), static_cast<off_t>(end - begin));
  }
  return error_number;
}

bool is_in_memory(int descriptor) {
  struct statfs info {};
  return ::fstatfs(descriptor, &info) == 0 && info.f_type == TMPFS_MAGIC;
}

// Whoever writes holds a lock until it closes the file or dies. Takes it, if nobody has it; a file system without locks
// has nobody.
bool is_locked_by_another(int descriptor) {
  return ::flock(descriptor, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

Error written_by_another(const std::string& path) {
  return io_error("'" + path + "' is being written by another run: wait for its end, or name another file or folder");
}

// Address space that begins at a multiple of kStepBytes, or null.
std::byte* find_address_space(uint64_t size) {
  constexpr uint64_t kStepBytes = GrowingFile::kStepBytes;
  void* found = ::mmap(nullptr, size + kStepBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return nullptr;
  auto* const begin = static_cast<std::byte*>(found);
  const uint64_t before = round_up(reinterpret_cast<uintptr_t>(begin), kStepBytes) - reinterpret_cast<uintptr_t>(begin);
  if (before > 0) ::munmap(begin, before);
  ::munmap(begin + before + size, kStepBytes - before);
  return begin + before;
}

}  // namespace

Result<std::unique_ptr<GrowingFile>> GrowingFile::create(const std::string& path) {
  PX_TRY(admit_output(path));
  const std::string target = followed_links(path);
  struct stat info {};
  const bool replaces = ::lstat(target.c_str(), &info) == 0 && S_ISREG(info.st_mode);
  if (replaces) {
    // It may be mapped by a reader, which must not lose its pages; and it is a result, which the new one is not yet.
    auto made = PX_TRY(OutputFile::create(target));
    const int descriptor = ::fcntl(made->descriptor(), F_DUPFD_CLOEXEC, 0);
    if (descriptor < 0) return io_error("cannot create '" + path + "': " + std::strerror(errno));
    auto file = std::unique_ptr<GrowingFile>(new GrowingFile(path, descriptor));
    file->unpublished_ = std::move(made);
    file->replaced_ = static_cast<int>(TEMP_FAILURE_RETRY(::open(target.c_str(), O_RDONLY | O_CLOEXEC)));
    const bool is_written = file->replaced_ >= 0 && is_locked_by_another(file->replaced_);
    if (is_written || is_locked_by_another(descriptor)) return written_by_another(path);
    return file;
  }
  const int descriptor =
      static_cast<int>(TEMP_FAILURE_RETRY(::open(target.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)));
  if (descriptor < 0) return io_error("cannot create '" + path + "': " + std::strerror(errno));
  auto file = std::unique_ptr<GrowingFile>(new GrowingFile(path, descriptor));
  if (is_locked_by_another(descriptor)) return written_by_another(path);  // it began at the same moment
  input_files::note_written(descriptor);
  return file;
}

Status GrowingFile::keep() { return current_path().empty() ? unpublished_->keep_unfinished() : Status(); }

Status GrowingFile::publish() {
  if (is_published()) return {};
  PX_TRY(unpublished_->publish());
  unpublished_.reset();
  ::close(std::exchange(replaced_, -1));
  return {};
}

GrowingFile::GrowingFile(std::string path, int descriptor)
    : path_(std::move(path)),
      descriptor_(descriptor),
      page_bytes_(static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))),
      has_huge_pages_(is_in_memory(descriptor)) {}

GrowingFile::~GrowingFile() {
  for (const Region& region : regions_) ::munmap(region.address, region.size_bytes);
  if (descriptor_ >= 0) ::close(descriptor_);
  if (replaced_ >= 0) ::close(replaced_);
}

Error GrowingFile::failure(const char* action, int error_number) const {
  std::string message = std::string("cannot ") + action + " '" + path_ + "': " + std::strerror(error_number);
  if (is_shortage(error_number)) message += "; what was written before is kept";
  if (is_shortage(error_number) && !is_published() && !current_path().empty())
    message += " as '" + current_path() + "'";
  return io_error(std::move(message));
}

Result<std::byte*> GrowingFile::reserve(uint64_t begin, uint64_t end) {
  PX_CHECK(begin <= end);
  if (regions_.empty() || end > regions_.back().file_end()) PX_TRY(open_region(begin, end));
  if (end > reserved_end_.load(std::memory_order_acquire)) {
    const std::lock_guard lock(mutex_);
    PX_TRY(extend_with_slack(end));
  }
  const Region& region = regions_.back();
  PX_CHECK(begin >= region.file_begin);
  return region.address + (begin - region.file_begin);
}

Status GrowingFile::open_region(uint64_t begin, uint64_t end) {
  const std::lock_guard lock(mutex_);
  const uint64_t file_begin = begin / kStepBytes * kStepBytes;
  const uint64_t needed = round_up(end - file_begin, kStepBytes);
  uint64_t size = std::max(kRegionBytes, needed);
  std::byte* address = find_address_space(size);
  while (address == nullptr && size > needed) {
    size = round_up(std::max(size / 2, needed), kStepBytes);  // address space may be limited (ulimit -v)
    address = find_address_space(size);
  }
  if (address == nullptr) return failure("find address space for", errno);
  regions_.push_back({file_begin, size, address, file_begin, std::make_unique<MappedAddresses>(address, size, path_)});
  const uint64_t reserved = reserved_end_.load(std::memory_order_relaxed);
  const int error_number = reserved > file_begin ? map(file_begin, std::min(reserved, file_begin + size)) : 0;
  if (error_number == 0) return {};
  regions_.pop_back();
  ::munmap(address, size);
  return failure("map", error_number);
}

// Maps a range of the newest region.
int GrowingFile::map(uint64_t begin, uint64_t end) const {
  const Region& region = regions_.back();
  begin = std::max(begin, region.file_begin);
  if (begin >= end) return 0;
  const void* mapped = ::mmap(region.address + (begin - region.file_begin), end - begin, PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_FIXED, descriptor_, static_cast<off_t>(begin));
  return mapped == MAP_FAILED ? errno : 0;
}

int GrowingFile::extend(uint64_t end) {
  if (exceeds_file_limit(end)) return EFBIG;
  while (true) {
    const uint64_t begin = reserved_end_.load(std::memory_order_relaxed);
    if (begin >= end) return 0;
    const uint64_t step_end = std::min(end, round_up(begin + 1, kStepBytes));
    const int error_number = extend_step(begin, step_end);
    if (error_number != 0) return error_number;
    reserved_end_.store(step_end, std::memory_order_release);
  }
}

int GrowingFile::extend_step(uint64_t begin, uint64_t end) {
  if (has_huge_pages_ && !extend_by_huge_page(begin, end)) has_huge_pages_ = false;
  if (has_huge_pages_ && end - begin == kStepBytes) return 0;
  const int error_number = allocate(descriptor_, begin, end);
  return error_number != 0 ? error_number : map(begin, end);
}

// A step of a file in memory by one huge page, at a fifth of the cost of as many small ones, and without page faults.
// Linux 6.1 and later. Parts of a step are left to the caller. False: there is no huge page to be had.
bool GrowingFile::extend_by_huge_page(uint64_t begin, uint64_t end) const {
  if (end - begin != kStepBytes || begin < regions_.back().file_begin) return true;
  return map(begin, end) == 0 && put_huge_page(begin);
}

// Puts a huge page under a step that is mapped.
bool GrowingFile::put_huge_page(uint64_t begin) const {
  const Region& region = regions_.back();
  const uint64_t end = begin + kStepBytes;
  // The call puts a huge page in place of what is there, so something has to be; the last page sets the file's size.
  if (allocate(descriptor_, end - page_bytes_, end) != 0) return false;
  return ::madvise(region.address + (begin - region.file_begin), kStepBytes, MADV_COLLAPSE) == 0;
}

Status GrowingFile::extend_with_slack(uint64_t end) {
  if (end <= reserved_end_.load(std::memory_order_relaxed)) return {};
  if (has_slack_) {
    const int error_number = extend(std::min(round_up(end, kStepBytes), regions_.back().file_end()));
    if (error_number == 0) return {};
    if (!is_shortage(error_number)) return failure("reserve space for", error_number);
    has_slack_ = false;
  }
  const int error_number = extend(round_up(end, page_bytes_));
  if (error_number != 0) return failure("reserve space for", error_number);
  return {};
}

uint64_t GrowingFile::available_bytes() const {
  struct statfs info {};
  if (::fstatfs(descriptor_, &info) != 0) return 0;
  return static_cast<uint64_t>(info.f_bavail) * static_cast<uint64_t>(info.f_bsize);
}

void GrowingFile::prepare(uint64_t end) {
  uint64_t begin = prepared_end_.load(std::memory_order_relaxed);
  while (begin < end) {
    const std::lock_guard lock(mutex_);
    if (regions_.empty() || !has_slack_) return;
    const Region& region = regions_.back();
    begin = std::max(begin, region.released_end);
    const uint64_t step_end = std::min(round_up(begin + 1, kStepBytes), region.file_end());
    if (step_end <= begin) return;
    if (step_end > reserved_end_.load(std::memory_order_relaxed) && extend(step_end) != 0) {
      has_slack_ = false;
      return;
    }
    // Linux 5.14 and later; elsewhere the faults come when the bytes are written.
    if (!prefers_writes())
      ::madvise(region.address + (begin - region.file_begin), step_end - begin, MADV_POPULATE_WRITE);
    begin = step_end;
    prepared_end_.store(begin, std::memory_order_relaxed);
  }
}

// Most of what a huge page costs is that Linux clears it, which all threads do side by side.
void GrowingFile::prepare_together(uint64_t end) {
  const std::lock_guard lock(mutex_);
  if (regions_.empty() || !has_slack_ || !has_huge_pages_) return;
  const Region& region = regions_.back();
  const uint64_t reserved = std::max(reserved_end_.load(std::memory_order_relaxed), region.file_begin);
  const uint64_t begin = round_up(reserved, kStepBytes);
  end = std::min(round_up(end, kStepBytes), region.file_end());
  // Failing is left to reserve().
  if (begin >= end || exceeds_file_limit(end) || extend(begin) != 0 || map(begin, end) != 0) return;
  constexpr int64_t kStepWork = 100'000;  // nanoseconds
  std::atomic<bool> has_all = true;
  parallel_for(static_cast<int64_t>((end - begin) / kStepBytes), kStepWork, [&](int64_t first, int64_t last) {
    for (int64_t step = first; step < last; ++step) {
      if (has_all && !put_huge_page(begin + static_cast<uint64_t>(step) * kStepBytes)) has_all = false;
    }
  });
  if (!has_all) {
    has_huge_pages_ = false;
    return;
  }
  reserved_end_.store(end, std::memory_order_release);
  prepared_end_.store(end, std::memory_order_relaxed);
}

void GrowingFile::release(uint64_t end) {
  const std::lock_guard lock(mutex_);
  for (Region& region : regions_) {
    const uint64_t region_end = std::min(end / kStepBytes * kStepBytes, region.file_end());
    if (region_end <= region.released_end) continue;
    std::byte* address = region.address + (region.released_end - region.file_begin);
    ::mmap(address, region_end - region.released_end, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    region.released_end = region_end;
  }
}

void GrowingFile::punch(uint64_t begin, uint64_t end) const {
  begin = round_up(begin, page_bytes_);
  end = end / page_bytes_ * page_bytes_;
  if (begin >= end) return;
  // The bytes stay, unused, where holes are not supported.
  static_cast<void>(::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                                static_cast<off_t>(end - begin)));
}

// The first and last page are kept: headers are stored next to the payload, and would bring them back from the disk.
Status GrowingFile::write(uint64_t begin, std::span<const std::byte> bytes, Caching caching) {
  const uint64_t first = round_up(begin, page_bytes_) - begin;
  const uint64_t last = (begin + bytes.size()) / page_bytes_ * page_bytes_ - begin;
  if (caching == Caching::kept || !can_drop_ || bytes.size() < 2 * page_bytes_) return write_all(begin, bytes, 0);
  PX_TRY(write_all(begin, bytes.first(first), 0));
  PX_TRY(write_all(begin + first, bytes.subspan(first, last - first), RWF_DONTCACHE));
  return write_all(begin + last, bytes.subspan(last), 0);
}

Status GrowingFile::write_all(uint64_t begin, std::span<const std::byte> bytes, int flags) {
  while (!bytes.empty()) {
    const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
    const ssize_t count = ::pwritev2(descriptor_, &part, 1, static_cast<off_t>(begin), can_drop_ ? flags : 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EOPNOTSUPP || errno == EINVAL) && flags != 0 && can_drop_) {
      can_drop_ = false;
      continue;
    }
    if (count <= 0) return failure("write", count < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<size_t>(count));
    begin += static_cast<uint64_t>(count);
  }
  return {};
}

Status GrowingFile::read(uint64_t begin, std::span<std::byte> target) const {
  while (!target.empty()) {
    const ssize_t count = ::pread(descriptor_, target.data(), target.size(), static_cast<off_t>(begin));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return failure("read back", count < 0 ? errno : EIO);
    target = target.subspan(static_cast<size_t>(count));
    begin += static_cast<uint64_t>(count);
  }
  return {};
}

bool GrowingFile::holds(uint64_t begin, std::span<const std::byte> bytes) const {
  std::vector<std::byte> buffer(std::min<size_t>(bytes.size(), size_t{64} << 10));
  while (!bytes.empty()) {
    const std::span<std::byte> piece = std::span(buffer).first(std::min(buffer.size(), bytes.size()));
    if (!read(begin, piece).ok() || std::memcmp(piece.data(), bytes.data(), piece.size()) != 0) return false;
    bytes = bytes.subspan(piece.size());
    begin += piece.size();
  }
  return true;
}

Status GrowingFile::finish(uint64_t end, bool sync) {
  for (const Region& region : regions_) ::munmap(region.address, region.size_bytes);
  regions_.clear();
  int error_number = TEMP_FAILURE_RETRY(::ftruncate(descriptor_, static_cast<off_t>(end))) != 0 ? errno : 0;
  if (error_number == 0 && sync && ::fsync(descriptor_) != 0) error_number = errno;
  if (::close(descriptor_) != 0 && error_number == 0) error_number = errno;
  descriptor_ = -1;
  if (error_number != 0) return failure("finish", error_number);
  return {};
}

}  // namespace parallax::dump
