// Growth by posix_fallocate, mapping by chunks into address space that was set aside, so that neighbours in the file
// are neighbours in memory.
#include "inspector/dump/growing_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspector/base/check.h"
#include "inspector/dump/format.h"

namespace parallax::dump {
namespace {

constexpr uint64_t kRegionBytes = uint64_t{64} << 30;
constexpr uint64_t kSlackBytes = uint64_t{1}
                                 << 20;  // reserved beyond what is needed: one system call for many small records
constexpr uint64_t kPrepareBytes = uint64_t{2}
                                   << 20;  // reserved and touched at a time, so that the lock is never held for long

bool is_shortage(int error_number) { return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG; }

// Growing past RLIMIT_FSIZE would raise SIGXFSZ; this asks first.
bool exceeds_file_limit(uint64_t end) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && end > limit.rlim_cur;
}

}  // namespace

Result<std::unique_ptr<GrowingFile>> GrowingFile::create(const std::string& path) {
  // A file that is there may be mapped by a reader, which must not lose its pages: it keeps the old one.
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) ::unlink(path.c_str());
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return io_error("cannot create '" + path + "': " + std::strerror(errno));
  return std::unique_ptr<GrowingFile>(new GrowingFile(path, descriptor));
}

GrowingFile::GrowingFile(std::string path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor), page_bytes_(static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))) {}

GrowingFile::~GrowingFile() {
  for (const Region& region : regions_) ::munmap(region.address, region.size_bytes);
  if (descriptor_ >= 0) ::close(descriptor_);
}

Error GrowingFile::failure(const char* action, int error_number) const {
  std::string message = std::string("cannot ") + action + " '" + path_ + "': " + std::strerror(error_number);
  if (is_shortage(error_number)) message += "; what was written before is kept";
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
  const uint64_t file_begin = begin / page_bytes_ * page_bytes_;
  const uint64_t needed = round_up(end - file_begin, page_bytes_);
  uint64_t size = std::max(kRegionBytes, needed);
  void* address = MAP_FAILED;
  while (true) {
    address = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address != MAP_FAILED || size == needed) break;
    size = std::max(size / 2, needed);  // address space may be limited (ulimit -v)
  }
  if (address == MAP_FAILED) return failure("find address space for", errno);
  const uint64_t reserved = reserved_end_.load(std::memory_order_relaxed);
  if (reserved > file_begin) {
    const uint64_t mapped = std::min(reserved - file_begin, size);
    if (::mmap(address, mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor_,
               static_cast<off_t>(file_begin)) == MAP_FAILED) {
      const int error_number = errno;
      ::munmap(address, size);
      return failure("map", error_number);
    }
  }
  regions_.push_back({file_begin, size, static_cast<std::byte*>(address), file_begin});
  return {};
}

int GrowingFile::extend(uint64_t end) {
  const uint64_t begin = reserved_end_.load(std::memory_order_relaxed);
  if (exceeds_file_limit(end)) return EFBIG;
  int error_number = EINTR;
  while (error_number == EINTR) {
    error_number = ::posix_fallocate(descriptor_, static_cast<off_t>(begin), static_cast<off_t>(end - begin));
  }
  if (error_number != 0) return error_number;
  const Region& region = regions_.back();
  const uint64_t map_begin = std::max(begin, region.file_begin);
  std::byte* target = region.address + (map_begin - region.file_begin);
  if (::mmap(target, end - map_begin, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor_,
             static_cast<off_t>(map_begin)) == MAP_FAILED) {
    return errno;
  }
  reserved_end_.store(end, std::memory_order_release);
  return 0;
}

Status GrowingFile::extend_with_slack(uint64_t end) {
  if (end <= reserved_end_.load(std::memory_order_relaxed)) return {};
  const uint64_t needed = round_up(end, page_bytes_);
  const uint64_t wished = std::min(needed + kSlackBytes, regions_.back().file_end());
  if (has_slack_ && wished > needed) {
    const int error_number = extend(wished);
    if (error_number == 0) return {};
    if (!is_shortage(error_number)) return failure("reserve space for", error_number);
    has_slack_ = false;
  }
  const int error_number = extend(needed);
  if (error_number != 0) return failure("reserve space for", error_number);
  return {};
}

void GrowingFile::prepare(uint64_t end) {
  uint64_t begin = prepared_end_.load(std::memory_order_relaxed);
  while (begin < end) {
    const std::lock_guard lock(mutex_);
    if (regions_.empty() || !has_slack_) return;
    const Region& region = regions_.back();
    begin = std::max(begin, region.released_end);
    const uint64_t step_end = std::min(round_up(begin + 1, kPrepareBytes), region.file_end());
    if (step_end <= begin) return;
    if (step_end > reserved_end_.load(std::memory_order_relaxed) && extend(step_end) != 0) {
      has_slack_ = false;
      return;
    }
    // Linux 5.14 and later; elsewhere the faults come when the bytes are written.
    ::madvise(region.address + (begin - region.file_begin), step_end - begin, MADV_POPULATE_WRITE);
    begin = step_end;
    prepared_end_.store(begin, std::memory_order_relaxed);
  }
}

void GrowingFile::release(uint64_t end) {
  const std::lock_guard lock(mutex_);
  for (Region& region : regions_) {
    const uint64_t region_end = std::min(end / page_bytes_ * page_bytes_, region.file_end());
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
  // Where holes are not supported the bytes stay, unused.
  static_cast<void>(::fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(begin),
                                static_cast<off_t>(end - begin)));
}

Status GrowingFile::finish(uint64_t end, bool sync) {
  for (const Region& region : regions_) ::munmap(region.address, region.size_bytes);
  regions_.clear();
  int error_number = ::ftruncate(descriptor_, static_cast<off_t>(end)) != 0 ? errno : 0;
  if (error_number == 0 && sync && ::fsync(descriptor_) != 0) error_number = errno;
  if (::close(descriptor_) != 0 && error_number == 0) error_number = errno;
  descriptor_ = -1;
  if (error_number != 0) return failure("finish", error_number);
  return {};
}

}  // namespace parallax::dump
