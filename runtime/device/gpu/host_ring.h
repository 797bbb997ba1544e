// SPDX-License-Identifier: Apache-2.0
// HostRing: one block of host memory, handed out piece after piece and round again. A piece is free when its last owner
// has let go; what follows a piece that is still held waits, so that the order of taking is the order of reuse.
#pragma once

#include <cstddef>
#include <memory>

namespace parallax::runtime {

class HostRing {
 public:
  static constexpr size_t kAlignment = 256;

  HostRing() = default;  // of no bytes
  HostRing(std::shared_ptr<std::byte> memory, size_t bytes);

  // Null where there is no room now. The piece, and with it the whole block, may outlive the ring, and may be let go by
  // any thread.
  std::shared_ptr<std::byte> take(size_t bytes);
  bool has_room(size_t bytes) const;
  size_t bytes() const;
  size_t bytes_in_use() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace parallax::runtime
