// SPDX-License-Identifier: Apache-2.0
// The facts of shape inference about a value, and the view of one node that the shape functions of operators work on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/model/ir.h"
#include "inspector/model/opset/op_schema.h"
#include "inspector/model/shape_inference/dim_expression.h"

namespace parallax {

struct ValueFacts {
  TypeInfo type;                           // a tensor's own dimensions are in `shape` instead
  std::optional<DimExpressions> shape;     // of a tensor; nothing where the rank is unknown
  std::optional<DimExpressions> contents;  // the elements of a small integer or bool tensor of rank 0 or 1
  const Tensor* constant = nullptr;        // of an initializer or Constant that nothing can override
};

// The facts as a declared type, and back.
TypeInfo type_info_of(const ValueFacts& facts);
ValueFacts facts_of(const TypeInfo& type);
// The facts of a tensor whose value is known. `tensor` must outlive them.
ValueFacts facts_of(const Tensor& tensor);
// The facts that hold for both: for a value that comes from one of two sources.
ValueFacts common_facts(const ValueFacts& a, const ValueFacts& b);

// The operations of the graph walk that a node with bodies calls.
class BodyInference {
 public:
  // Infers a body of the node at hand with given facts of its inputs; returns the facts of its outputs.
  virtual std::vector<ValueFacts> infer_body(const Graph& body, std::vector<ValueFacts> inputs) = 0;
  // The bodies contradict the node's specification: the model is invalid. A sentence without full stop.
  virtual void report_conflict(std::string message) = 0;

 protected:
  ~BodyInference() = default;
};

// Every look-up answers for omitted and missing inputs too: with unknown. Outputs that a function does not set stay
// unknown.
class NodeContext {
 public:
  NodeContext(const Node& node, std::vector<const ValueFacts*> inputs, BodyInference& bodies);

  const Node& node() const { return node_; }
  int64_t since_version() const { return node_.schema->since_version; }
  BodyInference& bodies() { return bodies_; }

  size_t input_count() const { return inputs_.size(); }
  bool has_input(size_t index) const { return index < inputs_.size() && inputs_[index] != nullptr; }
  const ValueFacts& input(size_t index) const;
  const std::optional<DimExpressions>& shape(size_t index) const { return input(index).shape; }
  std::optional<size_t> rank(size_t index) const;
  DimExpression dim(size_t input_index, size_t axis) const;  // unknown where there is no such axis
  // The elements of an integer input, from data flow or from a constant.
  std::optional<DimExpressions> contents(size_t index) const;
  std::optional<std::vector<int64_t>> numbers(size_t index) const;  // where all of them are numbers
  std::optional<DimExpression> scalar(size_t index) const;          // where there is exactly one
  const Tensor* constant(size_t index) const { return input(index).constant; }

  // The node's attribute, else the schema's default, else nothing. Attributes of another type count as absent.
  std::optional<int64_t> integer(std::string_view name) const;
  int64_t integer_or(std::string_view name, int64_t otherwise) const { return integer(name).value_or(otherwise); }
  std::optional<std::vector<int64_t>> integers(std::string_view name) const;
  std::string text(std::string_view name) const;  // empty where there is none
  const Graph* graph(std::string_view name) const;
  template <class T>
  const T* attribute(std::string_view name) const {
    const Attribute* found = find_attribute(node_, name);
    return found == nullptr ? nullptr : std::get_if<T>(&found->value);
  }
  // From input `index` where the operator's version has that input, else from the attribute.
  std::optional<std::vector<int64_t>> integers_from(size_t index, std::string_view attribute_name) const;
  bool schema_has_attribute(std::string_view name) const { return node_.schema->attribute(name) != nullptr; }

  size_t output_count() const { return outputs_.size(); }
  ValueFacts& output(size_t index) { return outputs_.at(index); }
  // These ignore an index beyond the node's outputs.
  void set_shape(size_t index, std::optional<DimExpressions> shape);
  void set_contents(size_t index, std::optional<DimExpressions> contents);
  void set_facts(size_t index, ValueFacts facts);

  std::vector<ValueFacts>& outputs() { return outputs_; }

 private:
  const Node& node_;
  std::vector<const ValueFacts*> inputs_;
  std::vector<ValueFacts> outputs_;
  BodyInference& bodies_;
};

// An axis that may count from the back; nothing where it is outside.
std::optional<size_t> normalized_axis(int64_t axis, size_t rank);
// All of them, or nothing.
std::optional<std::vector<size_t>> normalized_axes(std::span<const int64_t> axes, size_t rank);
DimExpressions unknown_dims(size_t rank);
// Numpy's broadcasting. Of two dimensions that are not known to fit, the result is unknown.
DimExpression broadcast(const DimExpression& a, const DimExpression& b);
DimExpressions broadcast(const DimExpressions& a, const DimExpressions& b);
std::optional<DimExpressions> broadcast(const std::optional<DimExpressions>& a, const std::optional<DimExpressions>& b);

}  // namespace parallax
