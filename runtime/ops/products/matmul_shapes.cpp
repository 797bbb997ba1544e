// SPDX-License-Identifier: Apache-2.0
// One tall product where B is shared and A needs no repeating; else offsets into both for each matrix of the batch.
#include "runtime/ops/products/matmul_shapes.h"

#include "inspector/model/rule_errors.h"

namespace parallax::runtime {

Result<MatmulShapes> matmul_shapes(const Shape& a_shape, const Shape& b_shape, bool transpose_a, bool transpose_b) {
  Ints a(a_shape), b(b_shape);
  if (a.empty() || b.empty()) return wrong_shape(a.empty() ? "A" : "B", Ints(), "have rank 1 or more to be multiplied");
  const bool a_is_vector = a.size() == 1;
  const bool b_is_vector = b.size() == 1;
  if (a_is_vector) a.insert(0, 1);
  if (b_is_vector) b.insert(1, 1);
  MatmulShapes result;
  GemmProblem& problem = result.problem;
  problem.transpose_a = transpose_a && !a_is_vector;
  problem.transpose_b = transpose_b && !b_is_vector;
  problem.m = a[a.size() - (problem.transpose_a ? 1 : 2)];
  problem.k = a[a.size() - (problem.transpose_a ? 2 : 1)];
  problem.n = b[b.size() - (problem.transpose_b ? 2 : 1)];
  if (b[b.size() - (problem.transpose_b ? 1 : 2)] != problem.k)
    return wrong_shape("B", b_shape, "have {} rows to be multiplied with A {}", problem.k, a_shape.to_string());
  const Shape a_batch(std::span<const int64_t>(a.data(), static_cast<size_t>(a.size() - 2)));
  const Shape b_batch(std::span<const int64_t>(b.data(), static_cast<size_t>(b.size() - 2)));
  const Shape batches[] = {a_batch, b_batch};
  const Shape batch = PX_TRY(broadcast_shapes(batches));
  Ints out(batch);
  if (!a_is_vector) out.push_back(problem.m);
  if (!b_is_vector) out.push_back(problem.n);
  result.out = PX_TRY(shape_of(out));
  if (b_batch.element_count() == 1 && a_batch.element_count() == batch.element_count() && !problem.transpose_a) {
    problem.m *= batch.element_count();  // one tall product
    return result;
  }
  const Ints a_strides = broadcast_strides(a_batch, batch);
  const Ints b_strides = broadcast_strides(b_batch, batch);
  problem.a_offsets = Ints(batch.element_count());
  problem.b_offsets = Ints(batch.element_count());
  for (int64_t i = 0; i < batch.element_count(); ++i) {
    int64_t rest = i;
    for (int64_t axis = rank_of(batch) - 1; axis >= 0; --axis) {
      problem.a_offsets[i] += rest % dim_of(batch, axis) * a_strides[axis] * problem.m * problem.k;
      problem.b_offsets[i] += rest % dim_of(batch, axis) * b_strides[axis] * problem.k * problem.n;
      rest /= dim_of(batch, axis);
    }
  }
  return result;
}

Status fits_product(const MatmulShapes& product, const Tensor* bias, const Tensor* residual) {
  if (bias != nullptr && !(bias->shape() == Shape{product.problem.n}))
    return wrong_shape("the bias", bias->shape(), "have {} elements, one for each column of the product",
                       product.problem.n);
  if (residual != nullptr && !(residual->shape() == product.out))
    return wrong_shape("the residual", residual->shape(), "have the shape of the product, {}", product.out.to_string());
  return {};
}

}  // namespace parallax::runtime
