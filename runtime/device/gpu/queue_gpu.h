// What the queues of all GPU devices have in common: errors that surface after the node, copies made of weights, and
// the memory of planned runs. A place in that memory is free again when its last owner on the host lets go, though
// kernels that were launched may still be at work on it: whoever gets it next launches behind them, on the same stream.
#pragma once

#include <map>
#include <optional>
#include <utility>

#include "runtime/device/devices.h"
#include "runtime/device/run_memory.h"

namespace parallax::runtime {

class GpuQueueBase {
 public:
  explicit GpuQueueBase(RunMemory::Fill poison = nullptr) : memory_(RunMemory::create(std::move(poison))) {}

  RunMemory& memory() { return *memory_; }

  // Primitives return nothing: the first error of theirs stays here until the node's function has returned.
  void fail(Error error) {
    if (!failure_.has_value()) failure_ = std::move(error);
  }
  Status take_failure() {
    if (!failure_.has_value()) return {};
    return *std::exchange(failure_, std::nullopt);
  }

  // What `make` gives for a constant payload, made once for each type and kept for the queue's life.
  template <class Make>
  Result<Tensor> cached(const TensorView& constant, DType dtype, const Make& make) {
    const auto key = std::pair{constant.data, dtype};
    const auto found = converted_.find(key);
    if (found != converted_.end()) return found->second;
    const Tensor made = PX_TRY(make());
    converted_.emplace(key, made);
    return made;
  }

 protected:
  const std::shared_ptr<RunMemory> memory_;

 private:
  std::optional<Error> failure_;
  std::map<std::pair<const std::byte*, DType>, Tensor> converted_;
};

}  // namespace parallax::runtime
