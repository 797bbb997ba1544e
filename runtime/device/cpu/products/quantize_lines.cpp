// SPDX-License-Identifier: Apache-2.0
// In float alone: quotients that are clamped before they are rounded, and differences of quantized values, are exact
// there, so the results are those of the definition.
#include "runtime/device/cpu/products/quantize_lines.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "inspector/base/check.h"
#include "inspector/base/thread_pool.h"
#include "runtime/device/cpu/multiversion.h"

namespace parallax::runtime {
namespace {

constexpr int64_t kLeastLine = 16;
constexpr int64_t kElementWork = 2;
// Adding and subtracting it rounds floats of magnitude below 2^22 to integers, halves to even.
constexpr float kRounding = 12582912.0F;

template <class Visit>
void visit_quantized(DType dtype, const Visit& visit) {
  if (dtype == DType::uint8) return visit(uint8_t{});
  if (dtype == DType::int8) return visit(int8_t{});
  if (dtype == DType::uint16) return visit(uint16_t{});
  PX_CHECK(dtype == DType::int16);
  visit(int16_t{});
}

// A finite or infinite number, which `zero` is added to.
template <class T>
T saturated(float number, float zero) {
  const float low = static_cast<float>(std::numeric_limits<T>::lowest()) - zero;
  const float high = static_cast<float>(std::numeric_limits<T>::max()) - zero;
  number = number < low ? low : number;
  number = number > high ? high : number;
  // The last bits of the sum that rounds are the integer.
  return static_cast<T>(std::bit_cast<int32_t>(number + kRounding) + static_cast<int32_t>(zero));
}

template <class T>
struct Quantize {
  T operator()(float x, float scale, float zero) const {
    const float quotient = x / scale;
    return saturated<T>(quotient != quotient ? 0.0F : quotient, zero);
  }
};
template <class T, bool kFinite = false>  // scales that are finite make no NaN
struct Requantize {
  template <class Sum>
  T operator()(Sum sum, float scale, float zero) const {
    const float number = static_cast<float>(sum) * scale;
    return saturated<T>(!kFinite && number != number ? 0.0F : number, zero);
  }
};
struct Dequantize {
  template <class T>
  float operator()(T x, float scale, float zero) const {
    return (static_cast<float>(x) - zero) * scale;
  }
};

struct DequantizeWide {  // the difference and the product are exact in double, or nearly so
  float operator()(int32_t x, float scale, float zero) const {
    return static_cast<float>((static_cast<double>(x) - static_cast<double>(zero)) * static_cast<double>(scale));
  }
};

// Processes elements [begin, end) that share a scale.
template <class F, class From, class To>
void run_line(const F& f, const From* x, To* y, int64_t begin, int64_t end, float scale, float zero) {
  vectorized(begin, end, [=](int64_t first, int64_t last) {
    const From* const from = x;  // copies of its own: no store of bytes can change them
    To* const to = y;
    const float its_scale = scale, its_zero = zero;
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = first; i < last; ++i) to[i] = f(from[i], its_scale, its_zero);
  });
}

// Each element of a row has its own.
template <class F, class From, class To>
void run_row(const F& f, const From* x, To* y, int64_t count, const float* scales, const float* zeros) {
  vectorized(0, count, [=](int64_t first, int64_t last) {
    const From* const from = x;
    To* const to = y;
    const float *const its_scales = scales, *const its_zeros = zeros;
    PX_INDEPENDENT_ITERATIONS
    for (int64_t i = first; i < last; ++i) to[i] = f(from[i], its_scales[i], its_zeros[i]);
  });
}

template <class F, class From, class To>
void run(const QuantizedLines& lines, const F& f, const From* x, To* y) {
  const auto dim = static_cast<int64_t>(lines.scales.size());
  if (dim > 1 && lines.inner == 1) {
    parallel_for(lines.count / dim, dim * kElementWork, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        run_row(f, x + row * dim, y + row * dim, dim, lines.scales.data(), lines.zeros.data());
    });
    return;
  }
  const int64_t length = dim == 1 ? lines.count : lines.inner;
  parallel_for(lines.count, kElementWork, [&](int64_t begin, int64_t end) {
    while (begin < end) {
      const auto line = static_cast<size_t>(begin / length % dim);
      const int64_t stop = std::min(end, (begin / length + 1) * length);
      run_line(f, x, y, begin, stop, lines.scales[line], lines.zeros[line]);
      begin = stop;
    }
  });
}

template <class Sum>
void requantize_sums(const QuantizedLines& lines, const Sum* sums, DType dtype, std::byte* y) {
  visit_quantized(dtype, [&](auto type) {
    using T = decltype(type);
    run(lines, Requantize<T>{}, sums, reinterpret_cast<T*>(y));
  });
}

template <class T, bool kFinite>
void requantize_rows(const QuantizedColumns& columns, const int32_t* sums, T* y) {
  vectorized(0, columns.rows, [columns, sums, y](int64_t first, int64_t last) {
    const int64_t count = columns.columns;
    const float* const scales = columns.scales;
    const float zero = columns.zero;
    for (int64_t row = first; row < last; ++row) {
      const int32_t* const from = sums + row * columns.sum_step;
      T* const target = y + row * columns.quantized_step;
      PX_INDEPENDENT_ITERATIONS
      for (int64_t i = 0; i < count; ++i) target[i] = Requantize<T, kFinite>{}(from[i], scales[i], zero);
    }
  });
}

}  // namespace

bool suits_lines(DType dtype, const QuantizedLines& lines) {
  const bool is_known = dtype == DType::uint8 || dtype == DType::int8 || dtype == DType::uint16 ||
                        dtype == DType::int16 || dtype == DType::int32;
  const auto dim = static_cast<int64_t>(lines.scales.size());
  const bool is_long = dim == 1 || (lines.inner == 1 ? dim : lines.inner) >= kLeastLine;
  return is_known && is_long && lines.count > 0;
}

void quantize_lines(Queue<Cpu>& /*queue*/, const QuantizedLines& lines, const float* x, DType dtype, std::byte* y) {
  visit_quantized(dtype, [&](auto type) {
    using T = decltype(type);
    run(lines, Quantize<T>{}, x, reinterpret_cast<T*>(y));
  });
}

void requantize_lines(Queue<Cpu>& /*queue*/, const QuantizedLines& lines, const int64_t* sums, DType dtype,
                      std::byte* y) {
  requantize_sums(lines, sums, dtype, y);
}

void requantize_lines(Queue<Cpu>& /*queue*/, const QuantizedLines& lines, const int32_t* sums, DType dtype,
                      std::byte* y) {
  requantize_sums(lines, sums, dtype, y);
}

void requantize_columns(const QuantizedColumns& columns, const int32_t* sums, DType dtype, std::byte* y) {
  visit_quantized(dtype, [&](auto type) {
    using T = decltype(type);
    if (columns.are_finite) return requantize_rows<T, true>(columns, sums, reinterpret_cast<T*>(y));
    requantize_rows<T, false>(columns, sums, reinterpret_cast<T*>(y));
  });
}

void dequantize_lines(Queue<Cpu>& /*queue*/, const QuantizedLines& lines, DType dtype, const std::byte* x, float* y) {
  if (dtype == DType::int32) return run(lines, DequantizeWide{}, reinterpret_cast<const int32_t*>(x), y);
  visit_quantized(dtype, [&](auto type) { run(lines, Dequantize{}, reinterpret_cast<const decltype(type)*>(x), y); });
}

}  // namespace parallax::runtime
