// SPDX-License-Identifier: Apache-2.0
// A shell command run to its end or its time limit, with what it printed; and where a program is.
#pragma once

#include <string>

#include "inspector/base/cancel.h"
#include "inspector/base/result.h"

namespace parallax {

struct ShellOutcome {
  int exit_code = -1;  // 128 + signal where one ended it, as shells say
  bool timed_out = false;
  std::string output;  // stdout and stderr
};

// Runs `command` by /bin/sh, its output going through the file `log`. After `timeout_s` (0: never), and where `cancel`
// is set, it is killed with all it started. Errors: io, cancelled.
Result<ShellOutcome> run_shell(const std::string& command, double timeout_s, const std::string& log,
                               const CancelToken& cancel = {});

// Starts /bin/sh on `command` with these descriptors as its standard streams. Answers the process to wait for, which
// leads a group of its own and ends with the shell's exit code (128 + signal); -1 with errno. The group is killed when
// the thread that started it ends, also by SIGKILL.
int start_shell(const std::string& command, int input, int output, int errors);

// The path of a program that can be run: `name` itself where it has a slash, else in a folder of PATH; empty where
// there is none.
std::string find_program(const std::string& name);

// One word for the shell, whatever it holds.
std::string shell_quoted(const std::string& text);

}  // namespace parallax
