// SPDX-License-Identifier: Apache-2.0
// The child process: dot text through a pipe in, the picture through a pipe out, killed when its time is over.
#include "inspector/render/graphviz.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <iterator>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "inspector/base/mapped_file.h"
#include "inspector/base/shell.h"
#include "inspector/base/signal_cleanup.h"

namespace parallax {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxPictureBytes = size_t{1} << 30;
constexpr rlim_t kShellFiles = 16;  // dash keeps descriptors from 10 on
constexpr std::string_view kAdvice = "draw less of it with --depth N or --focus PATH, or write it as .dot";

struct Child {
  pid_t pid = -1;
  int input = -1;   // we write
  int output = -1;  // we read

  Child() = default;
  Child(Child&& other) noexcept
      : pid(std::exchange(other.pid, -1)),
        input(std::exchange(other.input, -1)),
        output(std::exchange(other.output, -1)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    close_input();
    if (output >= 0) ::close(output);
  }
  void close_input() {
    if (input >= 0) ::close(input);
    input = -1;
  }
};

// `ulimit -v` in the shell that becomes dot: a limit set here would hold for this whole process.
// nslimit bounds the network simplex, which is what makes large graphs slow; straight lines are cheap for them, too.
Result<Child> start_dot(std::string_view format, bool is_large, const GraphvizLimits& limits) {
  struct rlimit files {};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < kShellFiles)
    return io_error(fmt::format("this process may open {} files; Graphviz needs {}: raise the limit (ulimit -n)",
                                files.rlim_cur, kShellFiles));
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (::pipe2(in.data(), O_CLOEXEC) != 0) return io_error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  if (::pipe2(out.data(), O_CLOEXEC) != 0) {
    ::close(in[0]);
    ::close(in[1]);
    return io_error(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  const std::string tuning = is_large ? "-Gnslimit=1 -Gnslimit1=1 -Gmclimit=0.1" : "";
  const std::string command = fmt::format(
      "ulimit -v {}; ulimit -t {}; ulimit -c 0; command -v dot >/dev/null || exit 127; exec dot -T{} {} 2>/dev/null",
      limits.memory_bytes / 1024, limits.seconds + 1, format, tuning);
  Child child;
  child.pid = start_shell(command, in[0], out[1], STDERR_FILENO);
  const int problem = child.pid < 0 ? errno : 0;
  ::close(in[0]);
  ::close(out[1]);
  child.input = in[1];
  child.output = out[0];
  if (problem != 0) return io_error(fmt::format("cannot start /bin/sh: {}", std::strerror(problem)));
  ::fcntl(child.input, F_SETFL, O_NONBLOCK);
  return child;
}

// Feeds and drains until the child closes its output. False when time or the picture's size ran out.
bool exchange_data(Child& child, std::string_view dot, std::string& picture, Clock::time_point end) {
  std::array<char, 65536> buffer{};
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0 || picture.size() > kMaxPictureBytes) return false;
    std::array<pollfd, 2> files = {{{child.output, POLLIN, 0}, {child.input, POLLOUT, 0}}};
    if (::poll(files.data(), child.input >= 0 ? 2 : 1, static_cast<int>(left)) < 0 && errno != EINTR) return false;
    if (child.input >= 0 && files[1].revents != 0) {
      const ssize_t written = ::write(child.input, dot.data(), dot.size());
      if (written > 0) dot.remove_prefix(static_cast<size_t>(written));
      if ((written < 0 && errno != EAGAIN) || dot.empty()) child.close_input();
    }
    if (files[0].revents != 0) {
      const ssize_t got = ::read(child.output, buffer.data(), buffer.size());
      if (got == 0) return true;
      if (got > 0) picture.append(buffer.data(), static_cast<size_t>(got));
    }
  }
}

std::string format_of_ending(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(dot + 1);
}

}  // namespace

Result<DotPicture> run_dot(std::string_view dot, std::string_view format, const GraphvizLimits& limits) {
  constexpr size_t kLargeBytes = 60'000;  // some 300 nodes, where the layout starts to take seconds
  ::signal(SIGPIPE, SIG_IGN);             // a child that dies early is seen by its exit status
  Child child = PX_TRY(start_dot(format, dot.size() > kLargeBytes, limits));
  const OwnedProcessGroup group(child.pid);
  DotPicture drawn;
  const bool finished = exchange_data(child, dot, drawn.image, Clock::now() + std::chrono::seconds(limits.seconds));
  if (!finished) ::kill(-child.pid, SIGKILL);
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!finished) {
    drawn.problem = fmt::format("Graphviz did not lay the graph out within {} s: {}", limits.seconds, kAdvice);
  } else if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    drawn.problem = "the program 'dot' is not installed (apt-get install graphviz); a .dot file needs no Graphviz";
  } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || drawn.image.empty()) {
    drawn.problem = fmt::format("Graphviz failed on this graph (over {} MiB of memory, or a fault of its own): {}",
                                limits.memory_bytes >> 20, kAdvice);
  }
  if (!drawn.problem.empty()) drawn.image.clear();
  return drawn;
}

Result<std::string> draw_dot(std::string_view dot, std::string_view format, const GraphvizLimits& limits) {
  DotPicture drawn = PX_TRY(run_dot(dot, format, limits));
  if (!drawn.problem.empty()) return io_error(drawn.problem);
  return std::move(drawn.image);
}

Status check_picture_name(const std::string& path) {
  constexpr std::string_view kEndings[] = {"dot", "gv", "svg", "png", "pdf"};
  if (std::ranges::find(kEndings, format_of_ending(path)) != std::end(kEndings)) return {};
  return usage_error(fmt::format("'{}': a picture's file ends in .dot, .svg, .png or .pdf", path));
}

Status write_graph_picture(const std::string& dot, const std::string& path, const GraphvizLimits& limits) {
  PX_TRY(check_picture_name(path));
  const std::string format = format_of_ending(path);
  if (format == "dot" || format == "gv") return write_file(path, dot);
  return write_file(path, PX_TRY(draw_dot(dot, format, limits)));
}

}  // namespace parallax
