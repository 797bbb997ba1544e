// SPDX-License-Identifier: Apache-2.0
// Element access for every type by one dispatch: `visit_numbers` decodes a range into a callback's type.
#include "inspector/tensor/elements.h"

#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>

namespace parallax {
namespace {

int64_t sign_extend(uint8_t raw, int bits) {
  const int64_t sign = int64_t{1} << (bits - 1);
  return (static_cast<int64_t>(raw) ^ sign) - sign;
}

double packed_to_double(DType dtype, uint8_t raw) {
  if (dtype == DType::float4e2m1) return small_float_to_double(dtype, raw);
  if (dtype == DType::int4 || dtype == DType::int2) return static_cast<double>(sign_extend(raw, bits_of(dtype)));
  return raw;
}

template <class Stored, class Convert, class Out>
void load_as(const TensorView& view, int64_t begin, std::span<Out> out, Convert convert) {
  const auto* source = reinterpret_cast<const Stored*>(view.data) + begin;
  for (size_t index = 0; index < out.size(); ++index) out[index] = convert(source[index]);
}

template <class Stored, class Out>
void load_cast(const TensorView& view, int64_t begin, std::span<Out> out) {
  load_as<Stored>(view, begin, out, [](Stored value) { return static_cast<Out>(value); });
}

// The fixed-width integers and bool; false when dtype is none of them.
template <class Out>
bool load_integers(const TensorView& view, int64_t begin, std::span<Out> out) {
  switch (view.dtype) {
    case DType::int8:
      return load_cast<int8_t>(view, begin, out), true;
    case DType::int16:
      return load_cast<int16_t>(view, begin, out), true;
    case DType::int32:
      return load_cast<int32_t>(view, begin, out), true;
    case DType::int64:
      return load_cast<int64_t>(view, begin, out), true;
    case DType::bool_:
    case DType::uint8:
      return load_cast<uint8_t>(view, begin, out), true;
    case DType::uint16:
      return load_cast<uint16_t>(view, begin, out), true;
    case DType::uint32:
      return load_cast<uint32_t>(view, begin, out), true;
    case DType::uint64:
      return load_cast<uint64_t>(view, begin, out), true;
    case DType::int2:
    case DType::int4:
    case DType::uint2:
    case DType::uint4:
      for (size_t index = 0; index < out.size(); ++index) {
        const uint8_t raw = load_packed(view.data, bits_of(view.dtype), begin + static_cast<int64_t>(index));
        out[index] = static_cast<Out>(packed_to_double(view.dtype, raw));
      }
      return true;
    default:
      return false;
  }
}

template <class Stored, class Convert, class In>
void store_as(Tensor& tensor, int64_t begin, std::span<const In> values, Convert convert) {
  auto* target = reinterpret_cast<Stored*>(tensor.mutable_data()) + begin;
  for (size_t index = 0; index < values.size(); ++index) target[index] = convert(values[index]);
}

// True where `value` is a whole number of [-2^(bits-1), 2^(bits-1)), or of [0, 2^bits) without sign.
bool fits(double value, int bits, bool is_signed) {
  const double low = is_signed ? -std::ldexp(1.0, bits - 1) : 0.0;
  const double high = std::ldexp(1.0, is_signed ? bits - 1 : bits);
  return value >= low && value < high && value == std::trunc(value);
}
bool fits(int64_t value, int bits, bool is_signed) {
  if (bits == 64) return true;  // uint64 wraps
  const int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  return value >= low && value < low + (int64_t{1} << bits);
}

template <class Stored, class In>
void store_checked(Tensor& tensor, int64_t begin, std::span<const In> values) {
  store_as<Stored>(tensor, begin, values, [](In value) {
    PX_CHECK(fits(value, 8 * static_cast<int>(sizeof(Stored)), std::is_signed_v<Stored>));
    return static_cast<Stored>(value);
  });
}

template <class In>
void store_packed_integers(Tensor& tensor, int64_t begin, std::span<const In> values) {
  const int bits = bits_of(tensor.dtype());
  const bool is_signed = info_of(tensor.dtype()).kind == DTypeKind::signed_integer;
  PX_CHECK(bits < 8);
  for (size_t index = 0; index < values.size(); ++index) {
    PX_CHECK(fits(values[index], bits, is_signed));
    const auto integer = static_cast<int64_t>(values[index]);
    store_packed(tensor.mutable_data(), bits, begin + static_cast<int64_t>(index),
                 static_cast<uint8_t>(integer & ((1 << bits) - 1)));
  }
}

template <class In>
bool store_integers(Tensor& tensor, int64_t begin, std::span<const In> values) {
  switch (tensor.dtype()) {
    case DType::int8:
      return store_checked<int8_t>(tensor, begin, values), true;
    case DType::int16:
      return store_checked<int16_t>(tensor, begin, values), true;
    case DType::int32:
      return store_checked<int32_t>(tensor, begin, values), true;
    case DType::int64:
      return store_checked<int64_t>(tensor, begin, values), true;
    case DType::bool_:
      return store_as<uint8_t>(tensor, begin, values, [](In value) { return static_cast<uint8_t>(value != 0); }), true;
    case DType::uint8:
      return store_checked<uint8_t>(tensor, begin, values), true;
    case DType::uint16:
      return store_checked<uint16_t>(tensor, begin, values), true;
    case DType::uint32:
      return store_checked<uint32_t>(tensor, begin, values), true;
    case DType::uint64:
      return store_checked<uint64_t>(tensor, begin, values), true;
    case DType::int2:
    case DType::int4:
    case DType::uint2:
    case DType::uint4:
      return store_packed_integers(tensor, begin, values), true;
    default:
      return false;
  }
}

template <class Number>
std::string number_to_string(Number value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return fmt::format("{}", value);
}

}  // namespace

uint8_t load_packed(const std::byte* data, int bits, int64_t index) {
  const int64_t bit = index * bits;
  return static_cast<uint8_t>((std::to_integer<unsigned>(data[bit / 8]) >> (bit % 8)) & ((1U << bits) - 1U));
}

void store_packed(std::byte* data, int bits, int64_t index, uint8_t value) {
  const int64_t bit = index * bits;
  const auto mask = static_cast<std::byte>(((1U << bits) - 1U) << (bit % 8));
  std::byte& byte = data[bit / 8];
  byte = (byte & ~mask) | (static_cast<std::byte>(static_cast<unsigned>(value) << (bit % 8)) & mask);
}

void load_doubles(const TensorView& view, int64_t begin, std::span<double> out) {
  PX_CHECK(view.device.is_host() && begin >= 0 && begin + static_cast<int64_t>(out.size()) <= view.element_count());
  const DType dtype = view.dtype;
  switch (dtype) {
    case DType::float32:
      return load_cast<float>(view, begin, out);
    case DType::float64:
      return load_cast<double>(view, begin, out);
    case DType::float16:
      return load_as<uint16_t>(view, begin, out, float16_to_double);
    case DType::bfloat16:
      return load_as<uint16_t>(view, begin, out, bfloat16_to_float);
    case DType::complex64:
      return load_as<std::complex<float>>(view, begin, out, [](std::complex<float> value) { return value.real(); });
    case DType::complex128:
      return load_as<std::complex<double>>(view, begin, out, [](std::complex<double> value) { return value.real(); });
    case DType::float4e2m1:
      for (size_t index = 0; index < out.size(); ++index) {
        out[index] = packed_to_double(dtype, load_packed(view.data, 4, begin + static_cast<int64_t>(index)));
      }
      return;
    case DType::float8e4m3fn:
    case DType::float8e4m3fnuz:
    case DType::float8e5m2:
    case DType::float8e5m2fnuz:
    case DType::float8e8m0:
      return load_as<uint8_t>(view, begin, out, [dtype](uint8_t raw) { return small_float_to_double(dtype, raw); });
    default:
      PX_CHECK(load_integers(view, begin, out));
  }
}

void load_int64s(const TensorView& view, int64_t begin, std::span<int64_t> out) {
  PX_CHECK(view.device.is_host() && begin >= 0 && begin + static_cast<int64_t>(out.size()) <= view.element_count());
  if (load_integers(view, begin, out)) return;
  std::vector<double> doubles(out.size());
  load_doubles(view, begin, doubles);
  for (size_t index = 0; index < out.size(); ++index) {
    PX_CHECK(doubles[index] >= -0x1p63 && doubles[index] < 0x1p63);
    out[index] = static_cast<int64_t>(doubles[index]);
  }
}

void store_doubles(Tensor& tensor, int64_t begin, std::span<const double> values) {
  PX_CHECK(begin >= 0 && begin + static_cast<int64_t>(values.size()) <= tensor.element_count());
  const DType dtype = tensor.dtype();
  switch (dtype) {
    case DType::float32:
      return store_as<float>(tensor, begin, values, [](double value) { return static_cast<float>(value); });
    case DType::float64:
      return store_as<double>(tensor, begin, values, [](double value) { return value; });
    case DType::float16:
      return store_as<uint16_t>(tensor, begin, values, float16_from_double);
    case DType::bfloat16:
      return store_as<uint16_t>(tensor, begin, values, bfloat16_from_double);
    case DType::complex64:
      return store_as<std::complex<float>>(tensor, begin, values,
                                           [](double value) { return std::complex<float>(static_cast<float>(value)); });
    case DType::complex128:
      return store_as<std::complex<double>>(tensor, begin, values,
                                            [](double value) { return std::complex<double>(value); });
    case DType::float4e2m1:
      for (size_t index = 0; index < values.size(); ++index) {
        const uint8_t raw = small_float_from_double(dtype, values[index]);
        store_packed(tensor.mutable_data(), 4, begin + static_cast<int64_t>(index), raw);
      }
      return;
    case DType::float8e4m3fn:
    case DType::float8e4m3fnuz:
    case DType::float8e5m2:
    case DType::float8e5m2fnuz:
    case DType::float8e8m0:
      return store_as<uint8_t>(tensor, begin, values,
                               [dtype](double value) { return small_float_from_double(dtype, value); });
    default:
      PX_CHECK(store_integers(tensor, begin, values));
  }
}

void store_int64s(Tensor& tensor, int64_t begin, std::span<const int64_t> values) {
  PX_CHECK(begin >= 0 && begin + static_cast<int64_t>(values.size()) <= tensor.element_count());
  if (store_integers(tensor, begin, values)) return;
  const std::vector<double> doubles(values.begin(), values.end());
  store_doubles(tensor, begin, doubles);
}

double element_as_double(const TensorView& view, int64_t index) {
  double value = 0;
  load_doubles(view, index, {&value, 1});
  return value;
}

int64_t element_as_int64(const TensorView& view, int64_t index) {
  int64_t value = 0;
  load_int64s(view, index, {&value, 1});
  return value;
}

std::complex<double> element_as_complex(const TensorView& view, int64_t index) {
  if (view.dtype == DType::complex64)
    return std::complex<double>(view.as<std::complex<float>>()[static_cast<size_t>(index)]);
  if (view.dtype == DType::complex128) return view.as<std::complex<double>>()[static_cast<size_t>(index)];
  return element_as_double(view, index);
}

std::string element_to_string(const TensorView& view, int64_t index) {
  const DTypeInfo& info = info_of(view.dtype);
  switch (info.kind) {
    case DTypeKind::string:
      return fmt::format("\"{}\"", view.as<std::string>()[static_cast<size_t>(index)]);
    case DTypeKind::boolean:
      return element_as_int64(view, index) != 0 ? "true" : "false";
    case DTypeKind::unsigned_integer:
      return fmt::format("{}", static_cast<uint64_t>(element_as_int64(view, index)));
    case DTypeKind::signed_integer:
      return fmt::format("{}", element_as_int64(view, index));
    case DTypeKind::complex: {
      const auto value = element_as_complex(view, index);
      return fmt::format("({},{})", number_to_string(value.real()), number_to_string(value.imag()));
    }
    default:
      break;
  }
  const double value = element_as_double(view, index);
  // Every float narrower than double prints shortest as a float: it has the digits of float at most.
  return view.dtype == DType::float64 ? number_to_string(value) : number_to_string(static_cast<float>(value));
}

std::vector<int64_t> to_int64s(const TensorView& view) {
  std::vector<int64_t> values(static_cast<size_t>(view.element_count()));
  load_int64s(view, 0, values);
  return values;
}

}  // namespace parallax
