// SPDX-License-Identifier: Apache-2.0
// Rotary position embeddings as com.microsoft's operators turn them.
#pragma once

#include <vector>

#include "reference/ops/contrib/heads.h"

namespace parallax::reference {

struct Rotation {
  std::vector<double> cosines, sines;  // [positions, pairs]
  int64_t positions = 0;
  int64_t pairs = 0;
  bool interleaved = false;

  // From the caches, two inputs of one shape [positions, pairs].
  static Result<Rotation> create(const OpContext& op, size_t cos_cache, size_t sin_cache, bool interleaved);

  // Rotates the first 2 * pairs elements of every token, with its angles at rows[batch * sequence + position] of the
  // caches: (a, b) becomes (a cos - b sin, b cos + a sin), where a and b are neighbors if interleaved, else two halves.
  // The elements after them stay. Errors: a row that the caches lack.
  Status apply(HeadBlock& block, const std::vector<int64_t>& rows) const;
};

}  // namespace parallax::reference
