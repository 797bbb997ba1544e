// SPDX-License-Identifier: Apache-2.0
// The ramp and the badges.
#include "inspector/render/severity_style.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

namespace parallax {
namespace {

struct RampStep {
  double from;  // severity
  const char* fill;
  const char* text;
};
// Tol YlOrBr, discrete.
constexpr std::array<RampStep, 8> kRamp = {{{0, "#FFFFE5", "#000000"},
                                            {1e-2, "#FFF7BC", "#000000"},
                                            {1e-1, "#FEE391", "#000000"},
                                            {1, "#FEC44F", "#000000"},
                                            {1e1, "#FB9A29", "#000000"},
                                            {1e2, "#EC7014", "#000000"},
                                            {1e3, "#CC4C02", "#FFFFFF"},
                                            {1e5, "#8C2D04", "#FFFFFF"}}};

int rank_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::diverged:
      return 3;
    case Verdict::mistrusted:
      return 2;
    case Verdict::pass:
      return 1;
    case Verdict::not_compared:
      return 0;
  }
  return 0;
}

}  // namespace

const std::string& brief_reason(const ValueComparison& value) { return value.note.empty() ? value.reason : value.note; }

SeverityStyle style_of(const ValueComparison& value) {
  if (value.verdict == Verdict::not_compared) return {"#DDDDDD", "#000000", brief_reason(value), 1};
  SeverityStyle style;
  for (const RampStep& step : kRamp) {
    if (judged_severity(value) >= step.from) {
      style.fill = step.fill;
      style.text = step.text;
    }
  }
  if (value.verdict == Verdict::mistrusted)
    return {"#BBCCEE", "#000000", "mistrusted", 1};  // Tol pale blue: outside the ramp
  if (is_explained(value)) style.fill = kExplainedFill;
  const std::string_view word = value.verdict == Verdict::diverged ? "DIVERGED"
                                : value.accepted.has_value()       ? "accepted"
                                                                   : "ok";
  style.badge = fmt::format("{} {:.2g}", word, value.severity);
  style.border_width = value.verdict == Verdict::diverged ? 3 : 1;
  return style;
}

bool is_worse(const ValueComparison& a, const ValueComparison& b) {
  if (rank_of(a.verdict) != rank_of(b.verdict)) return rank_of(a.verdict) > rank_of(b.verdict);
  return a.severity > b.severity;
}

}  // namespace parallax
