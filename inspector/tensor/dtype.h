// SPDX-License-Identifier: Apache-2.0
// DType: the ONNX element types. Enumerators have the numbers of TensorProto.DataType, so import and dumps need no
// mapping.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace parallax {

enum class DType : uint8_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  bool_ = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16,
  float8e4m3fn = 17,
  float8e4m3fnuz = 18,
  float8e5m2 = 19,
  float8e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4e2m1 = 23,
  float8e8m0 = 24,
  uint2 = 25,
  int2 = 26,
};
constexpr int kDTypeCount = 27;

enum class DTypeKind : uint8_t { none, floating, signed_integer, unsigned_integer, boolean, complex, string };

struct DTypeInfo {
  DType dtype;
  std::string_view name;       // as in type strings and JSON: "float32", "bool", "int4"
  std::string_view onnx_name;  // as in the specification's type constraints: "float", "bool", "int4"
  uint8_t bits;                // of one element; sub-byte types are packed low bits first; 0 for string and undefined
  DTypeKind kind;
};

const DTypeInfo& info_of(DType dtype);
inline std::string_view name_of(DType dtype) { return info_of(dtype).name; }
inline int bits_of(DType dtype) { return info_of(dtype).bits; }

// Accepts both spellings ("float" and "float32", "double" and "float64"); nothing for unknown names.
std::optional<DType> dtype_from_name(std::string_view name);
std::optional<DType> dtype_from_number(int64_t onnx_number);  // nothing for undefined and unknown numbers
std::span<const DTypeInfo> all_dtypes();                      // without undefined

inline bool is_floating(DType dtype) { return info_of(dtype).kind == DTypeKind::floating; }
inline bool is_complex(DType dtype) { return info_of(dtype).kind == DTypeKind::complex; }
inline bool is_integer(DType dtype) {
  return info_of(dtype).kind == DTypeKind::signed_integer || info_of(dtype).kind == DTypeKind::unsigned_integer;
}
inline bool is_sub_byte(DType dtype) { return bits_of(dtype) > 0 && bits_of(dtype) < 8; }

// Bytes of `count` elements, sub-byte types packed and rounded up; sizeof(std::string) each for strings (memory, not
// files).
size_t byte_size(DType dtype, int64_t count);

}  // namespace parallax
