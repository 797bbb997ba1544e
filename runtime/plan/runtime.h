// SPDX-License-Identifier: Apache-2.0
// The fast executor, as others see it.
#pragma once

#include <memory>

#include "inspector/exec/executor.h"

namespace parallax {

struct CpuExecutorOptions {
  bool poison_buffers = false;  // tests: memory holds a pattern whenever no value owns it
};

// "cpu": oneDNN, OpenBLAS and kernels of our own on the host.
std::unique_ptr<Executor> make_cpu_executor(const CpuExecutorOptions& options = {});

// "cuda": cuBLAS, cuDNN, CUB and kernels of our own on the first NVIDIA GPU. Errors: usage, saying why there is none.
Result<std::unique_ptr<Executor>> make_cuda_executor();

}  // namespace parallax
