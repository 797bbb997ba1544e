// SPDX-License-Identifier: Apache-2.0
// MemoryBudget: the limit of --memory-limit over all that one job holds in the host's memory. Payloads
// (payload_memory.h) are charged to the budget of the thread that allocates them, so that no allocation can be
// forgotten; mapped files, and what libraries allocate, are reserved by name. Also the sentences about the limit, in
// the same words by every executor, and sizes for people.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "inspector/base/result.h"

namespace parallax {

class MemoryBudget {
 public:
  // It lives as long as its owner, and as long as anything that was charged to it. Null where the limit is 0.
  struct Close {
    void operator()(MemoryBudget* budget) const;
  };
  using Owner = std::unique_ptr<MemoryBudget, Close>;
  static Owner create(int64_t limit_bytes);

  // The budget that allocations of this thread are charged to; null: none.
  static MemoryBudget* current();

  // A budget for all that this thread allocates while the object lives. None where the limit is 0; and where one is
  // in force already, a job within the job shares it.
  class Scope {
   public:
    explicit Scope(int64_t limit_bytes);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

    // An error where anything was refused, reported or not: what was computed without it is not what was asked for.
    Status settle() const;
    template <class T>
    Result<T> settled(Result<T> result) const {
      if (result.ok()) {
        if (Status status = settle(); !status.ok()) return std::move(status).error();
      }
      return result;
    }

   private:
    Owner own_;
  };

  // The budget of this thread while the object lives: of a thread that works for the budget's; null for a task of a
  // parallel loop, which cannot fail, and whose few buffers count as the program's own.
  class ThreadScope {
   public:
    explicit ThreadScope(MemoryBudget* budget);
    ~ThreadScope();
    ThreadScope(const ThreadScope&) = delete;
    ThreadScope& operator=(const ThreadScope&) = delete;

   private:
    MemoryBudget* outer_;
  };

  // Bytes that are held until the object goes.
  class Reservation {
   public:
    Reservation() = default;
    Reservation(Reservation&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Reservation& operator=(Reservation&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Reservation() {
      if (budget_ != nullptr) budget_->give_back(bytes_);
    }
    bool is_empty() const { return budget_ == nullptr; }

   private:
    friend class MemoryBudget;
    Reservation(MemoryBudget* budget, int64_t bytes) : budget_(budget), bytes_(bytes) {}
    MemoryBudget* budget_ = nullptr;
    int64_t bytes_ = 0;
  };

  // These ask the current budget; without one they succeed. `what` begins the sentence of the refusal: "input 'x'".
  // Errors: out_of_memory.
  static Result<Reservation> reserve(int64_t bytes, std::string_view what);
  // For what is about to be allocated, and will be charged then.
  static Status check(int64_t bytes, std::string_view what);
  // `owner`, with `bytes` reserved for as long as it is held.
  static Result<std::shared_ptr<const void>> reserved_with(std::shared_ptr<const void> owner, int64_t bytes,
                                                           std::string_view what);
  static bool has_room(int64_t bytes);

  // The refusal that this thread met last, of an allocation for `what`, and forgets it; nothing where it was the system
  // that had no more memory.
  static std::optional<Error> take_refusal(std::string_view what);

  // For allocators. False, and noted, where it would exceed the limit.
  bool take(int64_t bytes);
  void give_back(int64_t bytes);

 private:
  explicit MemoryBudget(int64_t limit_bytes);
  int64_t held() const;
  Error refusal(std::string_view what, int64_t bytes) const;

  const int64_t limit_bytes_;
  std::atomic<int64_t> held_and_owned_;
  std::atomic<int64_t> first_refused_{0};  // bytes
};

// `what` takes `needed` bytes more than the `held` ones, and together they would exceed the limit.
Error over_memory_limit(std::string_view what, int64_t needed, int64_t held, int64_t limit);
// The weights alone do.
Error weights_over_memory_limit(int64_t weights, int64_t limit);

// The machine's memory.
int64_t physical_memory_bytes();

// Bytes for people, in whole KiB or MiB and rounded up: a limit of that size is enough.
std::string bytes_rounded_up(int64_t bytes);
// A size to a tenth, and small sizes exactly: "912 B", "12.3 KiB".
std::string bytes_text(int64_t bytes);

}  // namespace parallax
