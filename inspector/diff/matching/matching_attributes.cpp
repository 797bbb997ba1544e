// SPDX-License-Identifier: Apache-2.0
// Attributes by meaning: a default that is written out, an axis counted from the end, do not make another node.
#include "inspector/diff/matching/matching_attributes.h"

#include <algorithm>
#include <array>
#include <bit>

#include "inspector/base/hash.h"
#include "inspector/dump/dump_reader.h"
#include "inspector/model/opset/op_schema.h"
#include "inspector/model/opset/opset_registry.h"

namespace parallax::diff {
namespace {

template <size_t N>
bool contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

int64_t rank_of_first_input(const Graph& graph, const Node& node) {
  if (node.inputs.empty() || node.inputs.front() == kNoValue) return -1;
  const TypeInfo& type = graph.values[static_cast<size_t>(node.inputs.front())].type;
  return type.kind == TypeInfo::Kind::tensor && type.dims.has_value() ? static_cast<int64_t>(type.dims->size()) : -1;
}

struct HashOf {
  int64_t rank = -1;  // of the input that axes count, -1 for attributes that are no axes

  int64_t axis(int64_t value) const { return value < 0 && rank >= 0 ? value + rank : value; }
  HashKey operator()(std::monostate) const { return 0; }
  HashKey operator()(float value) const { return mix(1, std::bit_cast<uint32_t>(value)); }
  HashKey operator()(int64_t value) const { return mix(2, static_cast<HashKey>(axis(value))); }
  HashKey operator()(const std::string& value) const { return mix(3, hash_text(value)); }
  HashKey operator()(const StoredTensor& value) const { return mix(4, hash_tensor(value)); }
  HashKey operator()(const std::shared_ptr<Graph>&) const { return 0; }
  HashKey operator()(const std::vector<std::shared_ptr<Graph>>&) const { return 0; }
  HashKey operator()(const SparseTensor& value) const {
    return mix(hash_tensor(value.values), hash_tensor(value.indices));
  }
  HashKey operator()(const TypeInfo& value) const { return mix(5, hash_text(to_string(value))); }
  template <class T>
  HashKey operator()(const std::vector<T>& values) const {
    HashKey key = mix(6, values.size());
    for (const T& value : values) key = mix(key, (*this)(value));
    return key;
  }
};

}  // namespace

bool is_default(const Attribute& attribute, const AttributeSchema* schema) {
  if (schema == nullptr) return false;
  const AttributeDefault& expected = schema->default_value;
  if (const auto* number = std::get_if<float>(&expected)) {
    const auto* value = std::get_if<float>(&attribute.value);
    return value != nullptr && std::bit_cast<uint32_t>(*value) == std::bit_cast<uint32_t>(*number);
  }
  if (const auto* number = std::get_if<int64_t>(&expected)) {
    const auto* value = std::get_if<int64_t>(&attribute.value);
    return value != nullptr && *value == *number;
  }
  if (const auto* text = std::get_if<std::string_view>(&expected)) {
    const auto* value = std::get_if<std::string>(&attribute.value);
    return value != nullptr && *value == *text;
  }
  return false;
}

HashKey hash_text(std::string_view text) { return hash128(text.data(), text.size()).low; }

HashKey hash_operator(const Node& node) {
  return mix(hash_text(canonical_domain(node.domain)), hash_text(node.op_type));
}

HashKey hash_standard_operator(std::string_view op_type) { return mix(hash_text("ai.onnx"), hash_text(op_type)); }

HashKey hash_attributes(const Graph& graph, const Node& node) {
  constexpr std::array<std::string_view, 2> kAxes = {"axis", "axes"};
  HashKey sum = 0;  // the order in which attributes stand says nothing
  for (const Attribute& attribute : node.attributes) {
    const AttributeSchema* schema = node.schema == nullptr ? nullptr : node.schema->attribute(attribute.name);
    if (is_default(attribute, schema)) continue;
    // The axes of Unsqueeze count the dimensions of its output.
    const bool counts_dims = contains(kAxes, attribute.name) && node.op_type != "Unsqueeze";
    const HashKey value = std::visit(HashOf{counts_dims ? rank_of_first_input(graph, node) : -1}, attribute.value);
    if (value != 0) sum += mix(hash_text(attribute.name), value);
  }
  return sum;
}

HashKey hash_tensor(const StoredTensor& stored) {
  const TensorView& view = stored.tensor;
  HashKey key = mix(7, static_cast<HashKey>(view.dtype));
  for (const int64_t dim : view.shape) {
    if (dim != 1) key = mix(key, static_cast<HashKey>(dim));
  }
  if (!stored.absence.empty()) return mix(key, 1);
  if (view.dtype == DType::string) {
    for (const std::string& text : view.as<std::string>()) key = mix(key, hash_text(text));
    return key;
  }
  return mix(key, hash128(view.data, view.size_bytes()).low);
}

HashKey hash_constant(const Node& node) {
  if (node.attributes.empty()) return 0;
  const Attribute& attribute = node.attributes.front();
  if (const auto* stored = std::get_if<StoredTensor>(&attribute.value)) return hash_tensor(*stored);
  // value_int, value_float and their lists stand for tensors of one dimension at most.
  const auto as_tensor = [](const auto& values) {
    using T = typename std::decay_t<decltype(values)>::value_type;
    return hash_tensor({"", Tensor::vector<T>(values), "", {}, "", false, ""});
  };
  if (const auto* number = std::get_if<int64_t>(&attribute.value)) return as_tensor(std::vector<int64_t>{*number});
  if (const auto* number = std::get_if<float>(&attribute.value)) return as_tensor(std::vector<float>{*number});
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(&attribute.value)) return as_tensor(*numbers);
  if (const auto* numbers = std::get_if<std::vector<float>>(&attribute.value)) return as_tensor(*numbers);
  return std::visit(HashOf{}, attribute.value);
}

bool commutes(const Node& node) {
  constexpr std::array<std::string_view, 12> kOperators = {"Add", "Mul", "Max", "Min",        "Sum",       "Mean",
                                                           "And", "Or",  "Xor", "BitwiseAnd", "BitwiseOr", "Equal"};
  return canonical_domain(node.domain) == "ai.onnx" && contains(kOperators, node.op_type);
}

}  // namespace parallax::diff
