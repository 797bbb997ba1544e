// SPDX-License-Identifier: Apache-2.0
// Operators that patterns make and no published domain has. A rewritten model that is written to a file holds each as a
// model-local function made of the nodes it stands for, so that any runtime can run it.
#pragma once

#include <string_view>

#include "inspector/model/opset/op_schema.h"

namespace parallax::runtime {

inline constexpr std::string_view kFusedDomain = "parallax.fused";

// Null for a name that is none of them.
const OpSchema* fused_schema(std::string_view op);

}  // namespace parallax::runtime
