// SPDX-License-Identifier: Apache-2.0
// A recorded run of a GPU: inputs are brought to where they were when it was recorded, outputs fetched from where they
// were then. All other addresses are in the block of planned memory, which it holds on to; there is none where nodes
// write over their inputs alone.
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
  bool record(const ReplayInputs& inputs, const DeviceRun& run) {
    if (!take_inputs(inputs).ok() || !queue_.begin_recording().ok()) return false;
    auto outputs = run(lent_inputs());
    auto recording = queue_.end_recording();
    const Status launched = queue_.take_failure();
    needs_ = queue_.take_needs();
    if (!outputs.ok() || !recording.ok() || !launched.ok()) return false;
    recording_ = std::move(*recording);
    for (Value& output : *outputs) outputs_.push_back(without_claim(output));
    return true;
  }

  Result<std::optional<std::vector<Value>>> run(std::span<const Value> inputs) override {
    using Outputs = std::optional<std::vector<Value>>;
    if (arena_ != nullptr && !queue_.memory().is_idle(*arena_)) return Outputs();
    for (size_t index = 0; index < inputs.size(); ++index) {
      if (is_on_device(inputs_[index])) PX_TRY(bring(inputs[index].tensor(), inputs_[index].tensor()));
    }
    PX_TRY(queue_.replay(*recording_));
    PX_TRY(queue_.take_failure());
    if (!PX_TRY(checks_hold())) return Outputs();
    std::vector<Value> outputs;
    for (size_t index = 0; index < outputs_.size(); ++index) {
      const bool is_kept = index < kept_outputs_.size() && kept_outputs_[index] != 0 && is_on_device(outputs_[index]);
      outputs.push_back(PX_TRY(is_kept ? copy_of(outputs_[index].tensor()) : fetched(outputs_[index])));
    }
    PX_TRY(queue_.take_failure());
    return Outputs(std::move(outputs));
  }

 private:
  static bool is_on_device(const Value& value) { return value.is_tensor() && !value.tensor().device().is_host(); }

  Status take_inputs(const ReplayInputs& inputs) {
    for (size_t index = 0; index < inputs.values.size(); ++index) {
      const Value& input = inputs.values[index];
      const bool moves = input.is_tensor() && !inputs.stays_on_host(index);
      inputs_.push_back(!moves                ? input
                        : is_on_device(input) ? PX_TRY(copy_of(input.tensor()))
                                              : Value(PX_TRY(queue_.to_device(input.tensor()))));
    }
    kept_outputs_.assign(inputs.kept_outputs.begin(), inputs.kept_outputs.end());
    return {};
  }

  // States are on the device, and stay what they are until the run has succeeded.
  Status bring(const Tensor& from, const Tensor& to) {
    if (from.device().is_host()) return queue_.upload(from, to);
    copy_bytes(queue_, to.storage().get(), from.view().data, from.size_bytes());
    return queue_.take_failure();
  }
  Result<Value> copy_of(const Tensor& tensor) {
    const Tensor copy = PX_TRY(queue_.allocate(tensor.dtype(), tensor.shape()));
    copy_bytes(queue_, copy.storage().get(), tensor.view().data, tensor.size_bytes());
    return Value(copy);
  }

  // With owners of their own: as in the plain run, the last reader of an input may write over it.
  std::vector<Value> lent_inputs() const {
    std::vector<Value> lent = inputs_;
    for (Value& input : lent) {
      if (!is_on_device(input)) continue;
      const Tensor& tensor = input.tensor();
      const std::shared_ptr<const std::byte> own(tensor.view().data, [memory = tensor.storage()](const std::byte*) {});
      input = Value(Tensor::wrap(tensor.dtype(), tensor.shape(), own, tensor.device()));
    }
    return lent;
  }

  // A buffer in the block would stay claimed as long as the output is held: the block itself is held instead.
  Value without_claim(const Value& output) const {
    if (!output.is_tensor() || arena_ == nullptr || !arena_->contains(output.tensor().view().data)) return output;
    const TensorView& view = output.tensor().view();
    return Tensor::wrap(view.dtype, view.shape, {arena_->memory(), view.data}, view.device);
  }

  // Bits that kernels search for and must not find.
  Result<bool> checks_hold() {
    if (needs_.check_count == 0) return true;
    const Tensor used =
        Tensor::wrap(DType::int64, Shape{needs_.check_count}, needs_.checks.storage(), needs_.checks.device());
    const Tensor locations = PX_TRY(queue_.to_host(used));
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
  std::vector<Value> inputs_;          // on the device, at the addresses that were recorded
  std::vector<Value> outputs_;         // likewise; those that follow from shapes alone are on the host
  std::vector<uint8_t> kept_outputs_;  // ReplayInputs
  RecordedNeeds needs_;
  std::unique_ptr<Recording> recording_;
};

}  // namespace parallax::runtime
