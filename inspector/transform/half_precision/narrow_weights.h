// SPDX-License-Identifier: Apache-2.0
// Stored tensors of a model that goes to half precision: which of them do not fit, and their conversion.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "inspector/transform/half_precision/precision_groups.h"
#include "inspector/transform/half_precision/to_half.h"

namespace parallax::transform {

// Why a stored tensor does not fit, by index into PrecisionGroups::values.
struct UnfitWeights {
  std::map<size_t, std::string> held;   // its readers stay in float32
  std::map<size_t, std::string> moved;  // its readers only move it
};

// Demands float32 of every reader that computes with a stored tensor of elements beyond the range of `to`, and of
// quantizing nodes whose scale would lose bits.
UnfitWeights hold_unfit_weights(PrecisionGroups& groups, DType to);

// Those that are moved and narrow: their elements beyond the range become infinite.
std::vector<KeptWeight> infinite_weights(const PrecisionGroups& groups, const std::vector<bool>& is_narrow,
                                         const UnfitWeights& unfit);

// Converts the stored tensors, numbers and type attributes of groups that are narrow. Errors: out_of_memory.
Status convert_stored(const PrecisionGroups& groups, const std::vector<bool>& is_narrow, const HalfRequest& request,
                      DeferredTensors& deferred);

// The stored tensors that stay float32, each with its reason.
std::vector<KeptWeight> kept_weights(const PrecisionGroups& groups, const std::vector<bool>& is_narrow,
                                     const UnfitWeights& unfit);

}  // namespace parallax::transform
