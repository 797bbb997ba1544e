// SPDX-License-Identifier: Apache-2.0
// Metrics: the distance of two tensors, as pure functions over two views, each in one pass.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "inspector/tensor/tensor.h"

namespace parallax {

// a is the expected side. NaN and infinities are counted by class and left out of the sums; a pair of another class at
// the same index counts as a mismatch of severity infinity.
struct Metrics {
  int64_t count = 0;
  int64_t finite_pairs = 0;  // of two finite elements: mean, RMS, relative L2, cosine and SNR are over these
  double max_abs = 0;        // max |a-b|
  double max_rel = 0;        // max |a-b| / |a|, 0/0 = 0, x/0 = inf
  double mean_abs = 0;       // mean |a-b|
  double rmse = 0;           // sqrt(mean (a-b)^2)
  double rel_l2 = 0;         // ||a-b|| / ||a||, 0/0 = 0
  double cosine = 1;         // a.b / (|a||b|); 1 when both are zero, 0 when one is
  double rms_a = 0;          // sqrt(mean a^2): the magnitude that absolute bounds are relative to
  double snr_db = 0;         // 20 log10(||a|| / ||a-b||), inf when equal
  double max_ulp = 0;        // in units in the last place of the larger of |a| and |b|; integers: |a-b|
  int64_t mismatches = 0;    // elements of severity > 1 under the tolerance given
  int64_t nan_a = 0, nan_b = 0, inf_a = 0, inf_b = 0;
  double severity = 0;  // max |a-b| / (atol + rtol |a|) over all elements
  std::vector<int64_t>
      worst_index;  // multi-index of the element of largest severity (first of equals); empty without elements
  double worst_a = 0, worst_b = 0;
  // worst_a and worst_b of integers, which a double rounds; the bits of a uint64.
  struct Integers {
    int64_t a = 0, b = 0;
    bool is_unsigned = false;
  };
  std::optional<Integers> worst_integers;
  bool all_equal_a = false;  // a holds one single value (NaN equal to NaN): for `mistrusted`
  bool all_zero_a = false;
  bool all_equal_b = false;
  bool all_zero_b = false;
};

struct Tolerance {
  double rtol = 0;
  double atol = 0;
};

// log2 |a-b| in 64 buckets from 2^-48 up, plus exact zeros and non-finite pairs: [0] equal, [1..64] by exponent, [65]
// non-finite.
using DifferenceHistogram = std::array<int64_t, 66>;

// Both views on the host, of equal dtype and shape (PX_CHECK). Strings compare by equality. `held`: the narrower of the
// types of which floats were widened to be compared: its units in the last place count.
Metrics compare_views(const TensorView& a, const TensorView& b, const Tolerance& tolerance,
                      DifferenceHistogram* histogram = nullptr, DType held = DType::undefined);

// The float type with fewer digits.
DType narrower_of(DType a, DType b);

// The instruction set in use: "avx512", "avx2", "portable".
std::string_view metrics_instruction_set();

}  // namespace parallax
