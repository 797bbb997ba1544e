// Conversions between storage and arithmetic types, vectorised for the common ones.
#include "runtime/device/blocks.h"

#include <bit>
#include <cmath>
#include <type_traits>

#include "inspector/base/check.h"
#include "inspector/tensor/elements.h"
#include "inspector/tensor/float_formats.h"
#include "runtime/device/multiversion.h"

namespace parallax::runtime {
namespace {

// Branch-free, so that the loop becomes vector code: subnormal halves are normalised by a float subtraction, which is
// exact.
inline float decode(Float16 half) {
  const uint32_t sign = static_cast<uint32_t>(half.bits & 0x8000U) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(half.bits & 0x7FFFU) << 13;
  const uint32_t exponent = magnitude & (0x7C00U << 13);
  const float normal = std::bit_cast<float>(magnitude + (uint32_t{112} << 23));
  const float special = std::bit_cast<float>(magnitude + (uint32_t{224} << 23));
  const float subnormal =
      std::bit_cast<float>(magnitude + (uint32_t{113} << 23)) - std::bit_cast<float>(uint32_t{113} << 23);
  const float value = exponent == 0 ? subnormal : (exponent == (0x7C00U << 13) ? special : normal);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}
inline float decode(BFloat16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16); }

// Ties to even; NaN stays NaN.
inline BFloat16 encode_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16;
  return {static_cast<uint16_t>(value != value ? (bits >> 16) | 0x40U : rounded)};
}

// Ties to even. Magnitudes below 2^-14 are rounded by adding a number whose last bit has the weight of a half's.
inline Float16 encode_float16(float value) {
  constexpr uint32_t kHidden = uint32_t{126} << 23;  // 0.5: its last bit weighs 2^-24
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  const uint32_t normal = (magnitude + 0xFFFU + ((magnitude >> 13) & 1U) - (uint32_t{112} << 23)) >> 13;
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude < kHidden ? magnitude : 0U) + 0.5F) - kHidden;
  const uint32_t special = magnitude > 0x7F800000U ? 0x7E00U : 0x7C00U;
  const uint32_t finite = magnitude < (uint32_t{113} << 23) ? subnormal : normal;
  const uint32_t half =
      magnitude >= (uint32_t{143} << 23) ? special : finite;  // 2^16 and more overflow; 65520 rounds there
  return {static_cast<uint16_t>(half | ((bits >> 16) & 0x8000U))};
}

template <class C, class S>
C from_storage(S value) {
  if constexpr (std::is_same_v<S, Float16> || std::is_same_v<S, BFloat16>) {
    return from_storage<C>(decode(value));
  } else if constexpr (std::is_integral_v<C> && std::is_floating_point_v<S>) {
    const double wide = static_cast<double>(value);
    if (!(wide > -9.2233720368547758e18)) return static_cast<C>(INT64_MIN);
    if constexpr (std::is_same_v<C, uint64_t>) {
      return wide >= 1.8446744073709552e19 ? static_cast<C>(INT64_MIN)
             : wide < 0                    ? static_cast<C>(static_cast<int64_t>(wide))
                                           : static_cast<C>(wide);
    }
    return static_cast<C>(wide < 9.2233720368547758e18 ? static_cast<int64_t>(wide) : INT64_MIN);
  } else {
    return static_cast<C>(value);
  }
}

template <class S, class C>
S to_storage(C value) {
  if constexpr (std::is_same_v<S, Float16>) {
    if constexpr (std::is_same_v<C, float>) return encode_float16(value);
    return {float16_from_double(static_cast<double>(value))};
  } else if constexpr (std::is_same_v<S, BFloat16>) {
    if constexpr (std::is_same_v<C, float>) return encode_bfloat16(value);
    return {bfloat16_from_double(static_cast<double>(value))};
  } else if constexpr (std::is_same_v<S, bool>) {
    return value != C{};
  } else if constexpr (std::is_integral_v<S> && std::is_floating_point_v<C>) {
    return static_cast<S>(std::is_same_v<S, uint64_t> ? static_cast<int64_t>(from_storage<uint64_t>(value))
                                                      : from_storage<int64_t>(value));
  } else {
    return static_cast<S>(value);
  }
}

template <class S, class C>
void load_as(const std::byte* data, int64_t index, int64_t stride, int64_t count, C* out) {
  const S* source = reinterpret_cast<const S*>(data) + index;
  if (stride == 0) {
    const C value = from_storage<C>(*source);
    for (int64_t i = 0; i < count; ++i) out[i] = value;
    return;
  }
  vectorised(0, count, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = from_storage<C>(source[i]);
  });
}

template <class S, class C>
void store_as(std::byte* data, int64_t index, int64_t count, const C* values) {
  S* target = reinterpret_cast<S*>(data) + index;
  vectorised(0, count, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) target[i] = to_storage<S>(values[i]);
  });
}

// The 8-bit and sub-byte formats, one element at a time.
template <class C>
void load_narrow(DType dtype, const std::byte* data, int64_t index, int64_t stride, int64_t count, C* out) {
  const int bits = bits_of(dtype);
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t raw = load_packed(data, bits, index + i * stride);
    if (is_floating(dtype)) {
      out[i] = from_storage<C>(small_float_to_double(dtype, raw));
    } else {
      const int sign_bit = 1 << (bits - 1);
      const bool is_signed = info_of(dtype).kind == DTypeKind::signed_integer;
      out[i] = static_cast<C>(is_signed ? (raw ^ sign_bit) - sign_bit : raw);
    }
  }
}

template <class C>
void store_narrow(DType dtype, std::byte* data, int64_t index, int64_t count, const C* values) {
  const int bits = bits_of(dtype);
  const int mask = (1 << bits) - 1;
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t raw = is_floating(dtype) ? small_float_from_double(dtype, static_cast<double>(values[i]))
                                           : static_cast<uint8_t>(to_storage<int64_t>(values[i]) & mask);
    store_packed(data, bits, index + i, raw);
  }
}

// Calls visit with a null pointer of the storage type; false for the formats without a C++ type.
template <class Visit>
bool visit_storage(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::float32:
      return visit(static_cast<float*>(nullptr)), true;
    case DType::float64:
      return visit(static_cast<double*>(nullptr)), true;
    case DType::float16:
      return visit(static_cast<Float16*>(nullptr)), true;
    case DType::bfloat16:
      return visit(static_cast<BFloat16*>(nullptr)), true;
    case DType::int8:
      return visit(static_cast<int8_t*>(nullptr)), true;
    case DType::int16:
      return visit(static_cast<int16_t*>(nullptr)), true;
    case DType::int32:
      return visit(static_cast<int32_t*>(nullptr)), true;
    case DType::int64:
      return visit(static_cast<int64_t*>(nullptr)), true;
    case DType::uint8:
      return visit(static_cast<uint8_t*>(nullptr)), true;
    case DType::uint16:
      return visit(static_cast<uint16_t*>(nullptr)), true;
    case DType::uint32:
      return visit(static_cast<uint32_t*>(nullptr)), true;
    case DType::uint64:
      return visit(static_cast<uint64_t*>(nullptr)), true;
    case DType::bool_:
      return visit(static_cast<bool*>(nullptr)), true;
    default:
      return false;
  }
}

}  // namespace

template <class C>
void load_block(DType dtype, const std::byte* data, int64_t index, int64_t stride, int64_t count, C* out) {
  const bool done = visit_storage(
      dtype, [&](auto* type) { load_as<std::remove_pointer_t<decltype(type)>>(data, index, stride, count, out); });
  if (done) return;
  PX_CHECK(bits_of(dtype) > 0 && bits_of(dtype) <= 8);
  load_narrow(dtype, data, index, stride, count, out);
}

template <class C>
void store_block(DType dtype, std::byte* data, int64_t index, int64_t count, const C* values) {
  const bool done = visit_storage(
      dtype, [&](auto* type) { store_as<std::remove_pointer_t<decltype(type)>>(data, index, count, values); });
  if (done) return;
  PX_CHECK(bits_of(dtype) > 0 && bits_of(dtype) <= 8);
  store_narrow(dtype, data, index, count, values);
}

template void load_block(DType, const std::byte*, int64_t, int64_t, int64_t, float*);
template void load_block(DType, const std::byte*, int64_t, int64_t, int64_t, double*);
template void load_block(DType, const std::byte*, int64_t, int64_t, int64_t, int64_t*);
template void load_block(DType, const std::byte*, int64_t, int64_t, int64_t, uint64_t*);
template void load_block(DType, const std::byte*, int64_t, int64_t, int64_t, uint8_t*);
template void store_block(DType, std::byte*, int64_t, int64_t, const float*);
template void store_block(DType, std::byte*, int64_t, int64_t, const double*);
template void store_block(DType, std::byte*, int64_t, int64_t, const int64_t*);
template void store_block(DType, std::byte*, int64_t, int64_t, const uint64_t*);
template void store_block(DType, std::byte*, int64_t, int64_t, const uint8_t*);
template void store_block(DType, std::byte*, int64_t, int64_t, const bool*);

Arithmetic arithmetic_of(DType dtype) {
  switch (dtype) {
    case DType::float32:
    case DType::float16:
    case DType::bfloat16:
      return Arithmetic::float32;
    case DType::float64:
      return Arithmetic::float64;
    case DType::uint64:
      return Arithmetic::uint64;
    case DType::bool_:
      return Arithmetic::boolean;
    case DType::int8:
    case DType::int16:
    case DType::int32:
    case DType::int64:
    case DType::uint8:
    case DType::uint16:
    case DType::uint32:
      return Arithmetic::int64;
    default:
      return Arithmetic::none;
  }
}

}  // namespace parallax::runtime
