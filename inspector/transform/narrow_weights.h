// Stored tensors of a model that goes to half precision: which of them do not fit, and their conversion.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "inspector/transform/precision_groups.h"
#include "inspector/transform/to_half.h"

namespace parallax::transform {

// Demands float32 of every reader of a stored tensor with elements beyond the range of `to`, and of quantizing nodes
// whose scale would lose bits. Gives the reason by index into PrecisionGroups::values.
std::map<size_t, std::string> hold_unfit_weights(PrecisionGroups& groups, DType to);

// Converts the stored tensors, numbers and type attributes of groups that are narrow. Errors: out_of_memory.
Status convert_stored(const PrecisionGroups& groups, const std::vector<bool>& is_narrow, const HalfRequest& request,
                      DeferredTensors& deferred);

// The stored tensors that stay float32, each with its reason.
std::vector<KeptWeight> kept_weights(const PrecisionGroups& groups, const std::vector<bool>& is_narrow,
                                     const std::map<size_t, std::string>& unfit);

}  // namespace parallax::transform
