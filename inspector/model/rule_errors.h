// SPDX-License-Identifier: Apache-2.0
// Errors of execution in one form: "<thing> is <what was seen>; it must <rule>".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"
#include "inspector/tensor/value.h"

namespace parallax {

std::string dims_text(std::span<const int64_t> dims);  // "[2,3]", "[]"

// "<seen>; it must <rule>".
Error broken_rule(std::string seen, std::string_view rule);
// `error`, of a rule that no input can keep: the model itself breaks it.
Error as_invalid_model(Error error);

// `rule` is a format of fmt and goes on after "it must": "have rank {}".
template <class Value, class... Args>
Error wrong_value(std::string_view thing, const Value& value, fmt::format_string<Args...> rule, Args&&... args) {
  return broken_rule(fmt::format("{} is {}", thing, value), fmt::format(rule, std::forward<Args>(args)...));
}

template <class... Args>
Error wrong_attribute(std::string_view name, std::string_view value, fmt::format_string<Args...> rule, Args&&... args) {
  return broken_rule(fmt::format("attribute '{}' is '{}'", name, value),
                     fmt::format(rule, std::forward<Args>(args)...));
}
template <class... Args>
Error wrong_attribute(std::string_view name, int64_t value, fmt::format_string<Args...> rule, Args&&... args) {
  return broken_rule(fmt::format("attribute '{}' is {}", name, value), fmt::format(rule, std::forward<Args>(args)...));
}
template <class... Args>
Error wrong_attribute(std::string_view name, std::span<const int64_t> values, fmt::format_string<Args...> rule,
                      Args&&... args) {
  return broken_rule(fmt::format("attribute '{}' is {}", name, dims_text(values)),
                     fmt::format(rule, std::forward<Args>(args)...));
}

template <class... Args>
Error wrong_shape(std::string_view name, std::span<const int64_t> dims, fmt::format_string<Args...> rule,
                  Args&&... args) {
  return broken_rule(fmt::format("{} has shape {}", name, dims_text(dims)),
                     fmt::format(rule, std::forward<Args>(args)...));
}

// For a list: an attribute, or an input whose content decides shapes.
template <class Size, class... Args>
Error wrong_length(std::string_view thing, Size length, fmt::format_string<Args...> rule, Args&&... args) {
  return broken_rule(fmt::format("{} has {} {}", thing, length, length == 1 ? "entry" : "entries"),
                     fmt::format(rule, std::forward<Args>(args)...));
}

// "input 'W'": the name that ONNX gives it.
std::string input_name(const Node& node, size_t index);
// "input 'W' is float32[4,3]", or that it is missing (null). Where the type is not the model's, the shape alone.
std::string input_seen(const Node& node, size_t index, const Value* value, bool has_own_type = true);

template <class Op, class Index>
std::string input_name(const Op& op, Index index) {
  return input_name(op.node(), static_cast<size_t>(index));
}

// An input of the call `op`, of either executor's context.
template <class Op, class Index, class... Args>
Error wrong_input(const Op& op, Index index, fmt::format_string<Args...> rule, Args&&... args) {
  bool has_own_type = true;
  const Value* value = nullptr;
  if constexpr (requires { op.carries_double(); }) {  // the reference's, which counts inputs by size_t
    has_own_type = !op.carries_double();
    if (op.has_input(static_cast<size_t>(index))) value = &op.value(static_cast<size_t>(index));
  } else if (op.has_input(static_cast<int64_t>(index))) {
    value = &op.value(static_cast<int64_t>(index));
  }
  return broken_rule(input_seen(op.node(), static_cast<size_t>(index), value, has_own_type),
                     fmt::format(rule, std::forward<Args>(args)...));
}

// Element `entry` of an input, which is out of range.
template <class Op, class Index, class... Args>
Error wrong_entry(const Op& op, Index index, int64_t entry, fmt::format_string<Args...> rule, Args&&... args) {
  return broken_rule(fmt::format("element {} of {} is out of range", entry, input_name(op, index)),
                     fmt::format(rule, std::forward<Args>(args)...));
}

}  // namespace parallax
