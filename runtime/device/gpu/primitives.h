// SPDX-License-Identifier: Apache-2.0
// All primitives for GPU devices: what a family of operators needs to be compiled for one. `launch(queue, kernel,
// size)` is the only thing that each device brings of its own.
#pragma once

#include "runtime/device/gpu/copy_kernel.h"
#include "runtime/device/gpu/gemm_kernel.h"
#include "runtime/device/gpu/map_kernel.h"
#include "runtime/device/gpu/rows_kernel.h"
#include "runtime/device/gpu/select_kernel.h"
#include "runtime/device/gpu/sort_kernel.h"
#include "runtime/device/gpu/window_kernel.h"
