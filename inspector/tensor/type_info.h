// SPDX-License-Identifier: Apache-2.0
// TypeInfo: the declared ONNX type of a value (TypeProto): tensors with possibly symbolic dimensions, sequences,
// optionals, maps.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inspector/tensor/dtype.h"

namespace parallax {

// One declared dimension: a number, a name (`dim_param`, which may be an expression such as "past + sequence"), or
// neither.
struct Dim {
  int64_t value = -1;  // -1 when not a number
  std::string name;    // empty when not named
  bool is_known() const { return value >= 0; }
  bool operator==(const Dim&) const = default;
};

struct TypeInfo {
  enum class Kind : uint8_t { unknown, tensor, sparse_tensor, sequence, optional, map, opaque };
  Kind kind = Kind::unknown;
  DType dtype = DType::undefined;        // element of a (sparse) tensor; key of a map
  std::optional<std::vector<Dim>> dims;  // of a (sparse) tensor; nothing when the rank is unknown
  std::vector<TypeInfo> inner;           // one: element of a sequence or optional, value of a map
  bool operator==(const TypeInfo&) const = default;

  static TypeInfo tensor(DType dtype) { return {Kind::tensor, dtype, std::nullopt, {}}; }
  static TypeInfo sequence(TypeInfo element) {
    return {Kind::sequence, DType::undefined, std::nullopt, {std::move(element)}};
  }
  static TypeInfo optional(TypeInfo element) {
    return {Kind::optional, DType::undefined, std::nullopt, {std::move(element)}};
  }
  static TypeInfo map(DType key, TypeInfo value) { return {Kind::map, key, std::nullopt, {std::move(value)}}; }
};

// "float32[batch,3,?]", "seq(float32[?])", "optional(...)", "map(int64,float32)"; "?" when unknown.
std::string to_string(const TypeInfo& type);

}  // namespace parallax
