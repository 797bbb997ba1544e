// SPDX-License-Identifier: Apache-2.0
// Signals, and functions that wait to be called.
#include "inspector/python/binding/interruptible.h"

#include <chrono>
#include <optional>

namespace parallax::python {
namespace {

constexpr std::chrono::milliseconds kBetweenSignals{50};

Error was_cancelled() { return make_error(ErrorCode::cancelled, "the job was cancelled"); }

}  // namespace

Status Caller::call(const std::function<void()>& function) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return wanted_ == nullptr; });
  if (cancel_.is_cancelled()) return was_cancelled();
  wanted_ = &function;
  changed_.notify_all();
  changed_.wait(lock, [&] { return wanted_ != &function; });
  if (cancel_.is_cancelled()) return was_cancelled();
  return {};
}

void Caller::end() {
  const std::scoped_lock lock(mutex_);
  has_ended_ = true;
  changed_.notify_all();
}

void Caller::interrupt() {
  if (raised_ == nullptr) raised_ = std::current_exception();
  cancel_.cancel();
}

void Caller::serve() {
  std::optional<nb::gil_scoped_release> nogil(std::in_place);
  std::unique_lock lock(mutex_);
  while (!has_ended_) {
    changed_.wait_for(lock, kBetweenSignals, [&] { return has_ended_ || wanted_ != nullptr; });
    if (has_ended_) break;
    const std::function<void()>* const wanted = wanted_;
    lock.unlock();
    nogil.reset();
    try {  // nothing may leave before the work has ended
      if (wanted != nullptr) (*wanted)();
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    } catch (...) {
      interrupt();
    }
    nogil.emplace();
    lock.lock();
    if (wanted != nullptr) {
      wanted_ = nullptr;
      changed_.notify_all();
    }
  }
  lock.unlock();
}

}  // namespace parallax::python
