// SPDX-License-Identifier: Apache-2.0
// Extremes: the largest differences met so far, each element judged exactly in double, in index order.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "inspector/diff/metrics/metrics.h"

namespace parallax::diff {

// The scale that differences are measured against.
struct Measure {
  double rtol = 0;
  double atol = 0;
  double min_normal = 0;  // smallest positive normal number of the element type
  double epsilon = 0;     // distance from 1 to the next number
};

struct Extremes {
  double severity = 0, max_abs = 0, max_rel = 0, max_ulp = 0;
  int64_t worst = -1;  // linear index; -1: none differs
  double worst_a = 0, worst_b = 0;
  int64_t mismatches = 0;

  // Finite a and b. Counts the mismatch too when asked: severity > 1 exactly when d > bound.
  void offer(double a, double b, int64_t index, const Measure& measure, bool count_mismatch) {
    const double d = std::abs(a - b);
    if (d == 0) return;
    const double magnitude = std::abs(a);
    const double bound = measure.atol + measure.rtol * magnitude;
    if (count_mismatch && d > bound) ++mismatches;
    max_abs = d > max_abs ? d : max_abs;
    // The products keep most elements from the divisions; the margin covers their rounding.
    constexpr double kMargin = 1 - 4096 * std::numeric_limits<double>::epsilon();
    if (!(d < max_rel * kMargin * magnitude)) max_rel = std::fmax(max_rel, magnitude == 0 ? infinity() : d / magnitude);
    const double unit = ulp_of(std::fmax(magnitude, std::abs(b)), measure);
    if (!(d < max_ulp * kMargin * unit)) max_ulp = std::fmax(max_ulp, d / unit);
    if (!(d < severity * kMargin * bound)) raise(bound == 0 ? infinity() : d / bound, a, b, index);
  }

  // Numbers of another class at the same index: the largest distance.
  void offer_classes(double a, double b, int64_t index) {
    max_abs = max_rel = max_ulp = infinity();
    ++mismatches;
    raise(infinity(), a, b, index);
  }

  void merge(const Extremes& other) {
    max_abs = std::fmax(max_abs, other.max_abs);
    max_rel = std::fmax(max_rel, other.max_rel);
    max_ulp = std::fmax(max_ulp, other.max_ulp);
    mismatches += other.mismatches;
    const bool is_worse = other.severity > severity || (other.severity == severity && other.worst < worst);
    if (other.worst < 0 || (worst >= 0 && !is_worse)) return;
    severity = other.severity;
    worst = other.worst;
    worst_a = other.worst_a;
    worst_b = other.worst_b;
  }

 private:
  static constexpr double infinity() { return std::numeric_limits<double>::infinity(); }

  static double ulp_of(double magnitude, const Measure& measure) {
    if (magnitude < measure.min_normal) return measure.min_normal * measure.epsilon;
    const double power = std::bit_cast<double>(std::bit_cast<uint64_t>(magnitude) & 0x7FF0000000000000U);
    return power * measure.epsilon;
  }

  void raise(double value, double a, double b, int64_t index) {
    if (!(value > severity)) return;
    severity = value;
    worst = index;
    worst_a = a;
    worst_b = b;
  }
};

}  // namespace parallax::diff
