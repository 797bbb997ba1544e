// SPDX-License-Identifier: Apache-2.0
// Spelling and reading of the types in operator schemas, and the set operations that need a loop.
#include "inspector/model/opset/type_set.h"

#include <bit>

namespace parallax {
namespace {

// In the order of TensorProto.DataType, which leaves no number out. DType's own table does not do: schemas also name
// the float6 types, which no tensor of ours can have.
constexpr std::array<std::string_view, 29> kElementNames = {
    "",           "float",        "uint8",          "int8",       "uint16",         "int16",  "int32",     "int64",
    "string",     "bool",         "float16",        "double",     "uint32",         "uint64", "complex64", "complex128",
    "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "uint4",  "int4",      "float4e2m1",
    "float8e8m0", "uint2",        "int2",           "float6e2m3", "float6e3m2"};

struct FormSpelling {
  std::string_view before;
  std::string_view after;
};

// In the order of TypeForm.
constexpr std::array<FormSpelling, kTypeFormCount> kForms = {{
    {"tensor(", ")"},
    {"sparse_tensor(", ")"},
    {"seq(tensor(", "))"},
    {"optional(tensor(", "))"},
    {"optional(seq(tensor(", ")))"},
    {"map(int64,", ")"},
    {"map(string,", ")"},
    {"seq(map(int64,", "))"},
    {"seq(map(string,", "))"},
}};

std::string form_text(TypeForm form, uint32_t elements) {
  const auto& [before, after] = kForms[static_cast<size_t>(form)];
  std::string text(before);
  for (uint32_t left = elements; left != 0; left &= left - 1) {
    if (left != elements) text += '|';
    text += schema_name_of(static_cast<DType>(std::countr_zero(left)));
  }
  text += after;
  return text;
}

}  // namespace

std::string to_string(SchemaType type) { return form_text(type.form, element_bit(type.element)); }

std::optional<SchemaType> schema_type_from_string(std::string_view text) {
  for (size_t form = 0; form < kTypeFormCount; ++form) {
    const auto& [before, after] = kForms[form];
    if (text.size() <= before.size() + after.size() || !text.starts_with(before) || !text.ends_with(after)) continue;
    const auto inside = text.substr(before.size(), text.size() - before.size() - after.size());
    if (const auto element = element_from_schema_name(inside)) return SchemaType{static_cast<TypeForm>(form), *element};
  }
  return std::nullopt;
}

std::string_view schema_name_of(DType element) {
  const auto number = static_cast<size_t>(element);
  return number < kElementNames.size() ? kElementNames[number] : std::string_view{};
}

std::optional<DType> element_from_schema_name(std::string_view name) {
  for (size_t number = 1; number < kElementNames.size(); ++number) {
    if (kElementNames[number] == name) return static_cast<DType>(number);
  }
  return std::nullopt;
}

size_t TypeSet::size() const {
  size_t count = 0;
  for (const uint32_t mask : masks_) count += static_cast<size_t>(std::popcount(mask));
  return count;
}

std::optional<SchemaType> TypeSet::single() const {
  if (size() != 1) return std::nullopt;
  for (size_t form = 0; form < kTypeFormCount; ++form) {
    if (masks_[form] != 0) {
      return SchemaType{static_cast<TypeForm>(form), static_cast<DType>(std::countr_zero(masks_[form]))};
    }
  }
  return std::nullopt;
}

TypeSet& TypeSet::operator&=(const TypeSet& other) {
  for (size_t form = 0; form < kTypeFormCount; ++form) masks_[form] &= other.masks_[form];
  return *this;
}

std::string to_string(const TypeSet& types) {
  std::string text;
  for (size_t form = 0; form < kTypeFormCount; ++form) {
    const uint32_t elements = types.elements(static_cast<TypeForm>(form));
    if (elements == 0) continue;
    if (!text.empty()) text += ", ";
    text += form_text(static_cast<TypeForm>(form), elements);
  }
  return text;
}

}  // namespace parallax
