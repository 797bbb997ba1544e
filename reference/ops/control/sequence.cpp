// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals: values that hold values.
#include <numeric>

#include "inspector/model/rule_errors.h"
#include "reference/ops/control/stack.h"
#include "reference/ops/families.h"
#include "reference/ops/move.h"

namespace parallax::reference {
namespace {

// A position that may count from the back; `end` positions are valid.
Result<size_t> position_in(const OpContext& op, size_t input, int64_t count, int64_t end) {
  const int64_t given = PX_TRY(op.int64_of_input(input));
  if (given < -count || given >= end)
    return wrong_value("the position", given, "be in [{}, {}), the sequence has {} elements", -count, end, count);
  return static_cast<size_t>(given < 0 ? given + count : given);
}

int64_t count_in(const SequenceValue& sequence) { return static_cast<int64_t>(sequence.items.size()); }

TypeInfo element_type_of(const Value& value) {
  TypeInfo type = type_of(value);
  type.dims.reset();
  return type;
}

// The type an empty sequence or optional is declared with, as it is carried.
TypeInfo carried_type(const OpContext& op, TypeInfo type) {
  type.dtype = op.carried(type.dtype);
  for (TypeInfo& inner : type.inner) inner = carried_type(op, inner);
  return type;
}

// Slices [begin, begin + length) of an axis.
Result<Tensor> slice_range(const OpContext& op, const Tensor& tensor, size_t axis, int64_t begin, int64_t length) {
  const Shape& shape = tensor.shape();
  const Shape part_shape = PX_TRY(with_dim(shape, axis, length));
  Tensor part = PX_TRY(op.allocate(tensor.dtype(), part_shape));
  const int64_t inner = count_of(shape, axis + 1, shape.rank());
  for (int64_t lead = 0; lead < count_of(shape, 0, axis); ++lead) {
    copy_run(tensor, (lead * shape[axis] + begin) * inner, part, lead * length * inner, length * inner);
  }
  return part;
}

Status op_sequence_construct(OpContext& op) {
  SequenceValue sequence{element_type_of(op.value(0)), {}};
  for (size_t index = 0; index < op.input_count(); ++index) sequence.items.push_back(op.value(index));
  return op.set_output(0, std::move(sequence));
}

Status op_sequence_empty(OpContext& op) {
  const int64_t number = op.find_int("dtype").value_or(static_cast<int64_t>(DType::float32));
  const auto dtype = dtype_from_number(number);
  if (!dtype.has_value()) return wrong_attribute("dtype", number, "be the number of an element type");
  return op.set_output(0, SequenceValue{TypeInfo::tensor(op.carried(*dtype)), {}});
}

Status op_sequence_length(OpContext& op) {
  const int64_t count = count_in(op.value(0).sequence());
  return op.set_output(0, DType::int64, Shape{}, std::span<const int64_t>(&count, 1));
}

Status op_sequence_at(OpContext& op) {
  const SequenceValue& sequence = op.value(0).sequence();
  const size_t position = PX_TRY(position_in(op, 1, count_in(sequence), count_in(sequence)));
  return op.set_output(0, sequence.items[position]);
}

Status op_sequence_insert(OpContext& op) {
  SequenceValue sequence = op.value(0).sequence();
  const int64_t count = count_in(sequence);
  if (op.input(1).dtype() != sequence.element_type.dtype)
    return wrong_input(op, 1, "be of the element type of the sequence, {}", to_string(sequence.element_type));
  const size_t position = op.has_input(2) ? PX_TRY(position_in(op, 2, count, count + 1)) : sequence.items.size();
  sequence.items.insert(sequence.items.begin() + static_cast<ptrdiff_t>(position), op.value(1));
  return op.set_output(0, std::move(sequence));
}

Status op_sequence_erase(OpContext& op) {
  SequenceValue sequence = op.value(0).sequence();
  const int64_t count = count_in(sequence);
  if (count == 0) return broken_rule("the sequence has no elements", "have one to be erased");
  const size_t position = op.has_input(1) ? PX_TRY(position_in(op, 1, count, count)) : sequence.items.size() - 1;
  sequence.items.erase(sequence.items.begin() + static_cast<ptrdiff_t>(position));
  return op.set_output(0, std::move(sequence));
}

// Without `split` every part has length 1, and keepdims says whether that axis stays; a scalar split is the length of
// all parts but perhaps the last.
Status op_split_to_sequence(OpContext& op) {
  const Tensor& input = op.input(0);
  const size_t axis = PX_TRY(normalize_axis(op.int_attribute("axis"), input.shape().rank()));
  const int64_t length = input.shape()[axis];
  SequenceValue sequence{element_type_of(op.value(0)), {}};
  std::vector<int64_t> parts(static_cast<size_t>(length), 1);
  if (op.has_input(1)) {
    parts = to_int64s(op.input(1));
    if (op.input(1).shape().rank() == 0) {
      const int64_t each = parts[0];
      if (each <= 0) return wrong_value("input 'split'", each, "be 1 or more");
      parts.assign(static_cast<size_t>(length / each), each);
      if (length % each != 0) parts.push_back(length % each);
    }
  }
  const bool drop = !op.has_input(1) && op.int_attribute("keepdims") == 0;
  int64_t begin = 0;
  for (int64_t part : parts) {
    if (part < 0 || begin + part > length)
      return wrong_value("the size of a part", part, "be 0 or more, and the {} elements of the axis hold all parts",
                         length);
    sequence.items.emplace_back(drop ? PX_TRY(slice_at(op, input, axis, begin))
                                     : PX_TRY(slice_range(op, input, axis, begin, part)));
    begin += part;
  }
  if (begin != length) return wrong_value("the sum of the parts' sizes", begin, "be {}, the size of the axis", length);
  return op.set_output(0, std::move(sequence));
}

Status op_concat_from_sequence(OpContext& op) {
  const SequenceValue& sequence = op.value(0).sequence();
  if (sequence.items.empty()) return broken_rule("the sequence has no elements", "have one or more to be joined");
  const Tensor& first = sequence.items[0].tensor();
  if (op.int_attribute("new_axis") != 0) {
    const size_t axis = PX_TRY(normalize_axis(op.int_attribute("axis"), first.shape().rank() + 1));
    return op.set_output(0, PX_TRY(stack(op, sequence.items, axis)));
  }
  const size_t axis = PX_TRY(normalize_axis(op.int_attribute("axis"), first.shape().rank()));
  int64_t length = 0;
  for (const Value& item : sequence.items) {
    const Shape& shape = item.tensor().shape();
    for (size_t other = 0; other < first.shape().rank(); ++other) {
      if (shape.rank() != first.shape().rank() || (other != axis && shape[other] != first.shape()[other]))
        return wrong_shape("an element of the sequence", shape, "have the shape of the first, {}, outside axis {}",
                           first.shape().to_string(), axis);
    }
    length += shape[axis];
  }
  const Shape shape = PX_TRY(with_dim(first.shape(), axis, length));
  Tensor output = PX_TRY(op.allocate(first.dtype(), shape));
  const int64_t row = count_of(shape, axis, shape.rank());
  int64_t done = 0;
  for (const Value& item : sequence.items) {
    const int64_t run = count_of(item.tensor().shape(), axis, shape.rank());
    for (int64_t lead = 0; lead < count_of(shape, 0, axis); ++lead)
      copy_run(item.tensor(), lead * run, output, lead * row + done, run);
    done += run;
  }
  return op.set_output(0, std::move(output));
}

// The body runs once for each position of the first sequence; other inputs that are sequences give their item there,
// tensors are passed as they are.
Status op_sequence_map(OpContext& op) {
  const int64_t count = count_in(op.value(0).sequence());
  std::vector<SequenceValue> results(op.output_count());
  const Graph& body = op.body("body");
  if (body.outputs.size() != results.size())
    return wrong_value("the number of outputs of the body", body.outputs.size(), "be {}, that of the node",
                       results.size());
  for (size_t index = 0; index < results.size(); ++index) {
    results[index].element_type = carried_type(op, body.output_type(index));
    results[index].element_type.dims.reset();
  }
  for (int64_t position = 0; position < count; ++position) {
    std::vector<Value> arguments;
    for (size_t index = 0; index < op.input_count(); ++index) {
      const Value& value = op.value(index);
      if (value.is_sequence() && count_in(value.sequence()) != count)
        return wrong_length(input_name(op, index), value.sequence().items.size(), "have {}, as the first one", count);
      arguments.push_back(value.is_sequence() ? value.sequence().items[static_cast<size_t>(position)] : value);
    }
    std::vector<Value> outputs = PX_TRY(op.run_body("body", Frame::Kind::body, position, std::move(arguments)));
    for (size_t index = 0; index < results.size(); ++index) {
      results[index].element_type = element_type_of(outputs[index]);
      results[index].items.push_back(std::move(outputs[index]));
    }
  }
  for (size_t index = 0; index < results.size(); ++index) PX_TRY(op.set_output(index, std::move(results[index])));
  return {};
}

Status op_optional(OpContext& op) {
  if (op.has_input(0)) return op.set_output(0, OptionalValue{element_type_of(op.value(0)), {op.value(0)}});
  const Attribute* type = find_attribute(op.node(), "type");
  const auto* given = type == nullptr ? nullptr : std::get_if<TypeInfo>(&type->value);
  if (given == nullptr)
    return execution_error("the input and the attribute 'type' are missing; one of them must be given");
  return op.set_output(0, OptionalValue{carried_type(op, *given), {}});
}

// Since version 18 a tensor or sequence is an optional that has an element, and no input at all is one that has none.
Status op_optional_has_element(OpContext& op) {
  const bool present = op.has_input(0) && (!op.value(0).is_optional() || !op.value(0).optional().item.empty());
  return op.set_output(0, Tensor::scalar<bool>(present));
}

Status op_optional_get_element(OpContext& op) {
  if (!op.value(0).is_optional()) return op.set_output(0, op.value(0));
  if (op.value(0).optional().item.empty())
    return broken_rule("the optional has no element", "have one; ask OptionalHasElement first");
  return op.set_output(0, op.value(0).optional().item[0]);
}

constexpr OpRow kSequenceRows[] = {
    {"ConcatFromSequence", kOnnx, 11, 11, op_concat_from_sequence},
    {"Optional", kOnnx, 15, 28, op_optional},
    {"OptionalGetElement", kOnnx, 15, 28, op_optional_get_element},
    {"OptionalHasElement", kOnnx, 15, 28, op_optional_has_element},
    {"SequenceAt", kOnnx, 11, 11, op_sequence_at},
    {"SequenceConstruct", kOnnx, 11, 11, op_sequence_construct},
    {"SequenceEmpty", kOnnx, 11, 11, op_sequence_empty},
    {"SequenceErase", kOnnx, 11, 11, op_sequence_erase},
    {"SequenceInsert", kOnnx, 11, 11, op_sequence_insert},
    {"SequenceLength", kOnnx, 11, 11, op_sequence_length},
    {"SequenceMap", kOnnx, 17, 17, op_sequence_map},
    {"SplitToSequence", kOnnx, 11, 24, op_split_to_sequence},
};

}  // namespace

OpRows sequence_rows() { return kSequenceRows; }

}  // namespace parallax::reference
