// SPDX-License-Identifier: Apache-2.0
// One counter for the bytes and for the scope that owns the budget: whoever brings it to 0 deletes the budget.
#include "inspector/base/memory_budget.h"

#include <algorithm>

#include <fmt/format.h>
#include <unistd.h>

#include "inspector/base/checked_math.h"

namespace parallax {
namespace {

constexpr int64_t kOwned = int64_t{1} << 62;

thread_local MemoryBudget* current_budget = nullptr;
thread_local int64_t last_refused = 0;  // bytes

// Only a whole run knows what it takes: values and kernels' own buffers come and go.
constexpr const char* kAdvice =
    "raise --memory-limit (a run without it reports the peak memory of each side), or give smaller dimensions by --dim "
    "or --shape";

}  // namespace

MemoryBudget::MemoryBudget(int64_t limit_bytes)
    : limit_bytes_(std::min(limit_bytes, kOwned / 2)), held_and_owned_(kOwned) {}

MemoryBudget* MemoryBudget::current() { return current_budget; }

MemoryBudget::Owner MemoryBudget::create(int64_t limit_bytes) {
  return Owner(limit_bytes > 0 ? new MemoryBudget(limit_bytes) : nullptr);
}

void MemoryBudget::Close::operator()(MemoryBudget* budget) const { budget->give_back(kOwned); }

MemoryBudget::Scope::Scope(int64_t limit_bytes) {
  if (limit_bytes <= 0 || current_budget != nullptr) return;
  own_ = create(limit_bytes);
  current_budget = own_.get();
  last_refused = 0;
}

MemoryBudget::Scope::~Scope() {
  if (own_ != nullptr) current_budget = nullptr;
}

Status MemoryBudget::Scope::settle() const {
  const MemoryBudget* const budget = current_budget;  // its own, or that of the job around it
  const int64_t refused = budget == nullptr ? 0 : budget->first_refused_.load();
  return refused > 0 ? Status(budget->refusal("an intermediate result", refused)) : Status();
}

MemoryBudget::ThreadScope::ThreadScope(MemoryBudget* budget) : outer_(std::exchange(current_budget, budget)) {}
MemoryBudget::ThreadScope::~ThreadScope() { current_budget = outer_; }

int64_t MemoryBudget::held() const { return held_and_owned_.load(std::memory_order_relaxed) & (kOwned - 1); }

bool MemoryBudget::take(int64_t bytes) {
  int64_t seen = held_and_owned_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_bytes_ - (seen & (kOwned - 1))) {
      last_refused = bytes;
      int64_t none = 0;
      first_refused_.compare_exchange_strong(none, bytes);
      return false;
    }
  } while (!held_and_owned_.compare_exchange_weak(seen, seen + bytes, std::memory_order_relaxed));
  return true;
}

void MemoryBudget::give_back(int64_t bytes) {
  if (held_and_owned_.fetch_sub(bytes, std::memory_order_acq_rel) == bytes) delete this;
}

Error MemoryBudget::refusal(std::string_view what, int64_t bytes) const {
  return over_memory_limit(what, bytes, held(), limit_bytes_);
}

Result<MemoryBudget::Reservation> MemoryBudget::reserve(int64_t bytes, std::string_view what) {
  MemoryBudget* const budget = current_budget;
  if (budget == nullptr || bytes <= 0) return Reservation();
  if (!budget->take(bytes)) return budget->refusal(what, bytes);
  return Reservation(budget, bytes);
}

Status MemoryBudget::check(int64_t bytes, std::string_view what) {
  return has_room(bytes) ? Status() : Status(current_budget->refusal(what, bytes));
}

Result<std::shared_ptr<const void>> MemoryBudget::reserved_with(std::shared_ptr<const void> owner, int64_t bytes,
                                                                std::string_view what) {
  struct Held {
    std::shared_ptr<const void> owner;
    Reservation reservation;
  };
  Reservation reservation = PX_TRY(reserve(bytes, what));
  if (reservation.is_empty()) return owner;
  return std::shared_ptr<const void>(std::make_shared<Held>(Held{std::move(owner), std::move(reservation)}));
}

bool MemoryBudget::has_room(int64_t bytes) {
  const MemoryBudget* const budget = current_budget;
  return budget == nullptr || bytes <= budget->limit_bytes_ - budget->held();
}

std::optional<Error> MemoryBudget::take_refusal(std::string_view what) {
  const int64_t bytes = std::exchange(last_refused, 0);
  if (bytes == 0 || current_budget == nullptr) return std::nullopt;
  return current_budget->refusal(what, bytes);
}

Error over_memory_limit(std::string_view what, int64_t needed, int64_t held, int64_t limit) {
  return out_of_memory(fmt::format("{} needs {} bytes besides {} in use, {} in all, and the memory limit is {}: {}",
                                   what, needed, held, checked_add(needed, held).value_or(INT64_MAX), limit, kAdvice));
}

Error weights_over_memory_limit(int64_t weights, int64_t limit) {
  return out_of_memory(
      fmt::format("the weights alone take {} bytes, and the memory limit is {}: {}", weights, limit, kAdvice));
}

int64_t physical_memory_bytes() { return ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE); }

std::string bytes_rounded_up(int64_t bytes) {
  constexpr int64_t kKiB = 1 << 10, kMiB = 1 << 20, kMostInKiB = 10'000;
  const auto in = [bytes](int64_t unit) { return (bytes + unit - 1) / unit; };
  return in(kKiB) <= kMostInKiB ? fmt::format("{} KiB", in(kKiB)) : fmt::format("{} MiB", in(kMiB));
}

std::string bytes_text(int64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1024 * 1024));
}

}  // namespace parallax
