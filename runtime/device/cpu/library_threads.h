// SPDX-License-Identifier: Apache-2.0
// The threads of oneDNN and OpenBLAS follow the process-wide thread count; private to runtime/device. oneDNN's are the
// pool's own: see library_threads.cpp.
#pragma once

#include <atomic>
#include <cstdint>

namespace parallax::runtime {

// While it lives, parallel regions of oneDNN begun by this thread use at most `count` threads.
class LibraryThreads {
 public:
  explicit LibraryThreads(int count);
  ~LibraryThreads();
  LibraryThreads(const LibraryThreads&) = delete;
  LibraryThreads& operator=(const LibraryThreads&) = delete;

 private:
  int before_;
};

// On these processors minimum, maximum and ordered comparison raise "invalid operation" (IEEE 754-2008, 7.2) for every
// NaN, also a quiet one: Intel's Software Developer's Manual, volume 2, MAXPS and CMPPS.
#if defined(__x86_64__)
inline constexpr bool kInvalidTellsNan = true;
#else
inline constexpr bool kInvalidTellsNan = false;
#endif

// True where oneDNN's parallel regions run on our pool. In a program they always do; in a module that was loaded into a
// process with another OpenMP runtime they may not. The first call tries it, with a small operation of oneDNN.
bool has_own_library_threads();

// While it lives, notices whether this thread, or another one in a parallel region of oneDNN that this one begins,
// raises "invalid operation".
class InvalidOperations {
 public:
  InvalidOperations();
  ~InvalidOperations();
  InvalidOperations(const InvalidOperations&) = delete;
  InvalidOperations& operator=(const InvalidOperations&) = delete;
  bool seen() const;  // true where regions do not run on our pool: what their threads do cannot be noticed

 private:
  std::atomic<bool> elsewhere_ = false;
  std::atomic<bool>* before_;
};

int64_t library_regions();  // parallel regions begun so far

// How many threads a parallel region of oneDNN with `work` multiply-adds is worth.
int library_thread_count(double work);

}  // namespace parallax::runtime
