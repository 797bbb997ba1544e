// SPDX-License-Identifier: Apache-2.0
// GridSample on the host, for feature maps of up to three axes whose elements are stored as they are computed.
#pragma once

#include "runtime/ops/op_context.h"
#include "runtime/ops/spatial/grid_positions.h"

namespace parallax::runtime {

template <class C>
bool suits_host_grid(const GridPositions<Cpu, C>& locations) {
  return locations.lengths.count <= 3 && locations.plane < INT32_MAX;
}

// y [samples, channels, positions] of a feature map [samples, channels, plane].
template <class C>
Status interpolate_on_host(OpContext<Cpu>& op, const GridPositions<Cpu, C>& locations, const C* feature_maps,
                           int64_t samples, C* y);

}  // namespace parallax::runtime
