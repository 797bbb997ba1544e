// SPDX-License-Identifier: Apache-2.0
// Swish (SiLU) as convolutions apply it to sums they have just made: by fewer steps where no exponential can overflow or
// be subnormal.
#pragma once

#include <cmath>

#include "runtime/device/cpu/activation.h"

namespace parallax::runtime {

// x sigmoid(alpha x). Each element takes the steps of its own range, whichever its neighbors take.
struct Swish {
  float alpha;
  bool is_tame(float x) const { return std::fabs(alpha * x) <= 64.0F; }
  float tame(float x) const { return x / (1.0F + math::exp_normal<0>(-(alpha * x))); }
  float operator()(float x) const { return is_tame(x) ? tame(x) : math::times_sigmoid(x, alpha * x); }
};

// visit_activation with Swish for that kind.
template <class Visit>
void visit_activation_of_conv(const Activation& activation, const Visit& visit) {
  if (activation.kind == Activation::Kind::swish) return visit(Swish{activation.alpha});
  visit_activation(activation, visit);
}

}  // namespace parallax::runtime
