// SPDX-License-Identifier: Apache-2.0
// fork, exec, wait.
#include "inspector/base/shell.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inspector/base/mapped_file.h"
#include "inspector/base/signal_cleanup.h"

namespace parallax {
namespace {

constexpr int kPollMs = 2;

Error failed(const char* what) { return io_error(fmt::format("--check: cannot {}: {}", what, std::strerror(errno))); }

// In the child: only calls that are safe between fork and exec.
[[noreturn]] void become_shell(const char* command, int log) {
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execl("/bin/sh", "sh", "-c", command, static_cast<char*>(nullptr));
  ::_exit(127);
}

// Waits for the child, but no longer than the limit, and not once `cancel` is set; answers whether it ended by itself.
bool wait_for(pid_t child, double timeout_s, const CancelToken& cancel, int& status) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(timeout_s);
  while (!cancel.is_cancelled() && (timeout_s <= 0 || Clock::now() < end)) {
    if (::waitpid(child, &status, WNOHANG) == child) return true;
    ::poll(nullptr, 0, kPollMs);
  }
  ::kill(-child, SIGKILL);
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return false;
}

}  // namespace

Result<ShellOutcome> run_shell(const std::string& command, double timeout_s, const std::string& log,
                               const CancelToken& cancel) {
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return failed("write its output");
  const pid_t child = ::fork();
  if (child == 0) become_shell(command.c_str(), file);
  ::close(file);
  if (child < 0) return failed("start a process");
  ::setpgid(child, child);  // by both, so that it holds before either goes on
  const OwnedProcessGroup group(child);
  ShellOutcome outcome;
  int status = 0;
  outcome.timed_out = !wait_for(child, timeout_s, cancel, status);
  if (cancel.is_cancelled()) return make_error(ErrorCode::cancelled, "the search was cancelled");
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.output = PX_TRY(read_file(log));
  return outcome;
}

std::string shell_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char character : text) {
    if (character == '\'') {
      quoted += "'\\''";
    } else {
      quoted += character;
    }
  }
  return quoted + "'";
}

}  // namespace parallax
