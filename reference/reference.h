// SPDX-License-Identifier: Apache-2.0
// The reference executor: the oracle that other executors are judged by. Slow, plain, and the same bits everywhere.
#pragma once

#include <memory>

#include "inspector/exec/executor.h"
#include "reference/ops/precision.h"

namespace parallax {

// Named "reference" and "reference:double".
std::unique_ptr<Executor> make_reference_executor(ReferencePrecision precision);

}  // namespace parallax
