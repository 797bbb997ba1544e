// Functions that pointwise operators are made of, free of branches in float so that loops over them become vector code.
// In double they are the library's.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "runtime/device/devices.h"

namespace parallax::runtime::math {

inline constexpr float kLog2E = 1.44269504088896341F;
// ln 2 in two parts; the first has so few bits that its product with an exponent is exact (Cody and Waite, 1980).
inline constexpr float kLn2High = 0.693359375F;
inline constexpr float kLn2Low = -2.12194440e-4F;
// Adding and subtracting 1.5 * 2^23 rounds a float of magnitude below 2^22 to an integer.
inline constexpr float kRoundingShift = 12582912.0F;

// 2^exponent for exponents of normal floats.
PX_HD inline float power_of_two(int32_t exponent) { return std::bit_cast<float>((exponent + 127) << 23); }

// exp(r) - 1 for |r| <= ln2 / 2 by its Taylor series; the first term left out is below 6e-9 of the result.
PX_HD inline float expm1_reduced(float r) {
  const float tail =
      1.0F / 6 + r * (1.0F / 24 + r * (1.0F / 120 + r * (1.0F / 720 + r * (1.0F / 5040 + r * (1.0F / 40320)))));
  return r + r * r * (0.5F + r * tail);
}

struct Reduced {
  float r;
  int32_t exponent;
};

// x = exponent * ln 2 + r. `x` is within [-104, 89] or NaN (which ends up in r).
PX_HD inline Reduced reduce_exponent(float x) {
  float k = (x * kLog2E + kRoundingShift) - kRoundingShift;
  const float r = (x - k * kLn2High) - k * kLn2Low;
  k = k == k ? k : 0.0F;
  return {r, static_cast<int32_t>(k)};
}

PX_HD inline float exp(float x) {
  x = x < -104.0F ? -104.0F : x;  // exp(-104) rounds to 0, exp(89) to infinity; NaN passes both comparisons
  x = x > 89.0F ? 89.0F : x;
  const Reduced reduced = reduce_exponent(x);
  const int32_t half =
      reduced.exponent >> 1;  // in two steps, so that results below 2^-126 round once and 2^128 overflows
  return (1.0F + expm1_reduced(reduced.r)) * power_of_two(half) * power_of_two(reduced.exponent - half);
}
PX_HD inline double exp(double x) { return std::exp(x); }

// exp(x) - 1 for 0 <= x <= 40, without cancellation.
PX_HD inline float expm1_positive(float x) {
  const Reduced reduced = reduce_exponent(x);
  const float scale = power_of_two(reduced.exponent);
  return scale * expm1_reduced(reduced.r) + (scale - 1.0F);
}

PX_HD inline float tanh(float x) {
  float twice = 2.0F * std::fabs(x);
  twice = twice > 40.0F ? 40.0F : twice;  // tanh(20) rounds to 1
  const float e = expm1_positive(twice);
  return std::copysign(e / (e + 2.0F), x);
}
PX_HD inline double tanh(double x) { return std::tanh(x); }

template <class T>
PX_HD T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}

// Below 1 the Taylor series of erf; above, erfc(x) exp(x^2) as a polynomial in 1/(1+x), fitted by least squares on
// [0.9, 4.2] to a relative error of 2e-8. erf(4) rounds to 1.
PX_HD inline float erf(float x) {
  constexpr float kSeries[] = {1.12837917F,     -0.376126389F,    0.112837917F,   -0.0268661706F,
                               0.00522397763F,  -0.000854832702F, 0.00012055333F, -1.49256504e-05F,
                               1.64621144e-06F, -1.63658447e-07F, 1.48071928e-08F};
  constexpr float kTail[] = {-0.00012479574F, 0.567171376F,  0.534923326F, 0.4292569F,
                             -0.641445129F,   -0.587982388F, 1.26447618F,  -0.583414641F};
  float y = std::fabs(x);
  y = y > 4.0F ? 4.0F : y;
  const float small = y > 1.0F ? 1.0F : y;  // keeps the series finite where it is not used
  const float square = small * small;
  float series = kSeries[10];
  for (int term = 9; term >= 0; --term) series = series * square + kSeries[term];
  const float t = 1.0F / (1.0F + y);
  float tail = kTail[7];
  for (int term = 6; term >= 0; --term) tail = tail * t + kTail[term];
  const float large = 1.0F - tail * exp(-y * y);
  return std::copysign(y < 1.0F ? series * small : large, x);
}
PX_HD inline double erf(double x) { return std::erf(x); }

// NaN wins, as in the specification's min and max of floats.
template <class T>
PX_HD T maximum(T a, T b) {
  return (a > b || a != a) ? a : b;
}
template <class T>
PX_HD T minimum(T a, T b) {
  return (a < b || a != a) ? a : b;
}

}  // namespace parallax::runtime::math
