// SPDX-License-Identifier: Apache-2.0
// cuDNN's functions without cuDNN: descriptors are kept and checked as its documentation has them, and a plan computes
// what they describe on the host, by plain loops.
#pragma once

#include "runtime/device/cuda/cudnn.h"

#ifdef PX_WITH_CUDNN

#include <string>
#include <vector>

namespace parallax::runtime {

// The engines that its heuristics propose, in this order.
struct FakeEngine {
  std::vector<cudnnBackendNumericalNote_t> notes;
  int64_t workspace_bytes = 0;
  bool can_be_planned = true;
};

struct FakeCudnn {
  static const Cudnn& functions();
  static void propose(std::vector<FakeEngine> engines);
  static int64_t live_descriptors();
  static int last_engine();         // that computed, as an index in the list of proposals
  static std::string last_error();  // of a descriptor
};

}  // namespace parallax::runtime

#endif
