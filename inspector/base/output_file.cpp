// SPDX-License-Identifier: Apache-2.0
// O_TMPFILE and linkat: nothing remains of a process that is killed. Elsewhere, and in a group, a temporary name and
// rename. What can be read unfinished has a name of its own until its end.
#include "inspector/base/output_file.h"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspector/base/input_files.h"
#include "inspector/base/output_group.h"
#include "inspector/base/signal_cleanup.h"

namespace parallax {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kAnyone = 0666;

std::string folder_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// A short name of its own in the folder of `target`, which may have the longest name that there is.
std::string temporary_name(const std::string& target) {
  uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) number = static_cast<uint64_t>(::getpid());
  return fmt::format("{}/.parallax-{:016x}.part", folder_of(target), number);
}

bool lacks_links(int error_number) {
  return error_number == EPERM || error_number == EOPNOTSUPP || error_number == ENOSYS;
}

// "run/cpu.unfinished.plx" for "run/cpu.plx", from 2 on "run/cpu.unfinished-2.plx"; a name that would be too long is
// cut.
std::string unfinished_name(const std::string& target, int number) {
  constexpr size_t kMostExtension = 16;
  std::string stem = fs::path(target).stem().string(), extension = fs::path(target).extension().string();
  if (extension.size() > kMostExtension) stem += std::exchange(extension, "");
  const std::string ending =
      number == 1 ? ".unfinished" + extension : fmt::format(".unfinished-{}{}", number, extension);
  const size_t most = NAME_MAX - ending.size();
  if (stem.size() > most) {
    size_t end = most;
    while (end > 0 && (static_cast<unsigned char>(stem[end]) & 0xC0) == 0x80) --end;  // within a UTF-8 sequence
    stem.resize(end);
  }
  return (fs::path(target).parent_path() / (stem + ending)).string();
}

}  // namespace

std::string followed_links(const std::string& path) {
  constexpr int kMostLinks = 40;
  std::string target = path;
  std::error_code error;
  if (fs::exists(path, error) && !fs::is_regular_file(path, error)) return path;  // a stream has no other name
  for (int count = 0; count < kMostLinks && fs::is_symlink(target, error); ++count) {
    const fs::path next = fs::read_symlink(target, error);
    if (error) break;
    target = next.is_absolute() ? next.string() : (fs::path(target).parent_path() / next).string();
  }
  return target;
}

Error OutputFile::failed(const char* action) const {
  return io_error(fmt::format("cannot {} '{}': {}", action, path_, std::strerror(errno)));
}

Result<std::unique_ptr<OutputFile>> OutputFile::create(const std::string& path) {
  PX_TRY(admit_output(path));
  struct stat info {};
  const bool is_stream = ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
  auto file = std::unique_ptr<OutputFile>(new OutputFile(path, is_stream ? "" : followed_links(path)));
  PX_TRY(file->open());
  return file;
}

Status OutputFile::open() {
  if (target_.empty()) {
    descriptor_ = static_cast<int>(TEMP_FAILURE_RETRY(::open(path_.c_str(), O_WRONLY | O_CLOEXEC)));
    return descriptor_ < 0 ? Status(failed("create")) : Status();
  }
  struct stat info {};
  const bool replaces = ::stat(target_.c_str(), &info) == 0;
  if (replaces && S_ISDIR(info.st_mode)) {
    errno = EISDIR;
    return failed("create");
  }
  stop_where_ending();
  const bool has_names = ::access("/proc/self/fd", X_OK) == 0;  // by which a file without one gets it
  if (has_names)
    descriptor_ = static_cast<int>(
        TEMP_FAILURE_RETRY(::open(folder_of(target_).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kAnyone)));
  if (descriptor_ < 0) {
    temporary_ = std::make_unique<TemporaryPath>(temporary_name(target_));
    descriptor_ = static_cast<int>(TEMP_FAILURE_RETRY(
        ::open(temporary_->path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kAnyone)));
  }
  if (descriptor_ < 0) return failed("create");
  if (replaces) static_cast<void>(::fchmod(descriptor_, info.st_mode & 0777));
  return {};
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status OutputFile::write(std::string_view contents) {
  while (!contents.empty()) {
    const ssize_t written = ::write(descriptor_, contents.data(), contents.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("write");
    contents.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

// False (errno) also where something has that name.
bool OutputFile::link_as(const std::string& path) const {
  const std::string own = temporary_ == nullptr ? fmt::format("/proc/self/fd/{}", descriptor_) : temporary_->path();
  return ::linkat(AT_FDCWD, own.c_str(), AT_FDCWD, path.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

// The file gets its name at once where no other file has it; else a temporary name, which then replaces the other.
Status OutputFile::give_name() {
  if (link_as(target_)) {
    is_published_ = true;
    return {};
  }
  return errno == EEXIST ? give_temporary_name() : Status(failed("create"));
}

Status OutputFile::give_temporary_name() {
  auto temporary = std::make_unique<TemporaryPath>(temporary_name(target_));
  if (!link_as(temporary->path())) return failed("create");
  temporary_ = std::move(temporary);
  return {};
}

// As link_as, for a file system where a file has but one name. False (errno) also where something has the name.
bool OutputFile::move_to_free(const std::string& path) {
  if (temporary_ == nullptr) return false;
  if (::access(path.c_str(), F_OK) != 0) return temporary_->move_to(path, true);
  errno = EEXIST;
  return false;
}

Status OutputFile::keep_unfinished() {
  constexpr int kMostNames = 1000;
  for (int number = 1; number <= kMostNames; ++number) {
    const std::string name = unfinished_name(target_, number);
    note_output(name, false);
    if (link_as(name) || (lacks_links(errno) && move_to_free(name))) {
      unfinished_ = name;
      break;
    }
    const int error_number = errno;
    forget_output(name);
    errno = error_number;
    if (error_number != EEXIST) return failed("create");
  }
  if (unfinished_.empty()) return failed("create an unfinished file for");
  temporary_.reset();
  input_files::note_written(descriptor_);
  return {};
}

Status OutputFile::publish() {
  if (is_published_ || target_.empty()) return {};
  if (temporary_ == nullptr && unfinished_.empty()) PX_TRY(give_name());
  if (!is_published_) {
    const std::string& own = unfinished_.empty() ? temporary_->path() : unfinished_;
    if (std::rename(own.c_str(), target_.c_str()) != 0) return failed("create");
    if (temporary_ != nullptr) temporary_->keep();
    if (!unfinished_.empty()) forget_output(unfinished_);
    is_published_ = true;
  }
  input_files::note_written(descriptor_);
  return {};
}

Status OutputFile::finish() {
  if (!target_.empty()) mark_as_written(descriptor_);
  // A failure to write may only be said by close(): the file has no name by then.
  const int kept = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
  if (kept < 0 || ::close(std::exchange(descriptor_, kept)) != 0) return failed("write");
  OutputGroup* const group = is_published_ || target_.empty() ? nullptr : OutputGroup::current();
  if (group == nullptr) {
    PX_TRY(publish());
    if (!target_.empty()) note_output(path_, true);
  } else {
    if (temporary_ == nullptr) PX_TRY(give_temporary_name());
    input_files::note_written(descriptor_);
    group->add(std::move(temporary_), target_, path_);
  }
  ::close(std::exchange(descriptor_, -1));
  return {};
}

}  // namespace parallax
