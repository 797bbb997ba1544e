// SPDX-License-Identifier: Apache-2.0
// Joins and splits batches of products.
#include "runtime/device/gpu/product_batches.h"

namespace parallax::runtime {

GemmProblem with_joined_rows(const GemmProblem& problem) {
  const int64_t batch = problem.batch();
  int64_t count = 1;
  while (count < batch && problem.b_offsets[count] == problem.b_offsets[0]) ++count;
  if (problem.transpose_a || count == 1 || batch % count != 0) return problem;
  GemmProblem joined = problem;
  joined.m *= count;
  joined.a_offsets = joined.b_offsets = Ints(batch / count);
  for (int64_t i = 0; i < batch; ++i) {
    const int64_t first = i / count * count;
    const bool follows = problem.a_offsets[i] == problem.a_offsets[first] + (i - first) * problem.m * problem.k;
    if (!follows || problem.b_offsets[i] != problem.b_offsets[first]) return problem;
    joined.a_offsets[i / count] = problem.a_offsets[first];
    joined.b_offsets[i / count] = problem.b_offsets[first];
  }
  return joined;
}

std::vector<EvenBatch> even_batches(const GemmProblem& problem) {
  std::vector<EvenBatch> batches;
  const auto distance = [](const Ints& offsets, int64_t i) { return offsets[i] - offsets[i - 1]; };
  for (int64_t i = 0; i < problem.batch(); ++i) {
    if (!batches.empty() && i > batches.back().first) {
      EvenBatch& last = batches.back();
      const int64_t a = distance(problem.a_offsets, i), b = distance(problem.b_offsets, i);
      if (last.count == 1 && a >= 0 && b >= 0) {
        last.a_distance = a;
        last.b_distance = b;
      }
      if (a >= 0 && b >= 0 && a == last.a_distance && b == last.b_distance) {
        ++last.count;
        continue;
      }
    }
    batches.push_back({i, 1, 0, 0});
  }
  return batches;
}

}  // namespace parallax::runtime
