// SPDX-License-Identifier: Apache-2.0
// Conversions between storage and arithmetic types, vectorized for the common ones.
#include "runtime/device/cpu/blocks.h"

#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "inspector/base/check.h"
#include "inspector/tensor/elements.h"
#include "inspector/tensor/float_formats.h"
#include "runtime/device/cpu/multiversion.h"
#include "runtime/device/storage.h"

namespace parallax::runtime {
namespace {

using storage::from_storage;
using storage::to_storage;
using storage::visit_storage;

#if defined(__x86_64__)
// Float16 by the processor's own conversion (F16C), which rounds as ONNX does; the loops that storage.h's formulas make
// take three times as long. Eight or sixteen at a time; returns where it ended.
__attribute__((target("avx2,f16c"))) int64_t load_float16(const Float16* source, float* out, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(source + i))));
  }
  return i;
}
__attribute__((target("avx2,f16c"))) int64_t store_float16(Float16* target, const float* values, int64_t count) {
  const __m256 quiet_nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000));  // whose half is 7E00
  const __m256 sign = _mm256_set1_ps(-0.0F);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 read = _mm256_loadu_ps(values + i);
    const __m256 signed_nan = _mm256_or_ps(quiet_nan, _mm256_and_ps(read, sign));
    const __m256 value = _mm256_blendv_ps(read, signed_nan, _mm256_cmp_ps(read, read, _CMP_UNORD_Q));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(target + i), _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}
#define PX_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))
constexpr __mmask16 kAllSixteen = 0xFFFF;  // GCC 12 warns of what the forms without a mask leave undefined
PX_AVX512 int64_t load_16_float16(const Float16* source, float* out, int64_t count) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    _mm512_storeu_ps(
        out + i, _mm512_maskz_cvtph_ps(kAllSixteen, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + i))));
  }
  return i;
}
PX_AVX512 int64_t store_16_float16(Float16* target, const float* values, int64_t count) {
  const __m512i quiet_nan = _mm512_set1_epi32(0x7FC00000), sign = _mm512_set1_epi32(INT32_MIN);
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m512 read = _mm512_loadu_ps(values + i);
    const __mmask16 is_nan = _mm512_cmp_ps_mask(read, read, _CMP_UNORD_Q);
    const __m512i bits = _mm512_castps_si512(read);
    const __m512i kept = _mm512_mask_or_epi32(bits, is_nan, quiet_nan, _mm512_and_si512(bits, sign));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(target + i),
                        _mm512_maskz_cvtps_ph(kAllSixteen, _mm512_castsi512_ps(kept), _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}

int64_t load_many_float16(const Float16* source, float* out, int64_t count) {
  if (vector_level() == VectorLevel::avx512) return load_16_float16(source, out, count);
  return vector_level() == VectorLevel::avx2 ? load_float16(source, out, count) : 0;
}
int64_t store_many_float16(Float16* target, const float* values, int64_t count) {
  if (vector_level() == VectorLevel::avx512) return store_16_float16(target, values, count);
  return vector_level() == VectorLevel::avx2 ? store_float16(target, values, count) : 0;
}
#else
int64_t load_many_float16(const Float16*, float*, int64_t) { return 0; }
int64_t store_many_float16(Float16*, const float*, int64_t) { return 0; }
#endif

template <class S, class C>
constexpr bool kHalfAndSinglePrecision = std::is_same_v<S, Float16>&& std::is_same_v<C, float>;

template <class S, class C>
void load_as(const std::byte* data, int64_t index, int64_t stride, int64_t count, C* out) {
  using Stored = std::conditional_t<std::is_same_v<S, bool>, uint8_t, S>;  // GCC 12 makes no vector code of bools
  const Stored* source = reinterpret_cast<const Stored*>(data) + index;
  if (stride == 0) {
    const C value = from_storage<C>(*source);
    for (int64_t i = 0; i < count; ++i) out[i] = value;
    return;
  }
  int64_t done = 0;
  if constexpr (kHalfAndSinglePrecision<S, C>) done = load_many_float16(source, out, count);
  vectorized(done, count, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = from_storage<C>(source[i]);
  });
}

template <class S, class C>
void store_as(std::byte* data, int64_t index, int64_t count, const C* values) {
  S* target = reinterpret_cast<S*>(data) + index;
  int64_t done = 0;
  if constexpr (kHalfAndSinglePrecision<S, C>) done = store_many_float16(target, values, count);
  vectorized(done, count, [=](int64_t begin, int64_t end) {
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
