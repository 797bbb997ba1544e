// SPDX-License-Identifier: Apache-2.0
// The order of work, and what is kept of problems.
#include "tests/runtime/ptx/device.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "tests/runtime/ptx/module.h"

namespace parallax::ptx {
namespace {

constexpr int kQuestions = 3;  // after so many an event is reached: a host that asks for ever must go on
constexpr int kExitCode = 70;

template <class T>
struct Choice {
  const char* name;
  T value;
};
constexpr Choice<Order> kOrders[] = {
    {"submitted", Order::submitted}, {"late", Order::late}, {"others_first", Order::others_first}};
constexpr Choice<Fault> kFaults[] = {{"none", Fault::none},
                                     {"skipped_event", Fault::skipped_event},
                                     {"early_free", Fault::early_free},
                                     {"early_value_free", Fault::early_value_free}};

const char* variable(const char* name, const char* standard) {
  const char* given = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read once, never written
  return given == nullptr ? standard : given;
}

template <class T, size_t kCount>
T chosen(const char* name, const Choice<T> (&choices)[kCount], const char* standard) {
  const char* given = variable(name, standard);
  for (const Choice<T>& choice : choices) {
    if (std::strcmp(choice.name, given) == 0) return choice.value;
  }
  std::fprintf(stderr, "ptx: %s is %s; it must be one of", name, given);
  for (const Choice<T>& choice : choices) std::fprintf(stderr, " %s", choice.name);
  std::fprintf(stderr, "\n");
  std::exit(kExitCode);
}

// A process whose work had a problem must not pass, whatever it made of it.
void end_with_problems() {
  const int64_t problems = device().counts().problems;
  if (problems == 0) return;
  std::fflush(nullptr);
  std::fprintf(stderr, "ptx: %lld problems, the last: %s\n", static_cast<long long>(problems),
               device().last_problem().c_str());
  _exit(kExitCode);
}

}  // namespace

Device& device() {
  static auto* only = new Device;
  return *only;
}

Device::Device()
    : order_(chosen("PTX_ORDER", kOrders, "late")),
      fault_(chosen("PTX_FAULT", kFaults, "none")),
      checks_races_(std::strcmp(variable("PTX_RACES", "off"), "on") == 0) {
  streams_.push_back(std::make_unique<Stream>());
  const char* work = variable("PTX_WORK", "");
  if (*work != '\0') work_ = std::fopen(work, "w");
  try {
    load_modules(variable("PTX_FOLDER", "ptx"));
  } catch (const Problem& problem) {
    note_problem(problem.what());
  }
  std::atexit(end_with_problems);
}

Stream* Device::make_stream() { return streams_.emplace_back(std::make_unique<Stream>()).get(); }

void Device::end_stream(Stream* stream) {
  wait(*stream);
  std::erase_if(streams_, [&](const auto& each) { return each.get() == stream; });
}

Stream* Device::stream_of(void* handle) {
  const bool is_special = reinterpret_cast<uintptr_t>(handle) <= 2;  // cudaStreamLegacy, cudaStreamPerThread
  return is_special ? streams_.front().get() : static_cast<Stream*>(handle);
}

void Device::submit(Stream& stream, Work work) {
  if (stream.recording != nullptr) {
    stream.recording->push_back(std::move(work));
    return;
  }
  stream.work.push_back(std::move(work));
  if (order_ == Order::submitted) wait_for_all();
}

bool Device::advance(Stream& stream) {
  if (stream.work.empty()) return false;
  const std::shared_ptr<Point> needed = stream.work.front().waits_for;
  if (needed != nullptr && !needed->is_reached) return false;
  const Work work = std::move(stream.work.front());
  stream.work.pop_front();
  if (work.run) work.run();
  if (work.reaches != nullptr) work.reaches->is_reached = true;
  return true;
}

void Device::run_others(const Stream& stream) {
  if (order_ != Order::others_first) return;
  bool has_moved = true;
  while (has_moved) {
    has_moved = false;
    for (const auto& other : streams_) {
      while (other.get() != &stream && advance(*other)) has_moved = true;
    }
  }
}

void Device::wait(Stream& stream) {
  run_others(stream);
  while (!stream.work.empty()) {
    if (!advance(stream)) wait(stream.work.front().waits_for);
  }
}

void Device::wait(const std::shared_ptr<Point>& point) {
  run_others(*point->stream);
  while (!point->is_reached) {
    if (point->stream->work.empty()) {
      note_problem("a stream waits for an event that was recorded in no work of its stream");
      point->is_reached = true;
    } else if (!advance(*point->stream)) {
      wait(point->stream->work.front().waits_for);
    }
  }
}

void Device::wait_for_all() {
  for (size_t i = 0; i < streams_.size(); ++i) wait(*streams_[i]);
}

bool Device::ask(const std::shared_ptr<Point>& point) {
  if (!point->is_reached && ++point->questions >= kQuestions) wait(point);
  return point->is_reached;
}

void Device::note_problem(const std::string& problem) {
  ++counts_.problems;
  last_problem_ = problem;
  is_pending_ = true;
  std::fprintf(stderr, "ptx: %s\n", problem.c_str());
}

void Device::note_launch(const std::string& kernel, const LaunchWork& work) {
  counts_.instructions += work.instructions;
  counts_.kernel_bytes += work.bytes_read + work.bytes_written;
  if (work_ == nullptr) return;
  std::fprintf(work_, "%s\t%lld\t%lld\t%lld\n", kernel.c_str(), static_cast<long long>(work.instructions),
               static_cast<long long>(work.bytes_read), static_cast<long long>(work.bytes_written));
}

void Device::note_library(const std::string& name, int64_t bytes) {
  counts_.library_bytes += bytes;
  if (work_ != nullptr) std::fprintf(work_, "%s\t\t%lld\t\n", name.c_str(), static_cast<long long>(bytes));
}

bool Device::take_problem() {
  const bool was_pending = is_pending_;
  is_pending_ = false;
  return was_pending;
}

// ---- Work of libraries ----

void submit_library_call(void* stream, const std::string& name, const std::vector<LibraryOperand>& operands,
                         std::function<void()> run) {
  const std::lock_guard lock(device().mutex());
  Stream& target = *device().stream_of(stream);
  if (target.recording == nullptr) ++device().counts().library_calls;
  const auto call = [name, operands, run = std::move(run)] {
    for (const LibraryOperand& operand : operands) {
      const auto address = reinterpret_cast<uint64_t>(operand.memory);
      const auto bytes = static_cast<size_t>(operand.bytes);
      if (bytes == 0 || device_memory().holds(address, bytes)) continue;
      device().note_problem(name + ": operand " + operand.name + ": " + device_memory().explain(address, bytes));
      return;
    }
    run();
    int64_t bytes = 0;
    for (const LibraryOperand& operand : operands) bytes += operand.bytes;
    device().note_library(name, bytes);
    const std::string guards = device_memory().check_guards();
    if (!guards.empty()) device().note_problem(name + ": " + guards);
  };
  device().submit(target, {call, nullptr, nullptr, false});
}

bool is_device_memory(const void* memory) {
  const std::lock_guard lock(device().mutex());
  return device_memory().owns(memory);
}

}  // namespace parallax::ptx

const parallax::ptx::StandInCounts* parallax_stand_in_counts() { return &parallax::ptx::device().counts(); }
