// SPDX-License-Identifier: Apache-2.0
// Mesa and LLVM do not check what they allocate: too little is a signal there, and a sentence here.
#include "gui/app/address_space.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include <fmt/format.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/resource.h>
#include <unistd.h>

namespace parallax::gui {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
// The bytes of the software driver (446 MiB with Mesa 22.3 and LLVM 15) with a fourth more; program_test.cpp has limits
// around it. Each of its threads, one for each processor, also has a stack.
constexpr int64_t kDriverBytes = 560 * kMiB;
constexpr int64_t kMostDriverThreads = 32;

// The address space of this process; 0 where the system does not say.
int64_t used_address_space() {
  long long pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  const bool is_read = std::fscanf(file, "%lld", &pages) == 1;
  std::fclose(file);
  return is_read ? pages * ::sysconf(_SC_PAGESIZE) : 0;
}

// A limit in bytes, or `otherwise` where there is none.
int64_t limit_of(int resource, int64_t otherwise) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return otherwise;
  return limit.rlim_cur > INT64_MAX ? INT64_MAX : static_cast<int64_t>(limit.rlim_cur);
}

}  // namespace

Status check_address_space(int width, int height) {
  const int64_t limit = limit_of(RLIMIT_AS, INT64_MAX);
  if (limit == INT64_MAX) return {};
#ifdef __GLIBC__
  ::mallopt(M_ARENA_MAX, 1);  // each thread would set 64 MiB aside
#endif
  constexpr int64_t kUsualStack = 8 * kMiB;
  const int64_t threads = std::min<int64_t>(::sysconf(_SC_NPROCESSORS_ONLN), kMostDriverThreads);
  constexpr int64_t kPixelBytes = 12;  // drawn, read back, and written
  const int64_t needed = kDriverBytes + kPixelBytes * width * height + threads * limit_of(RLIMIT_STACK, kUsualStack);
  const int64_t left = std::max<int64_t>(0, limit - used_address_space());
  if (left >= needed) return {};
  return out_of_memory(fmt::format(
      "{} MiB of address space are left of the limit of {} MiB (ulimit -v); drawing needs {} MiB. Raise the "
      "limit, or use the program parallax, which draws nothing",
      left / kMiB, limit / kMiB, needed / kMiB));
}

}  // namespace parallax::gui
