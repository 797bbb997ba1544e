// SPDX-License-Identifier: Apache-2.0
// Tensors on their way from a GPU to the host: each is copied on the copy stream into a ring of page-locked memory,
// while the compute stream goes on. Of each device there are
//   host_memory(queue, bytes)                                 page-locked
//   start_copy_to_host(queue, target, source, bytes)          after all that was submitted so far; answers with a
//   ticket is_copied(queue, ticket), wait_copied(queue, ticket)      tickets are done in the order they were given
#pragma once

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include "runtime/device/devices.h"
#include "runtime/device/gpu/host_ring.h"

namespace parallax::runtime {

struct HostCopySizes {
  size_t ring_bytes = size_t{128} << 20;
  size_t piece_bytes = size_t{8} << 20;  // of a tensor that the ring has no room for; two pieces are outside the ring
};

struct HostCopyCounts {
  int64_t copies = 0;
  int64_t bytes = 0;
  int64_t waits = 0;  // for a copy that had not come when it was needed
  double waited_ms = 0;
  int64_t bytes_in_pieces = 0;  // of `bytes`: of tensors that did not go through the ring
};

// A tensor on its way. The source is held, and so neither freed nor written over, until the copy has been made; its
// range of the ring is free again when the last owner of `host` lets go, which nobody may before that either.
struct HostCopy {
  Tensor source;
  Tensor host;
  int64_t ticket = 0;
  bool has_come() const { return !source.defined(); }
};

template <GpuDevice Gpu>
class HostCopies {
 public:
  explicit HostCopies(Queue<Gpu>& queue, const HostCopySizes& sizes = {}) : queue_(queue), sizes_(sizes) {}

  // Made when first needed: whoever captures nothing pays nothing.
  Result<bool> has_room(size_t bytes) {
    if (ring_.bytes() == 0) ring_ = HostRing(PX_TRY(host_memory(queue_, sizes_.ring_bytes)), sizes_.ring_bytes);
    return ring_.has_room(bytes);
  }

  // The ring must have room for it.
  Result<HostCopy> start(const Tensor& tensor) {
    std::shared_ptr<std::byte> location = ring_.take(tensor.size_bytes());
    PX_CHECK(location != nullptr);
    HostCopy copy;
    copy.ticket = PX_TRY(start_copy_to_host(queue_, location.get(), tensor.view().data, tensor.size_bytes()));
    copy.source = tensor;
    copy.host = Tensor::wrap(tensor.dtype(), tensor.shape(), std::move(location));
    count(tensor);
    return copy;
  }

  Result<bool> has_come(HostCopy& copy) {
    if (!copy.has_come() && PX_TRY(is_copied(queue_, copy.ticket))) copy.source = Tensor();
    return copy.has_come();
  }

  // Waits for it where it has not come yet. After an error the copy is over all the same.
  Status wait(HostCopy& copy) {
    if (copy.has_come()) return {};
    Status status = wait_for(copy.ticket);
    copy.source = Tensor();
    return status;
  }

  // For a tensor that the ring has no room for, and will not have: into host memory of its own, through two pieces
  // outside the ring, of which one is emptied while the other is filled.
  Result<Tensor> bring_in_pieces(const Tensor& tensor) {
    if (pieces_ == nullptr) pieces_ = PX_TRY(host_memory(queue_, 2 * sizes_.piece_bytes));
    Tensor host = PX_TRY(Tensor::allocate(tensor.dtype(), tensor.shape()));
    const size_t bytes = tensor.size_bytes();
    const size_t pieces = (bytes + sizes_.piece_bytes - 1) / sizes_.piece_bytes;
    int64_t tickets[2] = {};
    const auto size_of = [&](size_t piece) { return std::min(sizes_.piece_bytes, bytes - piece * sizes_.piece_bytes); };
    const auto start_piece = [&](size_t piece) -> Status {
      tickets[piece % 2] = PX_TRY(start_copy_to_host(queue_, location_of(piece),
                                                     tensor.view().data + piece * sizes_.piece_bytes, size_of(piece)));
      return {};
    };
    if (pieces > 0) PX_TRY(start_piece(0));
    for (size_t piece = 0; piece < pieces; ++piece) {
      if (piece + 1 < pieces) PX_TRY(start_piece(piece + 1));
      PX_TRY(wait_for(tickets[piece % 2]));
      std::memcpy(host.mutable_data() + piece * sizes_.piece_bytes, location_of(piece), size_of(piece));
    }
    count(tensor);
    counts_.bytes_in_pieces += static_cast<int64_t>(bytes);
    return host;
  }

  const HostCopyCounts& counts() const { return counts_; }

 private:
  std::byte* location_of(size_t piece) const { return pieces_.get() + piece % 2 * sizes_.piece_bytes; }

  void count(const Tensor& tensor) {
    ++counts_.copies;
    counts_.bytes += static_cast<int64_t>(tensor.size_bytes());
  }

  Status wait_for(int64_t ticket) {
    if (PX_TRY(is_copied(queue_, ticket))) return {};
    const auto begin = std::chrono::steady_clock::now();
    Status status = wait_copied(queue_, ticket);
    const std::chrono::duration<double, std::milli> waited = std::chrono::steady_clock::now() - begin;
    ++counts_.waits;
    counts_.waited_ms += waited.count();
    return status;
  }

  Queue<Gpu>& queue_;
  HostCopySizes sizes_;
  HostRing ring_;
  std::shared_ptr<std::byte> pieces_;
  HostCopyCounts counts_;
};

}  // namespace parallax::runtime
