// SPDX-License-Identifier: Apache-2.0
// The device of the stand-in libraries: streams whose work waits, events, recordings, and what was asked of it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tests/runtime/ptx/block.h"
#include "tests/runtime/ptx/stand_in.h"

namespace parallax::ptx {

// When the work of a stream is done, as far as events allow. CUDA promises no more than that it is done before the host
// returns from a wait for it, so each of these must give the same results.
enum class Order : uint8_t {
  submitted,    // at once
  late,         // when the host waits for it; of other streams only what an event demands
  others_first  // when the host waits for anything: first all other streams, then the one that is waited for
};

// A call that is left out or comes too early, for tests that have to fail then.
enum class Fault : uint8_t { none, skipped_event, early_free, early_value_free };

struct Stream;

// A point in a stream. Recording the event anew makes another one.
struct Point {
  Stream* stream = nullptr;
  bool is_reached = false;
  int questions = 0;  // cudaEventQuery
};

struct Work {
  std::function<void()> run;         // may be null
  std::shared_ptr<Point> waits_for;  // reached before it runs
  std::shared_ptr<Point> reaches;    // by it
  bool is_launch = false;            // of a kernel
};

using Recorded = std::vector<Work>;

struct Stream {
  std::deque<Work> work;
  std::unique_ptr<Recorded> recording;  // between cudaStreamBeginCapture and its end
};

class Device {
 public:
  Device();

  std::recursive_mutex& mutex() { return mutex_; }
  StandInCounts& counts() { return counts_; }
  Fault fault() const { return fault_; }
  bool checks_races() const { return checks_races_; }

  Stream* make_stream();
  void end_stream(Stream* stream);
  Stream* stream_of(void* handle);  // null and the two special handles: the default stream

  void submit(Stream& stream, Work work);
  void wait(Stream& stream);
  void wait(const std::shared_ptr<Point>& point);
  void wait_for_all();
  // True where it is reached. After a few questions its stream goes on to it: a host that asks for ever must go on.
  bool ask(const std::shared_ptr<Point>& point);

  // Work that fails says so here. The next question for an error is answered with it, and the process ends with exit
  // code 70.
  void note_problem(const std::string& problem);
  // Counts what a launch did, and what a library was given; each is a line of the file that PTX_WORK names.
  void note_launch(const std::string& kernel, const LaunchWork& work);
  void note_library(const std::string& name, int64_t bytes);
  bool has_problem() const { return is_pending_; }
  bool take_problem();
  const std::string& last_problem() const { return last_problem_; }

 private:
  bool advance(Stream& stream);  // false: it is empty, or waits for an event
  void run_others(const Stream& stream);

  std::recursive_mutex mutex_;
  StandInCounts counts_;
  Order order_ = Order::late;
  Fault fault_ = Fault::none;
  bool checks_races_ = false;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::FILE* work_ = nullptr;
  std::string last_problem_;
  bool is_pending_ = false;
};

Device& device();
// The stream in whose order the memory was allocated and is freed; null where it is not a pool's.
Stream* stream_of_memory(const void* memory);

}  // namespace parallax::ptx
