// SPDX-License-Identifier: Apache-2.0
// A block in float first, which counts the numbers near half way.
#include "runtime/device/cpu/int8_pairs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/multiversion.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kPairs = 1024;             // of a block
constexpr float kRoundsPairs = 12582912.0F;  // added, it rounds magnitudes below 2^22 to integers
// Rounds doubles of magnitudes below 2^51: suitable operands are far below that.
constexpr double kRoundsInDouble = 6755399441055744.0;

constexpr int64_t kMarks = 8;  // are looked at together

bool none_marked(const uint8_t* marks) {
  uint64_t all = 0;
  std::memcpy(&all, marks, sizeof(all));
  return all == 0;
}

// The most that the quotient before it is rounded can be.
double most_of(const QuantizedPairs& pairs) {
  const double a = 255.0 * pairs.a.scale, b = 255.0 * pairs.b.scale;
  return (pairs.is_product ? a * b : a + b) / pairs.y.scale;
}
// By which float may err: five roundings at most, each of half a unit of 2^-23.
double error_of(const QuantizedPairs& pairs) { return most_of(pairs) * 0x1p-21; }

// The scales of a and b over y's; of a product a has both.
struct PairFactors {
  float a, b, a_zero, b_zero, low, high, zero, near;
};

template <class T>
PairFactors factors_of(const QuantizedPairs& pairs) {
  const double low = static_cast<double>(std::numeric_limits<T>::lowest()) - pairs.y.zero;
  const auto narrow = [](double value) { return static_cast<float>(value); };
  const double both = pairs.is_product ? pairs.b.scale : 1.0;
  return {narrow(pairs.a.scale * both / pairs.y.scale),
          narrow(pairs.b.scale / pairs.y.scale),
          narrow(pairs.a.zero),
          narrow(pairs.b.zero),
          narrow(low),
          narrow(low + 255.0),
          narrow(pairs.y.zero),
          narrow(0.5 - error_of(pairs))};
}

template <bool kProduct>
float quotient_of(float a, float b, const PairFactors& factors) {
  const float left = a - factors.a_zero, right = b - factors.b_zero;
  return kProduct ? left * right * factors.a : left * factors.a + right * factors.b;
}

template <class T>
T in_double(const QuantizedPairs& pairs, T a, T b) {
  const double left = (static_cast<double>(a) - pairs.a.zero) * pairs.a.scale;
  const double right = (static_cast<double>(b) - pairs.b.zero) * pairs.b.scale;
  const double number = (pairs.is_product ? left * right : left + right) / pairs.y.scale;
  const double rounded = (number + kRoundsInDouble) - kRoundsInDouble + pairs.y.zero;
  const double low = std::numeric_limits<T>::lowest();
  return static_cast<T>(static_cast<int32_t>(std::clamp(rounded, low, low + 255.0)));
}

// The number of results near half way, each of which has a mark.
template <class T, bool kProduct, bool kOne>
int32_t combine_block(const PairFactors& given, int64_t count, const T* a, const T* b, T* y, uint8_t* marks) {
  int32_t near = 0;
  vectorized(0, count, [=, &near](int64_t begin, int64_t end) {
    const PairFactors factors = given;
    const T *const left = a, *const right = b;
    T* const to = y;
    uint8_t* const marked = marks;
    const auto one = static_cast<float>(b[0]);
    const auto zero = static_cast<int32_t>(factors.zero);
    int32_t found = 0;
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = begin; i < end; ++i) {
      float number =
          quotient_of<kProduct>(static_cast<float>(left[i]), kOne ? one : static_cast<float>(right[i]), factors);
      number = number < factors.low ? factors.low : number;
      number = number > factors.high ? factors.high : number;
      const float shifted = number + kRoundsPairs;
      const float rest = number - (shifted - kRoundsPairs);
      const bool is_near = std::fabs(rest) >= factors.near;
      marked[i] = is_near ? 1 : 0;
      found += is_near ? 1 : 0;
      to[i] = static_cast<T>(std::bit_cast<int32_t>(shifted) + zero);
    }
    near = found;
  });
  return near;
}

template <class T, bool kProduct, bool kOne>
void combine_all(const QuantizedPairs& pairs, const T* a, const T* b, T* y) {
  const PairFactors factors = factors_of<T>(pairs);
  parallel_for(pairs.count, 1, [&](int64_t begin, int64_t end) {
    T results[kPairs];
    alignas(kMarks) uint8_t marks[kPairs] = {};
    for (int64_t first = begin; first < end; first += kPairs) {
      const int64_t count = std::min(kPairs, end - first);
      const T* const right = kOne ? b : b + first;
      int32_t left = combine_block<T, kProduct, kOne>(factors, count, a + first, right, results, marks);
      for (int64_t i = 0; left > 0; ++i) {
        for (; i % kMarks == 0 && none_marked(marks + i); i += kMarks) continue;
        if (marks[i] == 0) continue;
        results[i] = in_double(pairs, a[first + i], kOne ? b[0] : right[i]);
        --left;
      }
      std::copy_n(results, count, y + first);
    }
  });
}

template <class T>
void combine_as(const QuantizedPairs& pairs, const std::byte* a, const std::byte* b, std::byte* y) {
  const auto *const left = reinterpret_cast<const T*>(a), *const right = reinterpret_cast<const T*>(b);
  auto* const to = reinterpret_cast<T*>(y);
  if (pairs.is_product && pairs.b_is_one) return combine_all<T, true, true>(pairs, left, right, to);
  if (pairs.is_product) return combine_all<T, true, false>(pairs, left, right, to);
  if (pairs.b_is_one) return combine_all<T, false, true>(pairs, left, right, to);
  combine_all<T, false, false>(pairs, left, right, to);
}

}  // namespace

bool suits_quantized_pairs(const QuantizedPairs& pairs) {
  const auto is_ordinary = [](const QuantizedScale& each) { return each.scale > 1e-30 && each.scale < 1e30; };
  const bool are_ordinary = is_ordinary(pairs.a) && is_ordinary(pairs.b) && is_ordinary(pairs.y);
  // A product of small scales must not leave float's normal numbers.
  return are_ordinary && pairs.a.scale * pairs.b.scale > 1e-30 && error_of(pairs) < 0.01;
}

void combine_quantized(const QuantizedPairs& pairs, DType dtype, const std::byte* a, const std::byte* b, std::byte* y) {
  if (dtype == DType::int8) return combine_as<int8_t>(pairs, a, b, y);
  combine_as<uint8_t>(pairs, a, b, y);
}

}  // namespace parallax::runtime
