// SPDX-License-Identifier: Apache-2.0
// Which types an operator's input or output may have: per form (tensor, sequence, ...) a set of element types.
// The forms below are all that any published operator schema uses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "inspector/tensor/dtype.h"

namespace parallax {

enum class TypeForm : uint8_t {
  tensor,
  sparse_tensor,
  sequence,             // seq(tensor(E))
  optional,             // optional(tensor(E))
  optional_sequence,    // optional(seq(tensor(E)))
  map_int64,            // map(int64, E)
  map_string,           // map(string, E)
  sequence_map_int64,   // seq(map(int64, E))
  sequence_map_string,  // seq(map(string, E))
};
inline constexpr size_t kTypeFormCount = 9;

// One type as schemas name it: "seq(tensor(float))" is {sequence, float}.
struct SchemaType {
  TypeForm form = TypeForm::tensor;
  DType element{};

  friend bool operator==(const SchemaType&, const SchemaType&) = default;
};

std::string to_string(SchemaType type);
std::optional<SchemaType> schema_type_from_string(std::string_view text);

// An element type as ONNX type strings spell it ("float", "double"), and back. Nothing for undefined numbers.
std::string_view schema_name_of(DType element);
std::optional<DType> element_from_schema_name(std::string_view name);

// The bit of an element type in a mask; bits are TensorProto.DataType numbers.
constexpr uint32_t element_bit(DType element) { return uint32_t{1} << static_cast<uint32_t>(element); }

class TypeSet {
 public:
  constexpr TypeSet() = default;

  void insert(SchemaType type) { insert(type.form, element_bit(type.element)); }
  void insert(TypeForm form, uint32_t elements) { masks_[static_cast<size_t>(form)] |= elements; }

  bool contains(SchemaType type) const { return (elements(type.form) & element_bit(type.element)) != 0; }
  bool contains_tensor(DType element) const { return contains({TypeForm::tensor, element}); }
  uint32_t elements(TypeForm form) const { return masks_[static_cast<size_t>(form)]; }

  bool empty() const { return size() == 0; }
  size_t size() const;
  // The only member, where there is exactly one.
  std::optional<SchemaType> single() const;

  TypeSet& operator&=(const TypeSet& other);
  friend bool operator==(const TypeSet&, const TypeSet&) = default;

 private:
  std::array<uint32_t, kTypeFormCount> masks_{};
};

// "tensor(float|float16), seq(tensor(float))": forms in the order above, elements in ONNX's numbering.
std::string to_string(const TypeSet& types);

}  // namespace parallax
