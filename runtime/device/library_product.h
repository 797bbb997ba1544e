// library_product: a matrix product by the library of a GPU in the types its operands have, with a bias in the same
// pass.
#pragma once

#include "runtime/device/gemm.h"

namespace parallax::runtime {

// c = alpha op(a) op(b) + bias, summed in float32 and rounded once. The problem's offsets are those of gemm.
// Activations stay with our own kernels: of the library's ReLU nobody says what it makes of NaN, and its GELU is
// another formula.
struct LibraryProduct {
  GemmProblem problem;
  TensorView a;
  TensorView b;
  TensorView bias;  // a row of n elements of c's type; undefined: none
  MutableView c;
};

// False where the library has no way to do it: nothing has been written then. Deterministic: the library's own choice
// of an algorithm, which is the same for the same shapes, and no sum is kept in less than float32.
template <GpuDevice Gpu>
Result<bool> library_product(Queue<Gpu>& queue, const LibraryProduct& product);

}  // namespace parallax::runtime
