// OpenMP's thread count, set for the span of one library call.
#include "runtime/device/library_threads.h"

#include <algorithm>

#include "inspector/base/thread_pool.h"

// Of the OpenMP API (5.2, section 18.2). Declared here: clang has no omp.h without its own OpenMP runtime.
extern "C" {
void omp_set_num_threads(int count);
int omp_get_max_threads(void);
}

namespace parallax::runtime {

OpenMpThreads::OpenMpThreads(int count) : before_(omp_get_max_threads()) {
  if (count != before_) omp_set_num_threads(count);
}

OpenMpThreads::~OpenMpThreads() { omp_set_num_threads(before_); }

int library_thread_count(double work) {
  constexpr double kWorkPerThread =
      2e6;  // some 50 microseconds of multiply-adds: below it a barrier costs more than it saves
  return std::clamp(static_cast<int>(work / kWorkPerThread), 1, thread_count());
}

}  // namespace parallax::runtime
