// SPDX-License-Identifier: Apache-2.0
// Attributes of windows that Conv, the pools and their kin share: kernel, strides, dilations, pads, auto_pad.
#pragma once

#include "runtime/device/cpu/ints.h"
#include "runtime/ops/op_call.h"

namespace parallax::runtime {

struct WindowAttributes {
  Ints kernel;
  Ints strides;
  Ints dilations;
  Ints pads_begin;
  Ints pads_end;
  Ints out_spatial;
};

// The greatest entry of an attribute, and the greatest dimension of a plane: sums and products of a few of them are
// within 63 bits.
constexpr int64_t kLargestOfWindow = int64_t{1} << 31;

// An attribute of `count` entries from `least` to kLargestOfWindow. One left out has entries of `fill`; it must be
// given where that is below `least`. Errors: execution.
Result<Ints> window_list(const OpCall& op, std::string_view name, int64_t count, int64_t fill, int64_t least);

// For windows of `kernel` over planes of `in_spatial`. Resolves auto_pad; `ceil_mode` rounds output sizes up. Errors:
// execution, for lists of the wrong length, non-positive steps, and windows larger than their padded plane.
Result<WindowAttributes> window_attributes(const OpCall& op, const Ints& in_spatial, const Ints& kernel,
                                           bool ceil_mode = false);

}  // namespace parallax::runtime
