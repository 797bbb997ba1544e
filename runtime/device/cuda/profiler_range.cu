// SPDX-License-Identifier: Apache-2.0
// Ranges of NVTX, which finds a profiler by itself and does next to nothing where there is none.
#include <nvtx3/nvToolsExt.h>

#include "runtime/device/cuda/profiler_range.h"

namespace parallax::runtime {

ProfilerRange<Cuda>::ProfilerRange(const std::string& name) { nvtxRangePushA(name.c_str()); }
ProfilerRange<Cuda>::~ProfilerRange() { nvtxRangePop(); }

}  // namespace parallax::runtime
