// SPDX-License-Identifier: Apache-2.0
// Long work in a thread of its own, so that Ctrl-C ends it and Python functions that it calls run where it was asked
// for.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <utility>

#include <nanobind/nanobind.h>

#include "inspector/base/cancel.h"
#include "inspector/base/input_files.h"
#include "inspector/python/binding/binding.h"
#include "inspector/python/binding/errors.h"

namespace parallax::python {

// The thread that asked for the work. It has the GIL when it makes a Caller and calls run().
class Caller {
 public:
  explicit Caller(CancelToken cancel) : cancel_(std::move(cancel)) {}
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // Runs `work`, which answers a Result, without the GIL in another thread. Signals are asked for every 50 ms: what
  // their handler raises (KeyboardInterrupt) cancels the work, and is raised once that has ended; so is what a function
  // raised, and the Error of the work.
  template <class Work>
  auto run(Work work) {
    input_files::Scope::State* const scope = input_files::current_scope();
    auto running = std::async(std::launch::async, [&] {
      const input_files::BorrowedScope borrowed(scope);
      const Ending ending{*this};
      return work();
    });
    serve();
    auto result = running.get();
    if (raised_ != nullptr) std::rethrow_exception(std::exchange(raised_, nullptr));
    return unwrap(std::move(result));
  }

  // From the work: runs `function`, which may raise, in the caller's thread with the GIL, and waits for it. Errors:
  // cancelled, where it raised or the work has been cancelled.
  Status call(const std::function<void()>& function);

 private:
  struct Ending {
    Caller& caller;
    ~Ending() { caller.end(); }
  };
  void end();
  void serve();      // until the work has ended
  void interrupt();  // keeps the exception that is handled

  CancelToken cancel_;
  std::exception_ptr raised_;  // the first
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* wanted_ = nullptr;
  bool has_ended_ = false;
};

}  // namespace parallax::python
