// SPDX-License-Identifier: Apache-2.0
// attention on a GPU: two batched products, and the scores changed and softened in one pass between them. Operands that
// the products do not take as stored are packed first.
#pragma once

#include "runtime/device/cpu/products/attention.h"
#include "runtime/device/gpu/attention/library_attention.h"
#include "runtime/device/gpu/gemm_kernel.h"
#include "runtime/device/gpu/map_kernel.h"
#include "runtime/device/gpu/rows_kernel.h"

namespace parallax::runtime {
namespace gpu {

template <class Device>
struct StridedElement {
  Elements<Device, const float> data;
  Elements<Device, const int64_t> offsets;
  int64_t row, column, rows, columns;

  PX_HD int64_t offset(int64_t i) const {
    return offsets[i / (rows * columns)] + i / columns % rows * row + i % columns * column;
  }
  PX_HD float operator()(int64_t i) const { return data[offset(i)]; }
};

// The inverse: dense matrices to strided ones.
template <class Device>
struct StoreStridedKernel {
  static constexpr const char* kName = "store_strided";
  StridedElement<Device> from_dense;
  Elements<Device, float> out;
  int64_t count;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, count, [&](int64_t i) { out[from_dense.offset(i)] = from_dense.data[i]; });
  }
};

// Queries all of whose keys are hidden by minus infinity get their result, which cuDNN does not give as we do.
template <class Device>
struct HiddenQueriesKernel {
  static constexpr const char* kName = "hidden_queries";
  Source added;
  Elements<Device, const int64_t> added_offsets;
  int64_t added_row, added_column;
  Target y;
  Elements<Device, const int64_t> y_offsets;
  int64_t y_row, y_column;
  int64_t count, queries, keys, value_size;
  float result;

  template <class Launch>
  PX_HD void operator()(Launch& launch) const {
    for_each_item(launch, count, [&](int64_t item) {
      const int64_t matrix = item / queries, query = item % queries;
      const int64_t first = added_offsets[matrix] + query * added_row;
      for (int64_t key = 0; key < keys; ++key) {
        if (load<Device, float>(added, first + key * added_column) != -std::numeric_limits<float>::infinity()) return;
      }
      const int64_t begin = y_offsets[matrix] + query * y_row;
      for (int64_t i = 0; i < value_size; ++i) store<Device, float>(y, begin + i * y_column, result);
    });
  }
};

template <class Rule>
struct SoftenedScores {
  Rule rule;
  int64_t queries;
  bool no_number_is_zero;

  template <class Team>
  PX_HD void operator()(Team& team, int64_t row) const {
    using namespace attention_detail;
    team.emit(rule.row(row / queries, row % queries));
    const float highest = team.fold_emitted(FoldMax{});
    team.change_emitted(Exponential{highest == -std::numeric_limits<float>::infinity() ? 0.0F : highest});
    const float sum = team.fold_emitted(FoldSum{});
    const bool has_number = sum > 0.0F;
    team.change_emitted(ZeroOrDividedBy{sum, no_number_is_zero && !has_number});
  }

 private:
  struct ZeroOrDividedBy {
    float sum;
    bool is_zero;
    PX_HD float operator()(float x) const { return is_zero ? 0.0F : x / sum; }
  };
};

// The beginnings of one operand's matrices, as the products count.
struct DenseMatrices {
  const float* data = nullptr;
  Ints offsets;
  bool is_transposed = false;
  Tensor memory;  // of a packed copy
};

template <GpuDevice Gpu>
Result<DenseMatrices> dense_matrices(Queue<Gpu>& queue, const MatrixOffsets& locations, int64_t rows, int64_t columns,
                                     const float* data) {
  if (locations.column == 1 && (locations.row == columns || rows == 1))
    return DenseMatrices{data, locations.offsets, false, {}};
  if (locations.row == 1 && (locations.column == rows || columns == 1))
    return DenseMatrices{data, locations.offsets, true, {}};
  DenseMatrices dense;
  const int64_t batch = locations.offsets.size();
  dense.memory = PX_TRY(queue.allocate(DType::float32, Shape{batch, rows, columns}));
  const Tensor offsets = PX_TRY(queue.to_device(Tensor::vector<int64_t>(locations.offsets)));
  const StridedElement<Gpu> element{
      {data}, {reinterpret_cast<const int64_t*>(offsets.view().data)}, locations.row, locations.column, rows, columns};
  tabulate<float>(queue, element, writable(dense.memory));
  dense.data = reinterpret_cast<const float*>(dense.memory.view().data);
  for (int64_t i = 0; i < batch; ++i) dense.offsets.push_back(i * rows * columns);
  return dense;
}

}  // namespace gpu

// After library_attention: `result` for queries all of whose keys are hidden.
template <GpuDevice Gpu>
Status store_hidden_queries(Queue<Gpu>& queue, const LibraryAttention& attention, float result) {
  if (attention.added == nullptr) return {};
  const AttentionProblem& problem = attention.problem;
  const Tensor added_offsets = PX_TRY(queue.to_device(Tensor::vector<int64_t>(attention.added_locations.offsets)));
  const Tensor y_offsets = PX_TRY(queue.to_device(Tensor::vector<int64_t>(problem.y.offsets)));
  const gpu::HiddenQueriesKernel<Gpu> kernel{{attention.added, attention.added_dtype},
                                             {reinterpret_cast<const int64_t*>(added_offsets.view().data)},
                                             attention.added_locations.row,
                                             attention.added_locations.column,
                                             {attention.y, attention.dtype},
                                             {reinterpret_cast<const int64_t*>(y_offsets.view().data)},
                                             problem.y.row,
                                             problem.y.column,
                                             problem.batch() * problem.queries,
                                             problem.queries,
                                             problem.keys,
                                             problem.value_size,
                                             result};
  launch(queue, kernel, gpu::size_for_items(queue, kernel.count));
  return {};
}

template <class Rule, GpuDevice Gpu>
Status attention(Queue<Gpu>& queue, const AttentionProblem& problem, const Rule& rule, const float* q, const float* k,
                 const float* v, float* y) {
  const gpu::DenseMatrices queries = PX_TRY(gpu::dense_matrices(queue, problem.q, problem.queries, problem.size, q));
  const gpu::DenseMatrices keys = PX_TRY(gpu::dense_matrices(queue, problem.k, problem.size, problem.keys, k));
  const gpu::DenseMatrices values = PX_TRY(gpu::dense_matrices(queue, problem.v, problem.keys, problem.value_size, v));
  const int64_t batch = problem.batch();
  const Tensor scores = PX_TRY(queue.allocate(DType::float32, Shape{batch, problem.queries, problem.keys}));
  float* score_values = writable(scores).template as<float>();
  GemmProblem product;
  product.m = problem.queries;
  product.n = problem.keys;
  product.k = problem.size;
  product.alpha = problem.scale;
  product.transpose_a = queries.is_transposed;
  product.transpose_b = keys.is_transposed;
  product.a_offsets = queries.offsets;
  product.b_offsets = keys.offsets;
  PX_TRY(gemm(queue, product, queries.data, keys.data, score_values));
  const gpu::SoftenedScores<Rule> soften{rule, problem.queries, problem.no_number_is_zero};
  const RowLayout rows{batch * problem.queries, problem.keys, 1};
  scan_rows<float, float>(queue, soften, rows, writable(scores), TensorView(writable(scores)), 8);
  const Tensor sums = PX_TRY(queue.allocate(DType::float32, Shape{batch, problem.queries, problem.value_size}));
  GemmProblem weighing;
  weighing.m = problem.queries;
  weighing.n = problem.value_size;
  weighing.k = problem.keys;
  weighing.transpose_b = values.is_transposed;
  weighing.a_offsets = Ints(batch);
  for (int64_t i = 0; i < batch; ++i) weighing.a_offsets[i] = i * problem.queries * problem.keys;
  weighing.b_offsets = values.offsets;
  PX_TRY(gemm(queue, weighing, score_values, values.data, writable(sums).template as<float>()));
  const Tensor locations = PX_TRY(queue.to_device(Tensor::vector<int64_t>(problem.y.offsets)));
  const gpu::StoreStridedKernel<Gpu> scatter{{{writable(sums).template as<float>()},
                                              {reinterpret_cast<const int64_t*>(locations.view().data)},
                                              problem.y.row,
                                              problem.y.column,
                                              problem.queries,
                                              problem.value_size},
                                             {y},
                                             sums.element_count()};
  launch(queue, scatter, gpu::size_for_items(queue, scatter.count));
  return {};
}

}  // namespace parallax::runtime
