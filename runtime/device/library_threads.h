// The threads of oneDNN and OpenBLAS follow the process-wide thread count; private to runtime/device. oneDNN's are the
// pool's own: see library_threads.cpp.
#pragma once

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

// How many threads a library call of `work` multiply-adds is worth.
int library_thread_count(double work);

}  // namespace parallax::runtime
