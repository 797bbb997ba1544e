// SPDX-License-Identifier: Apache-2.0
// library_attention: y = softmax(scale * q k + added) v for many matrices at once, by the library of a GPU, and when it
// is asked for.
#pragma once

#include "runtime/device/cpu/products/attention_problem.h"
#include "runtime/device/gpu/attention_probe.h"
#include "runtime/device/gpu/queue_gpu.h"

namespace parallax::runtime {

struct LibraryAttention {
  AttentionProblem problem;  // its matrices are those of `samples` times `heads`; no rule changes the scores
  int64_t samples = 1;
  int64_t heads = 1;
  DType dtype = DType::undefined;  // of q, k, v and y
  const std::byte* q = nullptr;
  const std::byte* k = nullptr;
  const std::byte* v = nullptr;
  std::byte* y = nullptr;
  DType added_dtype = DType::undefined;
  const std::byte* added = nullptr;  // [queries, keys] of each matrix; null: nothing is
  MatrixOffsets added_locations;
};

// True for problems of the library rather than of our own kernels, which convert to float32 and store all scores:
// float16 and bfloat16, with scores that at most one tensor of that type or of float32 is added to. Of float32 the
// library would round the operands, and weights that are no numbers are never 0 to it.
bool is_for_library(const LibraryAttention& attention);

// False where the library has no way to do it: nothing has been written then. Products are summed in float32; between
// the two the weights are rounded to the operands' type. Deterministic: the library's own choice of an algorithm among
// those that are, which is the same for the same shapes.
template <GpuDevice Gpu>
Result<bool> library_attention(Queue<Gpu>& queue, const LibraryAttention& attention);

// A probe as the library is asked to do it, but for the memory of its operands.
LibraryAttention probing_attention(const AttentionKind& kind, int64_t queries);

// Compares the library's results for the probe with ours.
template <GpuDevice Gpu>
Result<bool> probe_attention(Queue<Gpu>& queue, const AttentionKind& kind) {
  const AttentionProbe probe = attention_probe(kind);
  const Tensor q = PX_TRY(queue.to_device(probe.q));
  const Tensor k = PX_TRY(queue.to_device(probe.k));
  const Tensor v = PX_TRY(queue.to_device(probe.v));
  const Tensor y = PX_TRY(queue.allocate(kind.dtype, Shape{AttentionProbe::kHeads, probe.queries, kind.value_size}));
  LibraryAttention attention = probing_attention(kind, probe.queries);
  attention.q = q.view().data;
  attention.k = k.view().data;
  attention.v = v.view().data;
  attention.y = writable(y).data;
  Tensor added;
  if (kind.added_dtype != DType::undefined) {
    added = PX_TRY(queue.to_device(probe.added));
    attention.added = added.view().data;
  }
  if (!PX_TRY(library_attention(queue, attention))) return false;
  return is_attended_as_ours(kind, PX_TRY(queue.to_host(y)));
}

// True where the library's softmax equals ours on this device. Probed once in a queue's life for each kind, by
// attention whose results the host inspects, for all lengths.
template <GpuDevice Gpu>
Result<bool> attends_as_ours(Queue<Gpu>& queue, const AttentionKind& kind) {
  return queue.asked_once(queue.known_attentions(), kind, [&] { return probe_attention(queue, kind); });
}

// True where the problem is for the library, and the library's results equal those of our kernels; `y` may still be
// null.
template <GpuDevice Gpu>
Result<bool> is_left_to_library(Queue<Gpu>& queue, const LibraryAttention& attention) {
  if (!is_for_library(attention)) return false;
  const AttentionProblem& problem = attention.problem;
  const DType added = attention.added == nullptr ? DType::undefined : attention.added_dtype;
  return attends_as_ours(queue, {attention.dtype, added, problem.queries == 1, problem.size, problem.value_size});
}

}  // namespace parallax::runtime
