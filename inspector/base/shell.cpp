// SPDX-License-Identifier: Apache-2.0
// fork, exec, wait.
#include "inspector/base/shell.h"

#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inspector/base/mapped_file.h"
#include "inspector/base/signal_cleanup.h"
#include "inspector/base/text.h"

namespace parallax {
namespace {

constexpr int kPollMs = 2;

int exit_code_of_status(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

Error failed(const char* what) { return io_error(fmt::format("--check: cannot {}: {}", what, std::strerror(errno))); }

void end_group(int /*number*/) { ::kill(0, SIGKILL); }

// In the child, where only calls are made that are safe between fork and exec: leads the group of the shell and of all
// that it starts, and ends them all where the program dies, even by a signal that it cannot answer. The shell alone
// could not: what it starts would outlive it.
[[noreturn]] void watch_shell(pid_t program, const char* command, int input, int output, int errors) {
  ::setpgid(0, 0);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_DFL);
  ::signal(SIGUSR1, end_group);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::prctl(PR_SET_PDEATHSIG, SIGUSR1) != 0 || ::getppid() != program) ::_exit(127);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::close_range(STDERR_FILENO + 1, UINT_MAX, 0);
  const pid_t shell = ::fork();
  if (shell == 0) {
    ::signal(SIGUSR1, SIG_DFL);
    ::execl("/bin/sh", "sh", "-c", command, static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close_range(0, STDERR_FILENO, 0);  // whoever reads from the shell waits for its end alone
  int status = 0;
  while (shell > 0 && ::waitpid(shell, &status, 0) < 0 && errno == EINTR) continue;
  ::_exit(shell < 0 ? 127 : exit_code_of_status(status));
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

int start_shell(const std::string& command, int input, int output, int errors) {
  const pid_t program = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) watch_shell(program, command.c_str(), input, output, errors);
  if (child > 0) ::setpgid(child, child);  // by both, so that it holds before either goes on
  return child;
}

Result<ShellOutcome> run_shell(const std::string& command, double timeout_s, const std::string& log,
                               const CancelToken& cancel) {
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return failed("write its output");
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const pid_t child = start_shell(command, nothing, file, file);
  ::close(file);
  ::close(nothing);
  if (child < 0) return failed("start a process");
  const OwnedProcessGroup group(child);
  ShellOutcome outcome;
  int status = 0;
  outcome.timed_out = !wait_for(child, timeout_s, cancel, status);
  if (cancel.is_cancelled()) return make_error(ErrorCode::cancelled, "the search was cancelled");
  outcome.exit_code = exit_code_of_status(status);
  outcome.output = PX_TRY(read_file(log));
  return outcome;
}

std::string find_program(const std::string& name) {
  const auto is_program = [](const std::string& path) {
    std::error_code error;
    return std::filesystem::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) return is_program(name) ? name : std::string();
  const char* const folders = std::getenv("PATH");
  for (const std::string_view folder : split(folders == nullptr ? "" : folders, ':')) {
    std::string path = fmt::format("{}/{}", folder, name);
    if (!folder.empty() && is_program(path)) return path;
  }
  return {};
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
