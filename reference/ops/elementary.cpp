// The elementary functions by reduction to |r| <= ln(2) / 2 and Taylor's series, without branches: lanes are different
// numbers.
#include "reference/ops/elementary.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "reference/ops/widest.h"

#define PX_INLINE __attribute__((always_inline)) inline

namespace parallax::reference {
namespace {

constexpr double kLog2OfE = 0x1.71547652b82fep+0;
// ln(2) in two parts; the first has 32 bits, so that its product with a whole number of 21 bits is exact.
constexpr double kLn2High = 0x1.62e42fee00000p-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
// Added to a number below 2^51, this rounds it to a whole number, which then stands in the low bits of the sum.
constexpr double kToWhole = 0x1.8p+52;

// x = n ln(2) + r.
struct Reduced {
  double n, r;
};
PX_INLINE Reduced reduce(double x) {
  const double n = (x * kLog2OfE + kToWhole) - kToWhole;
  return {n, (x - n * kLn2High) - n * kLn2Low};
}

// 2^n for a whole n of [-1022, 1023]: n becomes the exponent.
PX_INLINE double power_of_two(double n) {
  return std::bit_cast<double>((std::bit_cast<uint64_t>(n + kToWhole) + 1023) << 52U);
}

// e^r - 1 = r + r^2 / 2! + ... + r^13 / 13!; the next term is below 2^-57.
PX_INLINE double exp_less_one(double r) {
  double sum = 1.0 / 6227020800;
  sum = sum * r + 1.0 / 479001600;
  sum = sum * r + 1.0 / 39916800;
  sum = sum * r + 1.0 / 3628800;
  sum = sum * r + 1.0 / 362880;
  sum = sum * r + 1.0 / 40320;
  sum = sum * r + 1.0 / 5040;
  sum = sum * r + 1.0 / 720;
  sum = sum * r + 1.0 / 120;
  sum = sum * r + 1.0 / 24;
  sum = sum * r + 1.0 / 6;
  sum = sum * r + 1.0 / 2;
  return r + r * r * sum;
}

// Beyond the bounds the result is 0 or infinity; NaN passes them. 2^n is multiplied in two steps: n may lie outside the
// exponents of double where the result does not.
PX_INLINE double exp_of(double x) {
  x = x < -746.0 ? -746.0 : x;
  x = x > 710.0 ? 710.0 : x;
  const Reduced reduced = reduce(x);
  const double half = (reduced.n * 0.5 + kToWhole) - kToWhole;
  return (1.0 + exp_less_one(reduced.r)) * power_of_two(half) * power_of_two(reduced.n - half);
}

// t / (t + 2) with t = e^(2|x|) - 1, which keeps its digits where x is small; beyond the bound the result is 1.
PX_INLINE double tanh_of(double x) {
  double twice = 2.0 * std::fabs(x);
  twice = twice > 40.0 ? 40.0 : twice;
  const Reduced reduced = reduce(twice);
  const double scale = power_of_two(reduced.n);
  const double t = scale * exp_less_one(reduced.r) + (scale - 1.0);
  return std::copysign(t / (t + 2.0), x);
}

}  // namespace

PX_WIDEST void exp_each(std::span<double> values) {
  for (double& x : values) x = exp_of(x);
}

PX_WIDEST void tanh_each(std::span<double> values) {
  for (double& x : values) x = tanh_of(x);
}

PX_WIDEST void sigmoid_each(std::span<double> values) {
  for (double& x : values) x = 1.0 / (1.0 + exp_of(-x));
}

}  // namespace parallax::reference
