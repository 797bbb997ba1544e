// SPDX-License-Identifier: Apache-2.0
// Attention by our own kernel, which stores no scores: a tile of queries passes over tiles of keys and values with a
// running maximum and sum (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Dao et al.,
// "FlashAttention", 2022). Where there are few queries, several blocks share the keys, and their partial results are
// merged in a fixed order (Dao et al., "Flash-Decoding for long-context inference", 2023).
#pragma once

#include <optional>

#include "runtime/device/gpu/attention/library_attention.h"

namespace parallax::runtime {

// Matrices with even strides, in elements: that of head h of sample s begins at start + s * sample + h / sharing *
// head.
struct HeadStrides {
  int64_t start = 0, sample = 0, head = 0, sharing = 1;
  int64_t row = 0, column = 1;
  PX_HD int64_t matrix(int64_t of_sample, int64_t of_head) const {
    return start + of_sample * sample + of_head / sharing * head;
  }
};
// None where the strides are not even.
std::optional<HeadStrides> head_strides(const MatrixOffsets& locations, int64_t samples, int64_t heads);

// The keys that a query sees, as far as its position decides.
struct SeenKeys {
  int64_t first = 0, end = 0;
};
struct KeyRule {
  int64_t keys = 0;                             // those after them are hidden from all
  int64_t past = 0;                             // added to the position of each sample's first query
  int64_t left_window = -1, right_window = -1;  // how far a query sees to either side; -1: without limit
  bool is_causal = false;

  // The keys that the query at `position` sees; its sample has `end` keys.
  PX_HD SeenKeys seen(int64_t position, int64_t end) const {
    const int64_t first = left_window >= 0 && position > left_window ? position - left_window : 0;
    if (keys < end) end = keys;
    if (is_causal && position + 1 < end) end = position + 1;
    if (right_window >= 0 && position + right_window + 1 < end) end = position + right_window + 1;
    return {first, end < first ? first : end};
  }
};

// The library's operands, and what else may change the scores. The order: scale, softcap, `added`, `added_again`,
// `hiding`, then minus infinity for keys that are not seen.
struct FlashAttention : LibraryAttention {
  KeyRule rule;
  Ints positions;  // of each sample's first query, before `rule.past`; empty: 0
  Ints ends;       // of each sample's keys; empty: all
  // Both of them on the device, as lengths of each sample's keys, the last of which belong to the queries; none: null.
  const int64_t* lengths = nullptr;
  double softcap = 0;
  DType added_again_dtype = DType::undefined;
  const std::byte* added_again = nullptr;
  MatrixOffsets added_again_locations;
  const std::byte* hiding = nullptr;  // bool: scores where it is `hides_where` become `hidden_value`
  MatrixOffsets hiding_locations;
  bool hides_where = true;
  float hidden_value = 0;
  const float* sinks = nullptr;  // of each head: the score of one more key, whose value is 0
  bool hidden_is_zero = false;   // a query that sees no key gives zeros, else NaN
};

// True for what the kernel computes: float32, float16 and bfloat16, heads of up to 256 numbers, even strides, and
// tensors of float32 or of the operands' type that are added.
bool is_for_flash(const FlashAttention& attention);

// False where the kernel does not suit (is_for_flash), or the device has too little shared memory: nothing has been
// written then. Products of float32 are fused multiply-adds unless the queue may use TF32; those of float16 and
// bfloat16, and of TF32, are the matrix units' with sums in float32, where weights are rounded to the operands' type.
// The same bits in every run. Errors: out of memory.
template <GpuDevice Gpu>
Result<bool> flash_attention(Queue<Gpu>& queue, const FlashAttention& attention);

}  // namespace parallax::runtime
