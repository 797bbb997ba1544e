// SPDX-License-Identifier: Apache-2.0
// oneDNN's parallel regions run by our own pool. Its OpenMP runtime would bring as many threads again, and they spin
// for milliseconds after each region on the cores that our loops, the other executor and the dump's writer want (a
// transformer with all values captured took 8 % longer). Of that runtime oneDNN calls the six functions below; a
// program that defines them is asked first.
#include "runtime/device/cpu/library_threads.h"

#include <algorithm>
#include <barrier>
#include <cfenv>
#include <cmath>
#include <thread>
#include <utility>

#include "inspector/base/thread_pool.h"
#include "inspector/base/thread_team.h"

namespace parallax::runtime {
namespace {

// The role of the calling thread within a region; a region within a region has one thread.
struct Member {
  int index = 0;
  int team_size = 1;
  std::barrier<>* barrier = nullptr;
};

thread_local Member member;
thread_local int wanted_threads = 0;  // 0: as many as the pool has
thread_local std::atomic<bool>* invalid_elsewhere = nullptr;
std::atomic<int64_t> regions_begun{0};

int region_threads() { return wanted_threads > 0 ? wanted_threads : thread_count(); }

void run_region(void (*body)(void*), void* data, int threads) {
  regions_begun.fetch_add(1, std::memory_order_relaxed);
  if (member.team_size > 1) threads = 1;
  std::barrier<> barrier(threads);
  std::atomic<bool>* const invalid = invalid_elsewhere;
  const std::thread::id caller = std::this_thread::get_id();
  run_team(threads, [&](int index) {
    const Member before = std::exchange(member, {index, threads, &barrier});
    const bool watched = invalid != nullptr && std::this_thread::get_id() != caller;  // who looks for itself
    if (watched) std::feclearexcept(FE_INVALID);
    body(data);
    if (watched && std::fetestexcept(FE_INVALID) != 0) *invalid = true;
    member = before;
  });
}

}  // namespace

LibraryThreads::LibraryThreads(int count) : before_(wanted_threads) { wanted_threads = count; }
LibraryThreads::~LibraryThreads() { wanted_threads = before_; }

InvalidOperations::InvalidOperations() : before_(std::exchange(invalid_elsewhere, &elsewhere_)) {
  has_own_library_threads();  // so that the probe comes before the watched calls
  std::feclearexcept(FE_INVALID);
}
InvalidOperations::~InvalidOperations() { invalid_elsewhere = before_; }
bool InvalidOperations::seen() const {
  return elsewhere_ || std::fetestexcept(FE_INVALID) != 0 || !has_own_library_threads();
}

int64_t library_regions() { return regions_begun.load(std::memory_order_relaxed); }

// A region of t nanoseconds takes t / n + n * kJoining on n threads, which is least for the n below: with two threads
// MobileNetV3 gains a quarter over a rule that asked 50 microseconds of each.
int library_thread_count(double work) {
  constexpr double kWorkPerNanosecond = 40;  // of one thread's vectors, not at their best
  constexpr double kJoining = 1'500;         // nanoseconds for one more that is looking out for work to come and go
  const double best = std::sqrt(work / kWorkPerNanosecond / kJoining);
  return static_cast<int>(std::clamp(best, 1.0, 1.0 * thread_count()));
}

}  // namespace parallax::runtime

// The functions of GCC's OpenMP runtime and of the OpenMP API (5.2, section 18) that oneDNN calls.
extern "C" {

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned /*flags*/);
void GOMP_barrier();
int omp_get_max_threads();
int omp_get_num_threads();
int omp_get_thread_num();
int omp_in_parallel();

void GOMP_parallel(void (*body)(void*), void* data, unsigned threads, unsigned /*flags*/) {
  using namespace parallax::runtime;
  run_region(body, data, threads == 0 ? region_threads() : static_cast<int>(threads));
}
void GOMP_barrier() {
  using parallax::runtime::member;
  if (member.barrier != nullptr) member.barrier->arrive_and_wait();
}
int omp_get_max_threads() { return parallax::runtime::region_threads(); }
int omp_get_num_threads() { return parallax::runtime::member.team_size; }
int omp_get_thread_num() { return parallax::runtime::member.index; }
int omp_in_parallel() { return parallax::runtime::member.team_size > 1 ? 1 : 0; }
}
