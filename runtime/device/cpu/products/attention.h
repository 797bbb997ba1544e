// SPDX-License-Identifier: Apache-2.0
// attention: y = softmax(rule(scale * q k)) v for many matrices at once. The scores of one tile of queries and keys are
// softened while they are in the cache, and never stored (Milakov and Gimelshein, "Online normalizer calculation for
// softmax", 2018; Dao et al., "FlashAttention", 2022).
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "runtime/device/cpu/math.h"
#include "runtime/device/cpu/products/attention_problem.h"
#include "runtime/device/cpu/rows/folds.h"
#include "runtime/device/cpu/rows/rows.h"

namespace parallax::runtime {

namespace attention_detail {

constexpr int64_t kMostQueries = 256, kMostKeys = 512;  // of a tile: 512 KiB of scores

struct Tile {
  int64_t matrix = 0, first_query = 0, queries = 0;
};

// The state of a thread while it walks the keys of a tile's queries.
struct Workspace {
  explicit Workspace(const AttentionProblem& problem, int64_t queries);
  std::unique_ptr<float[]> scores;
  std::unique_ptr<float[]> packed;  // of an operand whose rows are so distant that they evict each other from caches
  std::vector<float> highest, sums;
};

// Queries of a tile, so that there are tiles for all threads.
int64_t queries_of_tile(const AttentionProblem& problem);
// work.scores[queries, count] = scale * q k of the keys from `first_key` on.
Status score_product(const AttentionProblem& problem, const Tile& tile, int64_t first_key, int64_t count,
                     const float* q, const float* k, Workspace& work);
// y of the tile = work.scores[queries, count] v of those keys, added to what is there unless they are the first.
Status value_product(const AttentionProblem& problem, const Tile& tile, int64_t first_key, int64_t count,
                     const float* v, float* y, Workspace& work);
// y[i] *= factor of the tile's row
void scale_row(const AttentionProblem& problem, const Tile& tile, int64_t row, float factor, float* y);
// scores[i] = exp(scores[i] - shift): their sum.
float exponentials(float* scores, int64_t count, float shift);

struct Exponential {
  float shift;
  PX_HD float operator()(float x) const { return math::exp_nonpositive(x - shift); }
};
struct DividedBy {
  float sum;
  PX_HD float operator()(float x) const { return x / sum; }
};

// exp(score - highest) in place of the scores; what the row came to before is brought to the same highest.
template <class Rule>
void soften_row(const AttentionProblem& problem, const Rule& rule, const Tile& tile, int64_t row, int64_t first_key,
                int64_t count, Workspace& work, float* y) {
  float* scores = work.scores.get() + row * count;
  const HostTeam<float, float> team(scores, scores, count);
  rule.change(tile.matrix, tile.first_query + row, first_key, scores, count);
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  const auto index = static_cast<size_t>(row);
  const float before = first_key == 0 ? kHidden : work.highest[index];
  const float highest = math::maximum(before, team.fold_emitted(FoldMax{}));
  const float shift = highest == kHidden ? 0.0F : highest;  // all hidden so far: every weight is 0
  const float sum = exponentials(scores, count, shift);
  work.highest[index] = highest;
  if (first_key == 0) {
    work.sums[index] = sum;
    return;
  }
  const float factor = math::exp_nonpositive(before - shift);
  work.sums[index] = work.sums[index] * factor + sum;
  if (factor != 1.0F) scale_row(problem, tile, row, factor, y);
}

// The divisor of weights with this sum.
inline float divisor_of(const AttentionProblem& problem, float sum) {
  return problem.no_number_is_zero && sum == 0.0F ? 1.0F : sum;
}

template <class Rule>
Status attend_tile(const AttentionProblem& problem, const Rule& rule, const Tile& tile, const float* q, const float* k,
                   const float* v, float* y, Workspace& work) {
  const bool at_once = problem.keys <= kMostKeys;
  for (int64_t first = 0; first < problem.keys; first += kMostKeys) {
    const int64_t count = std::min(kMostKeys, problem.keys - first);
    PX_TRY(score_product(problem, tile, first, count, q, k, work));
    for (int64_t row = 0; row < tile.queries; ++row) {
      soften_row(problem, rule, tile, row, first, count, work, y);
      if (!at_once) continue;
      float* weights = work.scores.get() + row * count;
      const float sum = work.sums[static_cast<size_t>(row)];
      if (problem.no_number_is_zero && sum != sum) {
        std::fill_n(weights, count, 0.0F);
      } else {
        HostTeam<float, float>(weights, weights, count).change_emitted(DividedBy{divisor_of(problem, sum)});
      }
    }
    PX_TRY(value_product(problem, tile, first, count, v, y, work));
  }
  for (int64_t row = 0; row < tile.queries && !at_once; ++row) {
    const float sum = work.sums[static_cast<size_t>(row)];
    const bool is_lost = problem.no_number_is_zero && sum != sum;
    scale_row(problem, tile, row, is_lost ? 0.0F : 1.0F / divisor_of(problem, sum), y);
  }
  return {};
}

// Runs attend(tile, workspace) for each tile, spread over threads; every library call inside is on one thread.
Status for_each_tile(const AttentionProblem& problem,
                     const std::function<Status(const Tile& tile, Workspace& work)>& attend);

}  // namespace attention_detail

// One of the strides of q, k and v has to be 1, and the other no shorter than a row of it (`is_attention_layout`).
bool is_attention_layout(const MatrixOffsets& locations, int64_t rows, int64_t columns);

template <class Rule>
Status attention(Queue<Cpu>&, const AttentionProblem& problem, const Rule& rule, const float* q, const float* k,
                 const float* v, float* y) {
  using namespace attention_detail;
  return for_each_tile(
      problem, [&](const Tile& tile, Workspace& work) { return attend_tile(problem, rule, tile, q, k, v, y, work); });
}

}  // namespace parallax::runtime
