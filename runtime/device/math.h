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
PX_HD inline float power_of_two(int32_t exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

// exp(r) - 1 = r + r^2 p(r) for |r| <= ln2 / 2, where p is fitted so that the largest error is 4e-9 of exp(r).
PX_HD inline float expm1_reduced(float r) {
  constexpr float kTail[] = {0.49999994F, 0.166665196F, 0.0416683927F, 0.00836878084F, 0.00138144672F};
  const float p = kTail[0] + r * (kTail[1] + r * (kTail[2] + r * (kTail[3] + r * kTail[4])));
  return r + r * r * p;
}

struct Reduced {
  float r;
  int32_t exponent;
};

// x = exponent * ln 2 + r. `x` is within [-104, 89] or NaN, which ends up in r. The rounded exponent is read from the
// last bits of the sum that rounds it.
PX_HD inline Reduced reduce_exponent(float x) {
  const float shifted = x * kLog2E + kRoundingShift;
  const float k = shifted - kRoundingShift;
  const float r = (x - k * kLn2High) - k * kLn2Low;
  return {r, std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRoundingShift)};
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

// e^x for x <= 0 or NaN, in fewer steps: the scale 2^(k + 64) is shifted out of the sum that rounds k, and 2^-64 takes
// results below 2^-126 to their one rounding.
PX_HD inline float exp_nonpositive(float x) {
  constexpr float kBiasedShift = kRoundingShift + 127.0F + 64.0F;
  x = x < -104.0F ? -104.0F : x;
  const float shifted = x * kLog2E + kBiasedShift;
  const float k = shifted - kBiasedShift;
  const float r = (x - k * kLn2High) - k * kLn2Low;
  const float scale = std::bit_cast<float>(std::bit_cast<uint32_t>(shifted) << 23);
  return (1.0F + expm1_reduced(r)) * scale * 0x1p-64F;
}
PX_HD inline double exp_nonpositive(double x) { return std::exp(x); }

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

// x Phi(x) = x / 2 (1 + erf(x / sqrt 2)).
PX_HD inline double gelu(double x) { return 0.5 * x * (1.0 + erf(x * 0.70710678118654752440)); }

// max(x, 0) - |x| Phi(-|x|). Phi, the normal distribution, is 2^t, and t a polynomial fitted on [0, 6] so that the
// largest error of the result is 2e-8; 2^t is a polynomial on [-1/2, 1/2] (error 2e-9) whose exponent is t rounded,
// read from the last bits of the sum that rounds it. Beyond 6 Phi(-|x|) is below 1e-9. x * 0 keeps -0, and makes -inf
// NaN.
PX_HD inline float gelu(float x) {
  constexpr float kLog2Tail[] = {-1.0F,           -1.15111518F,     -0.459130108F,    -0.0527171418F,
                                 0.00736756157F,  -0.000361825048F, -9.53878334e-05F, 2.0618103e-05F,
                                 -1.28988768e-06F};
  constexpr float kExp2[] = {1.0F,           0.693147182F,  0.240226477F,   0.0555033237F,
                             0.00961843692F, 0.0013398875F, 0.000153533605F};
  const float size = std::fabs(x);
  const float near = size > 6.0F ? 6.0F : size;
  float t = kLog2Tail[8];
  for (int term = 7; term >= 0; --term) t = t * near + kLog2Tail[term];
  const float shifted = t + kRoundingShift;
  const float r = t - (shifted - kRoundingShift);
  float power = kExp2[6];
  for (int term = 5; term >= 0; --term) power = power * r + kExp2[term];
  const float tail = std::bit_cast<float>(std::bit_cast<uint32_t>(power) + (std::bit_cast<uint32_t>(shifted) << 23));
  const float relu = x > 0.0F ? x : x * 0.0F;
  return size > 6.0F ? relu : relu - near * tail;
}

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
