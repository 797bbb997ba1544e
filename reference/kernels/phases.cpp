// SPDX-License-Identifier: Apache-2.0
// How a member waits for what others have begun.
#include "reference/kernels/phases.h"

#include <thread>

namespace parallax::reference {

void PhasesMember::pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// To sleep, not to yield: members that share a processor would yield to each other for as long as they run, but who is
// wakened is given an idle one.
void PhasesMember::sleep(size_t piece, uint32_t phase) const {
  phases_.done_[piece].phases.wait(phase, std::memory_order_acquire);
}

}  // namespace parallax::reference
