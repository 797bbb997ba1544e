// SPDX-License-Identifier: Apache-2.0
// Lists of devices and inodes, and the marks by which Parallax knows its own files.
#include "inspector/base/input_files.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <compare>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace parallax {
namespace input_files {
namespace {

namespace fs = std::filesystem;

// A file that is gone may leave its inode to another: the time of birth tells them apart, where the file system knows
// it.
struct Identity {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t born_s = 0;
  uint32_t born_ns = 0;
  auto operator<=>(const Identity&) const = default;
};

struct Input {
  std::string spelled;   // for sentences
  std::string absolute;  // as it was named
  std::string resolved;  // without links
};

std::optional<Identity> identity_at(int descriptor, const char* path, int flags) {
  struct statx info {};
  if (::statx(descriptor, path, flags, STATX_INO | STATX_BTIME, &info) != 0) return std::nullopt;
  const bool has_birth = (info.stx_mask & STATX_BTIME) != 0;
  return Identity{uint64_t{info.stx_dev_major} << 32 | info.stx_dev_minor, info.stx_ino,
                  has_birth ? info.stx_btime.tv_sec : 0, has_birth ? info.stx_btime.tv_nsec : 0};
}

std::optional<Identity> identity_of(const std::string& path) { return identity_at(AT_FDCWD, path.c_str(), 0); }

std::optional<Identity> identity_of(int descriptor) { return identity_at(descriptor, "", AT_EMPTY_PATH); }

std::string absolute_path(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

// The path with all links followed, also where its end is not there yet.
std::string resolved_path(const std::string& path) {
  std::error_code error;
  const fs::path resolved = fs::weakly_canonical(absolute_path(path), error);
  return error ? absolute_path(path) : resolved.string();
}

}  // namespace

struct Scope::State {
  bool may_replace = false;
  std::map<Identity, Input> inputs;
  std::set<Identity> written;
};

namespace {

struct Mapped {
  Input input;
  int count = 0;
};

struct Lists {
  std::mutex mutex;
  std::vector<Scope::State*> scopes;
  std::map<Identity, Mapped> mapped;
  std::set<Identity> written;
  std::map<Identity, std::string> marks;  // of files that were finished here, also where they take none
};

// Never destroyed: mappings may end after everything else.
Lists& lists() {
  static auto* const all = new Lists;
  return *all;
}

thread_local Scope::State* scope_of_thread = nullptr;

void note_in_scopes(const Identity& identity, const Input& input) {
  for (Scope::State* scope : lists().scopes) {
    if (!scope->written.contains(identity)) scope->inputs.try_emplace(identity, input);
  }
}

// False where the file is gone: another may have its inode by now.
bool is_there(const Identity& identity, const Input& input) {
  const auto leads_there = [&](const std::string& path) { return identity_of(path) == identity; };
  return leads_there(input.resolved) || leads_there(input.absolute);
}

// All that is an input now.
std::map<Identity, Input> current_inputs() {
  const std::lock_guard lock(lists().mutex);
  std::map<Identity, Input> inputs;
  for (const Scope::State* scope : lists().scopes) {
    for (const auto& [identity, input] : scope->inputs) {
      if (is_there(identity, input)) inputs.try_emplace(identity, input);
    }
  }
  for (const auto& [identity, mapped] : lists().mapped) {
    if (!lists().written.contains(identity)) inputs.try_emplace(identity, mapped.input);
  }
  return inputs;
}

std::optional<std::string> mark_given_here(int descriptor) {
  const auto identity = identity_of(descriptor);
  const std::lock_guard lock(lists().mutex);
  const auto found = identity.has_value() ? lists().marks.find(*identity) : lists().marks.end();
  return found == lists().marks.end() ? std::nullopt : std::optional(found->second);
}

void keep_mark(int descriptor, const std::string& mark) {
  const auto identity = identity_of(descriptor);
  const std::lock_guard lock(lists().mutex);
  if (identity.has_value()) lists().marks[*identity] = mark;
}

// The first of `path` and the folders above it that `is_wanted`.
template <class Wanted>
std::optional<Identity> find_upwards(fs::path path, const Wanted& is_wanted) {
  while (true) {
    const auto identity = identity_of(path.string());
    if (identity.has_value() && is_wanted(*identity)) return identity;
    if (!path.has_relative_path()) return std::nullopt;
    path = path.parent_path();
  }
}

}  // namespace

Scope::Scope(bool may_replace) : state_(new State), outer_(scope_of_thread) {
  state_->may_replace = may_replace;
  scope_of_thread = state_;
  const std::lock_guard lock(lists().mutex);
  lists().scopes.push_back(state_);
}

Scope::~Scope() {
  scope_of_thread = outer_;
  {
    const std::lock_guard lock(lists().mutex);
    std::erase(lists().scopes, state_);
  }
  delete state_;
}

Scope::State* current_scope() { return scope_of_thread; }

BorrowedScope::BorrowedScope(Scope::State* scope) : own_(scope_of_thread) { scope_of_thread = scope; }

BorrowedScope::~BorrowedScope() { scope_of_thread = own_; }

void note(const std::string& path) {
  struct stat info {};
  if (path.empty() || ::stat(path.c_str(), &info) != 0) return;
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return;
  const Input input{path, absolute_path(path), resolved_path(path)};
  const auto identity = identity_of(path);
  if (!identity.has_value()) return;
  const std::lock_guard lock(lists().mutex);
  note_in_scopes(*identity, input);
}

void release(const std::string& path) {
  const auto identity = identity_of(path);
  if (!identity.has_value()) return;
  const std::lock_guard lock(lists().mutex);
  for (Scope::State* scope : lists().scopes) scope->inputs.erase(*identity);
}

void note_mapping(int descriptor, const std::string& path) {
  const auto identity = identity_of(descriptor);
  if (!identity.has_value()) return;
  std::array<char, PATH_MAX> target{};
  const std::string link = fmt::format("/proc/self/fd/{}", descriptor);
  const ssize_t length = ::readlink(link.c_str(), target.data(), target.size());
  const std::string absolute = absolute_path(path);
  const Input input{path, absolute, length > 0 ? std::string(target.data(), static_cast<size_t>(length)) : absolute};
  const std::lock_guard lock(lists().mutex);
  Mapped& mapped = lists().mapped[*identity];
  if (mapped.count++ == 0) mapped.input = input;
  note_in_scopes(*identity, input);
}

void forget_mapping(int descriptor) {
  const auto identity = identity_of(descriptor);
  if (!identity.has_value()) return;
  const std::lock_guard lock(lists().mutex);
  const auto found = lists().mapped.find(*identity);
  if (found != lists().mapped.end() && --found->second.count == 0) lists().mapped.erase(found);
}

void note_written(int descriptor) {
  const auto identity = identity_of(descriptor);
  if (!identity.has_value()) return;
  const std::lock_guard lock(lists().mutex);
  lists().written.insert(*identity);
  for (Scope::State* scope : lists().scopes) scope->written.insert(*identity);
}

}  // namespace input_files

namespace {

using input_files::Identity;
using input_files::Input;

constexpr const char* kMark = "user.parallax";
constexpr size_t kHeadBytes = 4096;

// The mark's text: it no longer fits where somebody else has changed the file.
std::string mark_of(const struct stat& info) {
  return fmt::format("{} {}.{:09}", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

// The first bytes of our reports and dumps; other kinds of files have no room that a foreign program would not
// copy, too (a model's metadata), and are known by their mark alone.
struct Head {
  std::string_view begin, holds;
};
constexpr Head kOwnHeads[] = {
    {"\x89PLX\r\n\x1A\n", ""},
    {"digraph parallax {", ""},
    {"<!DOCTYPE html>\n<html", "<title>Parallax: "},
    {"<?xml ", "<!-- Title: parallax Pages: "},
    {"<?xml ", "<testsuite name=\"parallax\""},
    {"<svg ", "<!-- parallax -->"},
    {"path,a,b,matched_by,node,op,", ""},
    {"node,op,class,why,max_abs,", ""},
    {"{\n  \"signature\": \"netron:attachment\"", "\"name\": \"parallax verdict\""},
};

Error unreadable(const std::string& path) {
  return io_error(fmt::format("cannot read '{}', which would be replaced: {}", path, std::strerror(errno)));
}

Result<bool> has_own_head(const std::string& path, int descriptor) {
  std::array<char, kHeadBytes> bytes{};
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t count =
        TEMP_FAILURE_RETRY(::pread(descriptor, bytes.data() + size, bytes.size() - size, static_cast<off_t>(size)));
    if (count < 0) return unreadable(path);
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  const std::string_view text(bytes.data(), size);
  return std::ranges::any_of(kOwnHeads, [&](const Head& head) {
    return text.starts_with(head.begin) && text.find(head.holds) != std::string_view::npos;
  });
}

// A file that this user may not read is somebody else's.
Result<bool> is_own(const std::string& path, const struct stat& info) {
  const int descriptor = static_cast<int>(TEMP_FAILURE_RETRY(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)));
  if (descriptor < 0) return errno == EACCES || errno == EPERM ? Result<bool>(false) : unreadable(path);
  std::array<char, 64> text{};
  const ssize_t count = ::fgetxattr(descriptor, kMark, text.data(), text.size());
  auto mark = input_files::mark_given_here(descriptor);
  if (count >= 0) mark = std::string(text.data(), static_cast<size_t>(count));
  Result<bool> own = mark.has_value() ? Result<bool>(*mark == mark_of(info)) : has_own_head(path, descriptor);
  ::close(descriptor);
  return own;
}

Status admit_replacing(const std::string& path, const struct stat& info) {
  const auto* const scope = input_files::current_scope();
  if (scope == nullptr || scope->may_replace || !S_ISREG(info.st_mode) || info.st_size == 0) return {};
  if (PX_TRY(is_own(path, info))) return {};
  return usage_error(fmt::format(
      "'{}' is a file that Parallax did not write, or that has changed since; it must be an own or an empty one to be "
      "replaced. Give --force to replace it, or name another file",
      path));
}

// Checks that no input is the folder that `path` is in or one above it, or `path` itself.
Status admit_location(const std::string& path, const std::map<Identity, Input>& inputs) {
  const auto found = input_files::find_upwards(input_files::resolved_path(path),
                                               [&](const Identity& identity) { return inputs.contains(identity); });
  if (!found.has_value()) return {};
  struct stat info {};
  const std::string& read = inputs.at(*found).spelled;
  if (::stat(path.c_str(), &info) == 0 && input_files::identity_of(path) == *found) {
    return usage_error(fmt::format("'{}' would be written over '{}', which is read: name another {}", path, read,
                                   S_ISDIR(info.st_mode) ? "folder" : "file"));
  }
  return usage_error(fmt::format("'{}' is inside '{}', which is read: name another {}", path, read,
                                 S_ISDIR(info.st_mode) ? "folder" : "path"));
}

}  // namespace

Status admit_output(const std::string& path) {
  if (path.empty()) return {};
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return {};  // a device or a pipe
  PX_TRY(admit_location(path, input_files::current_inputs()));
  return exists ? admit_replacing(path, info) : Status();
}

Status admit_output_folder(const std::string& path) {
  if (path.empty()) return {};
  const auto inputs = input_files::current_inputs();
  PX_TRY(admit_location(path, inputs));
  const auto folder = input_files::identity_of(path);
  if (!folder.has_value()) return {};
  for (const auto& each : inputs) {
    const Input& input = each.second;
    for (const std::string& name : {input.absolute, input.resolved}) {
      const auto found = input_files::find_upwards(
          name, [&](const Identity& above) { return above == *folder && above != each.first; });
      if (!found.has_value()) continue;
      return usage_error(
          fmt::format("'{}' holds '{}', which is read; a folder that is written must hold no input. "
                      "Name another folder",
                      path, input.spelled));
    }
  }
  return {};
}

void mark_as_written(int descriptor) {
  struct stat info {};
  if (::fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode)) return;
  const std::string mark = mark_of(info);
  input_files::keep_mark(descriptor, mark);
  static_cast<void>(::fsetxattr(descriptor, kMark, mark.data(), mark.size(), 0));  // not all file systems have them
}

}  // namespace parallax
