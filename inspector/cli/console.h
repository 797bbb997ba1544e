// SPDX-License-Identifier: Apache-2.0
// The terminal: results to stdout, messages to stderr, color and progress only where a person sees them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/base/signal_cleanup.h"

namespace parallax::cli {

// To stdout, as UTF-8 and without control characters (printable).
void print(std::string_view text);
void print_colored(std::string_view text);  // the same, but for our colors where stdout takes them
bool flush_output();                        // false when stdout could not take everything (a full disk)
bool stdout_takes_color();                  // a terminal, and NO_COLOR is unset
bool stderr_is_terminal();
void print_message(std::string_view text);  // to stderr; that it takes nothing (closed, full) changes no exit code

// The command line of this process, quoted for a shell: what reports tell people to repeat.
void keep_command(const std::vector<std::string>& arguments);
const std::string& kept_command();
bool wants_json();  // seen before options are parsed, since it decides how a parse error is shown

// Prints the error (as JSON on stdout with `json`, else one sentence on stderr) and yields its exit code.
int report_error(const Error& error, bool json);

// Prints that memory or threads ran out; the caller ends the program.
void report_exhaustion(const Error& error);

// Says on stderr that a signal ends the program, and what of its work stays.
void report_end(int signal, const SignalCleanup& left);

// A bar on stderr while something runs; silent when stderr is no terminal. Ends, erased, with the object.
class ProgressBar {
 public:
  explicit ProgressBar(std::string_view title) : title_(title), active_(stderr_is_terminal()) {}
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void update(int64_t done, int64_t total);

 private:
  std::string title_;
  bool active_;
  int64_t shown_permille_ = -1;
};

}  // namespace parallax::cli
