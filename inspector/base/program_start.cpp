// SPDX-License-Identifier: Apache-2.0
// Descriptors that were closed, handlers, ignored signals.
#include "inspector/base/program_start.h"

#include <cerrno>
#include <csignal>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace parallax {
namespace {

void hold_standard_streams() {
  // Each is opened the wrong way round, so that reading and writing fail as they do where nothing is open.
  for (const auto& [descriptor, mode] :
       {std::pair(STDIN_FILENO, O_WRONLY), std::pair(STDOUT_FILENO, O_RDONLY), std::pair(STDERR_FILENO, O_RDONLY)}) {
    const bool is_closed = ::fcntl(descriptor, F_GETFD) == -1 && errno == EBADF;
    if (is_closed && ::open("/dev/null", mode) != descriptor) return;  // nothing better is to be had
  }
}

}  // namespace

void start_program(std::function<void(int signal, const SignalCleanup& left)> last_words,
                   void (*report_exhaustion)(const Error& error)) {
  hold_standard_streams();
  clean_up_at_signals(std::move(last_words));
  clean_up_at_exhaustion(report_exhaustion);
  ::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace parallax
