// SPDX-License-Identifier: Apache-2.0
// Value: what flows along an edge of a graph at run time: a tensor, a sequence, an optional, a map, or nothing.
#pragma once

#include <variant>
#include <vector>

#include "inspector/tensor/tensor.h"
#include "inspector/tensor/type_info.h"

namespace parallax {

class Value;

struct SequenceValue {
  TypeInfo element_type;  // needed where the sequence is empty
  std::vector<Value> items;
};

struct OptionalValue {
  TypeInfo element_type;
  std::vector<Value> item;  // empty or one
};

struct MapValue {
  Tensor keys;  // rank 1, integers or strings, in insertion order
  TypeInfo value_type;
  std::vector<Value> values;  // one for each key
};

// Copies are cheap: tensors share their payload.
class Value {
 public:
  Value() = default;  // an omitted optional input or output
  Value(Tensor tensor) : content_(std::move(tensor)) {}
  Value(SequenceValue sequence) : content_(std::move(sequence)) {}
  Value(OptionalValue optional) : content_(std::move(optional)) {}
  Value(MapValue map) : content_(std::move(map)) {}

  bool is_absent() const { return std::holds_alternative<std::monostate>(content_); }
  bool is_tensor() const { return std::holds_alternative<Tensor>(content_); }
  bool is_sequence() const { return std::holds_alternative<SequenceValue>(content_); }
  bool is_optional() const { return std::holds_alternative<OptionalValue>(content_); }
  bool is_map() const { return std::holds_alternative<MapValue>(content_); }

  const Tensor& tensor() const { return get<Tensor>(); }
  const SequenceValue& sequence() const { return get<SequenceValue>(); }
  const OptionalValue& optional() const { return get<OptionalValue>(); }
  const MapValue& map() const { return get<MapValue>(); }
  Tensor& tensor() { return const_cast<Tensor&>(std::as_const(*this).tensor()); }
  SequenceValue& sequence() { return const_cast<SequenceValue&>(std::as_const(*this).sequence()); }

 private:
  template <class T>
  const T& get() const {
    const T* content = std::get_if<T>(&content_);
    PX_CHECK(content != nullptr);
    return *content;
  }

  std::variant<std::monostate, Tensor, SequenceValue, OptionalValue, MapValue> content_;
};

// The type of a value that exists, with all dimensions known.
TypeInfo type_of(const Value& value);

// Bytes of all payloads, strings counted by their characters.
size_t payload_bytes(const Value& value);

}  // namespace parallax
