// SPDX-License-Identifier: Apache-2.0
// The description of attention for cuDNN. Like cudnn_graph.h it calls no CUDA.
#pragma once

#include "runtime/device/cuda/cudnn_graph.h"
#include "runtime/device/gpu/attention/library_attention.h"

#ifdef PX_WITH_CUDNN

#include <optional>

namespace parallax::runtime {

// Matrices with an even stride. Heads may be fewer than the problem's, each for several in a row; so may samples, one
// for all.
struct EvenIndices {
  int64_t start = 0;
  int64_t samples = 1, heads = 1;
  int64_t sample_stride = 0, head_stride = 0, row = 0, column = 0;
};

struct AttentionOffsets {
  EvenIndices q, k, v, y, added;
};

// The offsets of the operands, if cuDNN of this version (91900 is 9.19.0) supports the problem: one that is for a
// library, heads in multiples of 8, matrices with an even stride, aligned memory.
std::optional<AttentionOffsets> suits_cudnn(const LibraryAttention& attention, size_t version);
CudnnKey key_of(const LibraryAttention& attention, const AttentionOffsets& locations);
CudnnChoice choose_attention_plan(const Cudnn& functions, const CudnnTarget& target, const LibraryAttention& attention,
                                  const AttentionOffsets& locations);

struct AttentionMemory {
  void* log_sums = nullptr;  // a float for each query
  void* workspace = nullptr;
};
Status run_attention_plan(const CudnnPlan& plan, cudnnHandle_t handle, const LibraryAttention& attention,
                          const AttentionOffsets& locations, const AttentionMemory& memory);

}  // namespace parallax::runtime

#endif
