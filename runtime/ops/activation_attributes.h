// The activation that the attributes of a fused operator name.
#pragma once

#include "runtime/device/activation.h"
#include "runtime/ops/op_call.h"

namespace parallax::runtime {

// FusedConv, NhwcFusedConv, Linear: `activation`, its parameters in `activation_params`. None without the attribute.
// Error: unsupported, naming an activation that has no kernel.
Result<Activation> activation_of_conv(const OpCall& op);

// FusedGemm and FusedMatMulActivation: parameters in `activation_alpha` and `activation_beta`.
Result<Activation> activation_of_product(const OpCall& op);

}  // namespace parallax::runtime
