// SPDX-License-Identifier: Apache-2.0
// Forwards each event to every observer in turn.
#include "inspector/exec/tee_observer.h"

#include <algorithm>

#include "inspector/base/check.h"

namespace parallax {
namespace {

template <class Call>
Status for_each(const std::vector<Observer*>& observers, Call call) {
  for (Observer* observer : observers) PX_TRY(call(*observer));
  return {};
}

}  // namespace

TeeObserver::TeeObserver(std::vector<Observer*> observers) : observers_(std::move(observers)) {
  std::erase(observers_, nullptr);
  PX_CHECK(observers_.size() <= 64);
}

CaptureLevel TeeObserver::wants(const ValueInfo& value_info) {
  CaptureLevel most = CaptureLevel::none;
  uint64_t wanted = 0;
  for (size_t index = 0; index < observers_.size(); ++index) {
    const CaptureLevel level = observers_[index]->wants(value_info);
    if (level != CaptureLevel::none) wanted |= uint64_t{1} << index;
    most = std::max(most, level);
  }
  wanted_by_[&value_info] = wanted;
  return most;
}

bool TeeObserver::wants_node_times() const {
  return std::any_of(observers_.begin(), observers_.end(),
                     [](const Observer* observer) { return observer->wants_node_times(); });
}

bool TeeObserver::takes_channels_last() const {
  return std::all_of(observers_.begin(), observers_.end(),
                     [](const Observer* observer) { return observer->takes_channels_last(); });
}

Status TeeObserver::begin_run(const RunInfo& run) {
  return for_each(observers_, [&](Observer& observer) { return observer.begin_run(run); });
}

Status TeeObserver::begin_call(const CallInfo& call, std::span<const Value> inputs) {
  return for_each(observers_, [&](Observer& observer) { return observer.begin_call(call, inputs); });
}

Status TeeObserver::absent(const ValueInfo& value_info, const Absence& absence) {
  return for_each(observers_, [&](Observer& observer) { return observer.absent(value_info, absence); });
}

Status TeeObserver::enter_body(const NodeLocation& node, const Frame& frame) {
  return for_each(observers_, [&](Observer& observer) { return observer.enter_body(node, frame); });
}

Status TeeObserver::leave_body(const NodeLocation& node, const Frame& frame) {
  return for_each(observers_, [&](Observer& observer) { return observer.leave_body(node, frame); });
}

Status TeeObserver::observe(const Observation& observation) {
  const auto wanted = wanted_by_.find(&observation.value_info);
  if (wanted == wanted_by_.end()) return {};
  for (size_t index = 0; index < observers_.size(); ++index) {
    if ((wanted->second >> index & 1U) != 0) PX_TRY(observers_[index]->observe(observation));
  }
  return {};
}

Status TeeObserver::node_done(const NodeLocation& node, double elapsed_ms) {
  for (Observer* observer : observers_) {
    if (observer->wants_node_times()) PX_TRY(observer->node_done(node, elapsed_ms));
  }
  return {};
}

Status TeeObserver::node_failed(const NodeLocation& node, const FrameStack& frames, const Error& error) {
  return for_each(observers_, [&](Observer& observer) { return observer.node_failed(node, frames, error); });
}

Status TeeObserver::end_call(const CallInfo& call) {
  return for_each(observers_, [&](Observer& observer) { return observer.end_call(call); });
}

Status TeeObserver::end_run(bool completed) {
  return for_each(observers_, [&](Observer& observer) { return observer.end_run(completed); });
}

}  // namespace parallax
