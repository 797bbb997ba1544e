// SPDX-License-Identifier: Apache-2.0
// A list of slots that are used again and never freed, so that a signal handler can walk it without a lock.
#include "inspector/base/mapped_addresses.h"

#include <atomic>
#include <cstdint>
#include <utility>

namespace parallax {

// `end` is set last and cleared first: a slot with an end is whole.
struct MappedAddresses::Slot {
  std::atomic<bool> is_taken{true};
  std::atomic<uintptr_t> begin{0}, end{0};
  std::atomic<const char*> path{nullptr};
  Slot* next = nullptr;
};

namespace {

template <class Slot>
std::atomic<Slot*>& first_slot() {
  static constinit std::atomic<Slot*> first{nullptr};
  return first;
}

}  // namespace

MappedAddresses::Slot* MappedAddresses::free_slot() {
  std::atomic<Slot*>& first = first_slot<Slot>();
  for (Slot* slot = first.load(); slot != nullptr; slot = slot->next) {
    if (!slot->is_taken.exchange(true)) return slot;
  }
  auto* const fresh = new Slot;
  fresh->next = first.load();
  while (!first.compare_exchange_weak(fresh->next, fresh)) {
  }
  return fresh;
}

MappedAddresses::MappedAddresses(const void* begin, size_t size_bytes, std::string path)
    : path_(std::move(path)), slot_(free_slot()) {
  slot_->path = path_.c_str();
  slot_->begin = reinterpret_cast<uintptr_t>(begin);
  slot_->end = reinterpret_cast<uintptr_t>(begin) + size_bytes;
}

MappedAddresses::~MappedAddresses() {
  slot_->end = 0;
  slot_->is_taken = false;
}

const char* MappedAddresses::path_at(const void* address) {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  for (const Slot* slot = first_slot<Slot>().load(); slot != nullptr; slot = slot->next) {
    if (wanted < slot->end && wanted >= slot->begin) return slot->path;
  }
  return nullptr;
}

}  // namespace parallax
