// SPDX-License-Identifier: Apache-2.0
// The entry of a run's settings for a GPU library's activations: those that the device computes as our kernels do.
#pragma once

#include <string>

#include "runtime/device/gpu/library_product.h"

namespace parallax::runtime {

// All that products ask for.
std::span<const EpilogueKind> epilogue_kinds();
// "relu: float32, float32 with a bias; tanh gelu: none"
std::string accepted_text(const KnownEpilogues& known);

// Asks for all of them.
template <GpuDevice Gpu>
Result<std::string> accepted_epilogues(Queue<Gpu>& queue) {
  for (const EpilogueKind& kind : epilogue_kinds()) PX_TRY(has_epilogue(queue, kind));
  return accepted_text(queue.known_epilogues());
}

}  // namespace parallax::runtime
