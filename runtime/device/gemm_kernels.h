// Our own matrix kernels: few rows against a large matrix (bound by memory, not by arithmetic) and integers.
#pragma once

#include <cstdint>

namespace parallax::runtime {

constexpr int64_t kFewRows = 4;

// c[m,n] = alpha * a[m,k] b[k,n] + beta * c, m <= kFewRows; b is [n,k] when transposed.
void gemm_few_rows(int64_t m, int64_t n, int64_t k, const float* a, const float* b, bool transpose_b, float alpha,
                   float beta, float* c);

void gemm_integers(int64_t m, int64_t n, int64_t k, const int64_t* a, const int64_t* b, int64_t* c);

}  // namespace parallax::runtime
