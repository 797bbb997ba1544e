// SPDX-License-Identifier: Apache-2.0
// MappedFile and whole-file reading and writing by POSIX calls.
#include "inspector/base/mapped_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspector/base/input_files.h"
#include "inspector/base/mapped_ranges.h"
#include "inspector/base/output_file.h"

namespace parallax {
namespace {

Error system_error(const std::string& path, const char* action) {
  return io_error(std::string("cannot ") + action + " '" + path + "': " + std::strerror(errno));
}

int64_t write_time(const struct stat& info) {
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

// The files that are mapped now, by their first byte.
struct MappedFiles {
  std::mutex mutex;
  std::map<const std::byte*, const MappedFile*> files;
};
MappedFiles& mapped_files() {
  static MappedFiles files;
  return files;
}

}  // namespace

Result<std::shared_ptr<const MappedFile>> MappedFile::open(const std::string& path) {
  const int descriptor = static_cast<int>(TEMP_FAILURE_RETRY(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)));
  if (descriptor < 0) return system_error(path, "open");
  struct stat info {};
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(descriptor);
    return io_error("'" + path + "' is not a regular file; name one");
  }
  const auto size = static_cast<size_t>(info.st_size);
  const std::byte* data = nullptr;
  if (size > 0) {
    void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapping == MAP_FAILED) {
      Error error = system_error(path, "map");
      ::close(descriptor);
      return error;
    }
    data = static_cast<const std::byte*>(mapping);
  }
  const std::shared_ptr<const MappedFile> file(new MappedFile(path, descriptor, data, size, write_time(info)));
  input_files::note_mapping(descriptor, path);
  if (size > 0) {
    const std::lock_guard lock(mapped_files().mutex);
    mapped_files().files[data] = file.get();
  }
  return file;
}

MappedFile::~MappedFile() {
  input_files::forget_mapping(descriptor_);
  if (size_bytes_ > 0) {
    const std::lock_guard lock(mapped_files().mutex);
    mapped_files().files.erase(data_);
  }
  if (size_bytes_ > 0) ::munmap(const_cast<std::byte*>(data_), size_bytes_);
  ::close(descriptor_);
}

bool MappedFile::is_intact() const {
  struct stat info {};
  return ::fstat(descriptor_, &info) == 0 && static_cast<size_t>(info.st_size) >= size_bytes_;
}

bool MappedFile::has_changed() const {
  struct stat info {};
  return ::fstat(descriptor_, &info) != 0 || static_cast<size_t>(info.st_size) != size_bytes_ ||
         write_time(info) != written_at_;
}

bool MappedFile::is_being_written() const {
  if (::flock(descriptor_, LOCK_SH | LOCK_NB) != 0) return errno == EWOULDBLOCK;
  ::flock(descriptor_, LOCK_UN);
  return false;
}

Status MappedFile::read(size_t begin, std::span<std::byte> target) const {
  size_t done = 0;
  while (done < target.size()) {
    const ssize_t count =
        ::pread(descriptor_, target.data() + done, target.size() - done, static_cast<off_t>(begin + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error(path_, "read");
    if (count == 0)
      return io_error("'" + path_ + "' has become shorter since it was opened; it must not change while it is read");
    done += static_cast<size_t>(count);
  }
  return {};
}

void MappedFile::release(size_t begin, size_t count) const {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t first = (begin + page - 1) / page * page;
  const size_t last = std::min(begin + count, size_bytes_) / page * page;
  if (first < last) ::madvise(const_cast<std::byte*>(data_ + first), last - first, MADV_DONTNEED);
}

void release_if_mapped(const std::byte* data, size_t count) {
  MappedFiles& mapped = mapped_files();
  const std::lock_guard lock(mapped.mutex);
  auto file = mapped.files.upper_bound(data);
  if (file == mapped.files.begin()) return;
  --file;
  const auto begin = static_cast<size_t>(data - file->first);
  if (begin < file->second->bytes().size()) file->second->release(begin, count);
}

Result<std::string> read_file(const std::string& path) {
  const auto file = PX_TRY(MappedFile::open(path));
  std::string contents(file->bytes().size(), '\0');
  PX_TRY(file->read(0, std::as_writable_bytes(std::span(contents))));
  return contents;
}

Status write_file(const std::string& path, std::string_view contents) {
  return write_file(path, std::span(&contents, 1));
}

Status write_file(const std::string& path, std::span<const std::string_view> pieces) {
  const auto file = PX_TRY(OutputFile::create(path));
  for (const std::string_view piece : pieces) PX_TRY(file->write(piece));
  return file->finish();
}

}  // namespace parallax
