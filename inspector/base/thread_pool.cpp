// SPDX-License-Identifier: Apache-2.0
// The pool of parallel_for and run_team: workers look out for the next job for a moment, then sleep on a condition
// variable. Parts of a loop and members of a team are claimed by an atomic counter, by whoever is there: where other
// programs hold the cores, a worker comes late or not at all, and is not waited for. A team gets its workers beforehand
// nevertheless, for its members may wait for each other.
#include "inspector/base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <pthread.h>

#include "inspector/base/memory_budget.h"
#include "inspector/base/thread_team.h"

namespace parallax {
namespace {

constexpr int64_t kMinimumWorkPerThread = 25'000;  // operations, roughly nanoseconds: waking a thread costs about 10 us
constexpr int kMaximumThreads = 256;
// A thread takes a quarter of its share of what is left of a loop: cores of unequal speed, or wakened late, are done
// together. To take less than some microseconds' work is not worth the going back and forth.
constexpr int64_t kTakesPerThread = 4;
constexpr int64_t kLeastWorkTaken = 5'000;

// To wake a thread takes some ten microseconds, on a virtual machine whose processor was given back a hundred and more,
// longer than many a loop: who waits looks out before it sleeps, over the short stretches between the loops of a graph
// (`bench` on small convolutional nets gains a quarter from 30 to 250). No longer: the processor may be wanted
// elsewhere.
constexpr std::chrono::microseconds kLookOut{250};

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
  constexpr int kQueriesAtOnce = 16;
  const auto end = std::chrono::steady_clock::now() + kLookOut;
  do {
    for (int look = 0; look < kQueriesAtOnce; ++look) {
      if (is_over()) return;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < end);
}

// A loop or a team.
struct Job {
  const std::function<void(int64_t, int64_t)>* loop = nullptr;
  const std::function<void(int)>* team = nullptr;
  int64_t count = 0;
  int64_t least_taken = 1;
  int64_t takes = 1;                    // what is left is divided by it
  int helpers_wanted = 0;               // guarded by the pool's mutex
  std::atomic<int> helpers_awaited{0};  // those that have begun
  int members = 0;
  std::atomic<int> next_member{1};  // 0 is the caller's
  std::atomic<int64_t> next_begin{0};

  bool has_work() const {
    return team != nullptr ? next_member.load(std::memory_order_relaxed) < members
                           : next_begin.load(std::memory_order_relaxed) < count;
  }

  int claim_member() { return next_member.fetch_add(1, std::memory_order_relaxed); }

  // Runs a member and then those that nobody has begun. One that waits for others keeps its thread, and the promised
  // workers begin these: with as many threads as members there is always one for each.
  void work_in_team(int member) {
    for (; member < members; member = claim_member()) (*team)(member);
  }

  void work(bool is_caller) {
    const bool was_inside = inside_loop;
    const MemoryBudget::ThreadScope uncharged(nullptr);  // a refusal could not leave the loop
    inside_loop = true;
    if (team != nullptr) work_in_team(is_caller ? 0 : claim_member());
    int64_t begin = next_begin.load(std::memory_order_relaxed);
    while (begin < count) {
      const int64_t end = begin + std::min(count - begin, std::max(least_taken, (count - begin) / takes));
      if (next_begin.compare_exchange_weak(begin, end, std::memory_order_relaxed)) {
        (*loop)(begin, end);
        begin = next_begin.load(std::memory_order_relaxed);
      }
    }
    inside_loop = was_inside;
  }
};

class Pool {
 public:
  // The process's pool. A forked child has one of its own, for threads are not forked.
  static Pool& instance();

  Pool() { set_count(0); }
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
      if (job.team != nullptr) promised_ += helpers;
      while (static_cast<int>(workers_.size()) < helpers || idle_ < promised_) add_worker();
      job.helpers_wanted = helpers;
      jobs_.push_back(&job);
      jobs_begun_.fetch_add(1, std::memory_order_relaxed);
    }
    for (int helper = 0; helper < helpers; ++helper) wake_.notify_one();
    job.work(true);
    finish(job);
  }

 private:
  void add_worker() {
    ++idle_;
    workers_.emplace_back([this] { worker_main(); });
  }

  void finish(Job& job) {
    const auto is_over = [&] { return job.helpers_awaited.load(std::memory_order_relaxed) == 0; };
    look_out(is_over);
    std::unique_lock lock(mutex_);
    left_.wait(lock, is_over);
    if (job.team != nullptr) promised_ -= job.helpers_wanted;
    std::erase(jobs_, &job);
  }

  // Teams first: whoever is idle may have been promised to one.
  Job* claim_job() {
    Job* found = nullptr;
    for (Job* job : jobs_) {
      if (job->helpers_wanted == 0 || !job->has_work()) continue;
      if (job->team != nullptr) return job;
      if (found == nullptr) found = job;
    }
    return found;
  }

  void worker_main() {
    std::unique_lock lock(mutex_);
    while (true) {
      Job* job = claim_job();
      if (job == nullptr) {
        const int64_t seen = jobs_begun_.load(std::memory_order_relaxed);
        lock.unlock();
        look_out([&] { return jobs_begun_.load(std::memory_order_relaxed) != seen; });
        lock.lock();
        wake_.wait(lock, [&] { return stopping_ || (job = claim_job()) != nullptr; });
      }
      if (stopping_) return;
      --idle_;
      if (job->team != nullptr) --promised_;
      --job->helpers_wanted;
      ++job->helpers_awaited;
      lock.unlock();
      job->work(false);
      lock.lock();
      ++idle_;
      if (--job->helpers_awaited == 0) left_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable left_;
  std::vector<Job*> jobs_;
  std::vector<std::thread> workers_;
  int idle_ = 0;      // workers without a job; guarded by mutex_, like the next one
  int promised_ = 0;  // of those, how many belong to teams that have been begun
  std::atomic<int> count_{1};
  std::atomic<int64_t> jobs_begun_{0};
  bool stopping_ = false;
};

std::atomic<Pool*> the_pool{nullptr};
std::atomic<int> forked_count{0};  // threads wanted before the fork; 0: not forked

// In the child: the parent's pool is left as it is, perhaps locked, with the handles of threads that are not there.
void leave_pool_to_parent() {
  Pool* const abandoned = the_pool.exchange(nullptr);
  if (abandoned != nullptr) forked_count = abandoned->count();
}

struct PoolAtExit {
  PoolAtExit() { pthread_atfork(nullptr, nullptr, leave_pool_to_parent); }
  ~PoolAtExit() { delete the_pool.exchange(nullptr); }
};

Pool& Pool::instance() {
  if (Pool* const pool = the_pool.load(std::memory_order_acquire)) return *pool;
  static const PoolAtExit at_exit;
  auto made = std::make_unique<Pool>();
  if (const int count = forked_count; count > 0) made->set_count(count);
  Pool* expected = nullptr;
  if (!the_pool.compare_exchange_strong(expected, made.get())) return *expected;  // another thread was first
  return *made.release();
}

}  // namespace

void set_thread_count(int count) { Pool::instance().set_count(count); }
int thread_count() { return Pool::instance().count(); }

void parallel_for(int64_t count, int64_t work_per_item, const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  const double work = static_cast<double>(count) * static_cast<double>(std::max<int64_t>(1, work_per_item));
  const double affordable = std::min(work / static_cast<double>(kMinimumWorkPerThread), 1.0 * kMaximumThreads);
  const int threads = static_cast<int>(std::min<int64_t>({thread_count(), count, static_cast<int64_t>(affordable)}));
  if (threads <= 1 || inside_loop) {
    const MemoryBudget::ThreadScope uncharged(nullptr);  // as with more threads
    body(0, count);
    return;
  }
  Job job;
  job.loop = &body;
  job.count = count;
  job.least_taken = std::max<int64_t>(1, kLeastWorkTaken / std::max<int64_t>(1, work_per_item));
  job.takes = threads * kTakesPerThread;
  Pool::instance().run(job, threads - 1);
}

void run_team(int threads, const std::function<void(int)>& body) {
  Job job;
  job.team = &body;
  job.members = std::max(1, threads);
  if (threads <= 1) {
    job.work(true);
  } else {
    Pool::instance().run(job, threads - 1);
  }
}

}  // namespace parallax
