// The executor of the tests that runs the kernels of GPU devices on the host.
#pragma once

#include <memory>

#include "inspector/exec/executor.h"

namespace parallax::tests {

std::unique_ptr<Executor> make_emulated_executor();

}  // namespace parallax::tests
