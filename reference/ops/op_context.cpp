// SPDX-License-Identifier: Apache-2.0
// Attribute look-up with schema defaults, and the making of outputs.
#include "reference/ops/op_context.h"

#include "inspector/model/rule_errors.h"
#include "inspector/tensor/elements.h"
#include "inspector/tensor/string_texts.h"
#include "reference/kernels/numbers.h"

namespace parallax::reference {
namespace {

// The attribute's value as T from the node, else the default as Default from its schema.
template <class T, class Default = T>
std::optional<T> find(const Node& node, std::string_view name) {
  if (const Attribute* attribute = find_attribute(node, name)) {
    const T* value = std::get_if<T>(&attribute->value);
    return value == nullptr ? std::nullopt : std::optional<T>(*value);
  }
  const AttributeSchema* schema = node.schema->attribute(name);
  if (schema == nullptr) return std::nullopt;
  const Default* value = std::get_if<Default>(&schema->default_value);
  return value == nullptr ? std::nullopt : std::optional<T>(T(*value));
}

}  // namespace

OpContext::OpContext(const Node& node, std::vector<Value> inputs, const OpEnvironment& environment)
    : node_(node), inputs_(std::move(inputs)), outputs_(node.outputs.size()), environment_(environment) {}

std::optional<DType> OpContext::declared_type(size_t index) const {
  const TypeInfo& type = environment_.graph->values[static_cast<size_t>(node_.inputs[index])].type;
  if (type.kind != TypeInfo::Kind::tensor || type.dtype == DType::undefined) return std::nullopt;
  return type.dtype;
}

Result<Tensor> OpContext::as_declared(size_t index, std::optional<DType> otherwise) const {
  const Tensor& held = input(index);
  const auto known = declared_type(index);
  const auto declared = known.has_value() ? known : otherwise;
  if (!carries_double() || held.dtype() != DType::float64 || !declared.has_value() || !is_floating(*declared))
    return held;
  Tensor narrow = PX_TRY(Tensor::allocate(*declared, held.shape()));
  PX_TRY(environment_.reserve(narrow));
  store<double>(narrow, 0, held.as<double>());
  return narrow;
}

Result<std::vector<int64_t>> OpContext::int64s_of_input(size_t index) const {
  const Tensor& tensor = input(index);
  if (tensor.shape().rank() > 1) return wrong_input(*this, index, "have rank 1 or 0: it is a list of integers");
  return to_int64s(tensor);
}

Result<int64_t> OpContext::int64_of_input(size_t index) const {
  const Tensor& tensor = input(index);
  if (tensor.element_count() == 1) return element_as_int64(tensor, 0);
  return wrong_input(*this, index, "be one integer");
}

Result<double> OpContext::double_of_input(size_t index) const {
  const Tensor& tensor = input(index);
  if (tensor.element_count() == 1) return element_as_double(tensor, 0);
  return wrong_input(*this, index, "be one number");
}

std::optional<int64_t> OpContext::find_int(std::string_view name) const { return find<int64_t>(node_, name); }

std::optional<double> OpContext::find_float(std::string_view name) const { return find<float>(node_, name); }

std::optional<std::string> OpContext::find_string(std::string_view name) const {
  return find<std::string, std::string_view>(node_, name);
}

std::optional<std::vector<int64_t>> OpContext::find_ints(std::string_view name) const {
  return find<std::vector<int64_t>>(node_, name);
}

std::optional<std::vector<double>> OpContext::find_floats(std::string_view name) const {
  const auto floats = find<std::vector<float>>(node_, name);
  if (!floats.has_value()) return std::nullopt;
  return std::vector<double>(floats->begin(), floats->end());
}

std::optional<std::vector<std::string>> OpContext::find_strings(std::string_view name) const {
  const Attribute* attribute = find_attribute(node_, name);
  const auto* strings = attribute == nullptr ? nullptr : std::get_if<std::vector<std::string>>(&attribute->value);
  return strings == nullptr ? std::nullopt : std::optional(*strings);
}

const Tensor* OpContext::find_tensor(std::string_view name) const {
  const Attribute* attribute = find_attribute(node_, name);
  const auto* stored = attribute == nullptr ? nullptr : std::get_if<StoredTensor>(&attribute->value);
  return stored == nullptr ? nullptr : &stored->tensor;
}

const SparseTensor* OpContext::find_sparse_tensor(std::string_view name) const {
  const Attribute* attribute = find_attribute(node_, name);
  return attribute == nullptr ? nullptr : std::get_if<SparseTensor>(&attribute->value);
}

const Graph& OpContext::body(std::string_view name) const {
  return *std::get<std::shared_ptr<Graph>>(find_attribute(node_, name)->value);
}

DType OpContext::carried(DType declared) const {
  return carries_double() && is_floating(declared) ? DType::float64 : declared;
}

Result<Tensor> OpContext::carry(const Tensor& tensor) const {
  if (!carries_double()) return tensor;
  return widen(tensor);
}

Result<Tensor> OpContext::allocate(DType declared, const Shape& shape) const {
  Tensor tensor = PX_TRY(Tensor::allocate(carried(declared), shape));
  PX_TRY(environment_.reserve(tensor));
  return tensor;
}

Status OpContext::set_output(size_t index, Value value) {
  if (!wants_output(index)) return {};
  if (value.is_tensor() && value.tensor().dtype() == DType::string)
    value = Value(PX_TRY(with_texts_charged(std::move(value.tensor()))));
  outputs_[index] = std::move(value);
  return {};
}

template <class T>
Status OpContext::set_numbers(size_t index, DType declared, const Shape& shape, std::span<const T> values) {
  PX_CHECK(static_cast<int64_t>(values.size()) == shape.element_count());
  if (!wants_output(index)) return {};
  Tensor tensor = PX_TRY(allocate(declared, shape));
  store<T>(tensor, 0, values);
  return set_output(index, std::move(tensor));
}

Status OpContext::set_output(size_t index, DType declared, const Shape& shape, std::span<const double> values) {
  return set_numbers<double>(index, declared, shape, values);
}

Status OpContext::set_output(size_t index, DType declared, const Shape& shape, std::span<const int64_t> values) {
  return set_numbers<int64_t>(index, declared, shape, values);
}

Status OpContext::set_output(size_t index, DType declared, const Shape& shape, std::span<const uint64_t> values) {
  return set_numbers<uint64_t>(index, declared, shape, values);
}

Result<Tensor> widen(const Tensor& tensor) {
  if (!is_floating(tensor.dtype()) || tensor.dtype() == DType::float64) return tensor;
  Tensor wide = PX_TRY(Tensor::allocate(DType::float64, tensor.shape()));
  load_doubles(tensor, 0, wide.mutable_as<double>());
  return wide;
}

Result<Value> widen(const Value& value) {
  const auto widen_all = [](const std::vector<Value>& values) -> Result<std::vector<Value>> {
    std::vector<Value> wide;
    for (const Value& item : values) wide.push_back(PX_TRY(widen(item)));
    return wide;
  };
  const auto widen_type = [](TypeInfo type) {
    if (type.kind == TypeInfo::Kind::tensor && is_floating(type.dtype)) type.dtype = DType::float64;
    return type;
  };
  if (value.is_tensor()) return Value(PX_TRY(widen(value.tensor())));
  if (value.is_sequence()) {
    return Value(SequenceValue{widen_type(value.sequence().element_type), PX_TRY(widen_all(value.sequence().items))});
  }
  if (value.is_optional()) {
    return Value(OptionalValue{widen_type(value.optional().element_type), PX_TRY(widen_all(value.optional().item))});
  }
  if (value.is_map()) {
    const MapValue& map = value.map();
    return Value(MapValue{map.keys, widen_type(map.value_type), PX_TRY(widen_all(map.values))});
  }
  return value;
}

}  // namespace parallax::reference
