// SPDX-License-Identifier: Apache-2.0
// The sentences, with the figures of which they speak.
#include "inspector/base/memory_limit.h"

#include <fmt/format.h>
#include <unistd.h>

#include "inspector/base/checked_math.h"

namespace parallax {
namespace {

// Only a whole run knows what it takes: values and kernels' own buffers come and go.
constexpr const char* kAdvice =
    "raise --memory-limit (a run without it reports the peak memory of each side), or give smaller dimensions by --dim "
    "or --shape";

}  // namespace

Error over_memory_limit(std::string_view what, int64_t needed, int64_t held, int64_t limit) {
  return out_of_memory(fmt::format("{} needs {} bytes besides {} in use, {} in all, and the memory limit is {}: {}",
                                   what, needed, held, checked_add(needed, held).value_or(INT64_MAX), limit, kAdvice));
}

Error weights_over_memory_limit(int64_t weights, int64_t limit) {
  return out_of_memory(
      fmt::format("the weights alone take {} bytes, and the memory limit is {}: {}", weights, limit, kAdvice));
}

int64_t physical_memory_bytes() { return ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE); }

std::string bytes_rounded_up(int64_t bytes) {
  constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20, kMostInKiB = 10'000;
  const auto in = [bytes](int64_t unit) { return (bytes + unit - 1) / unit; };
  return in(kKiB) <= kMostInKiB ? fmt::format("{} KiB", in(kKiB)) : fmt::format("{} MiB", in(kMiB));
}

std::string bytes_text(int64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024 * 1024));
}

}  // namespace parallax
