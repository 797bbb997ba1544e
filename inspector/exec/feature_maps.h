// SPDX-License-Identifier: Apache-2.0
// Which values are images: tensors [N, C, spatial...] as convolutions make them, which executors like to hold channels
// last. Their statistics count elements in that order, so that nobody has to turn them for it.
#pragma once

#include <functional>

#include "inspector/exec/observer.h"
#include "inspector/model/ir.h"

namespace parallax {

// True where a node's outputs are feature maps: by its operator's definition, or because it keeps the axes of an input
// that is one.
bool gives_feature_maps(const Node& node, const std::function<bool(ValueId)>& is_feature_map);

// The order in which the elements of this tensor of a value are counted, the same with every executor.
ElementOrder counting_order(const ValueInfo& value_info, const TensorView& tensor);

}  // namespace parallax
