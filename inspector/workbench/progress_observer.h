// SPDX-License-Identifier: Apache-2.0
// ProgressObserver: counts the values an observer is shown, for whoever draws a progress bar.
#pragma once

#include <algorithm>
#include <functional>

#include "inspector/exec/observer.h"

namespace parallax {

// Passes every event on. `progress` gets the number of values so far and the number that were wanted; loops may bring
// more than wanted, and untaken branches fewer.
class ProgressObserver final : public Observer {
 public:
  ProgressObserver(Observer& inner, std::function<void(int64_t done, int64_t total)> progress)
      : inner_(inner), progress_(std::move(progress)) {}

  CaptureLevel wants(const ValueInfo& value_info) override {
    const CaptureLevel level = inner_.wants(value_info);
    total_ += level == CaptureLevel::none ? 0 : 1;
    return level;
  }
  bool wants_node_times() const override { return inner_.wants_node_times(); }
  bool takes_channels_last() const override { return inner_.takes_channels_last(); }
  Status begin_run(const RunInfo& run) override { return inner_.begin_run(run); }
  Status begin_call(const CallInfo& call, std::span<const Value> inputs) override {
    return inner_.begin_call(call, inputs);
  }
  Status absent(const ValueInfo& value_info, const Absence& absence) override {
    return inner_.absent(value_info, absence);
  }
  Status enter_body(const NodeLocation& node, const Frame& frame) override { return inner_.enter_body(node, frame); }
  Status leave_body(const NodeLocation& node, const Frame& frame) override { return inner_.leave_body(node, frame); }
  Status observe(const Observation& observation) override {
    ++done_;
    if (progress_) progress_(std::min(done_, total_), total_);
    return inner_.observe(observation);
  }
  Status node_done(const NodeLocation& node, double elapsed_ms) override { return inner_.node_done(node, elapsed_ms); }
  Status node_failed(const NodeLocation& node, const FrameStack& frames, const Error& error) override {
    return inner_.node_failed(node, frames, error);
  }
  Status end_call(const CallInfo& call) override { return inner_.end_call(call); }
  Status end_run(bool completed) override { return inner_.end_run(completed); }

 private:
  Observer& inner_;
  std::function<void(int64_t, int64_t)> progress_;
  int64_t done_ = 0;
  int64_t total_ = 0;
};

}  // namespace parallax
