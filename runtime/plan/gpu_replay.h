// SPDX-License-Identifier: Apache-2.0
// A recorded run of a GPU: inputs are brought to where they were when it was recorded, outputs fetched from where they
// were then. All other addresses are in the block of planned memory, which it holds on to.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "runtime/device/gpu/queue_gpu.h"
#include "runtime/plan/move_value.h"
#include "runtime/plan/replay.h"

namespace parallax::runtime {

template <class Device>
class GpuReplay final : public Replay {
 public:
  explicit GpuReplay(Queue<Device>& queue) : queue_(queue), arena_(queue.memory().arena()) {}

  // Records what `run` launches on copies of `inputs`; nothing of it is executed. False where it cannot be replayed.
  bool record(std::span<const Value> inputs, const DeviceRun& run) {
    if (arena_ == nullptr || !take_inputs(inputs).ok() || !queue_.begin_recording().ok()) return false;
    auto outputs = run(inputs_);
    auto recording = queue_.end_recording();
    const Status launched = queue_.take_failure();
    if (!outputs.ok() || !recording.ok() || !launched.ok()) return false;
    recording_ = std::move(*recording);
    needs_ = queue_.take_needs();
    for (Value& output : *outputs) outputs_.push_back(without_claim(output));
    return true;
  }

  Result<std::optional<std::vector<Value>>> run(std::span<const Value> inputs) override {
    using Outputs = std::optional<std::vector<Value>>;
    if (!queue_.memory().is_idle(*arena_)) return Outputs();
    for (size_t index = 0; index < inputs.size(); ++index) {
      if (inputs[index].is_tensor()) PX_TRY(queue_.upload(inputs[index].tensor(), inputs_[index].tensor()));
    }
    PX_TRY(queue_.replay(*recording_));
    PX_TRY(queue_.take_failure());
    if (!PX_TRY(checks_hold())) return Outputs();
    std::vector<Value> outputs;
    for (const Value& output : outputs_) outputs.push_back(PX_TRY(fetched(output)));
    return Outputs(std::move(outputs));
  }

 private:
  Status take_inputs(std::span<const Value> inputs) {
    for (const Value& input : inputs)
      inputs_.push_back(input.is_tensor() ? Value(PX_TRY(queue_.to_device(input.tensor()))) : input);
    return {};
  }

  // A buffer in the block would stay claimed as long as the output is held: the block itself is held instead.
  Value without_claim(const Value& output) const {
    if (!output.is_tensor() || !arena_->contains(output.tensor().view().data)) return output;
    const TensorView& view = output.tensor().view();
    return Tensor::wrap(view.dtype, view.shape, {arena_->memory(), view.data}, view.device);
  }

  // Bits that kernels search for and must not find.
  Result<bool> checks_hold() {
    if (needs_.check_count == 0) return true;
    const Tensor locations = PX_TRY(queue_.to_host(needs_.checks));
    for (int64_t index = 0; index < needs_.check_count; ++index) {
      if (locations.as<int64_t>()[static_cast<size_t>(index)] >= 0) return false;
    }
    return true;
  }

  Result<Value> fetched(const Value& output) {
    return move_value(output, [&](const Tensor& tensor) -> Result<Tensor> {
      return tensor.device().is_host() ? Result<Tensor>(tensor) : queue_.to_host(tensor);
    });
  }

  Queue<Device>& queue_;
  std::shared_ptr<const Arena> arena_;
  std::vector<Value> inputs_;   // on the device, at the addresses that were recorded
  std::vector<Value> outputs_;  // likewise; those that follow from shapes alone are on the host
  RecordedNeeds needs_;
  std::unique_ptr<Recording> recording_;
};

}  // namespace parallax::runtime
