// SPDX-License-Identifier: Apache-2.0
// One node computed on constant inputs on the host, outside any session: for rewriting a model that is not run.
#pragma once

#include "runtime/rewrite/rewrite.h"

namespace parallax::runtime {

EvaluateNode host_evaluation();

}  // namespace parallax::runtime
