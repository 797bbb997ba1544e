// SPDX-License-Identifier: Apache-2.0
// OpCall: what one operator function sees of the executor, whatever the device: its node's attributes, its inputs, and
// where its outputs go.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "inspector/base/result.h"
#include "inspector/model/ir.h"
#include "inspector/model/opset/op_schema.h"
#include "inspector/tensor/value.h"
#include "runtime/device/cpu/ints.h"

namespace parallax::runtime {

struct OpInput {
  const Value* value = nullptr;  // null or absent: an omitted optional input
  bool is_constant = false;      // a weight: the same payload in every run of the session
  bool is_last_use = false;      // no later node reads it: its buffer may become an output's
  int64_t owners = 1;            // of its payload, when nobody but this call looks at it
};

// The results of a call; a caller that makes many calls reuses one object, so that none allocates.
struct CallResult {
  std::vector<Value> outputs;    // one for each of the node's
  std::vector<int64_t> aliases;  // for each output the input whose payload it is, or -1
  uint64_t spared = 0;           // bit i: nobody looks at output i, which need not be made
};

class OpCall {
 public:
  // `seed`: a hash of the frames the node runs in (32-bit FNV-1a of their text), for operators that draw.
  // `result`: where outputs go; null: to the call itself.
  OpCall(const Node& node, std::span<const OpInput> inputs, uint64_t seed, CallResult* result = nullptr);
  OpCall(const OpCall&) = delete;
  OpCall& operator=(const OpCall&) = delete;

  const Node& node() const { return node_; }
  int64_t since_version() const { return node_.schema->since_version; }
  uint64_t seed() const { return seed_; }

  // True where outputs may be channels last (device/channels_last.h): their consumers accept both orders.
  bool may_reorder() const { return may_reorder_; }
  void let_reorder() { may_reorder_ = true; }

  // ---- Inputs ----
  int64_t input_count() const { return static_cast<int64_t>(inputs_.size()); }
  bool has_input(int64_t index) const;
  const Value& value(int64_t index) const { return *inputs_.data()[index].value; }
  const Tensor& input(int64_t index) const { return value(index).tensor(); }
  bool is_constant(int64_t index) const { return inputs_.data()[index].is_constant; }
  // The integers of an input that holds axes, a shape, sizes; of a bool or integer tensor.
  Result<Ints> integers_of_input(int64_t index) const;
  // The only element of an input that holds one number.
  Result<int64_t> integer_of_input(int64_t index) const;
  Result<double> real_of_input(int64_t index) const;
  // The buffer of input `index` may be overwritten: nobody else will look at it.
  bool may_overwrite(int64_t index) const;

  // ---- Attributes: the node's, else the schema's default; the plain ones must have one of the two ----
  bool has_attribute(std::string_view name) const { return find_attribute(node_, name) != nullptr; }
  int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  std::string text(std::string_view name) const;
  std::optional<int64_t> find_integer(std::string_view name) const;
  std::optional<double> find_real(std::string_view name) const;
  std::optional<std::string> find_text(std::string_view name) const;
  std::optional<Ints> find_integers(std::string_view name) const;
  std::optional<std::vector<float>> find_reals(std::string_view name) const;
  std::vector<std::string> texts(std::string_view name) const;
  // The list that the node itself has, in place; empty where it has none. For int64_t, float and std::string.
  template <class T>
  std::span<const T> given(std::string_view name) const {
    const Attribute* const attribute = find_attribute(node_, name);
    const auto* const list = attribute == nullptr ? nullptr : std::get_if<std::vector<T>>(&attribute->value);
    return list == nullptr ? std::span<const T>() : std::span<const T>(*list);
  }
  const Tensor* find_tensor(std::string_view name) const;

  // `axis` counted from the front. Error: execution, when outside [-rank, rank).
  static Result<int64_t> resolve_axis(int64_t axis, int64_t rank);
  static Result<int64_t> resolve_axis(Result<int64_t> axis, int64_t rank);
  // All of `axes` so, sorted, each once. Errors: outside, or named twice.
  static Result<Ints> resolve_axes(Ints axes, int64_t rank);

  // ---- Outputs ----
  int64_t output_count() const { return static_cast<int64_t>(node_.outputs.size()); }
  bool wants_output(int64_t index) const;
  void set_output(int64_t index, Value value);
  // Output `index` is input `input` under another shape, without a copy.
  void alias_output(int64_t index, int64_t input, const Shape& shape);
  std::vector<Value> take_outputs() { return std::move(result_.outputs); }

 private:
  const Node& node_;
  std::span<const OpInput> inputs_;
  uint64_t seed_;
  bool may_reorder_ = false;
  CallResult own_;
  CallResult& result_;
};

}  // namespace parallax::runtime
