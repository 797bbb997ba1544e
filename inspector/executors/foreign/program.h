// SPDX-License-Identifier: Apache-2.0
// Program: a process that answers a line on its stdin by a line on its stdout, within limits of time and memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "inspector/base/cancel.h"
#include "inspector/base/result.h"
#include "inspector/base/signal_cleanup.h"

namespace parallax::foreign {

struct ProgramLimits {
  double seconds = 0;        // of one request; 0: none
  int64_t memory_bytes = 0;  // anonymous memory of its processes above note_memory(); 0: none
};

// The program leads a process group, which ends with the object, and with this process however that ends. Not
// thread-safe.
class Program {
 public:
  // Starts /bin/sh on `command`. Errors: io.
  static Result<std::unique_ptr<Program>> start(const std::string& command);
  ~Program();  // closes its stdin, waits a moment for it to end by itself, and kills what is left of the group
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Sends the request and a line feed; the answer comes without one. After an error the program is gone. Errors:
  // execution, where it ended by itself (has_ended), ran past the limit of time or writes what is no answer;
  // out_of_memory, where it ran past the limit of memory; cancelled; io. Messages are clauses about "it", with the last
  // lines of its stderr.
  Result<std::string> ask(std::string_view request, const ProgramLimits& limits, const CancelToken& cancel);

  bool is_running() const { return leader_ > 0 && !wait_for_end(0); }
  bool has_ended() const { return has_ended_; }  // by itself, while it was asked
  // From here on limits of memory count.
  void note_memory() { noted_memory_bytes_ = memory_bytes(); }
  // The last lines of its stderr as a clause: "; its last lines on stderr: ..."; empty where there are none.
  std::string last_lines() const;
  // Kills the group at once.
  void kill();

 private:
  struct Descriptors {
    int input = -1, output = -1, errors = -1, lifeline = -1;
  };
  Program(int leader, const Descriptors& descriptors);

  Status write_some(std::string_view text, size_t& written);
  // False at the end of the stream.
  bool read_output();
  void read_errors();
  Error ended();
  Error kill_after(Error error);
  // Fails where it has written something that no request asked for.
  Status check_silence();
  Status check_limits(double elapsed_s, const ProgramLimits& limits, double& next_check_s);
  int64_t memory_bytes() const;
  bool wait_for_end(int milliseconds) const;
  void close_all();

  int leader_;
  Descriptors descriptors_;
  std::optional<OwnedProcessGroup> group_;
  int status_ = 0;
  bool has_ended_ = false;
  int64_t noted_memory_bytes_ = 0;
  std::string output_, errors_;
};

}  // namespace parallax::foreign
