// SPDX-License-Identifier: Apache-2.0
// Attention that libraries are tried with: one for each thing that can be described wrongly.
#pragma once

#include <ostream>
#include <vector>

#include "runtime/device/gpu/attention/library_attention.h"

namespace parallax::runtime {

struct AttentionCase {
  enum class Added : uint8_t { nothing, each, of_samples, of_heads, one, one_row };
  const char* name;
  int64_t samples, heads, key_heads, queries, keys, size, value_size;
  bool heads_inside = false;  // [samples, rows, heads, size], else [samples, heads, rows, size]
  Added added = Added::nothing;
  bool added_is_float = false;
  double scale = 0.25;
};

inline std::ostream& operator<<(std::ostream& out, const AttentionCase& given) { return out << given.name; }

// clang-format off
inline const std::vector<AttentionCase> kAttentionCases = {
    {"plain", 2, 3, 3, 5, 7, 8, 8},
    {"one_query", 2, 3, 3, 1, 9, 8, 16},
    {"one_head", 3, 1, 1, 4, 6, 16, 8},
    {"one_sample", 1, 4, 4, 6, 5, 8, 24},
    {"heads_inside", 2, 3, 3, 5, 7, 8, 16, true},
    {"groups", 2, 6, 2, 5, 4, 8, 8},
    {"groups_inside", 2, 6, 3, 5, 4, 8, 8, true},
    {"one_key_head", 2, 4, 1, 5, 4, 8, 8},
    {"added", 2, 3, 3, 5, 8, 8, 8, false, AttentionCase::Added::each},
    {"added_to_samples", 2, 3, 3, 5, 8, 8, 8, true, AttentionCase::Added::of_samples},
    {"added_to_heads", 2, 3, 3, 5, 8, 8, 8, false, AttentionCase::Added::of_heads, true},
    {"added_to_all", 2, 3, 3, 5, 8, 8, 8, false, AttentionCase::Added::one},
    {"added_row", 2, 3, 3, 5, 8, 8, 8, false, AttentionCase::Added::one_row, true},
};
// clang-format on

// Matrices of rows by `size`, of which `heads` heads share `own` ones.
inline MatrixOffsets locations_of(const AttentionCase& given, int64_t own, int64_t rows, int64_t size) {
  MatrixOffsets locations{Ints(given.samples * given.heads), given.heads_inside ? own * size : size, 1};
  for (int64_t i = 0; i < locations.offsets.size(); ++i) {
    const int64_t sample = i / given.heads, head = i % given.heads / (given.heads / own);
    locations.offsets[i] = sample * own * rows * size + head * (given.heads_inside ? size : rows * size);
  }
  return locations;
}

inline MatrixOffsets added_locations_of(const AttentionCase& given) {
  using Added = AttentionCase::Added;
  const bool by_sample = given.added != Added::of_heads && given.added != Added::one;
  const bool by_head = given.added == Added::each || given.added == Added::of_heads;
  const int64_t rows = given.added == Added::one_row ? 1 : given.queries;
  MatrixOffsets locations{Ints(given.samples * given.heads), rows == 1 ? 0 : given.keys, 1};
  for (int64_t i = 0; i < locations.offsets.size(); ++i) {
    const int64_t sample = by_sample ? i / given.heads : 0, head = by_head ? i % given.heads : 0;
    locations.offsets[i] = (sample * (by_head ? given.heads : 1) + head) * rows * given.keys;
  }
  return locations;
}

// Without memory.
inline LibraryAttention attention_of(const AttentionCase& given, DType dtype) {
  LibraryAttention attention;
  attention.samples = given.samples;
  attention.heads = given.heads;
  attention.dtype = dtype;
  AttentionProblem& problem = attention.problem;
  problem.queries = given.queries;
  problem.keys = given.keys;
  problem.size = given.size;
  problem.value_size = given.value_size;
  problem.scale = given.scale;
  problem.q = locations_of(given, given.heads, given.queries, given.size);
  problem.k = locations_of(given, given.key_heads, given.keys, given.size);
  std::swap(problem.k.row, problem.k.column);
  problem.v = locations_of(given, given.key_heads, given.keys, given.value_size);
  problem.y = locations_of(given, given.heads, given.queries, given.value_size);
  if (given.added == AttentionCase::Added::nothing) return attention;
  attention.added_dtype = given.added_is_float ? DType::float32 : dtype;
  attention.added_locations = added_locations_of(given);
  return attention;
}

}  // namespace parallax::runtime
