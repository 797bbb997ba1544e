// SPDX-License-Identifier: Apache-2.0
// Storing with one rounding, or wrapping to the integer's width.
#include "reference/kernels/numbers.h"

#include <algorithm>
#include <complex>
#include <limits>
#include <type_traits>

#include "reference/kernels/lanes.h"

namespace parallax::reference {
namespace {

// The two conversions that most of a run's elements go through.
template <class Width>
__attribute__((always_inline)) inline void widen_lines(const float* from, const Lines& lines, Width width, double* to) {
  // The processor does not prefetch lines with a large stride.
  constexpr int64_t kLinesAhead = 16, kFloatsOfCacheLine = 16;
  for (int64_t line = 0; line < lines.lines; ++line) {
    if (line + kLinesAhead < lines.lines) {
      for (int64_t index = 0; index < width; index += kFloatsOfCacheLine)
        __builtin_prefetch(from + kLinesAhead * lines.stride + index);
    }
    for (int64_t index = 0; index < width; ++index) to[index] = from[index];
    from += lines.stride;
    to += lines.out_stride();
  }
}
void widen_lines(const float* from, const Lines& lines, double* to) {
  with_widest_vectors([&](auto) PX_INLINE {
    // Panels of matrices have lines of this width, which are over soonest where it is known.
    constexpr std::integral_constant<int64_t, 32> kPanel;
    if (lines.width == kPanel) return widen_lines(from + lines.begin, lines, kPanel, to);
    widen_lines(from + lines.begin, lines, lines.width, to);
  });
}
void round(const double* from, int64_t count, float* to) {
  with_widest_vectors([&](auto) PX_INLINE {
    for (int64_t index = 0; index < count; ++index) to[index] = static_cast<float>(from[index]);
  });
}
void round(const double* from, const Lines& lines, float* to) {
  with_widest_vectors([&](auto) PX_INLINE {
    for (int64_t line = 0; line < lines.lines; ++line) {
      for (int64_t index = 0; index < lines.width; ++index) to[index] = static_cast<float>(from[index]);
      from += lines.out_stride();
      to += lines.stride;
    }
  });
}
void round(const double* from, const Lines& lines, const double* added, float* to) {
  with_widest_vectors([&](auto) PX_INLINE {
    for (int64_t line = 0; line < lines.lines; ++line) {
      for (int64_t index = 0; index < lines.width; ++index) to[index] = static_cast<float>(from[index] + added[line]);
      from += lines.out_stride();
      to += lines.stride;
    }
  });
}

template <class Stored>
void store_cast(Tensor& tensor, int64_t begin, std::span<const int64_t> values) {
  auto* target = reinterpret_cast<Stored*>(tensor.mutable_data()) + begin;
  for (size_t index = 0; index < values.size(); ++index) target[index] = static_cast<Stored>(values[index]);
}

// Two's complement of the type's width, as the wider types wrap.
void store_packed_wrapped(Tensor& tensor, int64_t begin, std::span<const int64_t> values) {
  const int bits = bits_of(tensor.dtype());
  const auto mask = static_cast<uint64_t>((1U << static_cast<unsigned>(bits)) - 1U);
  for (size_t index = 0; index < values.size(); ++index) {
    const auto kept = static_cast<uint8_t>(static_cast<uint64_t>(values[index]) & mask);
    store_packed(tensor.mutable_data(), bits, begin + static_cast<int64_t>(index), kept);
  }
}

}  // namespace

void load_lines(const TensorView& view, const Lines& lines, double* out) {
  if (lines.is_empty()) return;
  PX_CHECK(view.device.is_host() && lines.begin >= 0 && lines.end() <= view.element_count());
  if (view.dtype == DType::float32) return widen_lines(reinterpret_cast<const float*>(view.data), lines, out);
  for (int64_t line = 0; line < lines.lines; ++line) {
    const std::span<double> to(out + line * lines.out_stride(), static_cast<size_t>(lines.width));
    load_doubles(view, lines.begin + line * lines.stride, to);
  }
}

void load_lines(const TensorView& view, const Lines& lines, int64_t* out) {
  for (int64_t line = 0; line < lines.lines; ++line) {
    const std::span<int64_t> to(out + line * lines.out_stride(), static_cast<size_t>(lines.width));
    load_int64s(view, lines.begin + line * lines.stride, to);
  }
}

int64_t truncate_to_int64(double value) {
  constexpr double kLimit = 9223372036854775808.0;  // 2^63
  if (!(value >= -kLimit && value < kLimit)) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

int64_t truncate_to_integer(double value, DType to) {
  if (to == DType::uint64 && value >= 0x1p63 && value < 0x1p64)
    return static_cast<int64_t>(static_cast<uint64_t>(value));
  const int64_t whole = truncate_to_int64(value);
  if (to != DType::int32) return whole;
  const bool fits = whole >= std::numeric_limits<int32_t>::min() && whole <= std::numeric_limits<int32_t>::max();
  return fits ? whole : std::numeric_limits<int32_t>::min();
}

void store_complex(Tensor& tensor, std::span<const double> real, std::span<const double> imaginary) {
  for (size_t index = 0; index < real.size(); ++index) {
    const std::complex<double> value(real[index], imaginary[index]);
    if (tensor.dtype() == DType::complex128)
      tensor.mutable_as<std::complex<double>>()[index] = value;
    else
      tensor.mutable_as<std::complex<float>>()[index] = std::complex<float>(value);
  }
}

void store_rounded(Tensor& tensor, int64_t begin, std::span<const double> values) {
  PX_CHECK(is_floating(tensor.dtype()));
  if (tensor.dtype() != DType::float32) return store_doubles(tensor, begin, values);
  const auto count = static_cast<int64_t>(values.size());
  PX_CHECK(begin >= 0 && begin + count <= tensor.element_count());
  round(values.data(), count, reinterpret_cast<float*>(tensor.mutable_data()) + begin);
}

void store_lines(Tensor& tensor, const Lines& lines, const double* values) {
  if (lines.is_empty()) return;
  PX_CHECK(lines.begin >= 0 && lines.end() <= tensor.element_count());
  if (tensor.dtype() == DType::float32)
    return round(values, lines, reinterpret_cast<float*>(tensor.mutable_data()) + lines.begin);
  for (int64_t line = 0; line < lines.lines; ++line) {
    const std::span<const double> from(values + line * lines.out_stride(), static_cast<size_t>(lines.width));
    store_rounded(tensor, lines.begin + line * lines.stride, from);
  }
}

void store_lines(Tensor& tensor, const Lines& lines, const int64_t* values) {
  for (int64_t line = 0; line < lines.lines; ++line) {
    const std::span<const int64_t> from(values + line * lines.out_stride(), static_cast<size_t>(lines.width));
    store_wrapped(tensor, lines.begin + line * lines.stride, from);
  }
}

void store_sums(Tensor& tensor, const Lines& lines, const double* values, const double* added) {
  if (lines.is_empty()) return;
  PX_CHECK(lines.begin >= 0 && lines.end() <= tensor.element_count());
  if (tensor.dtype() == DType::float32)
    return round(values, lines, added, reinterpret_cast<float*>(tensor.mutable_data()) + lines.begin);
  std::vector<double> sums(static_cast<size_t>(lines.width));
  for (int64_t line = 0; line < lines.lines; ++line) {
    const double* from = values + line * lines.out_stride();
    std::transform(from, from + lines.width, sums.begin(), [&](double sum) { return sum + added[line]; });
    store_rounded(tensor, lines.begin + line * lines.stride, sums);
  }
}

void store_wrapped(Tensor& tensor, int64_t begin, std::span<const int64_t> values) {
  switch (tensor.dtype()) {
    case DType::int8:
    case DType::uint8:
      return store_cast<uint8_t>(tensor, begin, values);
    case DType::int16:
    case DType::uint16:
      return store_cast<uint16_t>(tensor, begin, values);
    case DType::int32:
    case DType::uint32:
      return store_cast<uint32_t>(tensor, begin, values);
    case DType::int64:
    case DType::uint64:
    case DType::bool_:
      return store_int64s(tensor, begin, values);
    case DType::int4:
    case DType::uint4:
    case DType::int2:
    case DType::uint2:
      return store_packed_wrapped(tensor, begin, values);
    default:
      PX_CHECK(false && "an integer type");
  }
}

}  // namespace parallax::reference
