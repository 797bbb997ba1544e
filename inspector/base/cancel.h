// SPDX-License-Identifier: Apache-2.0
// CancelToken: a flag one thread sets and a long job of another thread reads between nodes and blocks.
#pragma once

#include <atomic>
#include <memory>

namespace parallax {

class CancelToken {
 public:
  void cancel() { flag_->store(true, std::memory_order_relaxed); }
  bool is_cancelled() const { return flag_->load(std::memory_order_relaxed); }

 private:
  std::shared_ptr<std::atomic<bool>> flag_ = std::make_shared<std::atomic<bool>>(false);  // copies share one flag
};

}  // namespace parallax
