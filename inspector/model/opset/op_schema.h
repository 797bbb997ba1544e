// SPDX-License-Identifier: Apache-2.0
// The ONNX specification of one operator at one version: its inputs, outputs, attributes and types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "inspector/model/opset/attribute_type.h"
#include "inspector/model/opset/type_set.h"

namespace parallax {

inline constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

enum class ParameterOption : uint8_t { single, optional, variadic };

struct FormalParameter {
  std::string_view name;
  std::string_view type;           // a type parameter of the schema ("T"), or a type ("tensor(int64)")
  const TypeSet* types = nullptr;  // what `type` allows; never null
  ParameterOption option = ParameterOption::single;
  bool homogeneous = true;  // the arguments of a variadic parameter all have one type
  size_t min_arity = 1;     // of a variadic parameter
};

// Empty where the attribute has no default. Strings point into the registry.
using AttributeDefault = std::variant<std::monostate, float, int64_t, std::string_view, std::vector<float>,
                                      std::vector<int64_t>, std::vector<std::string_view>>;

struct AttributeSchema {
  std::string_view name;
  AttributeType type = AttributeType::undefined;
  bool required = false;
  AttributeDefault default_value;
};

struct TypeConstraint {
  std::string_view name;
  TypeSet types;
};

// All views and pointers lead into the OpsetRegistry the schema came from.
struct OpSchema {
  std::string_view domain;  // "ai.onnx", never ""
  std::string_view name;
  int64_t since_version = 0;
  bool deprecated = false;
  bool has_function = false;  // ONNX publishes a body of simpler operators (known for ONNX's own domains only)
  bool extension = false;     // not in the standard, but written into the standard domain by onnxruntime
  std::span<const FormalParameter> inputs;
  std::span<const FormalParameter> outputs;
  std::span<const AttributeSchema> attributes;  // sorted by name
  std::span<const TypeConstraint> type_constraints;
  size_t min_inputs = 0;
  size_t max_inputs = 0;  // kUnlimited after a variadic one
  size_t min_outputs = 0;
  size_t max_outputs = 0;

  // The parameter that the argument at `index` stands for (a variadic one takes all the rest), or null.
  const FormalParameter* input(size_t index) const;
  const FormalParameter* output(size_t index) const;
  const AttributeSchema* attribute(std::string_view attribute_name) const;
  const TypeConstraint* type_constraint(std::string_view parameter) const;

  std::string versioned_name() const;  // "Softmax-13"
};

// "1e-05", "\"NOTSET\"", "[0, 2, 3]"; empty where there is no default.
std::string to_string(const AttributeDefault& value);

// The signature as several lines of text, for people.
std::string signature_text(const OpSchema& schema);

}  // namespace parallax
