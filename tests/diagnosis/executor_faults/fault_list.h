// SPDX-License-Identifier: Apache-2.0
// The mistakes of the benchmark.
#pragma once

#include <span>

#include "tests/diagnosis/executor_faults/faulty_executor.h"

namespace parallax::diagnosis {

std::span<const Fault> executor_faults();

}  // namespace parallax::diagnosis
