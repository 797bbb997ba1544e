// SPDX-License-Identifier: Apache-2.0
// The table of element types.
#include "inspector/tensor/dtype.h"

#include <array>

#include "inspector/base/check.h"

namespace parallax {
namespace {

using enum DTypeKind;
constexpr std::array<DTypeInfo, kDTypeCount> kTypes = {{
    {DType::undefined, "undefined", "undefined", 0, none},
    {DType::float32, "float32", "float", 32, floating},
    {DType::uint8, "uint8", "uint8", 8, unsigned_integer},
    {DType::int8, "int8", "int8", 8, signed_integer},
    {DType::uint16, "uint16", "uint16", 16, unsigned_integer},
    {DType::int16, "int16", "int16", 16, signed_integer},
    {DType::int32, "int32", "int32", 32, signed_integer},
    {DType::int64, "int64", "int64", 64, signed_integer},
    {DType::string, "string", "string", 0, DTypeKind::string},
    {DType::bool_, "bool", "bool", 8, boolean},
    {DType::float16, "float16", "float16", 16, floating},
    {DType::float64, "float64", "double", 64, floating},
    {DType::uint32, "uint32", "uint32", 32, unsigned_integer},
    {DType::uint64, "uint64", "uint64", 64, unsigned_integer},
    {DType::complex64, "complex64", "complex64", 64, DTypeKind::complex},
    {DType::complex128, "complex128", "complex128", 128, DTypeKind::complex},
    {DType::bfloat16, "bfloat16", "bfloat16", 16, floating},
    {DType::float8e4m3fn, "float8e4m3fn", "float8e4m3fn", 8, floating},
    {DType::float8e4m3fnuz, "float8e4m3fnuz", "float8e4m3fnuz", 8, floating},
    {DType::float8e5m2, "float8e5m2", "float8e5m2", 8, floating},
    {DType::float8e5m2fnuz, "float8e5m2fnuz", "float8e5m2fnuz", 8, floating},
    {DType::uint4, "uint4", "uint4", 4, unsigned_integer},
    {DType::int4, "int4", "int4", 4, signed_integer},
    {DType::float4e2m1, "float4e2m1", "float4e2m1", 4, floating},
    {DType::float8e8m0, "float8e8m0", "float8e8m0", 8, floating},
    {DType::uint2, "uint2", "uint2", 2, unsigned_integer},
    {DType::int2, "int2", "int2", 2, signed_integer},
}};
constexpr bool rows_are_in_order() {
  for (size_t number = 0; number < kTypes.size(); ++number) {
    if (static_cast<size_t>(kTypes[number].dtype) != number) return false;
  }
  return true;
}
static_assert(rows_are_in_order(), "info_of looks a type up by its number");
static_assert(kDTypeCount <= 32, "op_context.h and type_set.h hold a set of types in 32 bits");

}  // namespace

const DTypeInfo& info_of(DType dtype) {
  PX_CHECK(static_cast<size_t>(dtype) < kTypes.size());
  return kTypes[static_cast<size_t>(dtype)];
}

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeInfo& info : all_dtypes()) {
    if (info.name == name || info.onnx_name == name) return info.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_number(int64_t onnx_number) {
  if (onnx_number <= 0 || onnx_number >= kDTypeCount) return std::nullopt;
  return static_cast<DType>(onnx_number);
}

std::span<const DTypeInfo> all_dtypes() { return std::span(kTypes).subspan(1); }

size_t byte_size(DType dtype, int64_t count) {
  PX_CHECK(count >= 0);
  if (dtype == DType::string) return static_cast<size_t>(count) * sizeof(std::string);
  const auto bits = static_cast<size_t>(bits_of(dtype));
  const auto elements = static_cast<size_t>(count);
  return bits >= 8 ? elements * (bits / 8) : (elements * bits + 7) / 8;
}

}  // namespace parallax
