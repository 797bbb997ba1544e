// SPDX-License-Identifier: Apache-2.0
// Attribute look-up with the schema's defaults, and the small services operators share.
#include "runtime/ops/op_call.h"

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "inspector/tensor/elements.h"
#include "runtime/device/cpu/blocks.h"

namespace parallax::runtime {
namespace {

template <class T>
const T* attribute_value(const Node& node, std::string_view name) {
  const Attribute* attribute = find_attribute(node, name);
  return attribute == nullptr ? nullptr : std::get_if<T>(&attribute->value);
}

template <class T>
const T* default_value(const Node& node, std::string_view name) {
  const AttributeSchema* attribute = node.schema == nullptr ? nullptr : node.schema->attribute(name);
  return attribute == nullptr ? nullptr : std::get_if<T>(&attribute->default_value);
}

}  // namespace

OpCall::OpCall(const Node& node, std::span<const OpInput> inputs, uint64_t seed, CallResult* result)
    : node_(node), inputs_(inputs), seed_(seed), result_(result == nullptr ? own_ : *result) {
  result_.outputs.clear();
  result_.outputs.resize(node.outputs.size());
  result_.aliases.assign(node.outputs.size(), -1);
}

bool OpCall::has_input(int64_t index) const {
  if (index >= input_count()) return false;
  const Value* value = inputs_.data()[index].value;
  return value != nullptr && !value->is_absent();
}

Result<Ints> OpCall::integers_of_input(int64_t index) const {
  const Tensor& tensor = input(index);
  if (!is_integer(tensor.dtype()) && tensor.dtype() != DType::bool_) return wrong_input(*this, index, "hold integers");
  if (tensor.shape().rank() > 1) return wrong_input(*this, index, "have rank 1 or 0: it is a list");
  Ints values(tensor.element_count());
  if (!values.empty()) {
    load_block<int64_t>(tensor.dtype(), tensor.view().data, 0, 1, values.size(), &*values.begin());
  }
  return values;
}

Result<int64_t> OpCall::integer_of_input(int64_t index) const {
  const Tensor& tensor = input(index);
  if (tensor.element_count() != 1 || (!is_integer(tensor.dtype()) && tensor.dtype() != DType::bool_))
    return wrong_input(*this, index, "be one integer");
  return load_element<int64_t>(tensor.dtype(), tensor.view().data, 0);
}

Result<double> OpCall::real_of_input(int64_t index) const {
  const Tensor& tensor = input(index);
  if (tensor.element_count() != 1 || arithmetic_of(tensor.dtype()) == Arithmetic::none)
    return wrong_input(*this, index, "be one number");
  return load_element<double>(tensor.dtype(), tensor.view().data, 0);
}

bool OpCall::may_overwrite(int64_t index) const {
  if (!has_input(index)) return false;
  const OpInput& operand = inputs_.data()[index];
  return operand.is_last_use && !operand.is_constant && operand.value->is_tensor() &&
         operand.value->tensor().storage().use_count() == operand.owners;
}

std::optional<int64_t> OpCall::find_integer(std::string_view name) const {
  if (const auto* value = attribute_value<int64_t>(node_, name)) return *value;
  if (const auto* value = default_value<int64_t>(node_, name)) return *value;
  return std::nullopt;
}

std::optional<double> OpCall::find_real(std::string_view name) const {
  if (const auto* value = attribute_value<float>(node_, name)) return *value;
  if (const auto* value = default_value<float>(node_, name)) return *value;
  return std::nullopt;
}

std::optional<std::string> OpCall::find_text(std::string_view name) const {
  if (const auto* value = attribute_value<std::string>(node_, name)) return *value;
  if (const auto* value = default_value<std::string_view>(node_, name)) return std::string(*value);
  return std::nullopt;
}

std::optional<Ints> OpCall::find_integers(std::string_view name) const {
  if (const auto* value = attribute_value<std::vector<int64_t>>(node_, name)) return Ints(*value);
  if (const auto* value = default_value<std::vector<int64_t>>(node_, name)) return Ints(*value);
  return std::nullopt;
}

std::optional<std::vector<float>> OpCall::find_reals(std::string_view name) const {
  if (const auto* value = attribute_value<std::vector<float>>(node_, name)) return *value;
  if (const auto* value = default_value<std::vector<float>>(node_, name)) return *value;
  return std::nullopt;
}

std::vector<std::string> OpCall::texts(std::string_view name) const {
  if (const auto* value = attribute_value<std::vector<std::string>>(node_, name)) return *value;
  std::vector<std::string> texts;
  if (const auto* value = default_value<std::vector<std::string_view>>(node_, name)) {
    texts.assign(value->begin(), value->end());
  }
  return texts;
}

const Tensor* OpCall::find_tensor(std::string_view name) const {
  const auto* value = attribute_value<StoredTensor>(node_, name);
  return value == nullptr ? nullptr : &value->tensor;
}

int64_t OpCall::integer(std::string_view name) const {
  const auto value = find_integer(name);
  PX_CHECK(value.has_value());
  return *value;
}

double OpCall::real(std::string_view name) const {
  const auto value = find_real(name);
  PX_CHECK(value.has_value());
  return *value;
}

std::string OpCall::text(std::string_view name) const {
  const auto value = find_text(name);
  PX_CHECK(value.has_value());
  return *value;
}

Result<int64_t> OpCall::resolve_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return wrong_value("the axis", axis, "be in [{}, {}), the tensor has rank {}", -rank, rank, rank);
  return axis < 0 ? axis + rank : axis;
}

Result<int64_t> OpCall::resolve_axis(Result<int64_t> axis, int64_t rank) {
  const int64_t known = PX_TRY(std::move(axis));
  return resolve_axis(known, rank);
}

Result<Ints> OpCall::resolve_axes(Ints axes, int64_t rank) {
  for (int64_t& axis : axes) axis = PX_TRY(resolve_axis(axis, rank));
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
    return execution_error(fmt::format("the axes {} name one twice; they must name each once", dims_text(axes)));
  return axes;
}

bool OpCall::wants_output(int64_t index) const {
  return index >= 0 && index < output_count() && node_.outputs.data()[index] != kNoValue &&
         (index >= 64 || (result_.spared >> index & 1) == 0);
}

void OpCall::set_output(int64_t index, Value value) {
  if (wants_output(index)) result_.outputs.data()[index] = std::move(value);
}

void OpCall::alias_output(int64_t index, int64_t input_index, const Shape& shape) {
  if (!wants_output(index)) return;
  result_.outputs.data()[index] = input(input_index).reshaped(shape);
  result_.aliases.data()[index] = input_index;
}

}  // namespace parallax::runtime
