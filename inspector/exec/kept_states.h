// SPDX-License-Identifier: Apache-2.0
// KeptStates: the states of a session as values: what one run returns for a bound output, the next one takes as input.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/exec/executor.h"
#include "inspector/model/ir.h"
#include "inspector/tensor/value.h"

namespace parallax {

// Float64 in place of narrower floats, as sessions that compute in double precision return it.
enum class WideStates : bool { refused, accepted };

class KeptStates {
 public:
  // The positions of a binding's values among the graph's inputs and outputs.
  struct Binding {
    size_t input = 0, output = 0;
    size_t axis = 0;                  // along which the state grows
    const ValueDef* value = nullptr;  // the input
  };

  KeptStates() = default;  // no states
  // `graph` outlives the states. Errors: usage, naming the binding: a name that is no input or output of the graph, or
  // is bound twice; types or ranks that differ; an axis out of range or of a fixed length.
  static Result<KeptStates> create(const Graph& graph, std::span<const StateBinding> bindings,
                                   WideStates wide = WideStates::refused);

  bool empty() const { return bindings_.empty(); }
  size_t size() const { return bindings_.size(); }
  const Binding& binding(size_t index) const { return bindings_[index]; }

  // ---- A run ----
  // The inputs of a run with the states among them. Errors: usage, where an input that a state stands for has a value,
  // and where a state was never reset or set.
  Result<std::vector<Value>> inputs(std::span<const Value> given) const;
  // Keeps the bound outputs of a run that succeeded; they become absent. Errors: execution, for an output without a
  // value: then no state changes.
  Status keep(std::vector<Value>& outputs);

  // ---- As SessionStates has them ----
  // The empty shape of each state for so many rows.
  Result<std::vector<Shape>> empty_shapes(int64_t batch, int64_t capacity) const;
  Status reset(int64_t batch, int64_t capacity);
  Status check_rows(std::span<const int32_t> rows) const;
  Status reorder(std::span<const int32_t> rows);
  Status check_value(size_t index, const Value& value) const;
  Status set(size_t index, const Value& value);  // keeps a copy
  Result<Value> get(size_t index) const;         // a copy
  Status check_index(size_t index) const;

  // Direct access, for sessions that store states in a way of their own; absent: never reset or set.
  const Value& value(size_t index) const { return values_[index]; }
  void replace(size_t index, Value value) { values_[index] = std::move(value); }
  Value take(size_t index) { return std::exchange(values_[index], Value()); }

 private:
  std::string graph_name_;
  std::vector<Binding> bindings_;
  std::vector<Value> values_;
  size_t input_count_ = 0;
  WideStates wide_ = WideStates::refused;
};

// A tensor whose row i along the first axis is row rows[i] of `tensor`, which is on the host. Rows are valid.
Result<Tensor> take_rows(const Tensor& tensor, std::span<const int32_t> rows);

}  // namespace parallax
