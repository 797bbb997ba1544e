// SPDX-License-Identifier: Apache-2.0
// Functions that pointwise operators are made of, free of branches in float so that loops over them become vector code.
// In double they are the library's. Products are fused with the sums they go into where std::fma says so and nowhere
// else: one instruction on GPUs and on processors with FMA, the C library's exact function on others, so the bits are
// the same everywhere.
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

// The polynomial with these coefficients, constant first (Horner's rule); no loop, which would not become vector code.
template <size_t kFirst = 0, class T, size_t kCount>
PX_HD T polynomial(const T (&coefficients)[kCount], T x) {
  if constexpr (kFirst + 1 == kCount) {
    return coefficients[kFirst];
  } else {
    return std::fma(polynomial<kFirst + 1>(coefficients, x), x, coefficients[kFirst]);
  }
}

// 2^exponent for exponents of normal floats.
PX_HD inline float power_of_two(int32_t exponent) {
  return std::bit_cast<float>(static_cast<uint32_t>(exponent + 127) << 23);
}

// exp(r) - 1 = r + r^2 p(r) for |r| <= ln2 / 2, where p is fitted so that the largest error is 4e-9 of exp(r).
PX_HD inline float expm1_reduced(float r) {
  constexpr float kTail[] = {0.49999994F, 0.166665196F, 0.0416683927F, 0.00836878084F, 0.00138144672F};
  return std::fma(r * r, polynomial(kTail, r), r);
}

struct Reduced {
  float r;
  int32_t exponent;
};

// x = exponent * ln 2 + r. `x` is within [-104, 89] or NaN, which ends up in r. The rounded exponent is read from the
// last bits of the sum that rounds it.
PX_HD inline Reduced reduce_exponent(float x) {
  const float shifted = std::fma(x, kLog2E, kRoundingShift);
  const float k = shifted - kRoundingShift;
  const float r = std::fma(-k, kLn2Low, std::fma(-k, kLn2High, x));
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

// 2^kUp e^x where that is a normal number, or x is NaN, in fewer steps: the scale 2^(k + kUp) is shifted out of the sum
// that rounds k.
template <int kUp>
PX_HD float exp_normal(float x) {
  constexpr float kBiasedShift = kRoundingShift + 127.0F + static_cast<float>(kUp);
  const float shifted = std::fma(x, kLog2E, kBiasedShift);
  const float k = shifted - kBiasedShift;
  const float r = std::fma(-k, kLn2Low, std::fma(-k, kLn2High, x));
  const float scale = std::bit_cast<float>(std::bit_cast<uint32_t>(shifted) << 23);
  return std::fma(expm1_reduced(r), scale, scale);
}

// For x in [-130, 0] or NaN.
PX_HD inline float exp_scaled(float x) { return exp_normal<64>(x); }

// e^x for x <= 0 or NaN: 2^-64 takes results below 2^-126 to their one rounding.
PX_HD inline float exp_nonpositive(float x) { return exp_scaled(x < -104.0F ? -104.0F : x) * 0x1p-64F; }
PX_HD inline double exp_nonpositive(double x) { return std::exp(x); }

// exp(x) - 1 for 0 <= x <= 40, without cancellation.
PX_HD inline float expm1_positive(float x) {
  const Reduced reduced = reduce_exponent(x);
  const float scale = power_of_two(reduced.exponent);
  return std::fma(scale, expm1_reduced(reduced.r), scale - 1.0F);
}

// exp(x) - 1 for x <= 0 or NaN, without cancellation: -e / (e + 1) with e = exp(-x) - 1.
PX_HD inline float expm1_negative(float x) {
  float y = std::fabs(x);
  y = y > 40.0F ? 40.0F : y;
  const float e = expm1_positive(y);
  return -e / (e + 1.0F);
}
PX_HD inline double expm1_negative(double x) { return std::expm1(x); }

PX_HD inline float tanh(float x) {
  float twice = 2.0F * std::fabs(x);
  twice = twice > 40.0F ? 40.0F : twice;  // tanh(20) rounds to 1
  const float e = expm1_positive(twice);
  return std::copysign(e / (e + 2.0F), x);
}
PX_HD inline double tanh(double x) { return std::tanh(x); }

// 1 / (1 + e^-x), or e^x / (1 + e^x): by the exponential that does not overflow.
template <class T>
PX_HD T sigmoid(T x) {
  const T e = exp_nonpositive(-std::fabs(x));
  return (x < T(0) ? e : T(1)) / (T(1) + e);
}

// e^-|t|, and where t is far below 0 the same times 2^64: a product with a subnormal number would have few digits.
struct Tail {
  float e, scaled;
  bool is_far;
  PX_HD explicit Tail(float t) {
    const float size = std::fabs(t);
    const float clipped = exp_scaled(-size < -130.0F ? -130.0F : -size);
    e = clipped * 0x1p-64F;
    is_far = t < -64.0F;
    scaled = t < -130.0F ? 0.0F : clipped;
  }
  // x * share, which is e where t is far below 0.
  PX_HD float times(float x, float share) const { return x * (is_far ? scaled : share) * (is_far ? 0x1p-64F : 1.0F); }
};
PX_HD inline double times_exp(double x, double t) { return x * std::exp(0.5 * t) * std::exp(0.5 * t); }

// x / (1 + e^-t): Swish and its kin. A product with sigmoid(t) loses digits where that is subnormal.
PX_HD inline float times_sigmoid(float x, float t) {
  const Tail tail(t);
  return tail.times(x, (t < 0.0F ? tail.e : 1.0F) / (1.0F + tail.e));
}
PX_HD inline double times_sigmoid(double x, double t) { return t < -700.0 ? times_exp(x, t) : x * sigmoid(t); }

// x / 2 (1 + tanh(u)) with u = sqrt(2 / pi) (x + 0.044715 x^3), written as x sigmoid(2 u): where tanh is near -1 that
// keeps the digits.
template <class T>
PX_HD T gelu_by_tanh(T x) {
  constexpr double kTwice = 1.5957691216057307117;  // sqrt(8 / pi)
  return x * sigmoid(x * std::fma(x * x, static_cast<T>(0.044715 * kTwice), static_cast<T>(kTwice)));
}

// ln(1 + f) for f in [sqrt(1/2) - 1, sqrt(2) - 1], plus k ln 2: with s = f / (2 + f) it is 2 s + s R(s^2), written as
// f - (f^2/2 - s (f^2/2 + R)), in which f is not rounded (W. Kahan; fdlibm's e_log.c names it). R is fitted to 2e-9.
PX_HD inline float log_of_parts(float f, float k) {
  constexpr float kSeries[] = {0.666667759F, 0.399775416F, 0.29871732F};
  const float s = f / (2.0F + f);
  const float square = s * s;
  const float r = square * polynomial(kSeries, square);
  const float half = 0.5F * f * f;
  return std::fma(k, kLn2High, f - (half - std::fma(s, half + r, k * kLn2Low)));
}

PX_HD inline float log(float x) {
  constexpr uint32_t kRootOfHalf = 0x3f3504f3U;
  const bool is_subnormal = x < std::numeric_limits<float>::min();
  const uint32_t bits = std::bit_cast<uint32_t>(is_subnormal ? x * 0x1p23F : x);
  const int32_t exponent = static_cast<int32_t>(bits - kRootOfHalf) >> 23;
  const float mantissa = std::bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23));
  const float k = static_cast<float>(exponent - (is_subnormal ? 23 : 0));
  float result = log_of_parts(mantissa - 1.0F, k);
  result = x == std::numeric_limits<float>::infinity() ? x : result;
  result = x == 0.0F ? -std::numeric_limits<float>::infinity() : result;
  return x >= 0.0F ? result : std::numeric_limits<float>::quiet_NaN();
}
PX_HD inline double log(double x) { return std::log(x); }

// ln(1 + e^-x) for x >= 0 or NaN: what rounding 1 + e took away is put back.
PX_HD inline float log1p_exp_negative(float x) {
  const float e = exp_nonpositive(-x);
  const float sum = 1.0F + e;
  const bool is_large = sum > 1.41421354F;
  const float half = is_large ? 0.5F * sum : sum;
  return log_of_parts(half - 1.0F, is_large ? 1.0F : 0.0F) + (e - (sum - 1.0F)) / sum;
}
PX_HD inline double log1p_exp_negative(double x) { return std::log1p(std::exp(-x)); }

// ln(1 + e^x), written so that e^x cannot overflow.
template <class T>
PX_HD T softplus(T x) {
  return (x > T(0) || x != x ? x : T(0)) + log1p_exp_negative(std::fabs(x));
}

// x tanh(softplus(x)) = x n / (n + 2) with n = e^x (e^x + 2), whose last factors are divided by e^2x where x > 0.
PX_HD inline float mish(float x) {
  const Tail tail(x);
  const float e = tail.e;
  const bool is_negative = x < 0.0F;
  const float n = is_negative ? e * (e + 2.0F) : 1.0F + 2.0F * e;
  return tail.times(x, n / (n + (is_negative ? 2.0F : 2.0F * e * e)));
}
PX_HD inline double mish(double x) {
  if (x < -700.0) return times_exp(x, x);
  const double e = exp(x > 20.0 ? 20.0 : x);  // from 20 on it is x
  const double n = e * (e + 2.0);
  return x * (n / (n + 2.0));
}

// atan is odd; beyond tan(pi/8) and tan(3 pi/8) it is pi/4 and pi/2 plus the arc of (y - 1) / (y + 1) and of -1 / y.
// The polynomial is fitted to 7e-10 of the arc.
PX_HD inline float atan(float x) {
  constexpr float kSeries[] = {-0.333333164F, 0.199984893F, -0.142438486F, 0.10595998F, -0.0608344562F};
  const float y = std::fabs(x);
  const bool is_far = y > 2.41421366F, is_middle = y > 0.414213568F;
  const float over = is_far ? -1.0F : (is_middle ? y - 1.0F : y);
  const float under = is_far ? y : (is_middle ? y + 1.0F : 1.0F);
  const float base = is_far ? 1.57079637F : (is_middle ? 0.785398185F : 0.0F);
  const float lost = is_far ? -4.37113883e-8F : (is_middle ? -2.18556941e-8F : 0.0F);  // of the base
  const float z = over / under, square = z * z;
  const float tail = std::fma(z * square, polynomial(kSeries, square), lost);
  return std::copysign(base + (z + tail), x);
}
PX_HD inline double atan(double x) { return std::atan(x); }

// Magnitudes up to which the polynomial holds.
inline constexpr float kMostReduced = 0x1p20F;

// sin(x + quarters * pi/2) for |x| <= kMostReduced: in double, so that x less the nearest multiple of pi/2, whose first
// part has 33 bits and times 20 of them is exact, keeps its digits; then Taylor's series on [-pi/4, pi/4], cut off
// where they err by 2e-9 and 2e-10.
PX_HD inline float sin_reduced(float x, int32_t quarters) {
  constexpr double kTwoOverPi = 0.63661977236758134308, kRounding = 0x1.8p52;
  constexpr double kHigh = 0x1.921fb544p0, kLow = 0x1.0b4611a626331p-34;
  constexpr double kSine[] = {1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880};
  constexpr double kCosine[] = {1.0, -0.5, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800};
  const double y = x;
  const double shifted = std::fma(y, kTwoOverPi, kRounding);  // its last bits are the multiple
  const double k = shifted - kRounding;
  const double r = std::fma(-k, kLow, std::fma(-k, kHigh, y));
  const double square = r * r;
  const double sine = r * polynomial(kSine, square);
  const double cosine = polynomial(kCosine, square);
  const uint64_t quarter = std::bit_cast<uint64_t>(shifted) + static_cast<uint64_t>(quarters);
  const uint64_t is_odd = uint64_t{0} - (quarter & 1U);  // all bits or none: a conditional would become a branch
  const uint64_t chosen = (std::bit_cast<uint64_t>(sine) & ~is_odd) | (std::bit_cast<uint64_t>(cosine) & is_odd);
  return static_cast<float>(std::bit_cast<double>(chosen ^ (quarter & 2U) << 62));
}

// The common part of asin and acos: z + tail is the arc of z; beyond 1/2 that of z = sqrt((1 - y) / 2), by which
// asin(y) is pi/2 - 2 asin(z). NaN outside of [-1, 1]. The polynomial is fitted to 3e-10 of the arc.
struct HalfArc {
  bool is_large;
  float z, tail;
  PX_HD explicit HalfArc(float x) {
    constexpr float kSeries[] = {0.166666597F,  0.0750051737F, 0.0445144698F,
                                 0.0318286866F, 0.0143584935F, 0.0376300886F};
    const float y = std::fabs(x);
    is_large = y > 0.5F;
    const float square = is_large ? 0.5F * (1.0F - y) : y * y;
    z = is_large ? std::sqrt(square) : x;
    tail = z * square * polynomial(kSeries, square);
  }
};
PX_HD inline float asin(float x) {
  const HalfArc arc(x);
  const float large = 1.57079637F - (2.0F * arc.z + (2.0F * arc.tail + 4.37113883e-8F));
  return std::copysign(arc.is_large ? large : arc.z + arc.tail, x);
}
PX_HD inline double asin(double x) { return std::asin(x); }
PX_HD inline float acos(float x) {
  const HalfArc arc(x);
  const float twice = 2.0F * (arc.z + arc.tail);
  const float large = x > 0.0F ? twice : 3.14159274F - (twice + 8.74227766e-8F);
  return arc.is_large ? large : 1.57079637F - (arc.z + (arc.tail + 4.37113883e-8F));
}
PX_HD inline double acos(double x) { return std::acos(x); }

// 2^t for t in [-126, 0] or NaN: a polynomial on [-1/2, 1/2] (error 2e-9) whose exponent is t rounded, read from the
// last bits of the sum that rounds it.
PX_HD inline float exp2_nonpositive(float t) {
  constexpr float kSeries[] = {1.0F,           0.693147182F,  0.240226477F,   0.0555033237F,
                               0.00961843692F, 0.0013398875F, 0.000153533605F};
  const float shifted = t + kRoundingShift;
  const float power = polynomial(kSeries, t - (shifted - kRoundingShift));
  return std::bit_cast<float>(std::bit_cast<uint32_t>(power) + (std::bit_cast<uint32_t>(shifted) << 23));
}

// Below 1 erf(x) = x + x p(x^2); above, 1 - 2^t with t a polynomial for log2(erfc(x)). Both are fitted so that the
// largest error is 1.2e-9 of the result. erf(4) rounds to 1.
PX_HD inline float erf(float x) {
  constexpr float kNear[] = {0.128379152F,   -0.376126262F,   0.112835854F,   -0.026853811F,
                             0.00518832767F, -0.00080101925F, 7.85385826e-05F};
  constexpr float kFar[] = {-0.000492698501F, -1.62604607F,    -0.920648305F,  -0.148751706F,
                            0.0315057151F,    -0.00425258397F, 0.000268889620F};
  float y = std::fabs(x);
  y = y > 4.0F ? 4.0F : y;
  const float near = std::fma(y, polynomial(kNear, y * y), y);
  const float far = 1.0F - exp2_nonpositive(polynomial(kFar, y));
  return std::copysign(y >= 1.0F ? far : near, x);  // NaN is near
}
PX_HD inline double erf(double x) { return std::erf(x); }

// x Phi(x) = x / 2 (1 + erf(x / sqrt 2)).
PX_HD inline double gelu(double x) { return 0.5 * x * (1.0 + erf(x * 0.70710678118654752440)); }

// max(x, 0) - |x| Phi(-|x|). Phi, the normal distribution, is 2^t, and t a polynomial fitted on [0, 6] so that the
// largest error of the result is 2e-8. Beyond 6 Phi(-|x|) is below 1e-9. x * 0 keeps -0, and makes -inf NaN.
PX_HD inline float gelu(float x) {
  constexpr float kLog2Tail[] = {-1.0F,           -1.15111518F,     -0.459130108F,    -0.0527171418F,
                                 0.00736756157F,  -0.000361825048F, -9.53878334e-05F, 2.0618103e-05F,
                                 -1.28988768e-06F};
  const float size = std::fabs(x);
  const float near = size > 6.0F ? 6.0F : size;
  const float tail = exp2_nonpositive(polynomial(kLog2Tail, near));
  const float relu = x > 0.0F ? x : x * 0.0F;
  return size > 6.0F ? relu : std::fma(-near, tail, relu);
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
