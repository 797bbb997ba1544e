// SPDX-License-Identifier: Apache-2.0
// TeeObserver: shows one execution to several observers (a dump writer and a comparison, say).
#pragma once

#include <unordered_map>
#include <vector>

#include "inspector/exec/observer.h"

namespace parallax {

// The first observer that answers an event with an error stops the run; the later ones do not hear of that event.
class TeeObserver final : public Observer {
 public:
  explicit TeeObserver(std::vector<Observer*> observers);  // not owned

  CaptureLevel wants(const ValueInfo& value_info) override;
  bool wants_node_times() const override;
  bool takes_channels_last() const override;  // as all do
  Status begin_run(const RunInfo& run) override;
  Status begin_call(const CallInfo& call, std::span<const Value> inputs) override;
  Status absent(const ValueInfo& value_info, const Absence& absence) override;
  Status enter_body(const NodeLocation& node, const Frame& frame) override;
  Status leave_body(const NodeLocation& node, const Frame& frame) override;
  Status observe(const Observation& observation) override;
  Status node_done(const NodeLocation& node, double elapsed_ms) override;
  Status node_failed(const NodeLocation& node, const FrameStack& frames, const Error& error) override;
  Status end_call(const CallInfo& call) override;
  Status end_run(bool completed) override;

 private:
  std::vector<Observer*> observers_;
  std::unordered_map<const ValueInfo*, uint64_t> wanted_by_;  // bit i: observer i wants the value
};

}  // namespace parallax
