// SPDX-License-Identifier: Apache-2.0
// How severity looks: one table for dot, HTML and whatever draws it. Never color alone: border width and badge say it,
// too.
#pragma once

#include <string>

#include "inspector/diff/comparison.h"

namespace parallax {

struct SeverityStyle {
  std::string fill;   // "#RRGGBB"
  std::string text;   // color readable on `fill`
  std::string badge;  // "ok 0.02", "DIVERGED 37", "mistrusted", "fused into X"
  double border_width = 1;
};

// A node that cannot be executed is drawn with a dashed border of this color.
inline constexpr const char* kProblemFill = "#FDE7EC";
inline constexpr const char* kProblemBorder = "#AA3377";

// Beyond its limit, and passes: its difference is explained by a near tie, accumulated rounding, ...
inline bool is_explained(const ValueComparison& value) {
  return value.verdict == Verdict::pass && value.accepted.has_value();
}
inline constexpr const char* kExplainedFill = "#44BB99";  // Tol's light mint: outside the ramp

// From the worst of a node's values. Ramp: Paul Tol's YlOrBr (https://personal.sron.nl/~pault/), light to dark by
// decade of severity; what was not compared is gray, what is explained green.
SeverityStyle style_of(const ValueComparison& value);

// The reason without shapes: the note, where there is one.
const std::string& brief_reason(const ValueComparison& value);

// The worse of two values for the purpose of showing one of them: diverged by severity, then mistrusted, passed, not
// compared.
bool is_worse(const ValueComparison& a, const ValueComparison& b);

}  // namespace parallax
