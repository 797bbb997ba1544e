// SPDX-License-Identifier: Apache-2.0
// The executor of the tests that runs the kernels of GPU devices on the host.
#pragma once

#include <memory>

#include "inspector/exec/executor.h"
#include "runtime/device/gpu/host_copies.h"

namespace parallax::tests {

// So small that most tests have more to capture than there is room for.
constexpr runtime::HostCopySizes kSmallCopies{4096, 512};

std::unique_ptr<Executor> make_emulated_executor(const runtime::HostCopySizes& sizes = kSmallCopies);

}  // namespace parallax::tests
