// SPDX-License-Identifier: Apache-2.0
// library_product: a matrix product by the library of a GPU in the types its operands have, with a residual, a bias and
// an activation in the same pass.
#pragma once

#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/gpu/library_epilogue.h"

namespace parallax::runtime {

// c = epilogue(alpha op(a) op(b) + residual + bias), summed in float32 and rounded once. The problem's offsets are
// those of gemm.
struct LibraryProduct {
  GemmProblem problem;
  TensorView a;
  TensorView b;
  TensorView bias;  // a row of n elements of c's type; undefined: none
  MutableView c;
  Epilogue epilogue = Epilogue::none;  // another one where has_epilogue says so
  MutableView pre_activation{};        // as c: what the activation is of is kept here, too; undefined: nowhere
  TensorView residual{};               // of c's type and shape; undefined: none
};

// False where the library has no way to do it: nothing has been written then. Deterministic: the library's own choice
// of an algorithm, which is the same for the same shapes, and no sum is kept in less than float32. With
// `pre_activation` it is the algorithm without, or none.
template <GpuDevice Gpu>
Result<bool> library_product(Queue<Gpu>& queue, const LibraryProduct& product);

// Compares the library's results for the probe with ours.
template <GpuDevice Gpu>
Result<bool> probe_epilogue(Queue<Gpu>& queue, const EpilogueKind& kind) {
  const EpilogueProbe probe = epilogue_probe(kind);
  const Tensor a = PX_TRY(queue.to_device(probe.a));
  const Tensor b = PX_TRY(queue.to_device(probe.b));
  const Tensor bias = PX_TRY(queue.to_device(probe.bias));
  const Tensor c = PX_TRY(queue.allocate(kind.dtype, Shape{EpilogueProbe::kRows, EpilogueProbe::kColumns}));
  LibraryProduct product{{},          a.view(),     b.view(), kind.has_bias ? bias.view() : TensorView{},
                         writable(c), kind.epilogue};
  Tensor kept;
  if (kind.keeps_sums) {
    kept = PX_TRY(queue.allocate(kind.dtype, c.shape()));
    product.pre_activation = writable(kept);
  }
  product.problem.m = EpilogueProbe::kRows;
  product.problem.n = EpilogueProbe::kColumns;
  product.problem.k = EpilogueProbe::kInner;
  if (!PX_TRY(library_product(queue, product))) return false;
  if (!is_as_ours(kind, probe.sums, PX_TRY(queue.to_host(c)))) return false;
  return !kind.keeps_sums ||
         is_as_ours({Epilogue::none, kind.dtype, kind.has_bias}, probe.sums, PX_TRY(queue.to_host(kept)));
}

// True where the library's activation equals ours on this device. Probed once in a queue's life, by a product whose
// results the host inspects, for products of all shapes.
template <GpuDevice Gpu>
Result<bool> has_epilogue(Queue<Gpu>& queue, const EpilogueKind& kind) {
  if (kind.epilogue == Epilogue::none) return true;
  return queue.asked_once(queue.known_epilogues(), kind, [&] { return probe_epilogue(queue, kind); });
}

}  // namespace parallax::runtime
