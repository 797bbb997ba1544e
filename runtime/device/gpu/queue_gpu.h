// SPDX-License-Identifier: Apache-2.0
// Common parts of the queues of all GPU devices: errors that surface after the node, copies made of weights, and the
// memory of planned runs. A buffer in that memory is free again when its last owner on the host lets go, though kernels
// that were launched may still use it: its next user launches after them, on the same stream.
#pragma once

#include <cstdlib>
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

// The environment variable that lets runs wait for each node, without planned memory and replays: errors are then those
// of the node that is named, and tools such as compute-sanitizer see each value as an allocation of its own.
inline constexpr const char* kWaitForEachNode = "PARALLAX_WAIT_FOR_EACH_NODE";
inline bool waits_for_each_node() {
  static const bool is_asked_for = [] {
    const char* const text = std::getenv(kWaitForEachNode);  // NOLINT(concurrency-mt-unsafe): read once, never written
    return text != nullptr && std::string_view(text) == "1";
  }();
  return is_asked_for;
}

// The launches of a queue between begin_recording and end_recording, to be launched again as one.
class Recording {
 public:
  virtual ~Recording() = default;
};

// The data that a recording depends on.
struct RecordedNeeds {
  Tensor checks;  // int64 numbers that its kernels write, each of which is -1 where all is well
  int64_t check_count = 0;
  std::vector<Tensor> own;  // what the host made, which follows from the form alone, and buffers that are not planned
  int64_t own_bytes = 0;
};

// While it records, a queue executes nothing but copies to the device. Memory that is not planned, as that of values
// which outlive the run, is the recording's own. Whatever needs the device's answer, or much of such memory, is refused
// with an error: such a run cannot be replayed.
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
    PX_TRY(refused_in_recording("make what outlives it"));
    const auto made_outside = memory_->pause();
    const Tensor made = PX_TRY(make());
    converted_.emplace(key, made);
    return made;
  }

 protected:
  static constexpr int64_t kMostChecks = 1024;
  static constexpr int64_t kMostOwnBytes = int64_t{256} << 20;
  void set_recording(bool is_recording) { is_recording_ = is_recording; }
  void set_checks(Tensor checks) { needs_ = {std::move(checks), 0, {}, 0}; }
  // There may be so much more of the recording's own memory.
  Status check_own(int64_t bytes) const {
    if (needs_.own_bytes + bytes <= kMostOwnBytes) return {};
    return unsupported("a recorded run cannot have " + std::to_string(needs_.own_bytes + bytes) +
                       " bytes of its own; at most " + std::to_string(kMostOwnBytes));
  }
  Tensor keep(Tensor made) {
    needs_.own_bytes += static_cast<int64_t>(made.size_bytes());
    return needs_.own.emplace_back(std::move(made));
  }

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
