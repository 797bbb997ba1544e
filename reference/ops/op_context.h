// SPDX-License-Identifier: Apache-2.0
// OpContext: all that one operator function sees of the interpreter: its node's inputs and attributes, and where its
// outputs go. Which element type a floating result is carried in is decided here, so that operators need not know the
// precision.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/exec/value_path.h"
#include "inspector/model/ir.h"
#include "inspector/model/opset/op_schema.h"
#include "inspector/tensor/value.h"
#include "reference/ops/precision.h"

namespace parallax::reference {

// Runs a graph attribute of the node as its `kind` frame number `index` (-1 for branches).
using RunBody = std::function<Result<std::vector<Value>>(std::string_view attribute, Frame::Kind kind, int64_t index,
                                                         std::vector<Value> inputs)>;

struct OpEnvironment {
  ReferencePrecision precision = ReferencePrecision::declared;
  bool keep_casts = false;
  std::function<Status(const Value&)> reserve;  // asks for the memory of a value about to be made
  RunBody run_body;
  const Graph* graph = nullptr;         // the node's
  std::function<std::string()> frames;  // where the node stands: "", or the frames of its path
};

class OpContext {
 public:
  // The node's schema is known, its inputs and attributes have been checked against it (signature.h).
  OpContext(const Node& node, std::vector<Value> inputs, const OpEnvironment& environment);

  const Node& node() const { return node_; }
  int64_t since_version() const { return node_.schema->since_version; }
  // The frames the node runs in, as text: "" in the main graph, another in each iteration of a body.
  std::string frames() const { return environment_.frames(); }
  const OpEnvironment& environment() const { return environment_; }

  // ---- Inputs ----
  size_t input_count() const { return inputs_.size(); }
  bool has_input(size_t index) const { return index < inputs_.size() && !inputs_[index].is_absent(); }
  const Value& value(size_t index) const { return inputs_.at(index); }
  const Tensor& input(size_t index) const { return inputs_.at(index).tensor(); }
  // The element type the model gives an input by declaration or inference, which in double precision is not that of the
  // value. Nothing where the model does not say, as within functions.
  std::optional<DType> declared_type(size_t index) const;
  // An input as the model's own type would hold it: floats in double precision are rounded to the type that the model
  // declares, where it does not say to `otherwise`, and where that is not known either they stay as they are. For
  // inputs that decide sizes and quantized values, which must not depend on the precision.
  Result<Tensor> as_declared(size_t index, std::optional<DType> otherwise = {}) const;
  // The integers of an input that holds axes, a shape, sizes. Errors: not rank 1 (or 0).
  Result<std::vector<int64_t>> int64s_of_input(size_t index) const;
  // The only element of an input that holds one number.
  Result<int64_t> int64_of_input(size_t index) const;
  Result<double> double_of_input(size_t index) const;

  // ---- Attributes: of the node, else the schema's default. The plain ones must have one of the two. ----
  bool has_attribute(std::string_view name) const { return find_attribute(node_, name) != nullptr; }
  int64_t int_attribute(std::string_view name) const { return find_int(name).value(); }
  double float_attribute(std::string_view name) const { return find_float(name).value(); }
  std::string string_attribute(std::string_view name) const { return find_string(name).value(); }
  std::optional<int64_t> find_int(std::string_view name) const;
  std::optional<double> find_float(std::string_view name) const;
  std::optional<std::string> find_string(std::string_view name) const;
  std::optional<std::vector<int64_t>> find_ints(std::string_view name) const;
  std::optional<std::vector<double>> find_floats(std::string_view name) const;
  std::optional<std::vector<std::string>> find_strings(std::string_view name) const;
  const Tensor* find_tensor(std::string_view name) const;
  const SparseTensor* find_sparse_tensor(std::string_view name) const;
  const Graph& body(std::string_view name) const;

  // ---- Outputs ----
  size_t output_count() const { return outputs_.size(); }
  bool wants_output(size_t index) const { return index < outputs_.size() && node_.outputs[index] != kNoValue; }
  bool carries_double() const { return environment_.precision == ReferencePrecision::double_; }
  bool keeps_casts() const { return environment_.keep_casts; }
  // The element type that values declared as `declared` have in this run: float64 for floats in double precision.
  DType carried(DType declared) const;
  Result<Tensor> carry(const Tensor& tensor) const;
  // A fresh tensor of the carried type.
  Result<Tensor> allocate(DType declared, const Shape& shape) const;
  // Asks for the memory of a value that was computed in another way.
  Status reserve(const Value& value) const { return environment_.reserve(value); }
  Status set_output(size_t index, Value value);
  // Numbers rounded once to the carried type; integers wrap to their width.
  Status set_output(size_t index, DType declared, const Shape& shape, std::span<const double> values);
  Status set_output(size_t index, DType declared, const Shape& shape, std::span<const int64_t> values);
  Status set_output(size_t index, DType declared, const Shape& shape, std::span<const uint64_t> values);
  std::vector<Value> take_outputs() { return std::move(outputs_); }

  Result<std::vector<Value>> run_body(std::string_view attribute, Frame::Kind kind, int64_t index,
                                      std::vector<Value> inputs) const {
    return environment_.run_body(attribute, kind, index, std::move(inputs));
  }

 private:
  template <class T>
  Status set_numbers(size_t index, DType declared, const Shape& shape, std::span<const T> values);

  const Node& node_;
  std::vector<Value> inputs_;
  std::vector<Value> outputs_;
  const OpEnvironment& environment_;
};

using OpFunction = Status (*)(OpContext& op);

// A tensor with every element converted to float64, or the tensor itself where it is no float or is float64 already.
Result<Tensor> widen(const Tensor& tensor);
Result<Value> widen(const Value& value);

}  // namespace parallax::reference
