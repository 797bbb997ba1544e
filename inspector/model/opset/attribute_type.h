// SPDX-License-Identifier: Apache-2.0
// The kinds of value an ONNX attribute can hold, numbered as AttributeProto.AttributeType numbers them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace parallax {

enum class AttributeType : uint8_t {
  undefined = 0,
  float_ = 1,
  int_ = 2,
  string = 3,
  tensor = 4,
  graph = 5,
  floats = 6,
  ints = 7,
  strings = 8,
  tensors = 9,
  graphs = 10,
  sparse_tensor = 11,
  sparse_tensors = 12,
  type_proto = 13,
  type_protos = 14,
};

// In the order of their numbers; spelt as the specification spells them, in lower case.
inline constexpr std::array<std::string_view, 15> kAttributeTypeNames = {
    "undefined", "float",   "int",    "string",        "tensor",         "graph",      "floats",     "ints",
    "strings",   "tensors", "graphs", "sparse_tensor", "sparse_tensors", "type_proto", "type_protos"};

constexpr std::string_view name_of(AttributeType type) { return kAttributeTypeNames.at(static_cast<size_t>(type)); }

constexpr std::optional<AttributeType> attribute_type_from_name(std::string_view name) {
  for (size_t number = 1; number < kAttributeTypeNames.size(); ++number) {
    if (kAttributeTypeNames[number] == name) return static_cast<AttributeType>(number);
  }
  return std::nullopt;
}

}  // namespace parallax
