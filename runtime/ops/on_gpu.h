// SPDX-License-Identifier: Apache-2.0
// For rows that only GPU devices have, where the host has a kernel of its own.
#pragma once

#include "runtime/ops/op_context.h"

// The function for such a row: the host sees none, and skips it.
#define PX_ON_GPU(function)                         \
  [] {                                              \
    if constexpr (GpuDevice<Device>)                \
      return static_cast<Kernel<Device>>(function); \
    else                                            \
      return static_cast<Kernel<Device>>(nullptr);  \
  }()
