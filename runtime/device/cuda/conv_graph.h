// SPDX-License-Identifier: Apache-2.0
// The description of a convolution for cuDNN. Like cudnn_graph.h it calls no CUDA.
#pragma once

#include "runtime/device/cuda/cudnn_graph.h"
#include "runtime/device/gpu/library_conv.h"

#ifdef PX_WITH_CUDNN

namespace parallax::runtime {

// True where cuDNN supports the problem: its types, one to three spatial axes, aligned memory, sizes that it can count.
bool suits_cudnn(const LibraryConv& conv);
CudnnKey key_of(const LibraryConv& conv, bool tf32);
CudnnChoice choose_conv_plan(const Cudnn& functions, const CudnnTarget& target, const LibraryConv& conv, bool tf32);
Status run_conv_plan(const CudnnPlan& plan, cudnnHandle_t handle, const LibraryConv& conv, void* workspace);

}  // namespace parallax::runtime

#endif
