// SPDX-License-Identifier: Apache-2.0
// Attributes for nodes that are made: parts of a decomposed operator, what a rewrite puts in.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "inspector/model/ir.h"

namespace parallax {

template <class T>
Attribute make_attribute(std::string name, AttributeType type, T value) {
  Attribute made;
  made.name = std::move(name);
  made.type = type;
  made.value = std::move(value);
  return made;
}

inline Attribute int_attribute(std::string name, int64_t value) {
  return make_attribute(std::move(name), AttributeType::int_, value);
}
inline Attribute float_attribute(std::string name, double value) {  // stored as float, as ONNX has it
  return make_attribute(std::move(name), AttributeType::float_, static_cast<float>(value));
}
inline Attribute string_attribute(std::string name, std::string value) {
  return make_attribute(std::move(name), AttributeType::string, std::move(value));
}
inline Attribute ints_attribute(std::string name, std::vector<int64_t> values) {
  return make_attribute(std::move(name), AttributeType::ints, std::move(values));
}
inline Attribute floats_attribute(std::string name, std::vector<float> values) {
  return make_attribute(std::move(name), AttributeType::floats, std::move(values));
}
inline Attribute strings_attribute(std::string name, std::vector<std::string> values) {
  return make_attribute(std::move(name), AttributeType::strings, std::move(values));
}

}  // namespace parallax
