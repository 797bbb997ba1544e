// SPDX-License-Identifier: Apache-2.0
// Activations as convolutions apply them to sums that they have just computed: in bounds, or by fewer steps.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "runtime/device/cpu/activation.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/multiversion.h"

namespace parallax::runtime {

// x sigmoid(alpha x), where no exponential can overflow or be subnormal by fewer steps. Each element takes the steps of
// its own range, whichever its neighbors take.
struct ConvSwish {
  float alpha;
  bool is_in_fast_range(float x) const { return std::fabs(alpha * x) <= 64.0F; }
  float in_fast_range(float x) const { return x / (1.0F + math::exp_normal<0>(-(alpha * x))); }
  float operator()(float x) const { return is_in_fast_range(x) ? in_fast_range(x) : math::times_sigmoid(x, alpha * x); }
};

// A result is between them, or NaN.
struct ActivationBounds {
  float lowest = -std::numeric_limits<float>::infinity();
  float highest = std::numeric_limits<float>::infinity();
};

// Those of an activation that does no more than keep values between bounds; nothing for others.
inline std::optional<ActivationBounds> bounds_of(const Activation& activation) {
  if (activation.kind == Activation::Kind::relu) return ActivationBounds{.lowest = 0.0F};
  const bool is_clip = activation.kind == Activation::Kind::clip;
  if (!is_clip || std::isnan(activation.alpha) || std::isnan(activation.beta)) return std::nullopt;
  return ActivationBounds{activation.alpha, activation.beta};
}

// visit_activation with this for its kind.
template <class Visit>
void visit_activation_of_conv(const Activation& activation, const Visit& visit) {
  if (activation.kind == Activation::Kind::swish) return visit(ConvSwish{activation.alpha});
  visit_activation(activation, visit);
}

// y = apply(y + addend) in place, for `rows` rows of y that have just been computed, `pitch` numbers from each other;
// addend: null, or with the same pitch. kColumns: the columns of a row, known to the compiler; 0: `columns`.
template <int64_t kColumns, class Apply>
void activate_rows(int64_t rows, int64_t columns, int64_t pitch, const float* addend, const Apply& apply, float* y) {
  vectorized(0, rows, [=](int64_t begin, int64_t end) {
    const int64_t count = kColumns == 0 ? columns : kColumns;
    if constexpr (map_detail::HasFastRange<float, Apply, 1>) {
      int32_t wild = addend == nullptr ? 0 : 1;
      for (int64_t i = begin; i < end; ++i) {
        const float* const line = y + i * pitch;
        for (int64_t j = 0; j < count; ++j) wild += apply.is_in_fast_range(line[j]) ? 0 : 1;
      }
      if (wild == 0) {
        const Apply its = apply;  // no store can change it
        for (int64_t i = begin; i < end; ++i) {
          float* const line = y + i * pitch;
          PX_INDEPENDENT_ITERATIONS
          for (int64_t j = 0; j < count; ++j) line[j] = its.in_fast_range(line[j]);
        }
        return;
      }
    }
    for (int64_t i = begin; i < end; ++i) {
      float* const line = y + i * pitch;
      if (addend == nullptr) {
        PX_INDEPENDENT_ITERATIONS
        for (int64_t j = 0; j < count; ++j) line[j] = apply(line[j]);
      } else {
        const float* const other = addend + i * pitch;
        PX_INDEPENDENT_ITERATIONS
        for (int64_t j = 0; j < count; ++j) line[j] = apply(line[j] + other[j]);
      }
    }
  });
}

}  // namespace parallax::runtime
