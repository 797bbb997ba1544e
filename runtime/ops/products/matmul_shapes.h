// SPDX-License-Identifier: Apache-2.0
// The shapes of a product of matrices as numpy.matmul has them, and the products of its batch.
#pragma once

#include "runtime/device/cpu/products/gemm.h"

namespace parallax::runtime {

struct MatmulShapes {
  GemmProblem problem;
  Shape out;
};

// Vectors get an axis of 1 that the result loses again, leading axes broadcast. A transposed operand has its last two
// axes swapped; vectors are never swapped. Errors: execution, where the shapes do not fit.
Result<MatmulShapes> matmul_shapes(const Shape& a_shape, const Shape& b_shape, bool transpose_a = false,
                                   bool transpose_b = false);

// Checks the operands that are added to a product: a bias of one row, a residual of the product's shape; null where
// there is none. Errors: execution, naming what does not fit.
Status fits_product(const MatmulShapes& product, const Tensor* bias, const Tensor* residual = nullptr);

}  // namespace parallax::runtime
