// Conversions between storage and arithmetic types, vectorised for the common ones.
#include "runtime/device/blocks.h"

#include <type_traits>

#include "inspector/base/check.h"
#include "inspector/tensor/elements.h"
#include "inspector/tensor/float_formats.h"
#include "runtime/device/multiversion.h"
#include "runtime/device/storage.h"

namespace parallax::runtime {
namespace {

using storage::from_storage;
using storage::to_storage;
using storage::visit_storage;

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
