// SPDX-License-Identifier: Apache-2.0
// Which attention is a GPU library's, and the probe as it is asked to do it.
#include "runtime/device/gpu/attention/library_attention.h"

namespace parallax::runtime {
namespace {

// One dense matrix after the other.
MatrixOffsets dense_offsets(int64_t rows, int64_t columns) {
  MatrixOffsets locations{Ints(AttentionProbe::kHeads), columns, 1};
  for (int64_t i = 0; i < locations.offsets.size(); ++i) locations.offsets[i] = i * rows * columns;
  return locations;
}

}  // namespace

bool is_for_library(const LibraryAttention& attention) {
  const AttentionProblem& problem = attention.problem;
  const bool is_half = attention.dtype == DType::float16 || attention.dtype == DType::bfloat16;
  const bool can_be_added =
      attention.added == nullptr || attention.added_dtype == DType::float32 || attention.added_dtype == attention.dtype;
  const bool is_any = problem.queries > 0 && problem.keys > 0 && problem.size > 0 && problem.value_size > 0 &&
                      attention.samples > 0 && attention.heads > 0;
  return is_half && can_be_added && is_any && !problem.no_number_is_zero &&
         problem.batch() == attention.samples * attention.heads;
}

LibraryAttention probing_attention(const AttentionKind& kind, int64_t queries) {
  LibraryAttention attention;
  attention.heads = AttentionProbe::kHeads;
  attention.dtype = kind.dtype;
  attention.added_dtype = kind.added_dtype;
  attention.added_locations = dense_offsets(queries, AttentionProbe::kKeys);
  AttentionProblem& problem = attention.problem;
  problem.queries = queries;
  problem.keys = AttentionProbe::kKeys;
  problem.size = kind.size;
  problem.value_size = kind.value_size;
  problem.q = dense_offsets(queries, kind.size);
  problem.k = dense_offsets(AttentionProbe::kKeys, kind.size);
  std::swap(problem.k.row, problem.k.column);
  problem.v = dense_offsets(AttentionProbe::kKeys, kind.value_size);
  problem.y = dense_offsets(queries, kind.value_size);
  return attention;
}

}  // namespace parallax::runtime
