// SPDX-License-Identifier: Apache-2.0
// gemm: products of matrices, alone or in batches: oneDNN in float (weights packed once), OpenBLAS in double, our own
// kernels for few rows and for integers.
#pragma once

#include "runtime/device/cpu/ints.h"
#include "runtime/device/cpu/queue_cpu.h"

namespace parallax::runtime {

// c[i] = alpha * op(a[i]) * op(b[i]) + beta * c[i] for each matrix i of the batch; row-major and dense.
struct GemmProblem {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool transpose_a = false;  // a is [k, m]
  bool transpose_b = false;  // b is [n, k]
  double alpha = 1.0;
  double beta = 0.0;
  Ints a_offsets{0};  // in elements; c[i] begins at i * m * n
  Ints b_offsets{0};
  bool b_is_constant = false;  // b's payload outlives the queue and never changes: it is packed once
  int64_t batch() const { return a_offsets.size(); }
};

Status gemm(Queue<Cpu>& queue, const GemmProblem& problem, const float* a, const float* b, float* c);
Status gemm(Queue<Cpu>& queue, const GemmProblem& problem, const double* a, const double* b, double* c);
// b in its storage type. A matrix of float16 or bfloat16 that is constant stays so where has_stored_panels() has it;
// all others are converted.
Status gemm(Queue<Cpu>& queue, const GemmProblem& problem, const float* a, const TensorView& b, float* c);
Status gemm(Queue<Cpu>& queue, const GemmProblem& problem, const double* a, const TensorView& b, double* c);
// Exact modulo 2^64; no transposition, alpha and beta as they are by default.
Status gemm(Queue<Cpu>& queue, const GemmProblem& problem, const int64_t* a, const int64_t* b, int64_t* c);

// The payload as C: itself, or a converted copy in memory of the queue (kept for the queue's life when `is_constant`).
template <class C>
Result<std::shared_ptr<const C>> converted(Queue<Cpu>& queue, const TensorView& view, bool is_constant);

}  // namespace parallax::runtime
