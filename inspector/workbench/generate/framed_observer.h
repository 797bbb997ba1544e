// SPDX-License-Identifier: Apache-2.0
// FramedObserver: shows a run without frames to an observer as the step of a graph that it is.
#pragma once

#include "inspector/exec/observer.h"

namespace parallax::generate {

class FramedObserver final : public Observer {
 public:
  FramedObserver(Observer& target, CallInfo call) : target_(target), call_(std::move(call)) {}

  CaptureLevel wants(const ValueInfo& value_info) override { return target_.wants(value_info); }
  bool wants_node_times() const override { return target_.wants_node_times(); }
  bool takes_channels_last() const override { return target_.takes_channels_last(); }
  Status begin_call(const CallInfo&, std::span<const Value> inputs) override {
    return target_.begin_call(call_, inputs);
  }
  Status absent(const ValueInfo& value_info, const Absence& absence) override {
    return target_.absent(value_info, absence);
  }
  Status enter_body(const NodeLocation& node, const Frame& frame) override { return target_.enter_body(node, frame); }
  Status leave_body(const NodeLocation& node, const Frame& frame) override { return target_.leave_body(node, frame); }
  Status observe(const Observation& seen) override {
    const FrameStack frames = framed(seen.frames);
    return target_.observe({seen.value_info, frames, seen.value, seen.alias_of, seen.stream, seen.statistics});
  }
  Status node_done(const NodeLocation& node, double elapsed_ms) override { return target_.node_done(node, elapsed_ms); }
  Status node_failed(const NodeLocation& node, const FrameStack& frames, const Error& error) override {
    return target_.node_failed(node, framed(frames), error);
  }
  Status end_call(const CallInfo&) override { return target_.end_call(call_); }

 private:
  FrameStack framed(const FrameStack& inner) const {
    FrameStack frames;
    if (!call_.graph.empty()) frames.push({Frame::Kind::graph, call_.graph, -1});
    if (call_.step >= 0) frames.push({Frame::Kind::step, {}, call_.step});
    for (const Frame& frame : inner.frames()) frames.push(frame);
    return frames;
  }

  Observer& target_;
  CallInfo call_;
};

}  // namespace parallax::generate
