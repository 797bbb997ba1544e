// SPDX-License-Identifier: Apache-2.0
// The activation that the attributes of a fused operator name.
#pragma once

#include "runtime/device/cpu/activation.h"
#include "runtime/ops/op_call.h"

namespace parallax::runtime {

// True where the node's 'activation' is absent or has a kernel; the others are operators of ai.onnx that run by
// themselves (contrib/activated.cpp).
bool has_known_activation(const Node& node);
bool has_other_activation(const Node& node);

// FusedConv, NhwcFusedConv, Linear: `activation`, its parameters in `activation_params`. None without the attribute.
// Error: unsupported, naming an activation that has no kernel.
Result<Activation> activation_of_conv(const OpCall& op);

// FusedGemm and FusedMatMulActivation: parameters in `activation_alpha` and `activation_beta`.
Result<Activation> activation_of_product(const OpCall& op);

}  // namespace parallax::runtime
