// SPDX-License-Identifier: Apache-2.0
// The rules for output types that schemas leave open, as tables: by attribute, and by the form of the first input.
#include "inspector/model/output_types.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace parallax {
namespace {

enum class Otherwise : uint8_t { float32, int32, first_input, unknown };

// The attribute holds the number of the output's element type; without it the type is `otherwise`.
struct AttributeRule {
  std::string_view op;
  std::string_view attribute;
  Otherwise otherwise;
};

constexpr std::array kAttributeRules = {
    AttributeRule{"Bernoulli", "dtype", Otherwise::first_input},
    AttributeRule{"BitCast", "to", Otherwise::unknown},
    AttributeRule{"BlackmanWindow", "output_datatype", Otherwise::float32},
    AttributeRule{"Cast", "to", Otherwise::unknown},
    AttributeRule{"DequantizeBFP", "dtype", Otherwise::float32},
    AttributeRule{"EyeLike", "dtype", Otherwise::first_input},
    AttributeRule{"GemmFloat8", "dtype", Otherwise::float32},
    AttributeRule{"HammingWindow", "output_datatype", Otherwise::float32},
    AttributeRule{"HannWindow", "output_datatype", Otherwise::float32},
    AttributeRule{"MelWeightMatrix", "output_datatype", Otherwise::float32},
    AttributeRule{"Multinomial", "dtype", Otherwise::int32},
    AttributeRule{"RandomNormal", "dtype", Otherwise::float32},
    AttributeRule{"RandomNormalLike", "dtype", Otherwise::first_input},
    AttributeRule{"RandomUniform", "dtype", Otherwise::float32},
    AttributeRule{"RandomUniformLike", "dtype", Otherwise::first_input},
};

// Classifiers of ai.onnx.ml name their classes in one of two attributes; labels have that attribute's type.
struct LabelRule {
  std::string_view op;
  std::string_view strings_attribute;
};

constexpr std::array kLabelRules = {
    LabelRule{"LinearClassifier", "classlabels_strings"},
    LabelRule{"SVMClassifier", "classlabels_strings"},
    LabelRule{"TreeEnsembleClassifier", "classlabels_strings"},
};

template <class T>
const T* attribute_value(const Node& node, std::string_view name) {
  const Attribute* attribute = find_attribute(node, name);
  return attribute == nullptr ? nullptr : std::get_if<T>(&attribute->value);
}

const TypeInfo& input_type(std::span<const TypedInput> inputs, size_t index) {
  static const TypeInfo kUnknown;
  return index < inputs.size() && inputs[index].type != nullptr ? *inputs[index].type : kUnknown;
}

TypeInfo tensor_of(std::optional<DType> dtype) {
  return dtype && *dtype != DType::undefined ? TypeInfo::tensor(*dtype) : TypeInfo{};
}

// Opset 1 of Cast holds the name in capitals ("FLOAT"), later ones the number.
std::optional<DType> dtype_attribute(const Node& node, std::string_view name) {
  if (const int64_t* number = attribute_value<int64_t>(node, name)) return dtype_from_number(*number);
  const std::string* text = attribute_value<std::string>(node, name);
  if (text == nullptr) return std::nullopt;
  std::string lower = *text;
  std::ranges::transform(lower, lower.begin(),
                         [](unsigned char character) { return static_cast<char>(std::tolower(character)); });
  return dtype_from_name(lower);
}

TypeInfo type_by_attribute(const Node& node, const AttributeRule& rule, std::span<const TypedInput> inputs) {
  if (find_attribute(node, rule.attribute) != nullptr) return tensor_of(dtype_attribute(node, rule.attribute));
  switch (rule.otherwise) {
    case Otherwise::float32:
      return TypeInfo::tensor(DType::float32);
    case Otherwise::int32:
      return TypeInfo::tensor(DType::int32);
    case Otherwise::first_input:
      return without_dims(input_type(inputs, 0));
    case Otherwise::unknown:
      return {};
  }
  return {};
}

// Constant holds its value in one of eight attributes, ConstantOfShape in the first of them.
TypeInfo constant_type(const Node& node) {
  if (const auto* tensor = attribute_value<StoredTensor>(node, "value")) return tensor_of(tensor->tensor.dtype());
  if (const auto* sparse = attribute_value<SparseTensor>(node, "sparse_value")) {
    return tensor_of(sparse->values.tensor.dtype());
  }
  for (const Attribute& attribute : node.attributes) {
    if (attribute.name == "value_float" || attribute.name == "value_floats") return TypeInfo::tensor(DType::float32);
    if (attribute.name == "value_int" || attribute.name == "value_ints") return TypeInfo::tensor(DType::int64);
    if (attribute.name == "value_string" || attribute.name == "value_strings") return TypeInfo::tensor(DType::string);
  }
  return {};
}

TypeInfo quantized_type(const Node& node, std::span<const TypedInput> inputs) {
  if (const TypeInfo& zero_point = input_type(inputs, 2); zero_point.kind == TypeInfo::Kind::tensor) {
    return without_dims(zero_point);
  }
  const int64_t* number = attribute_value<int64_t>(node, "output_dtype");
  if (number != nullptr && *number != 0) return tensor_of(dtype_from_number(*number));
  return inputs.size() > 2 && inputs[2].type != nullptr ? TypeInfo{} : TypeInfo::tensor(DType::uint8);
}

TypeInfo dequantized_type(const Node& node, std::span<const TypedInput> inputs) {
  const int64_t* number = attribute_value<int64_t>(node, "output_dtype");
  if (number != nullptr && *number != 0) return tensor_of(dtype_from_number(*number));
  return without_dims(input_type(inputs, 1));
}

TypeInfo sequence_empty_type(const Node& node) {
  const TypeInfo element = find_attribute(node, "dtype") == nullptr ? TypeInfo::tensor(DType::float32)
                                                                    : tensor_of(dtype_attribute(node, "dtype"));
  return TypeInfo::sequence(element);
}

TypeInfo optional_type(const Node& node, std::span<const TypedInput> inputs) {
  if (const auto* type = attribute_value<TypeInfo>(node, "type")) return TypeInfo::optional(without_dims(*type));
  return inputs.empty() ? TypeInfo{} : TypeInfo::optional(without_dims(input_type(inputs, 0)));
}

// The element type of a sequence or optional; OptionalGetElement takes plain tensors and sequences too and returns them
// as they are.
TypeInfo element_type(const Node& node, std::span<const TypedInput> inputs) {
  const TypeInfo& container = input_type(inputs, 0);
  const bool wanted = node.op_type == "OptionalGetElement" ? container.kind == TypeInfo::Kind::optional
                                                           : container.kind == TypeInfo::Kind::sequence;
  if (wanted) return container.inner.empty() ? TypeInfo{} : without_dims(container.inner.front());
  return node.op_type == "OptionalGetElement" ? without_dims(container) : TypeInfo{};
}

TypeInfo sequence_of_first(std::span<const TypedInput> inputs) {
  const TypeInfo& element = input_type(inputs, 0);
  return TypeInfo::sequence(without_dims(element));
}

// The stash_type of LayerNormalization is the element type of its two statistics; 1, float32, is the default.
TypeInfo stash_type(const Node& node) {
  if (find_attribute(node, "stash_type") == nullptr) return TypeInfo::tensor(DType::float32);
  return tensor_of(dtype_attribute(node, "stash_type"));
}

TypeInfo murmur_type(const Node& node) {
  const int64_t* positive = attribute_value<int64_t>(node, "positive");
  return TypeInfo::tensor(positive != nullptr && *positive == 0 ? DType::int32 : DType::uint32);
}

TypeInfo label_encoder_type(const Node& node, std::span<const TypedInput> inputs) {
  if (find_attribute(node, "values_strings") != nullptr) return TypeInfo::tensor(DType::string);
  if (find_attribute(node, "values_int64s") != nullptr) return TypeInfo::tensor(DType::int64);
  if (find_attribute(node, "values_floats") != nullptr) return TypeInfo::tensor(DType::float32);
  if (const auto* values = attribute_value<StoredTensor>(node, "values_tensor"))
    return tensor_of(values->tensor.dtype());
  // Version 1 maps strings to numbers and back.
  const DType input = input_type(inputs, 0).dtype;
  if (input == DType::string) return TypeInfo::tensor(DType::int64);
  return input == DType::int64 ? TypeInfo::tensor(DType::string) : TypeInfo{};
}

TypeInfo category_type(std::span<const TypedInput> inputs) {
  const DType input = input_type(inputs, 0).dtype;
  if (input == DType::undefined) return {};
  return TypeInfo::tensor(input == DType::string ? DType::int64 : DType::string);
}

TypeInfo cast_map_type(const Node& node) {
  const std::string* target = attribute_value<std::string>(node, "cast_to");
  if (target == nullptr || *target == "TO_FLOAT") return TypeInfo::tensor(DType::float32);
  if (*target == "TO_INT64") return TypeInfo::tensor(DType::int64);
  return *target == "TO_STRING" ? TypeInfo::tensor(DType::string) : TypeInfo{};
}

TypeInfo zip_map_type(const Node& node) {
  const bool strings = find_attribute(node, "classlabels_strings") != nullptr;
  return TypeInfo::sequence(TypeInfo::map(strings ? DType::string : DType::int64, TypeInfo::tensor(DType::float32)));
}

TypeInfo map_value_type(std::span<const TypedInput> inputs) {
  const TypeInfo& map = input_type(inputs, 0);
  return map.kind == TypeInfo::Kind::map && !map.inner.empty() ? without_dims(map.inner.front()) : TypeInfo{};
}

using Rule = TypeInfo (*)(const Node& node, std::span<const TypedInput> inputs);

struct FormRule {
  std::string_view op;
  Rule rule;
};

constexpr std::array kFormRules = {
    FormRule{"CastMap", [](const Node& node, std::span<const TypedInput>) { return cast_map_type(node); }},
    FormRule{"CategoryMapper", [](const Node&, std::span<const TypedInput> inputs) { return category_type(inputs); }},
    FormRule{"ConcatFromSequence", element_type},
    FormRule{"Constant", [](const Node& node, std::span<const TypedInput>) { return constant_type(node); }},
    FormRule{"DequantizeLinear", dequantized_type},
    FormRule{"DictVectorizer", [](const Node&, std::span<const TypedInput> inputs) { return map_value_type(inputs); }},
    FormRule{"LabelEncoder", label_encoder_type},
    FormRule{"MurmurHash3", [](const Node& node, std::span<const TypedInput>) { return murmur_type(node); }},
    FormRule{"Optional", optional_type},
    FormRule{"OptionalGetElement", element_type},
    FormRule{"QuantizeLinear", quantized_type},
    FormRule{"SequenceAt", element_type},
    FormRule{"SequenceConstruct",
             [](const Node&, std::span<const TypedInput> inputs) { return sequence_of_first(inputs); }},
    FormRule{"SequenceEmpty", [](const Node& node, std::span<const TypedInput>) { return sequence_empty_type(node); }},
    FormRule{"SplitToSequence",
             [](const Node&, std::span<const TypedInput> inputs) { return sequence_of_first(inputs); }},
    FormRule{"ZipMap", [](const Node& node, std::span<const TypedInput>) { return zip_map_type(node); }},
};

template <class Rows>
auto row_of(const Rows& rows, std::string_view op) {
  const auto found = std::ranges::find_if(rows, [op](const auto& row) { return row.op == op; });
  return found == rows.end() ? nullptr : &*found;
}

}  // namespace

std::string element_type_problem(const Node& node) {
  const auto* rule = row_of(kAttributeRules, node.op_type);
  if (rule == nullptr || dtype_attribute(node, rule->attribute)) return {};
  const std::string start = "attribute '" + std::string(rule->attribute) + "' is ";
  if (const int64_t* number = attribute_value<int64_t>(node, rule->attribute)) {
    return start + std::to_string(*number) + ", which is no element type";
  }
  if (const std::string* text = attribute_value<std::string>(node, rule->attribute)) {
    return start + "'" + *text + "', which is no element type";
  }
  return {};
}

TypeInfo output_type_by_rule(const Node& node, size_t index, std::span<const TypedInput> inputs) {
  const bool normalization = node.op_type == "LayerNormalization" || node.op_type == "SimplifiedLayerNormalization";
  if (normalization && index > 0) return stash_type(node);
  if (index > 0) return {};
  if (const auto* rule = row_of(kAttributeRules, node.op_type)) return type_by_attribute(node, *rule, inputs);
  if (const auto* rule = row_of(kFormRules, node.op_type)) return rule->rule(node, inputs);
  if (const auto* rule = row_of(kLabelRules, node.op_type)) {
    const auto* strings = attribute_value<std::vector<std::string>>(node, rule->strings_attribute);
    return TypeInfo::tensor(strings != nullptr && !strings->empty() ? DType::string : DType::int64);
  }
  if (node.op_type == "ConstantOfShape") {
    return find_attribute(node, "value") == nullptr ? TypeInfo::tensor(DType::float32) : constant_type(node);
  }
  return {};
}

}  // namespace parallax
