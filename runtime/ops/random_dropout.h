// SPDX-License-Identifier: Apache-2.0
// Dropout in training, which draws like the random operators.
#pragma once

#include "runtime/ops/op_context.h"

namespace parallax::runtime {

Status random_dropout(OpContext<CompiledDevice>& op, double ratio);

}  // namespace parallax::runtime
