// SPDX-License-Identifier: Apache-2.0
// Copies of the emulated device to the host, as gpu/host_copies.h calls them.
#pragma once

#include "tests/runtime/emulated/queue_emulated.h"

namespace parallax::runtime {

inline Result<std::shared_ptr<std::byte>> host_memory(Queue<Emulated>& queue, size_t bytes) {
  return queue.host_memory(bytes);
}
inline Result<int64_t> start_copy_to_host(Queue<Emulated>& queue, std::byte* target, const std::byte* source,
                                          size_t bytes) {
  return queue.start_copy_to_host(target, source, bytes);
}
inline Result<bool> is_copied(Queue<Emulated>& queue, int64_t ticket) { return queue.is_copied(ticket); }
inline Status wait_copied(Queue<Emulated>& queue, int64_t ticket) { return queue.wait_copied(ticket); }

}  // namespace parallax::runtime
