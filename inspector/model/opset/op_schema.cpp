// SPDX-License-Identifier: Apache-2.0
// Look-ups in one schema and its text for people.
#include "inspector/model/opset/op_schema.h"

#include <algorithm>
#include <charconv>

namespace parallax {
namespace {

const FormalParameter* parameter_at(std::span<const FormalParameter> parameters, size_t index) {
  if (index < parameters.size()) return &parameters[index];
  if (!parameters.empty() && parameters.back().option == ParameterOption::variadic) return &parameters.back();
  return nullptr;
}

template <class T>
const T* named(std::span<const T> items, std::string_view name) {
  const auto found = std::ranges::find(items, name, &T::name);
  return found == items.end() ? nullptr : &*found;
}

std::string scalar_text(int64_t value) { return std::to_string(value); }
std::string scalar_text(std::string_view value) { return '"' + std::string(value) + '"'; }
std::string scalar_text(float value) {
  char buffer[32];
  const auto [end, error] = std::to_chars(std::begin(buffer), std::end(buffer), value);
  return error == std::errc{} ? std::string(std::begin(buffer), end) : std::string();
}

struct DefaultText {
  std::string operator()(std::monostate) const { return {}; }
  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    std::string text = "[";
    for (const T& value : values) {
      if (text.size() > 1) text += ", ";
      text += scalar_text(value);
    }
    return text + "]";
  }
  template <class T>
  std::string operator()(const T& value) const {
    return scalar_text(value);
  }
};

void append_parameters(std::string& text, std::string_view title, std::span<const FormalParameter> parameters) {
  if (parameters.empty()) return;
  text += title;
  text += ":\n";
  for (const FormalParameter& parameter : parameters) {
    text += "  ";
    text += parameter.name;
    text += ": ";
    text += parameter.type;
    if (parameter.option == ParameterOption::optional) text += " (optional)";
    if (parameter.option == ParameterOption::variadic) {
      text += " (variadic, at least " + std::to_string(parameter.min_arity);
      text += parameter.homogeneous ? ", all of one type)" : ", types may differ)";
    }
    text += '\n';
  }
}

void append_attributes(std::string& text, std::span<const AttributeSchema> attributes) {
  if (attributes.empty()) return;
  text += "attributes:\n";
  for (const AttributeSchema& attribute : attributes) {
    text += "  ";
    text += attribute.name;
    text += ": ";
    text += name_of(attribute.type);
    if (attribute.required) text += " (required)";
    const std::string value = to_string(attribute.default_value);
    if (!value.empty()) text += " = " + value;
    text += '\n';
  }
}

}  // namespace

const FormalParameter* OpSchema::input(size_t index) const { return parameter_at(inputs, index); }
const FormalParameter* OpSchema::output(size_t index) const { return parameter_at(outputs, index); }
const AttributeSchema* OpSchema::attribute(std::string_view attribute_name) const {
  return named(attributes, attribute_name);
}
const TypeConstraint* OpSchema::type_constraint(std::string_view parameter) const {
  return named(type_constraints, parameter);
}

std::string OpSchema::versioned_name() const { return std::string(name) + "-" + std::to_string(since_version); }

std::string to_string(const AttributeDefault& value) { return std::visit(DefaultText{}, value); }

std::string signature_text(const OpSchema& schema) {
  std::string text = schema.versioned_name() + " (" + std::string(schema.domain) + ")";
  if (schema.deprecated) text += ", deprecated";
  if (schema.has_function) text += ", defined by a function body";
  if (schema.extension) text += ", an extension by onnxruntime";
  text += '\n';
  append_parameters(text, "inputs", schema.inputs);
  append_parameters(text, "outputs", schema.outputs);
  append_attributes(text, schema.attributes);
  if (!schema.type_constraints.empty()) text += "types:\n";
  for (const TypeConstraint& constraint : schema.type_constraints) {
    text += "  " + std::string(constraint.name) + ": " + to_string(constraint.types) + "\n";
  }
  return text;
}

}  // namespace parallax
