// SPDX-License-Identifier: Apache-2.0
// Look-ups of shape functions in a node, its inputs and attributes, and the conversions of facts.
#include "inspector/model/shape_inference/node_context.h"

#include <algorithm>
#include <utility>

#include "inspector/base/check.h"
#include "inspector/tensor/elements.h"

namespace parallax {
namespace {

// Shapes have few elements; longer tensors are data.
constexpr int64_t kMostContents = 256;
constexpr size_t kMostRank = 64;

std::optional<DimExpressions> contents_of(const Tensor& tensor) {
  const bool counts = is_integer(tensor.dtype()) || tensor.dtype() == DType::bool_;
  if (!counts || tensor.dtype() == DType::uint64) return std::nullopt;
  if (tensor.shape().rank() > 1 || tensor.element_count() > kMostContents || !tensor.device().is_host())
    return std::nullopt;
  DimExpressions elements;
  for (int64_t index = 0; index < tensor.element_count(); ++index)
    elements.emplace_back(element_as_int64(tensor, index));
  return elements;
}

}  // namespace

TypeInfo type_info_of(const ValueFacts& facts) {
  TypeInfo type = facts.type;
  if (facts.shape && (type.kind == TypeInfo::Kind::tensor || type.kind == TypeInfo::Kind::sparse_tensor)) {
    type.dims.emplace();
    for (const DimExpression& dim : *facts.shape) type.dims->push_back(dim.to_dim());
  }
  return type;
}

ValueFacts facts_of(const TypeInfo& type) {
  ValueFacts facts;
  facts.type = type;
  facts.type.dims.reset();
  const bool has_shape = type.kind == TypeInfo::Kind::tensor || type.kind == TypeInfo::Kind::sparse_tensor;
  if (has_shape && type.dims) {
    facts.shape.emplace();
    for (const Dim& dim : *type.dims) facts.shape->push_back(DimExpression::from(dim));
  }
  return facts;
}

ValueFacts facts_of(const Tensor& tensor) {
  ValueFacts facts;
  facts.type = TypeInfo::tensor(tensor.dtype());
  facts.shape.emplace();
  for (const int64_t dim : tensor.shape()) facts.shape->emplace_back(dim);
  facts.contents = contents_of(tensor);
  facts.constant = &tensor;
  return facts;
}

ValueFacts common_facts(const ValueFacts& a, const ValueFacts& b) {
  ValueFacts common;
  if (a.type.kind == b.type.kind && a.type.dtype == b.type.dtype) {
    common.type = a.type == b.type || a.type.inner.empty() ? a.type : b.type;
    if (a.type != b.type) {
      common.type.dims.reset();
      for (TypeInfo& inner : common.type.inner) inner.dims.reset();
    }
  }
  if (a.shape && b.shape && a.shape->size() == b.shape->size()) {
    common.shape = unknown_dims(a.shape->size());
    for (size_t axis = 0; axis < a.shape->size(); ++axis) {
      if (same((*a.shape)[axis], (*b.shape)[axis])) (*common.shape)[axis] = (*a.shape)[axis];
    }
  }
  return common;
}

NodeContext::NodeContext(const Node& node, std::vector<const ValueFacts*> inputs, BodyInference& bodies)
    : node_(node), inputs_(std::move(inputs)), outputs_(node.outputs.size()), bodies_(bodies) {
  PX_CHECK(node.schema != nullptr);
}

const ValueFacts& NodeContext::input(size_t index) const {
  static const ValueFacts kNothing;
  return has_input(index) ? *inputs_[index] : kNothing;
}

std::optional<size_t> NodeContext::rank(size_t index) const {
  const auto& dims = shape(index);
  return dims ? std::optional(dims->size()) : std::nullopt;
}

DimExpression NodeContext::dim(size_t input_index, size_t axis) const {
  const auto& dims = shape(input_index);
  return dims && axis < dims->size() ? (*dims)[axis] : DimExpression{};
}

std::optional<DimExpressions> NodeContext::contents(size_t index) const { return input(index).contents; }

std::optional<std::vector<int64_t>> NodeContext::numbers(size_t index) const {
  const auto elements = contents(index);
  if (!elements) return std::nullopt;
  std::vector<int64_t> values;
  for (const DimExpression& element : *elements) {
    const auto value = element.number();
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

std::optional<DimExpression> NodeContext::scalar(size_t index) const {
  const auto elements = contents(index);
  return elements && elements->size() == 1 ? std::optional(elements->front()) : std::nullopt;
}

std::optional<int64_t> NodeContext::integer(std::string_view name) const {
  if (const int64_t* value = attribute<int64_t>(name)) return *value;
  const AttributeSchema* known = node_.schema->attribute(name);
  const int64_t* value = known == nullptr ? nullptr : std::get_if<int64_t>(&known->default_value);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::optional<std::vector<int64_t>> NodeContext::integers(std::string_view name) const {
  if (const auto* value = attribute<std::vector<int64_t>>(name)) return *value;
  const AttributeSchema* known = node_.schema->attribute(name);
  const auto* value = known == nullptr ? nullptr : std::get_if<std::vector<int64_t>>(&known->default_value);
  return value == nullptr ? std::nullopt : std::optional(*value);
}

std::string NodeContext::text(std::string_view name) const {
  if (const auto* value = attribute<std::string>(name)) return *value;
  const AttributeSchema* known = node_.schema->attribute(name);
  const auto* value = known == nullptr ? nullptr : std::get_if<std::string_view>(&known->default_value);
  return value == nullptr ? std::string() : std::string(*value);
}

const Graph* NodeContext::graph(std::string_view name) const {
  const auto* body = attribute<std::shared_ptr<Graph>>(name);
  return body == nullptr ? nullptr : body->get();
}

std::optional<std::vector<int64_t>> NodeContext::integers_from(size_t index, std::string_view attribute_name) const {
  return schema_has_attribute(attribute_name) ? integers(attribute_name) : numbers(index);
}

void NodeContext::set_shape(size_t index, std::optional<DimExpressions> shape) {
  if (index >= outputs_.size() || (shape && shape->size() > kMostRank)) return;
  outputs_[index].shape = std::move(shape);
}

void NodeContext::set_contents(size_t index, std::optional<DimExpressions> contents) {
  if (index >= outputs_.size() || (contents && contents->size() > static_cast<size_t>(kMostContents))) return;
  outputs_[index].contents = std::move(contents);
}

void NodeContext::set_facts(size_t index, ValueFacts facts) {
  if (index < outputs_.size()) outputs_[index] = std::move(facts);
}

std::optional<size_t> normalized_axis(int64_t axis, size_t rank) {
  const auto signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) return std::nullopt;
  return static_cast<size_t>(axis < 0 ? axis + signed_rank : axis);
}

std::optional<std::vector<size_t>> normalized_axes(std::span<const int64_t> axes, size_t rank) {
  std::vector<size_t> result;
  for (const int64_t axis : axes) {
    const auto normalized = normalized_axis(axis, rank);
    if (!normalized) return std::nullopt;
    result.push_back(*normalized);
  }
  return result;
}

DimExpressions unknown_dims(size_t rank) { return DimExpressions(std::min(rank, kMostRank + 1)); }

DimExpression broadcast(const DimExpression& a, const DimExpression& b) {
  if (a.is_number(1)) return b;
  if (b.is_number(1) || same(a, b)) return a;
  const auto left = a.number(), right = b.number();
  if (left && right) return {};
  // A number other than 1 decides: the other side is the same number or 1.
  if (left) return a;
  return right ? b : DimExpression{};
}

DimExpressions broadcast(const DimExpressions& a, const DimExpressions& b) {
  const DimExpressions& longer = a.size() >= b.size() ? a : b;
  const DimExpressions& shorter = a.size() >= b.size() ? b : a;
  DimExpressions result = longer;
  const size_t offset = longer.size() - shorter.size();
  for (size_t axis = 0; axis < shorter.size(); ++axis) {
    result[offset + axis] = broadcast(longer[offset + axis], shorter[axis]);
  }
  return result;
}

std::optional<DimExpressions> broadcast(const std::optional<DimExpressions>& a,
                                        const std::optional<DimExpressions>& b) {
  return a && b ? std::optional(broadcast(*a, *b)) : std::nullopt;
}

}  // namespace parallax
