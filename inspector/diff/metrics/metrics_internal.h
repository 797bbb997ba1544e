// SPDX-License-Identifier: Apache-2.0
// Parts that the metrics of each kind of element share: the raw sums, how they merge, and how they become Metrics.
#pragma once

#include "inspector/diff/metrics/metrics.h"
#include "inspector/diff/metrics/metrics_extremes.h"

namespace parallax::diff {

// Sums over pairs that are both finite. long double holds the square of any double.
struct Sums {
  long double abs = 0, dd = 0, aa = 0, bb = 0;
  long double dp = 0;  // (a-b)(a+b): |a|^2 - |b|^2 without cancellation
  int64_t pairs = 0;
  int64_t nan_a = 0, nan_b = 0, inf_a = 0, inf_b = 0;

  void add(double a, double b) {
    const long double x = a, y = b, d = x - y;
    abs += d < 0 ? -d : d;
    dd += d * d;
    aa += x * x;
    bb += y * y;
    dp += d * (x + y);
    ++pairs;
  }
  void merge(const Sums& other);
};

struct Totals {
  Sums sums;
  Extremes extremes;
  DifferenceHistogram histogram{};
  void merge(const Totals& other);
};

// Bucket of |a-b| (see DifferenceHistogram); the difference of floats up to 32 bits is rounded to float32 first.
int bucket_of(double difference, bool is_float64);

// Floating types and complex ones (as twice as many real numbers).
Totals total_floats(const TensorView& a, const TensorView& b, const Tolerance& tolerance, DType units,
                    bool with_histogram);
// Integers and bool; severity is 0 or infinity.
Totals total_integers(const TensorView& a, const TensorView& b, bool with_histogram);

}  // namespace parallax::diff
