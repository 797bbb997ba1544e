// SPDX-License-Identifier: Apache-2.0
// Operators of ai.onnx that draw random numbers: their results do not follow from their inputs.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace parallax {

inline bool draws_at_random(std::string_view op_type) {
  constexpr std::array<std::string_view, 6> kOperators = {"Bernoulli",        "Multinomial",   "RandomNormal",
                                                          "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
  return std::find(kOperators.begin(), kOperators.end(), op_type) != kOperators.end();
}

}  // namespace parallax
