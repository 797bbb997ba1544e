// The pool behind parallel_for: workers look out for the next job for a moment, then sleep on a condition variable;
// they claim chunks of a job by an atomic counter.
#include "inspector/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace parallax {
namespace {

constexpr int64_t kMinimumWorkPerThread = 25'000;  // operations, roughly nanoseconds: waking a thread costs about 10 us
constexpr int kMaximumThreads = 256;
constexpr int kChunksPerThread = 4;  // evens out cores of unequal speed

// To wake a thread takes some ten microseconds, as long as many a loop: who waits looks out for so long before it
// sleeps. No longer, since the processor may be wanted elsewhere.
constexpr std::chrono::microseconds kLookOut{30};

thread_local bool inside_loop = false;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Until is_over() or the time is up.
template <class IsOver>
void look_out(const IsOver& is_over) {
  constexpr int kLooksAtOnce = 16;
  const auto end = std::chrono::steady_clock::now() + kLookOut;
  do {
    for (int look = 0; look < kLooksAtOnce; ++look) {
      if (is_over()) return;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < end);
}

struct Job {
  const std::function<void(int64_t, int64_t)>* body = nullptr;
  int64_t count = 0;
  int64_t chunk = 1;
  int helpers_wanted = 0;              // guarded by the pool's mutex
  std::atomic<int> helpers_inside{0};  // changed under the pool's mutex
  std::atomic<int64_t> next_begin{0};

  void work() {
    inside_loop = true;
    for (;;) {
      const int64_t begin = next_begin.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= count) break;
      (*body)(begin, std::min(count, begin + chunk));
    }
    inside_loop = false;
  }
};

class Pool {
 public:
  static Pool& instance() {
    static Pool pool;
    return pool;
  }

  ~Pool() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  void set_count(int count) {
    const int hardware = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    count_.store(std::clamp(count <= 0 ? hardware : count, 1, kMaximumThreads));
  }
  int count() const { return count_.load(std::memory_order_relaxed); }

  void run(Job& job, int helpers) {
    {
      const std::lock_guard lock(mutex_);
      while (static_cast<int>(workers_.size()) < helpers) workers_.emplace_back([this] { worker_main(); });
      job.helpers_wanted = helpers;
      jobs_.push_back(&job);
      helpers_wanted_ += helpers;
    }
    helpers == 1 ? wake_.notify_one() : wake_.notify_all();
    job.work();
    {
      const std::lock_guard lock(mutex_);
      std::erase(jobs_, &job);  // no new helper from here on
      helpers_wanted_ -= job.helpers_wanted;
    }
    const auto is_left = [&] { return job.helpers_inside == 0; };
    look_out(is_left);
    std::unique_lock lock(mutex_);
    left_.wait(lock, is_left);
  }

 private:
  Pool() { set_count(0); }

  Job* claim_job() {
    for (Job* job : jobs_) {
      if (job->helpers_wanted > 0 && job->next_begin.load(std::memory_order_relaxed) < job->count) return job;
    }
    return nullptr;
  }

  void worker_main() {
    std::unique_lock lock(mutex_);
    while (true) {
      Job* job = nullptr;
      wake_.wait(lock, [&] { return stopping_ || (job = claim_job()) != nullptr; });
      if (stopping_) return;
      --job->helpers_wanted;
      --helpers_wanted_;
      ++job->helpers_inside;
      lock.unlock();
      job->work();
      lock.lock();
      if (--job->helpers_inside == 0) left_.notify_all();
      lock.unlock();
      look_out([&] { return helpers_wanted_ > 0; });
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable left_;
  std::vector<Job*> jobs_;
  std::atomic<int> helpers_wanted_{0};  // of all jobs; changed under the mutex
  std::vector<std::thread> workers_;
  std::atomic<int> count_{1};
  bool stopping_ = false;
};

}  // namespace

void set_thread_count(int count) { Pool::instance().set_count(count); }
int thread_count() { return Pool::instance().count(); }

void parallel_for(int64_t count, int64_t work_per_item, const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  const double work = static_cast<double>(count) * static_cast<double>(std::max<int64_t>(1, work_per_item));
  const double affordable = std::min(work / static_cast<double>(kMinimumWorkPerThread), 1.0 * kMaximumThreads);
  const int threads = static_cast<int>(std::min<int64_t>({thread_count(), count, static_cast<int64_t>(affordable)}));
  if (threads <= 1 || inside_loop) {
    body(0, count);
    return;
  }
  Job job;
  job.body = &body;
  job.count = count;
  job.chunk = std::max<int64_t>(1, count / (static_cast<int64_t>(threads) * kChunksPerThread));
  Pool::instance().run(job, threads - 1);
}

}  // namespace parallax
