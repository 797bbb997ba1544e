// SPDX-License-Identifier: Apache-2.0
// GroupQueryAttention's shape, and the parts of it that are kernels: the cache with its new rows, the mask of the
// scores.
#pragma once

#include "runtime/ops/contrib/cache.h"
#include "runtime/ops/inner_op.h"

namespace parallax::runtime {

struct GroupShape {
  int64_t batch = 0, sequence = 0, heads = 0, kv_heads = 0, size = 0;
  int64_t longest = 0;   // total_sequence_length
  int64_t cached = 0;    // rows of the past
  int64_t capacity = 0;  // rows of the present
  int64_t window = -1;   // how far back a query sees; not above 0: to the beginning
  bool is_causal = true;
  std::vector<CachePosition> locations;
};

// The past rows of each sample, then its new ones, then zeros, as `dtype`; `past` may be undefined. Errors: execution.
Result<Tensor> extended_numbers(ChainContext& op, const Tensor& past, const Tensor& fresh, const CacheRows& rows,
                                DType dtype);

// A cache that is held as multiples of scales (cache.h).
struct QuantizedCache {
  const CacheFormat& format;
  const Tensor& past;
  const Tensor& scale;
};
// The extended quantized cache in real numbers; output `output`, where not -1, is its quantized content. Errors:
// execution.
Result<Tensor> extended_quantized(ChainContext& op, const QuantizedCache& cache, const Tensor& fresh,
                                  const CacheRows& rows, int64_t output);

// The mask of each query, as numbers to be added to [batch, heads or 1, sequence, keys]; one more column for the sinks,
// where those are given: the score of a key without content for each head. `bias` is undefined or [batch, heads,
// sequence, keys].
Result<Tensor> group_mask(ChainContext& op, const GroupShape& shape, const Tensor& bias, const Tensor& sinks);

// Output 3: the scores of all rows of the cache; keys that a query does not see are shown as 0.
Status set_shown_scores(ChainContext& op, const GroupShape& shape, const Tensor& scores);

}  // namespace parallax::runtime
