// SPDX-License-Identifier: Apache-2.0
// Pipes, posix_spawn, poll, and /proc.
#include "inspector/executors/foreign/program.h"

#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inspector/base/memory_budget.h"
#include "inspector/base/shown_text.h"
#include "inspector/base/text.h"

extern char** environ;  // NOLINT: what POSIX calls it

namespace parallax::foreign {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kPollMs = 20;
constexpr double kMemoryCheckS = 0.05;
constexpr int kGraceMs = 300;  // to end after its stdin did
constexpr size_t kMostErrors = size_t{16} << 10;
constexpr size_t kMostOutput = size_t{256} << 20;
constexpr size_t kShownLines = 3;
constexpr size_t kShownLineBytes = 300;

// Ends the group when the other end of descriptor 3 is closed, which the kernel does for a process that was killed. The
// program takes this shell's own process, so that the signal that ends it is seen. The watching shell is detached, so
// that the program does not meet a child that it did not start.
constexpr const char* kWatch =
    "( (read gone <&3; kill -KILL 0) </dev/null >/dev/null 2>&1 & ); exec 3<&-; exec /bin/sh -c \"$1\"";

struct Pipe {
  int read = -1, write = -1;
};

void close_descriptor(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

// Four pipes, all or none.
bool open_pipes(std::array<Pipe, 4>& pipes) {
  for (Pipe& pipe : pipes) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      const int error = errno;
      for (Pipe& open : pipes) {
        close_descriptor(open.read);
        close_descriptor(open.write);
      }
      errno = error;
      return false;
    }
    pipe = {ends[0], ends[1]};
  }
  return true;
}

// 0 or an error number.
int spawn(const std::string& command, int input, int output, int errors, int lifeline, pid_t& leader) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, lifeline, STDERR_FILENO + 1);
  ::posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 2);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::posix_spawnattr_setsigmask(&attributes, &signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) ::sigaddset(&signals, number);
  ::posix_spawnattr_setsigdefault(&attributes, &signals);
  std::array<std::string, 5> words = {"sh", "-c", kWatch, "sh", command};
  std::array<char*, 6> arguments{};
  for (size_t index = 0; index < words.size(); ++index) arguments[index] = words[index].data();
  const int error = ::posix_spawn(&leader, "/bin/sh", &actions, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

// Keeps SIGPIPE from this thread: a program that has closed its stdin is no reason to end.
class WithoutBrokenPipes {
 public:
  WithoutBrokenPipes() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &earlier_);
  }
  ~WithoutBrokenPipes() {
    const timespec at_once{};
    if (::sigismember(&earlier_, SIGPIPE) == 0) ::sigtimedwait(&pipe_, nullptr, &at_once);
    ::pthread_sigmask(SIG_SETMASK, &earlier_, nullptr);
  }
  WithoutBrokenPipes(const WithoutBrokenPipes&) = delete;
  WithoutBrokenPipes& operator=(const WithoutBrokenPipes&) = delete;

 private:
  sigset_t pipe_, earlier_;
};

// Takes what is there; false at the end of the stream.
bool read_all(int descriptor, std::string& text) {
  std::array<char, 65536> block;
  for (;;) {
    const ssize_t count = ::read(descriptor, block.data(), block.size());
    if (count > 0) {
      text.append(block.data(), static_cast<size_t>(count));
      if (text.size() > kMostOutput) return true;
    } else if (count == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN || errno == EWOULDBLOCK;
    }
  }
}

// Anonymous memory of one process, if it is of this group.
int64_t memory_of(const fs::path& process, int group) {
  std::ifstream stat(process / "stat");
  std::string text;
  if (!std::getline(stat, text)) return 0;
  const size_t name_end = text.rfind(')');  // a name may hold anything
  char state = 0;
  int parent = 0, own_group = 0;
  if (name_end == std::string::npos ||
      std::sscanf(text.c_str() + name_end + 1, " %c %d %d", &state, &parent, &own_group) != 3 || own_group != group)
    return 0;
  std::ifstream status(process / "status");
  int64_t kilobytes = 0;
  while (std::getline(status, text)) {
    if (text.starts_with("RssAnon:") || text.starts_with("VmSwap:"))
      kilobytes += std::strtoll(text.c_str() + text.find(':') + 1, nullptr, 10);
  }
  return kilobytes * 1024;
}

std::string ending_of(int status) {
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : code > 128 && code <= 128 + SIGRTMAX ? code - 128 : 0;
  if (signal > 0) return fmt::format("was ended by signal {} ({})", signal, ::strsignal(signal));
  return fmt::format("ended with exit code {}", code);
}

}  // namespace

Result<std::unique_ptr<Program>> Program::start(const std::string& command) {
  std::array<Pipe, 4> pipes;
  if (!open_pipes(pipes)) return io_error(fmt::format("a program cannot be started: {}", std::strerror(errno)));
  auto& [input, output, errors, lifeline] = pipes;
  pid_t leader = -1;
  const int error = spawn(command, input.read, output.write, errors.write, lifeline.read, leader);
  for (int* ours : {&input.read, &output.write, &errors.write, &lifeline.read}) close_descriptor(*ours);
  if (error != 0) {
    for (int* ours : {&input.write, &output.read, &errors.read, &lifeline.write}) close_descriptor(*ours);
    return io_error(fmt::format("a program cannot be started: {}", std::strerror(error)));
  }
  for (const int ours : {input.write, output.read, errors.read}) ::fcntl(ours, F_SETFL, O_NONBLOCK);
  return std::unique_ptr<Program>(
      new Program(leader, Descriptors{input.write, output.read, errors.read, lifeline.write}));
}

Program::Program(int leader, const Descriptors& descriptors) : leader_(leader), descriptors_(descriptors) {
  group_.emplace(leader);
}

Program::~Program() {
  if (leader_ <= 0) return;
  close_descriptor(descriptors_.input);
  for (int waited = 0; waited < kGraceMs && !wait_for_end(kPollMs); waited += kPollMs) {
    read_errors();
    read_output();
  }
  kill();
}

void Program::close_all() {
  for (int* descriptor : {&descriptors_.input, &descriptors_.output, &descriptors_.errors, &descriptors_.lifeline})
    close_descriptor(*descriptor);
}

void Program::kill() {
  if (leader_ <= 0) return;
  ::kill(-leader_, SIGKILL);
  group_.reset();  // before its number is free for another process
  while (::waitpid(leader_, &status_, 0) < 0 && errno == EINTR) continue;
  leader_ = -1;
  close_all();
}

// Leaves the process to be waited for, so that its number stays its own until the group is killed.
bool Program::wait_for_end(int milliseconds) const {
  const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
  for (;;) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(leader_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0)
      return true;
    if (Clock::now() >= end) return false;
    ::poll(nullptr, 0, 1);
  }
}

bool Program::read_output() { return read_all(descriptors_.output, output_); }

void Program::read_errors() {
  if (descriptors_.errors < 0) return;
  if (!read_all(descriptors_.errors, errors_)) close_descriptor(descriptors_.errors);
  if (errors_.size() > kMostErrors) errors_.erase(0, errors_.size() - kMostErrors);
}

std::string Program::last_lines() const {
  std::vector<std::string> lines;
  for (const std::string_view line : split(errors_, '\n')) {
    if (line.find_first_not_of(" \t\r") != std::string_view::npos)
      lines.push_back(shorten(printable(line), kShownLineBytes));
  }
  if (lines.empty()) return {};
  if (lines.size() > kShownLines) lines.erase(lines.begin(), lines.end() - kShownLines);
  return fmt::format("; its last lines on stderr: {}", fmt::join(lines, " | "));
}

int64_t Program::memory_bytes() const {
  int64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (std::isdigit(static_cast<unsigned char>(name.front())) != 0) bytes += memory_of(entry->path(), leader_);
  }
  return bytes;
}

Error Program::ended() {
  const bool is_over = wait_for_end(kGraceMs);
  read_errors();
  has_ended_ = true;
  kill();
  const std::string what = is_over ? ending_of(status_) : "closed its stdout";
  return execution_error(fmt::format("it {} instead of answering{}", what, last_lines()));
}

Error Program::kill_after(Error error) {
  kill();
  return error;
}

Status Program::check_silence() {
  read_output();
  if (output_.empty()) return {};
  const std::string seen = shorten(printable(output_.substr(0, output_.find('\n'))), kShownLineBytes);
  read_errors();
  return kill_after(execution_error(
      fmt::format("it wrote '{}' on stdout without a request; it must write one line for each request, and print on "
                  "stderr what people read{}",
                  seen, last_lines())));
}

Status Program::write_some(std::string_view text, size_t& written) {
  const WithoutBrokenPipes guard;
  while (written < text.size()) {
    const ssize_t count = ::write(descriptors_.input, text.data() + written, text.size() - written);
    if (count >= 0) {
      written += static_cast<size_t>(count);
    } else if (errno == EPIPE) {
      written = text.size();  // its end is seen on its stdout
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return {};
    } else if (errno != EINTR) {
      return kill_after(io_error(fmt::format("it cannot be asked: {}", std::strerror(errno))));
    }
  }
  return {};
}

Status Program::check_limits(double elapsed_s, const ProgramLimits& limits, double& next_check_s) {
  if (limits.seconds > 0 && elapsed_s > limits.seconds) {
    kill();
    return execution_error(fmt::format("it did not answer within {} s and was ended{}", limits.seconds, last_lines()));
  }
  if (limits.memory_bytes == 0 || elapsed_s < next_check_s) return {};
  next_check_s = elapsed_s + kMemoryCheckS;
  const int64_t held = memory_bytes() - noted_memory_bytes_;
  if (held <= limits.memory_bytes) return {};
  kill();
  return out_of_memory(fmt::format("it holds {} of memory and was ended: the limit is {} (--memory-limit){}",
                                   bytes_rounded_up(held), bytes_rounded_up(limits.memory_bytes), last_lines()));
}

Result<std::string> Program::ask(std::string_view request, const ProgramLimits& limits, const CancelToken& cancel) {
  if (leader_ <= 0) return execution_error("it has ended");
  PX_TRY(check_silence());
  const std::string line = std::string(request) + "\n";
  const auto start = Clock::now();
  double next_check_s = 0;
  size_t written = 0;
  for (;;) {
    if (const size_t end = output_.find('\n'); end != std::string::npos) {
      if (written < line.size()) return kill_after(execution_error("it answered before it had read the request"));
      std::string answer = output_.substr(0, end);
      output_.erase(0, end + 1);
      return answer;
    }
    if (output_.size() > kMostOutput)
      return kill_after(
          execution_error("it writes a line without end on stdout, where one line of JSON is the answer"));
    if (cancel.is_cancelled()) return kill_after(make_error(ErrorCode::cancelled, "cancelled while it ran"));
    PX_TRY(check_limits(std::chrono::duration<double>(Clock::now() - start).count(), limits, next_check_s));
    const bool writes = written < line.size();
    std::array<pollfd, 3> waits = {pollfd{descriptors_.output, POLLIN, 0}, pollfd{descriptors_.errors, POLLIN, 0},
                                   pollfd{writes ? descriptors_.input : -1, POLLOUT, 0}};
    if (::poll(waits.data(), waits.size(), kPollMs) < 0 && errno != EINTR)
      return kill_after(io_error(fmt::format("it cannot be waited for: {}", std::strerror(errno))));
    if (waits[1].revents != 0) read_errors();
    if (writes && waits[2].revents != 0) PX_TRY(write_some(line, written));
    const bool is_open = waits[0].revents == 0 || read_output();
    if (output_.find('\n') != std::string::npos) continue;
    // A child that outlives the program may keep its stdout open.
    if (!is_open || wait_for_end(0)) {
      read_output();
      if (output_.find('\n') == std::string::npos) return ended();
    }
  }
}

}  // namespace parallax::foreign
