// SPDX-License-Identifier: Apache-2.0
// Attention that the library of a GPU may do instead of our own kernels. Nobody says what its softmax makes of a query
// all of whose keys are hidden by minus infinity, of NaN and of infinite scores: a queue asks its device, by attention
// whose results are known, and leaves it to our own kernels where the answer is not theirs.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "inspector/tensor/tensor.h"

namespace parallax::runtime {

// The properties that the library's choice of an engine depends on, except for the lengths.
struct AttentionKind {
  DType dtype = DType::undefined;
  DType added_dtype = DType::undefined;  // undefined: nothing is added to the scores
  bool has_one_query = false;
  int64_t size = 0;        // of a query and a key
  int64_t value_size = 0;  // of a value and a result
  bool operator==(const AttentionKind&) const = default;
  bool operator<(const AttentionKind& other) const {
    return std::tie(dtype, added_dtype, has_one_query, size, value_size) <
           std::tie(other.dtype, other.added_dtype, other.has_one_query, other.size, other.value_size);
  }
};

// The probes' results so far, kept by a queue.
using KnownAttentions = std::map<AttentionKind, bool>;

// One sample, whose heads are: half of the keys hidden, all of them hidden (neither, where nothing is added), NaN in
// the queries, scores of infinity. The scale is 1.
struct AttentionProbe {
  static constexpr int64_t kHeads = 4, kKeys = 64;
  int64_t queries = 0;
  Tensor q;      // [kHeads, queries, size]
  Tensor k;      // [kHeads, kKeys, size]
  Tensor v;      // [kHeads, kKeys, value_size]
  Tensor added;  // [kHeads, queries, kKeys]; a scalar where nothing is
};
AttentionProbe attention_probe(const AttentionKind& kind);

// True where the library's results, a tensor [kHeads, queries, value_size] of the kind's type on the host, are what our
// kernels would have stored: NaN for scores that are no finite numbers, and the means of the values to the bit. A query
// all of whose keys are hidden by what is added may give zeros: store_hidden_queries (attention_kernel.h) mends those.
bool is_attended_as_ours(const AttentionKind& kind, const Tensor& results);

}  // namespace parallax::runtime
