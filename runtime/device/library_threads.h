// The threads of oneDNN (OpenMP's) and OpenBLAS follow the process-wide thread count; private to runtime/device.
#pragma once

namespace parallax::runtime {

// While it lives, OpenMP regions begun by this thread use `count` threads.
class OpenMpThreads {
 public:
  explicit OpenMpThreads(int count);
  ~OpenMpThreads();
  OpenMpThreads(const OpenMpThreads&) = delete;
  OpenMpThreads& operator=(const OpenMpThreads&) = delete;

 private:
  int before_;
};

// How many threads a library call of `work` multiply-adds is worth.
int library_thread_count(double work);

}  // namespace parallax::runtime
