// SPDX-License-Identifier: Apache-2.0
// Pending events in a queue; the one in front decides when the next may go.
#include "runtime/plan/outbox.h"

#include "inspector/exec/images.h"
#include "inspector/tensor/channels_last.h"

namespace parallax::runtime {

void Outbox::begin(Observer& observer) {
  observer_ = &observer;
  observer_failed_ = false;
}

// Values that already are where they are shown, with nobody waiting before them, are reported at once.
Status Outbox::observe(const ValueSite& site, const FrameStack& frames, const Value& value, const ValueSite* alias_of,
                       CaptureLevel level) {
  const bool is_shown_as_it_lies =
      is_channels_last(value) && (level == CaptureLevel::shape || observer_->takes_channels_last());
  if (is_shown_as_it_lies && letters_.empty()) return show(site, frames, {value, {}, {}, {}}, alias_of);
  const ElementOrder order = value.is_tensor() ? counting_order(site, value.tensor().view()) : ElementOrder::row_major;
  std::optional<Parcel> parcel = PX_TRY(platform_.send(value, level, order));
  while (!parcel.has_value() && !letters_.empty()) {  // the room there is comes back as the observer is done
    PX_TRY(deliver_front());
    parcel = PX_TRY(platform_.send(value, level, order));
  }
  if (!parcel.has_value()) parcel = PX_TRY(platform_.bring(value));
  if (letters_.empty() && !parcel->copy.has_value()) return show(site, frames, *parcel, alias_of);
  Letter letter;
  letter.site = &site;
  letter.alias_of = alias_of;
  letter.frames = frames;
  letter.parcel = std::move(*parcel);
  return post(std::move(letter));
}

Status Outbox::enter_body(const NodeSite& node, const Frame& frame) {
  if (letters_.empty()) return heard(observer_->enter_body(node, frame));
  Letter letter;
  letter.kind = Letter::Kind::enter_body;
  letter.node = &node;
  letter.frame = frame;
  return post(std::move(letter));
}

Status Outbox::leave_body(const NodeSite& node, const Frame& frame) {
  if (letters_.empty()) return heard(observer_->leave_body(node, frame));
  Letter letter;
  letter.kind = Letter::Kind::leave_body;
  letter.node = &node;
  letter.frame = frame;
  return post(std::move(letter));
}

Status Outbox::post(Letter letter) {
  letters_.push_back(std::move(letter));
  return deliver_what_has_come();
}

Status Outbox::deliver_what_has_come() {
  while (!letters_.empty()) {
    auto has_come = platform_.has_come(letters_.front().parcel);
    if (!has_come.ok()) {
      drop();
      return std::move(has_come).error();
    }
    if (!*has_come) return {};
    PX_TRY(deliver_front());
  }
  return {};
}

Status Outbox::flush() {
  while (!letters_.empty()) PX_TRY(deliver_front());
  return {};
}

Status Outbox::deliver_front() {
  Letter letter = std::move(letters_.front());
  letters_.pop_front();
  Status status = deliver(letter);
  if (!status.ok()) drop();
  return status;
}

Status Outbox::deliver(Letter& letter) {
  if (letter.kind == Letter::Kind::enter_body) return heard(observer_->enter_body(*letter.node, letter.frame));
  if (letter.kind == Letter::Kind::leave_body) return heard(observer_->leave_body(*letter.node, letter.frame));
  PX_TRY(platform_.receive(letter.parcel));
  return show(*letter.site, letter.frames, letter.parcel, letter.alias_of);
}

Status Outbox::show(const ValueSite& site, const FrameStack& frames, const Parcel& parcel, const ValueSite* alias_of) {
  const TensorStatistics* statistics = parcel.statistics.has_value() ? &*parcel.statistics : nullptr;
  return heard(observer_->observe({site, frames, parcel.value, alias_of, nullptr, statistics}));
}

// A pending copy still needs its source and its destination.
void Outbox::drop() {
  for (Letter& letter : letters_) {
    const Status unheard = platform_.receive(letter.parcel);
  }
  letters_.clear();
}

Status Outbox::heard(Status status) {
  observer_failed_ = observer_failed_ || !status.ok();
  return status;
}

}  // namespace parallax::runtime
