// SPDX-License-Identifier: Apache-2.0
// Common parts of the queues of all GPU devices: errors that surface after the node, copies made of weights, and the
// memory of planned runs. A buffer in that memory is free again when its last owner on the host lets go, though kernels
// that were launched may still use it: its next user launches after them, on the same stream.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/devices.h"
#include "runtime/device/gpu/attention_probe.h"
#include "runtime/device/gpu/library_epilogue.h"
#include "runtime/device/run_memory.h"

namespace parallax::runtime {

// The launches of a queue between begin_recording and end_recording, to be launched again as one.
class Recording {
 public:
  virtual ~Recording() = default;
};

// The data that a recording depends on.
struct RecordedNeeds {
  Tensor checks;  // int64 numbers that its kernels write, each of which is -1 where all is well
  int64_t check_count = 0;
  std::vector<Tensor> uploads;  // what the host made, which follows from shapes and constants alone
};

// While it records, a queue executes nothing but copies to the device. Whatever needs the device's answer, or memory
// that is not planned, is refused with an error then: such a run cannot be replayed.
class GpuQueueBase {
 public:
  explicit GpuQueueBase(BufferWatch watch = {}) : memory_(RunMemory::create(std::move(watch))) {}

  RunMemory& memory() { return *memory_; }

  // ---- What the device was asked: has_epilogue (library_product.h), attends_as_ours (library_attention.h) ----
  KnownEpilogues& known_epilogues() { return known_epilogues_; }
  KnownAttentions& known_attentions() { return known_attentions_; }
  // The answer that `known` has, else that of `ask`, which is made outside of planned memory and kept. While the queue
  // records, which has no answers, only what is known counts.
  template <class Kind, class Ask>
  Result<bool> asked_once(std::map<Kind, bool>& known, const Kind& kind, const Ask& ask) {
    const auto found = known.find(kind);
    if (found != known.end()) return found->second;
    if (is_recording_) return false;
    const auto made_outside = memory_->pause();
    const bool answer = PX_TRY(ask());
    known.emplace(kind, answer);
    return answer;
  }

  // Primitives return nothing: the first error of theirs stays here until the node's function has returned.
  void fail(Error error) {
    if (!failure_.has_value()) failure_ = std::move(error);
  }
  Status take_failure() {
    if (!failure_.has_value()) return {};
    return *std::exchange(failure_, std::nullopt);
  }

  bool is_recording() const { return is_recording_; }
  Status refused_in_recording(std::string_view what) const {
    if (!is_recording_) return {};
    return unsupported("a recorded run cannot " + std::string(what));
  }
  // One more of the checks of the recording: a scalar that a kernel writes.
  Result<Tensor> add_check() {
    if (needs_.check_count >= needs_.checks.element_count()) return unsupported("a recorded run has too many checks");
    const TensorView& all = needs_.checks.view();
    const std::byte* location = all.data + sizeof(int64_t) * static_cast<size_t>(needs_.check_count++);
    return Tensor::wrap(DType::int64, Shape{}, {needs_.checks.storage(), location}, all.device);
  }
  RecordedNeeds take_needs() { return std::exchange(needs_, {}); }

  // The result of `make` for a constant payload, computed once for each type and kept for the queue's life, and so
  // outside of planned memory.
  template <class Make>
  Result<Tensor> cached(const TensorView& constant, DType dtype, const Make& make) {
    const auto key = std::pair{constant.data, dtype};
    const auto found = converted_.find(key);
    if (found != converted_.end()) return found->second;
    const auto made_outside = memory_->pause();
    const Tensor made = PX_TRY(make());
    converted_.emplace(key, made);
    return made;
  }

 protected:
  static constexpr int64_t kMostChecks = 256;
  void set_recording(bool is_recording) { is_recording_ = is_recording; }
  void set_checks(Tensor checks) { needs_ = {std::move(checks), 0, {}}; }
  Tensor keep_upload(Tensor made) { return needs_.uploads.emplace_back(std::move(made)); }

  const std::shared_ptr<RunMemory> memory_;

 private:
  std::optional<Error> failure_;
  bool is_recording_ = false;
  RecordedNeeds needs_;
  KnownEpilogues known_epilogues_;
  KnownAttentions known_attentions_;
  std::map<std::pair<const std::byte*, DType>, Tensor> converted_;
};

}  // namespace parallax::runtime
