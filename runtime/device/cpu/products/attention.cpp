// SPDX-License-Identifier: Apache-2.0
// The products of a tile, by oneDNN, and tiles over threads.
#include "runtime/device/cpu/products/attention.h"

#include <mutex>

#include <oneapi/dnnl/dnnl.h>

#include "runtime/device/cpu/library_threads.h"
#include "runtime/device/cpu/products/gemm_kernels.h"

namespace parallax::runtime {
namespace attention_detail {
namespace {

// A matrix as oneDNN's sgemm takes it: read along rows, or transposed.
struct Side {
  char transposed;
  int64_t leading;
};

Side side_of(const MatrixOffsets& locations, int64_t rows, int64_t columns) {
  if (locations.column == 1) return {'N', std::max(locations.row, std::max<int64_t>(columns, 1))};
  return {'T', std::max(locations.column, std::max<int64_t>(rows, 1))};
}

Status refused() { return execution_error("oneDNN refused a product of attention; --with reference runs without it"); }

// Rows with a stride of a multiple of 2 KiB share few sets of the nearest caches: products on such operands took a
// fifth longer than on packed ones.
bool is_worth_packing(int64_t row, int64_t size, int64_t rows) { return row % 512 == 0 && row > size && rows > 16; }

// The rows next to each other.
void pack_rows(const float* from, int64_t row, int64_t rows, int64_t size, float* to) {
  for (int64_t i = 0; i < rows; ++i) std::copy_n(from + i * row, size, to + i * size);
}

}  // namespace

Workspace::Workspace(const AttentionProblem& problem, int64_t queries)
    : highest(static_cast<size_t>(queries)), sums(static_cast<size_t>(queries)) {
  const int64_t keys = std::min(problem.keys, kMostKeys);
  scores = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(queries * keys));
  packed =
      std::make_unique_for_overwrite<float[]>(static_cast<size_t>(keys * std::max(problem.size, problem.value_size)));
}

int64_t queries_of_tile(const AttentionProblem& problem) {
  const int64_t threads = thread_count();
  const int64_t tiles_wanted =
      (threads + std::max<int64_t>(1, problem.batch()) - 1) / std::max<int64_t>(1, problem.batch());  // of each matrix
  const int64_t share = (problem.queries + tiles_wanted - 1) / tiles_wanted;
  return std::clamp<int64_t>((share + 15) / 16 * 16, 16, kMostQueries);
}

Status score_product(const AttentionProblem& problem, const Tile& tile, int64_t first_key, int64_t count,
                     const float* q, const float* k, Workspace& work) {
  float* scores = work.scores.get();
  const float* queries = q + problem.q.offsets[tile.matrix] + tile.first_query * problem.q.row;
  const float* keys = k + problem.k.offsets[tile.matrix] + first_key * problem.k.column;
  const auto scale = static_cast<float>(problem.scale);
  if (problem.size == 0) return std::fill_n(scores, tile.queries * count, 0.0F), Status{};
  const bool is_plain = (tile.queries == 1 || problem.q.row == problem.size) && problem.q.column == 1;
  if (tile.queries <= kFewRows && is_plain && problem.k.row == 1 && problem.k.column == problem.size) {
    gemm_few_rows(tile.queries, count, problem.size, queries, keys, true, scale, 0.0F, scores);
    return {};
  }
  const Side left = side_of(problem.q, tile.queries, problem.size);
  Side right = side_of(problem.k, problem.size, count);
  if (problem.k.row == 1 && is_worth_packing(problem.k.column, problem.size, tile.queries)) {
    pack_rows(keys, problem.k.column, count, problem.size, work.packed.get());
    keys = work.packed.get();
    right.leading = problem.size;
  }
  const dnnl_status_t status = dnnl_sgemm(left.transposed, right.transposed, tile.queries, count, problem.size, scale,
                                          queries, left.leading, keys, right.leading, 0.0F, scores, count);
  return status == dnnl_success ? Status{} : refused();
}

Status value_product(const AttentionProblem& problem, const Tile& tile, int64_t first_key, int64_t count,
                     const float* v, float* y, Workspace& work) {
  const float* weights = work.scores.get();
  const float* values = v + problem.v.offsets[tile.matrix] + first_key * problem.v.row;
  float* results = y + problem.y.offsets[tile.matrix] + tile.first_query * problem.y.row;
  const float beta = first_key == 0 ? 0.0F : 1.0F;
  const bool is_plain = tile.queries == 1 || problem.y.row == problem.value_size;
  if (tile.queries <= kFewRows && is_plain && problem.v.column == 1 && problem.v.row == problem.value_size) {
    gemm_few_rows(tile.queries, problem.value_size, count, weights, values, false, 1.0F, beta, results);
    return {};
  }
  Side right = side_of(problem.v, count, problem.value_size);
  if (problem.v.column == 1 && is_worth_packing(problem.v.row, problem.value_size, tile.queries)) {
    pack_rows(values, problem.v.row, count, problem.value_size, work.packed.get());
    values = work.packed.get();
    right.leading = problem.value_size;
  }
  const dnnl_status_t status =
      dnnl_sgemm('N', right.transposed, tile.queries, problem.value_size, count, 1.0F, weights, count, values,
                 right.leading, beta, results, std::max(problem.y.row, problem.value_size));
  return status == dnnl_success ? Status{} : refused();
}

void scale_row(const AttentionProblem& problem, const Tile& tile, int64_t row, float factor, float* y) {
  float* results = y + problem.y.offsets[tile.matrix] + (tile.first_query + row) * problem.y.row;
  vectorized(0, problem.value_size, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) results[i] *= factor;
  });
}

float exponentials(float* scores, int64_t count, float shift) {
  float sum = 0;
  vectorized(0, count, [=, &sum](int64_t, int64_t end) {
    float sums[kLanes] = {};
    const int64_t whole = end / kLanes * kLanes;
    for (int64_t first = 0; first < whole; first += kLanes) {
      for (int64_t i = 0; i < kLanes; ++i) {
        scores[first + i] = math::exp_nonpositive(scores[first + i] - shift);
        sums[i] += scores[first + i];
      }
    }
    for (int64_t i = 0; i < end - whole; ++i) {
      scores[whole + i] = math::exp_nonpositive(scores[whole + i] - shift);
      sums[i] += scores[whole + i];
    }
    for (int64_t width = kLanes / 2; width > 0; width /= 2) {
      for (int64_t i = 0; i < width; ++i) sums[i] += sums[i + width];
    }
    sum = sums[0];
  });
  return sum;
}

Status for_each_tile(const AttentionProblem& problem,
                     const std::function<Status(const Tile& tile, Workspace& work)>& attend) {
  const int64_t queries = queries_of_tile(problem);
  const int64_t tiles = (problem.queries + queries - 1) / queries;
  const int64_t work_per_tile = queries * problem.keys * (problem.size + problem.value_size) / 16 + 1;
  std::mutex guard;
  Status outcome;
  parallel_for(problem.batch() * tiles, work_per_tile, [&](int64_t begin, int64_t end) {
    const LibraryThreads threads(1);
    Workspace work(problem, queries);
    for (int64_t index = begin; index < end; ++index) {
      const int64_t first = index % tiles * queries;
      Status ran = attend({index / tiles, first, std::min(queries, problem.queries - first)}, work);
      if (ran.ok()) continue;
      const std::scoped_lock lock(guard);
      outcome = std::move(ran);
    }
  });
  return outcome;
}

}  // namespace attention_detail

bool is_attention_layout(const MatrixOffsets& locations, int64_t rows, int64_t columns) {
  if (locations.column == 1 && (rows <= 1 || locations.row >= columns)) return true;
  return locations.row == 1 && (columns <= 1 || locations.column >= rows);
}

}  // namespace parallax::runtime
