// SPDX-License-Identifier: Apache-2.0
// Our own matrix kernels: few rows against a large matrix (bound by memory, not by arithmetic) and integers.
#pragma once

#include <cstdint>

namespace parallax::runtime {

constexpr int64_t kFewRows = 4;

// c[m,n] = alpha * a[m,k] b[k,n] + beta * c, m <= kFewRows; b is [n,k] when transposed.
void gemm_few_rows(int64_t m, int64_t n, int64_t k, const float* a, const float* b, bool transpose_b, float alpha,
                   float beta, float* c);

// The columns of b that are walked together when it is packed: [panels, k, kPanelColumns], the last panel filled up
// with zeros.
constexpr int64_t kPanelColumns = 32;
constexpr int64_t kMostPanelRows = 8;  // beyond, oneDNN's product is as fast
int64_t panel_floats(int64_t n, int64_t k);
void pack_panels(int64_t n, int64_t k, const float* b, bool transpose_b, float* panels);

// c[m,n] = a[m,k] b[k,n] for packed b and m <= kMostPanelRows: sums stay in registers, b is read along memory. A sum
// has the order of k.
void gemm_panels(int64_t m, int64_t n, int64_t k, const float* a, const float* panels, float* c);

void gemm_integers(int64_t m, int64_t n, int64_t k, const int64_t* a, const int64_t* b, int64_t* c);

}  // namespace parallax::runtime
