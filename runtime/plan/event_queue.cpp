// SPDX-License-Identifier: Apache-2.0
// Pending events in a queue; the one in front decides when the next may go.
#include "runtime/plan/event_queue.h"

#include "inspector/exec/feature_maps.h"
#include "inspector/tensor/channels_last.h"

namespace parallax::runtime {

void EventQueue::begin(Observer& observer) {
  observer_ = &observer;
  observer_failed_ = false;
}

// Values that already are where they are shown, with nobody waiting before them, are reported at once.
Status EventQueue::observe(const ValueInfo& value_info, const FrameStack& frames, const Value& value,
                           const ValueInfo* alias_of, CaptureLevel level) {
  const bool is_shown_as_stored =
      is_channels_last(value) && (level == CaptureLevel::shape || observer_->takes_channels_last());
  if (is_shown_as_stored && pending_.empty()) return show(value_info, frames, {value, {}, {}, {}}, alias_of);
  const ElementOrder order =
      value.is_tensor() ? counting_order(value_info, value.tensor().view()) : ElementOrder::row_major;
  std::optional<PendingValue> pending_value = PX_TRY(platform_.send(value, level, order));
  while (!pending_value.has_value() && !pending_.empty()) {  // the room there is comes back as the observer is done
    PX_TRY(deliver_front());
    pending_value = PX_TRY(platform_.send(value, level, order));
  }
  if (!pending_value.has_value()) pending_value = PX_TRY(platform_.bring(value));
  if (pending_.empty() && !pending_value->copy.has_value()) return show(value_info, frames, *pending_value, alias_of);
  PendingEvent pending_event;
  pending_event.value_info = &value_info;
  pending_event.alias_of = alias_of;
  pending_event.frames = frames;
  pending_event.pending_value = std::move(*pending_value);
  return enqueue(std::move(pending_event));
}

Status EventQueue::enter_body(const NodeLocation& node, const Frame& frame) {
  if (pending_.empty()) return observer_status(observer_->enter_body(node, frame));
  PendingEvent pending_event;
  pending_event.kind = PendingEvent::Kind::enter_body;
  pending_event.node = &node;
  pending_event.frame = frame;
  return enqueue(std::move(pending_event));
}

Status EventQueue::leave_body(const NodeLocation& node, const Frame& frame) {
  if (pending_.empty()) return observer_status(observer_->leave_body(node, frame));
  PendingEvent pending_event;
  pending_event.kind = PendingEvent::Kind::leave_body;
  pending_event.node = &node;
  pending_event.frame = frame;
  return enqueue(std::move(pending_event));
}

Status EventQueue::enqueue(PendingEvent pending_event) {
  pending_.push_back(std::move(pending_event));
  return deliver_what_has_come();
}

Status EventQueue::deliver_what_has_come() {
  while (!pending_.empty()) {
    auto has_come = platform_.has_come(pending_.front().pending_value);
    if (!has_come.ok()) {
      drop();
      return std::move(has_come).error();
    }
    if (!*has_come) return {};
    PX_TRY(deliver_front());
  }
  return {};
}

Status EventQueue::flush() {
  while (!pending_.empty()) PX_TRY(deliver_front());
  return {};
}

Status EventQueue::deliver_front() {
  PendingEvent pending_event = std::move(pending_.front());
  pending_.pop_front();
  Status status = deliver(pending_event);
  if (!status.ok()) drop();
  return status;
}

Status EventQueue::deliver(PendingEvent& pending_event) {
  if (pending_event.kind == PendingEvent::Kind::enter_body)
    return observer_status(observer_->enter_body(*pending_event.node, pending_event.frame));
  if (pending_event.kind == PendingEvent::Kind::leave_body)
    return observer_status(observer_->leave_body(*pending_event.node, pending_event.frame));
  PX_TRY(platform_.receive(pending_event.pending_value));
  return show(*pending_event.value_info, pending_event.frames, pending_event.pending_value, pending_event.alias_of);
}

Status EventQueue::show(const ValueInfo& value_info, const FrameStack& frames, const PendingValue& pending_value,
                        const ValueInfo* alias_of) {
  const TensorStatistics* statistics = pending_value.statistics.has_value() ? &*pending_value.statistics : nullptr;
  return observer_status(observer_->observe({value_info, frames, pending_value.value, alias_of, nullptr, statistics}));
}

// A pending copy still needs its source and its destination.
void EventQueue::drop() {
  for (PendingEvent& pending_event : pending_) {
    const Status ignored = platform_.receive(pending_event.pending_value);
  }
  pending_.clear();
}

Status EventQueue::observer_status(Status status) {
  observer_failed_ = observer_failed_ || !status.ok();
  return status;
}

}  // namespace parallax::runtime
