// SPDX-License-Identifier: Apache-2.0
// Swish (SiLU) and HardSwish as convolutions apply them to sums they have just made, by fewer steps.
#pragma once

#include <cmath>

#include "runtime/device/cpu/activation.h"

namespace parallax::runtime {

// x sigmoid(alpha x), where no exponential can overflow or be subnormal by fewer steps. Each element takes the steps of
// its own range, whichever its neighbors take.
struct ConvSwish {
  float alpha;
  bool is_in_fast_range(float x) const { return std::fabs(alpha * x) <= 64.0F; }
  float in_fast_range(float x) const { return x / (1.0F + math::exp_normal<0>(-(alpha * x))); }
  float operator()(float x) const { return is_in_fast_range(x) ? in_fast_range(x) : math::times_sigmoid(x, alpha * x); }
};

// x max(0, min(1, x / 6 + 1 / 2)); a NaN stays one in the product.
struct ConvHardSwish {
  float operator()(float x) const {
    const float sum = x * (1.0F / 6.0F) + 0.5F;
    const float positive = sum < 0.0F ? 0.0F : sum;
    return x * (positive > 1.0F ? 1.0F : positive);
  }
};

// Whether it only keeps values that are not NaN between bounds.
inline bool are_bounds(const Activation& activation) {
  const bool is_clip = activation.kind == Activation::Kind::clip;
  return activation.kind == Activation::Kind::relu ||
         (is_clip && !std::isnan(activation.alpha) && !std::isnan(activation.beta));
}

// visit_activation with these for their kinds.
template <class Visit>
void visit_activation_of_conv(const Activation& activation, const Visit& visit) {
  if (activation.kind == Activation::Kind::swish) return visit(ConvSwish{activation.alpha});
  if (activation.kind == Activation::Kind::hard_swish) return visit(ConvHardSwish{});
  visit_activation(activation, visit);
}

}  // namespace parallax::runtime
