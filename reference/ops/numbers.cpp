// Storing with one rounding, or wrapping to the integer's width.
#include "reference/ops/numbers.h"

#include <complex>
#include <limits>

namespace parallax::reference {
namespace {

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
  store_doubles(tensor, begin, values);
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
