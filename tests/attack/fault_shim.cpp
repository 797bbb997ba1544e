// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD under which one call on a file fails: the k-th of its kind on a file below a folder.
//
// ATTACK_FOLDER   the folder; calls on other files are neither counted nor changed
// ATTACK_COUNTS   a file of one uint64 for each kind of call, in the order of kNames: how many there were
// ATTACK_FAULT    NAME ERRNO FIRST LAST: calls FIRST to LAST (from 1) of that name fail; ERRNO 0 makes a short write
#include <array>
#include <atomic>
#include <climits>
#include <cstdarg>
#include <cstdint>
#include <string>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

enum Call {
  kWrite,
  kPwrite,
  kOpen,
  kRename,
  kTruncate,
  kAllocate,
  kMap,
  kSync,
  kClose,
  kRead,
  kMakeFolder,
  kStdio,
  kCallCount
};
constexpr std::array<const char*, kCallCount> kNames = {"write", "pwrite", "open",  "rename", "ftruncate", "fallocate",
                                                        "mmap",  "fsync",  "close", "read",   "mkdir",     "stdio"};

struct Setup {
  std::string folder;
  std::atomic<uint64_t>* counts = nullptr;
  Call call = kCallCount;
  int error = 0;
  uint64_t first = 0, last = 0;

  Setup() {
    const char* folder_text = getenv("ATTACK_FOLDER");
    const char* counts_path = getenv("ATTACK_COUNTS");
    if (folder_text == nullptr || counts_path == nullptr) return;
    read_fault();
    const int file = static_cast<int>(::openat(AT_FDCWD, counts_path, O_RDWR | O_CLOEXEC));
    if (file < 0) return;
    void* memory = ::mmap64(nullptr, sizeof(uint64_t) * kCallCount, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory == MAP_FAILED) return;
    counts = static_cast<std::atomic<uint64_t>*>(memory);
    folder = std::string(folder_text) + "/";
  }

  void read_fault() {
    const char* text = getenv("ATTACK_FAULT");
    std::array<char, 16> name{};
    unsigned long long from = 0, to = 0;
    if (text == nullptr || sscanf(text, "%15s %d %llu %llu", name.data(), &error, &from, &to) != 4) return;
    first = from;
    last = to;
    for (int index = 0; index < kCallCount; ++index) {
      if (strcmp(name.data(), kNames[static_cast<size_t>(index)]) == 0) call = static_cast<Call>(index);
    }
  }
};

// Null while the setup itself opens its file.
Setup* setup() {
  static std::atomic<int> state{0};
  static Setup* made = nullptr;
  int expected = 0;
  if (state.load() == 2) return made->counts != nullptr ? made : nullptr;
  if (!state.compare_exchange_strong(expected, 1)) return nullptr;
  static Setup only;
  made = &only;
  state.store(2);
  return only.counts != nullptr ? &only : nullptr;
}

__attribute__((constructor)) void begin() { (void)setup(); }

bool is_below(const char* path, const std::string& folder) {
  if (path[0] == '/') return strncmp(path, folder.c_str(), folder.size()) == 0;
  std::array<char, PATH_MAX> current{};
  return getcwd(current.data(), current.size()) != nullptr && (std::string(current.data()) + "/").find(folder) == 0;
}

bool is_below(int file, const std::string& folder) {
  std::array<char, 64> link{};
  std::array<char, PATH_MAX> path{};
  (void)snprintf(link.data(), link.size(), "/proc/self/fd/%d", file);
  const int before = errno;
  const bool read = readlink(link.data(), path.data(), path.size() - 1) > 0;
  errno = before;
  return read && path[0] == '/' && is_below(path.data(), folder);  // not that of a pipe
}

// True where this call is one that fails; errno is set then, unless it is a short write.
template <class File>
bool fails(Call call, File file) {
  Setup* const made = setup();
  if (made == nullptr || !is_below(file, made->folder)) return false;
  const uint64_t number = made->counts[call].fetch_add(1) + 1;
  if (call != made->call || number < made->first || number > made->last) return false;
  errno = made->error;
  return true;
}

bool is_short() {
  const Setup* const made = setup();
  return made != nullptr && made->error == 0;
}

size_t shortened(size_t bytes) { return bytes > 1 ? bytes / 2 : bytes; }

template <class Function>
Function* next(Function* /*same*/, const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
#define NEXT(name) next(&(name), #name)

mode_t mode_of(int flags, va_list more) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? static_cast<mode_t>(va_arg(more, int)) : 0;
}

}  // namespace

extern "C" {

ssize_t write(int file, const void* data, size_t bytes) {
  if (fails(kWrite, file)) {
    if (!is_short()) return -1;
    bytes = shortened(bytes);
  }
  return NEXT(write)(file, data, bytes);
}

ssize_t writev(int file, const struct iovec* pieces, int count) {
  if (fails(kWrite, file)) {
    if (!is_short()) return -1;
    return NEXT(write)(file, pieces[0].iov_base, shortened(pieces[0].iov_len));
  }
  return NEXT(writev)(file, pieces, count);
}

ssize_t pwrite(int file, const void* data, size_t bytes, off_t offset) {
  if (fails(kPwrite, file)) {
    if (!is_short()) return -1;
    bytes = shortened(bytes);
  }
  return NEXT(pwrite)(file, data, bytes, offset);
}

ssize_t pwrite64(int file, const void* data, size_t bytes, off64_t offset) { return pwrite(file, data, bytes, offset); }

ssize_t pwritev2(int file, const struct iovec* pieces, int count, off_t offset, int flags) {
  if (fails(kPwrite, file)) {
    if (!is_short()) return -1;
    struct iovec piece = pieces[0];
    piece.iov_len = shortened(piece.iov_len);
    return NEXT(pwritev2)(file, &piece, 1, offset, flags);
  }
  return NEXT(pwritev2)(file, pieces, count, offset, flags);
}

size_t fwrite(const void* data, size_t size, size_t count, FILE* file) {
  if (fails(kStdio, fileno(file))) return 0;
  return NEXT(fwrite)(data, size, count, file);
}

int fflush(FILE* file) {
  if (file != nullptr && fails(kStdio, fileno(file))) return EOF;
  return NEXT(fflush)(file);
}

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  if (fails(kOpen, path)) return -1;
  return NEXT(open)(path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_of(flags, more);
  va_end(more);
  if (fails(kOpen, path)) return -1;
  return NEXT(open64)(path, flags, mode);
}

FILE* fopen(const char* path, const char* mode) { return fails(kStdio, path) ? nullptr : NEXT(fopen)(path, mode); }
FILE* fopen64(const char* path, const char* mode) { return fails(kStdio, path) ? nullptr : NEXT(fopen64)(path, mode); }
int mkstemp(char* path) { return fails(kOpen, path) ? -1 : NEXT(mkstemp)(path); }
int mkstemp64(char* path) { return fails(kOpen, path) ? -1 : NEXT(mkstemp64)(path); }

int rename(const char* from, const char* to) { return fails(kRename, to) ? -1 : NEXT(rename)(from, to); }
int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) {
  return fails(kRename, to) ? -1 : NEXT(linkat)(from_folder, from, to_folder, to, flags);
}
int ftruncate(int file, off_t size) { return fails(kTruncate, file) ? -1 : NEXT(ftruncate)(file, size); }
int ftruncate64(int file, off64_t size) { return fails(kTruncate, file) ? -1 : NEXT(ftruncate64)(file, size); }

int fallocate(int file, int mode, off_t offset, off_t size) {
  return fails(kAllocate, file) ? -1 : NEXT(fallocate)(file, mode, offset, size);
}
int fallocate64(int file, int mode, off64_t offset, off64_t size) {
  return fails(kAllocate, file) ? -1 : NEXT(fallocate64)(file, mode, offset, size);
}
int posix_fallocate(int file, off_t offset, off_t size) {
  return fails(kAllocate, file) ? errno : NEXT(posix_fallocate)(file, offset, size);
}
int posix_fallocate64(int file, off64_t offset, off64_t size) {
  return fails(kAllocate, file) ? errno : NEXT(posix_fallocate64)(file, offset, size);
}

void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (file >= 0 && fails(kMap, file)) return MAP_FAILED;
  return NEXT(mmap)(address, bytes, protection, flags, file, offset);
}

void* mmap64(void* address, size_t bytes, int protection, int flags, int file, off64_t offset) {
  return mmap(address, bytes, protection, flags, file, offset);
}

int fsync(int file) { return fails(kSync, file) ? -1 : NEXT(fsync)(file); }
int fdatasync(int file) { return fails(kSync, file) ? -1 : NEXT(fdatasync)(file); }

// The descriptor is closed all the same, as Linux does.
int close(int file) {
  const bool failing = fails(kClose, file);
  const int error = errno;
  const int result = NEXT(close)(file);
  if (!failing) return result;
  errno = error;
  return -1;
}

int fclose(FILE* file) {
  const bool failing = fails(kStdio, fileno(file));
  const int error = errno;
  const int result = NEXT(fclose)(file);
  if (!failing) return result;
  errno = error;
  return EOF;
}

ssize_t read(int file, void* data, size_t bytes) {
  if (fails(kRead, file)) {
    if (!is_short()) return -1;
    bytes = shortened(bytes);
  }
  return NEXT(read)(file, data, bytes);
}

ssize_t pread(int file, void* data, size_t bytes, off_t offset) {
  if (fails(kRead, file)) {
    if (!is_short()) return -1;
    bytes = shortened(bytes);
  }
  return NEXT(pread)(file, data, bytes, offset);
}

ssize_t pread64(int file, void* data, size_t bytes, off64_t offset) { return pread(file, data, bytes, offset); }

int mkdir(const char* path, mode_t mode) { return fails(kMakeFolder, path) ? -1 : NEXT(mkdir)(path, mode); }
char* mkdtemp(char* path) { return fails(kMakeFolder, path) ? nullptr : NEXT(mkdtemp)(path); }

}  // extern "C"
