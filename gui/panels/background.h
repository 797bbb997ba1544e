// SPDX-License-Identifier: Apache-2.0
// Background: work whose result a window needs. Short work is done at once, long work in a thread while frames go on.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <thread>
#include <utility>

#include "inspector/base/cancel.h"

namespace parallax::gui {

template <class T>
class Background {
 public:
  using Work = std::function<T(const CancelToken&)>;

  Background() = default;
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background() { drop(); }

  // Starts `work` and drops the work that was begun before. `wake` is called from the thread.
  void start(Work work, bool is_short, std::function<void()> wake) {
    drop();
    cancel_ = CancelToken();
    if (is_short) {
      result_ = work(cancel_);
      return;
    }
    is_done_ = false;
    thread_ = std::thread([this, work = std::move(work), wake = std::move(wake)] {
      result_ = work(cancel_);
      is_done_ = true;
      if (wake) wake();
    });
  }

  // The result, once.
  std::optional<T> take() {
    if (!is_done_) return std::nullopt;
    wait();
    return std::exchange(result_, std::nullopt);
  }
  bool is_running() const { return thread_.joinable(); }  // until the result is taken
  bool is_working() const { return !is_done_; }
  bool wait() {  // false when there was nothing to wait for
    if (!thread_.joinable()) return false;
    thread_.join();
    return true;
  }

 private:
  void drop() {
    cancel_.cancel();
    wait();
    result_.reset();
    is_done_ = true;
  }

  CancelToken cancel_;
  std::atomic<bool> is_done_{true};
  std::optional<T> result_;  // the thread's until it is done
  std::thread thread_;
};

}  // namespace parallax::gui
