// SPDX-License-Identifier: Apache-2.0
// The text of errors that name what was seen and the rule.
#include "inspector/model/rule_errors.h"

#include <fmt/ranges.h>

#include "inspector/model/opset/op_schema.h"

namespace parallax {

std::string dims_text(std::span<const int64_t> dims) { return fmt::format("[{}]", fmt::join(dims, ",")); }

Error broken_rule(std::string seen, std::string_view rule) {
  return execution_error(fmt::format("{}; it must {}", seen, rule));
}

Error as_invalid_model(Error error) {
  error.code = ErrorCode::invalid_model;
  return error;
}

std::string input_name(const Node& node, size_t index) {
  const FormalParameter* formal = node.schema == nullptr ? nullptr : node.schema->input(index);
  if (formal == nullptr) return fmt::format("input {}", index);
  if (formal->option == ParameterOption::variadic) return fmt::format("input {} ('{}')", index, formal->name);
  return fmt::format("input '{}'", formal->name);
}

std::string input_seen(const Node& node, size_t index, const Value* value, bool has_own_type) {
  const std::string name = input_name(node, index);
  if (value == nullptr) return name + " is missing";
  if (!value->is_tensor()) return fmt::format("{} is {}", name, to_string(type_of(*value)));
  const Tensor& tensor = value->tensor();
  if (!has_own_type && tensor.dtype() == DType::float64)
    return fmt::format("{} has shape {}", name, tensor.shape().to_string());
  return fmt::format("{} is {}{}", name, name_of(tensor.dtype()), tensor.shape().to_string());
}

}  // namespace parallax
