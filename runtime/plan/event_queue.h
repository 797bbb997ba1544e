// SPDX-License-Identifier: Apache-2.0
// The queue of events that the observer has not seen yet, in the order of execution. On a device a value takes a while
// to be copied to the host, and the run goes on meanwhile; all later events wait for it.
#pragma once

#include <deque>

#include "inspector/exec/observer.h"
#include "runtime/plan/platform.h"

namespace parallax::runtime {

class EventQueue {
 public:
  explicit EventQueue(Platform& platform) : platform_(platform) {}

  // Until the next call of it all goes to this observer.
  void begin(Observer& observer);

  // Errors of all that follow: the observer's, which observer_failed() then tells, or those of copies.
  Status observe(const ValueInfo& value_info, const FrameStack& frames, const Value& value, const ValueInfo* alias_of,
                 CaptureLevel level);
  Status enter_body(const NodeLocation& node, const Frame& frame);
  Status leave_body(const NodeLocation& node, const Frame& frame);
  // Tells all that is left, waiting for it. After an error nothing is left.
  Status flush();
  void drop();  // tells nothing of it

  bool observer_failed() const { return observer_failed_; }

 private:
  struct PendingEvent {
    enum class Kind : uint8_t { value, enter_body, leave_body };
    Kind kind = Kind::value;
    const ValueInfo* value_info = nullptr;
    const ValueInfo* alias_of = nullptr;
    FrameStack frames;
    PendingValue pending_value;
    const NodeLocation* node = nullptr;
    Frame frame;
  };

  Status enqueue(PendingEvent pending_event);
  Status deliver_what_has_come();
  Status deliver_front();
  Status deliver(PendingEvent& pending_event);
  Status show(const ValueInfo& value_info, const FrameStack& frames, const PendingValue& pending_value,
              const ValueInfo* alias_of);
  Status observer_status(Status status);  // remembers that it was the observer who failed

  Platform& platform_;
  Observer* observer_ = nullptr;
  bool observer_failed_ = false;
  std::deque<PendingEvent> pending_;
};

}  // namespace parallax::runtime
