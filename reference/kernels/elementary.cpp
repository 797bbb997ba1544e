// SPDX-License-Identifier: Apache-2.0
// The elementary functions by reduction (to |r| <= ln(2) / 2; of erf to the nearest sixteenth) and Taylor's series,
// without branches: lanes are different numbers.
#include "reference/kernels/elementary.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <vector>

#include "reference/kernels/lanes.h"

namespace parallax::reference {
namespace {

constexpr double kLog2OfE = 0x1.71547652b82fep+0;
// ln(2) in two parts; the first has 32 bits, so that its product with a whole number of 21 bits is exact.
constexpr double kLn2High = 0x1.62e42fee00000p-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
// Added to a number below 2^51, this rounds it to a whole number, which then stands in the low bits of the sum.
constexpr double kToWhole = 0x1.8p+52;
constexpr uint64_t kSign = uint64_t{1} << 63U;

// erf and its slope, 2 / sqrt(pi) e^(-x^2), at the sixteenths from 0 to 6: beyond, erf is 1 to double.
constexpr size_t kNodesOfOne = 16, kErfEnd = 6;
struct ErfNodes {
  // As many as the index has values, of which those past the end are not used.
  std::array<double, 128> values{}, slopes{};
};

// erf x = 2 / sqrt(pi) e^(-x^2) (x + 2 x^3 / 3!! + 4 x^5 / 5!! + ...) (Abramowitz and Stegun 7.1.6): no term is
// negative, so that no digits are lost, and none in e^(x^2) = 1 + x^2 + x^4 / 2! + ...
constexpr ErfNodes make_erf_nodes() {
  ErfNodes nodes;
  for (size_t index = 0; index <= kErfEnd * kNodesOfOne; ++index) {
    const long double x = static_cast<long double>(index) / kNodesOfOne, square = x * x;
    long double term = x, series = x, power = 1, exponential = 1;
    for (int k = 1; k < 200; ++k) {
      series += term *= 2 * square / (2 * k + 1);
      exponential += power *= square / k;
    }
    const long double slope = 2 * std::numbers::inv_sqrtpi_v<long double> / exponential;
    nodes.slopes[index] = static_cast<double>(slope);
    nodes.values[index] = static_cast<double>(slope * series);
  }
  return nodes;
}
constexpr ErfNodes kErfNodes = make_erf_nodes();

// The functions over a vector of kLanes numbers.
template <int kLanes>
struct Elementary {
  using Numbers = typename VectorOf<double, kLanes>::Type;
  using Bits = typename VectorOf<uint64_t, kLanes>::Type;

  // x, but `bound` where x is beyond it; NaN passes.
  PX_INLINE static Numbers at_least(double bound, Numbers x) { return x < bound ? Numbers{} + bound : x; }
  PX_INLINE static Numbers at_most(double bound, Numbers x) { return x > bound ? Numbers{} + bound : x; }

  // x = n ln(2) + r.
  struct Reduced {
    Numbers n, r;
  };
  PX_INLINE static Reduced reduce(Numbers x) {
    const Numbers n = (x * kLog2OfE + kToWhole) - kToWhole;
    return {n, (x - n * kLn2High) - n * kLn2Low};
  }

  // 2^n for a whole n of [-1022, 1023], infinity for 1024: n becomes the exponent.
  PX_INLINE static Numbers power_of_two(Numbers n) {
    return std::bit_cast<Numbers>((std::bit_cast<Bits>(n + kToWhole) + 1023) << 52U);
  }

  // e^r - 1 = r + r^2 / 2! + ... + r^13 / 13!; the next term is below 2^-57.
  PX_INLINE static Numbers exp_less_one(Numbers r) {
    Numbers sum = r * (1.0 / 6227020800) + 1.0 / 479001600;
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

  // Beyond the bounds the result is 0 or infinity. 2^n is multiplied in two steps: n may be outside the exponents of
  // double where the result does not.
  PX_INLINE static Numbers exp(Numbers x) {
    const Reduced reduced = reduce(at_most(710.0, at_least(-746.0, x)));
    const Numbers half = (reduced.n * 0.5 + kToWhole) - kToWhole;
    return (1.0 + exp_less_one(reduced.r)) * power_of_two(half) * power_of_two(reduced.n - half);
  }

  // R = r coth(r / 2) = 2 + r^2 / 6 - r^4 / 360 + ..., the terms 2 B(2k) r^2k / (2k)! of Bernoulli's numbers; the next
  // one is below 2^-57 of it. With it e^r = (R + r) / (R - r), so that a quotient of sums of e^r needs one division.
  PX_INLINE static Numbers r_coth_half(Numbers r) {
    const Numbers square = r * r;
    Numbers sum = square * (-691.0 / 653837184000) + 1.0 / 23950080;
    sum = sum * square - 1.0 / 604800;
    sum = sum * square + 1.0 / 15120;
    sum = sum * square - 1.0 / 360;
    sum = sum * square + 1.0 / 6;
    return 2.0 + sum * square;
  }

  // (e - 1) / (e + 1) with e = e^(2|x|) = 2^n (R + r) / (R - r), which keeps its digits where x is small; beyond the
  // bound the result is 1.
  PX_INLINE static Numbers tanh(Numbers x) {
    const Bits sign = std::bit_cast<Bits>(x) & kSign;
    const Numbers size = std::bit_cast<Numbers>(std::bit_cast<Bits>(x) ^ sign);
    const Reduced reduced = reduce(at_most(40.0, 2.0 * size));
    const Numbers root = r_coth_half(reduced.r), scale = power_of_two(reduced.n);
    const Numbers less = scale - 1.0, more = scale + 1.0;
    const Numbers quotient = (less * root + more * reduced.r) / (more * root + less * reduced.r);
    return std::bit_cast<Numbers>(std::bit_cast<Bits>(quotient) | sign);
  }

  // With c the nearest node and x = c + d: erf c + t1 + t2 + ..., where tn = erf^(n)(c) d^n / n!. Since the slope of
  // erf is s with s' = -2 x s, each derivative follows from the two before it. The next term is below 2^-57 of the sum.
  PX_INLINE static Numbers erf(Numbers x) {
    constexpr int kTerms = 10;
    const Bits sign = std::bit_cast<Bits>(x) & kSign;
    const Numbers size = at_most(kErfEnd, std::bit_cast<Numbers>(std::bit_cast<Bits>(x) ^ sign));
    const Numbers shifted = size * double{kNodesOfOne} + kToWhole;
    const Bits index = std::bit_cast<Bits>(shifted) % kErfNodes.values.size();  // of NaN whatever there is
    Numbers value{}, slope{};
    for (int lane = 0; lane < kLanes; ++lane) {
      value[lane] = kErfNodes.values[index[lane]];
      slope[lane] = kErfNodes.slopes[index[lane]];
    }
    const Numbers c = (shifted - kToWhole) * (1.0 / kNodesOfOne), d = size - c;
    Numbers terms[kTerms] = {slope * d};
    terms[1] = -c * d * terms[0];
    for (int n = 2; n < kTerms; ++n) {
      const double before = (n - 1.0) / n;
      terms[n] = d * (-2.0 / (n + 1)) * (c * terms[n - 1] + before * (d * terms[n - 2]));
    }
    Numbers sum = terms[kTerms - 1];
    for (int n = kTerms - 2; n >= 0; --n) sum += terms[n];
    return std::bit_cast<Numbers>(std::bit_cast<Bits>(value + sum) | sign);
  }

  // 1 / (1 + e) with e = e^-x = 2^n (R + r) / (R - r). Beyond the bounds e is infinite, or nothing compared with 1.
  PX_INLINE static Numbers sigmoid(Numbers x) {
    const Reduced reduced = reduce(at_most(709.5, at_least(-60.0, -x)));
    const Numbers root = r_coth_half(reduced.r);
    const Numbers below = root - reduced.r;
    return below / (below + power_of_two(reduced.n) * (root + reduced.r));
  }
};

// Replaces the numbers by function(vector of them); what is left over at the end is filled up with zeros.
template <class Function>
void replace_each(std::span<double> values, const Function& function) {
  with_widest_vectors([&](auto lanes) PX_INLINE {
    using Numbers = typename Elementary<lanes>::Numbers;
    using InMemory = typename VectorOf<double, lanes>::InMemory;
    double* at = values.data();
    double* const end = at + values.size();
    for (; end - at >= lanes; at += lanes) {
      auto& numbers = *reinterpret_cast<InMemory*>(at);
      numbers = function(lanes, Numbers(numbers));
    }
    if (at == end) return;
    Numbers rest{};
    std::copy(at, end, reinterpret_cast<double*>(&rest));
    rest = function(lanes, rest);
    std::copy_n(reinterpret_cast<double*>(&rest), end - at, at);
  });
}

}  // namespace

void exp_each(std::span<double> values) {
  replace_each(values, [](auto lanes, auto x) PX_INLINE { return Elementary<lanes>::exp(x); });
}

void tanh_each(std::span<double> values) {
  replace_each(values, [](auto lanes, auto x) PX_INLINE { return Elementary<lanes>::tanh(x); });
}

void erf_each(std::span<double> values) {
  replace_each(values, [](auto lanes, auto x) PX_INLINE { return Elementary<lanes>::erf(x); });
}

void sigmoid_each(std::span<double> values) {
  constexpr double kFar = -700;  // beyond, e^x itself to double; its inverse soon is infinite
  std::vector<double> far;
  if (std::ranges::any_of(values, [](double x) { return x < kFar; })) far.assign(values.begin(), values.end());
  replace_each(values, [](auto lanes, auto x) PX_INLINE { return Elementary<lanes>::sigmoid(x); });
  for (size_t index = 0; index < far.size(); ++index) {
    if (far[index] < kFar) values[index] = std::exp(far[index]);
  }
}

}  // namespace parallax::reference
