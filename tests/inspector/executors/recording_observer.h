// SPDX-License-Identifier: Apache-2.0
// An Observer that writes down every event as a line of text, and keeps the values it saw.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "inspector/exec/observer.h"

namespace parallax {

class RecordingObserver final : public Observer {
 public:
  std::vector<std::string> events;
  std::map<std::string, Value> values;      // by path
  std::map<std::string, Absence> absences;  // by name
  std::map<int32_t, int> asked;             // value id -> times wants() was asked
  std::set<std::string> unwanted;           // names to answer `none` for
  std::string stop_at;                      // path at which observe() answers with an error

  CaptureLevel wants(const ValueInfo& value_info) override {
    if (!events.empty()) asked_after_events = true;
    ++asked[value_info.id];
    return unwanted.contains(std::string(value_info.name)) ? CaptureLevel::none : CaptureLevel::all;
  }
  Status begin_call(const CallInfo& call, std::span<const Value>) override {
    return add("begin_call " + std::to_string(call.step));
  }
  Status absent(const ValueInfo& value_info, const Absence& absence) override {
    absences[std::string(value_info.name)] = absence;
    return add("absent " + std::string(value_info.name));
  }
  Status enter_body(const NodeLocation&, const Frame& frame) override { return add("enter " + to_string(frame)); }
  Status leave_body(const NodeLocation&, const Frame& frame) override { return add("leave " + to_string(frame)); }
  Status observe(const Observation& observation) override {
    values[observation.path()] = observation.value;
    if (observation.path() == stop_at) return io_error("stopped by the observer");
    return add("observe " + observation.path());
  }
  Status node_failed(const NodeLocation& node, const FrameStack& frames, const Error&) override {
    return add("failed " + frames.path_of(node.node));
  }
  Status end_call(const CallInfo&) override { return add("end_call"); }

  bool asked_after_events = false;

  bool saw(const std::string& event) const { return std::find(events.begin(), events.end(), event) != events.end(); }
  // Position of an event, or -1.
  int64_t location(const std::string& event) const {
    const auto found = std::find(events.begin(), events.end(), event);
    return found == events.end() ? -1 : found - events.begin();
  }

 private:
  Status add(std::string event) {
    events.push_back(std::move(event));
    return {};
  }
};

}  // namespace parallax
