// SPDX-License-Identifier: Apache-2.0
// The first lines of every program: standard streams, signals, and lack of memory or threads.
#pragma once

#include "inspector/base/signal_cleanup.h"

namespace parallax {

// Keeps the descriptors 0, 1 and 2 from files that are opened later, where the caller has closed them: what is written
// there fails as before. Then signals and exhaustion end the program after a cleanup and a report
// (clean_up_at_signals, clean_up_at_exhaustion), and a write beyond the limit of a file's size fails as one on a full
// disk does. To be called once, before anything else.
void start_program(std::function<void(int signal, const SignalCleanup& left)> last_words,
                   void (*report_exhaustion)(const Error& error));

}  // namespace parallax
