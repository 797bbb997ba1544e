// Long work in a thread of its own, so that Ctrl-C ends it.
#pragma once

#include <chrono>
#include <future>
#include <optional>
#include <utility>

#include <nanobind/nanobind.h>

#include "inspector/base/cancel.h"
#include "inspector/python/binding/binding.h"
#include "inspector/python/binding/errors.h"

namespace parallax::python {

// Exceptions that Python functions raised which the work calls: the first one is kept, and cancels the work. To be used
// with the GIL.
class CallbackFailure {
 public:
  explicit CallbackFailure(CancelToken cancel) : cancel_(std::move(cancel)) {}
  Error keep(nb::python_error&& raised) {
    if (!raised_.has_value()) raised_.emplace(std::move(raised));
    cancel_.cancel();
    return make_error(ErrorCode::cancelled, "a function of the caller's raised an exception");
  }
  void rethrow() {
    if (!raised_.has_value()) return;
    nb::python_error raised = std::move(*raised_);
    raised_.reset();
    throw raised;
  }

 private:
  CancelToken cancel_;
  std::optional<nb::python_error> raised_;
};

// Called with the GIL; `work` runs without it and answers a Result. Signals are asked for every 50 ms: what their
// handler raises (KeyboardInterrupt) cancels the work and is raised once that has ended. Errors are raised, too.
template <class Work>
auto run_interruptible(CancelToken cancel, CallbackFailure& failure, Work work) {
  constexpr std::chrono::milliseconds kBetweenSignals{50};
  auto running = std::async(std::launch::async, std::move(work));
  std::optional<nb::python_error> interrupted;
  {
    std::optional<nb::gil_scoped_release> nogil(std::in_place);
    while (running.wait_for(kBetweenSignals) != std::future_status::ready) {
      nogil.reset();
      if (!interrupted.has_value() && PyErr_CheckSignals() != 0) {
        interrupted.emplace();
        cancel.cancel();
      }
      nogil.emplace();
    }
  }
  auto result = running.get();
  if (interrupted.has_value()) {
    nb::python_error raised = std::move(*interrupted);
    interrupted.reset();
    throw raised;
  }
  failure.rethrow();
  return unwrap(std::move(result));
}

}  // namespace parallax::python
