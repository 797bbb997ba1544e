// SPDX-License-Identifier: Apache-2.0
// Sequences and optionals: values that hold values. Tensors in them are shared, never copied, but by the two operators
// that join and cut.
#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/ops/families.h"

namespace parallax::runtime {
namespace {

Result<const SequenceValue*> sequence_of(const OpCall& op, int64_t input) {
  if (op.value(input).is_sequence()) return &op.value(input).sequence();
  return wrong_input(op, input, "be a sequence");
}

// A position in [0, count), from the end when negative; `count` itself too where `past_end`.
Result<int64_t> position_of(const OpCall& op, int64_t input, int64_t count, bool past_end) {
  if (!op.value(input).is_tensor()) return wrong_input(op, input, "be a tensor of one integer");
  const int64_t position = PX_TRY(op.integer_of_input(input));
  if (position < -count || position > count || (position == count && !past_end))
    return wrong_value("the position", position, "be in [{}, {}{}, the sequence has {} elements", -count, count,
                       past_end ? "]" : ")", count);
  return position < 0 ? position + count : position;
}

int64_t length_of(const SequenceValue& sequence) { return static_cast<int64_t>(sequence.items.size()); }

TypeInfo tensor_type(const Value& value) {
  return TypeInfo::tensor(value.is_tensor() ? value.tensor().dtype() : DType::undefined);
}

Error no_kernel_for(DType dtype) {
  return unsupported(
      fmt::format("it has no kernel for {}; --fallback=reference runs it in the reference", name_of(dtype)));
}

template <class Device>
Status sequence_construct(OpContext<Device>& op) {
  SequenceValue result;
  for (int64_t i = 0; i < op.input_count(); ++i) result.items.push_back(op.value(i));
  if (!result.items.empty()) result.element_type = tensor_type(result.items[0]);
  op.set_output(0, std::move(result));
  return {};
}

template <class Device>
Status sequence_empty(OpContext<Device>& op) {
  const auto dtype = dtype_from_number(op.find_integer("dtype").value_or(1));
  if (!dtype.has_value())
    return wrong_attribute("dtype", op.find_integer("dtype").value_or(1), "be the number of an element type");
  op.set_output(0, SequenceValue{TypeInfo::tensor(*dtype), {}});
  return {};
}

template <class Device>
Status sequence_at(OpContext<Device>& op) {
  const SequenceValue* sequence = PX_TRY(sequence_of(op, 0));
  const int64_t position = PX_TRY(position_of(op, 1, length_of(*sequence), false));
  op.set_output(0, sequence->items[static_cast<size_t>(position)]);
  return {};
}

template <class Device>
Status sequence_insert(OpContext<Device>& op) {
  SequenceValue result = *PX_TRY(sequence_of(op, 0));
  const int64_t count = length_of(result);
  const int64_t position = op.has_input(2) ? PX_TRY(position_of(op, 2, count, true)) : count;
  if (result.items.empty()) result.element_type = tensor_type(op.value(1));
  result.items.insert(result.items.begin() + position, op.value(1));
  op.set_output(0, std::move(result));
  return {};
}

template <class Device>
Status sequence_erase(OpContext<Device>& op) {
  SequenceValue result = *PX_TRY(sequence_of(op, 0));
  if (result.items.empty()) return broken_rule("the sequence has no elements", "have one to be erased");
  const int64_t count = length_of(result);
  const int64_t position = op.has_input(1) ? PX_TRY(position_of(op, 1, count, false)) : count - 1;
  result.items.erase(result.items.begin() + position);
  op.set_output(0, std::move(result));
  return {};
}

template <class Device>
Status sequence_length(OpContext<Device>& op) {
  const SequenceValue* sequence = PX_TRY(sequence_of(op, 0));
  op.set_output(0, Tensor::scalar<int64_t>(length_of(*sequence)));
  return {};
}

// Along an axis that exists, or a new one.
template <class Device>
Status concat_from_sequence(OpContext<Device>& op) {
  const SequenceValue* sequence = PX_TRY(sequence_of(op, 0));
  if (sequence->items.empty()) return broken_rule("the sequence has no elements", "have one or more to be joined");
  const bool new_axis = op.integer("new_axis") != 0;
  const Tensor& first = sequence->items[0].tensor();
  if (bits_of(first.dtype()) < 8) return no_kernel_for(first.dtype());
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("axis"), rank_of(first.shape()) + (new_axis ? 1 : 0)));
  Ints dims(first.shape());
  if (new_axis) dims.insert(axis, 1);
  Ints total = dims;
  total[axis] = 0;
  std::vector<Ints> parts;
  for (const Value& item : sequence->items) {
    Ints part(item.tensor().shape());
    if (new_axis) part.insert(std::min(axis, part.size()), 1);
    for (int64_t i = 0; i < dims.size(); ++i) {
      if (part.size() != dims.size() || item.tensor().dtype() != first.dtype() || (i != axis && part[i] != dims[i]))
        return wrong_shape("an element of the sequence", item.tensor().shape(),
                           "have the type and shape of the first, {}{}, outside axis {}", name_of(first.dtype()),
                           first.shape().to_string(), axis);
    }
    total[axis] += part[axis];
    parts.push_back(std::move(part));
  }
  const MutableView y = PX_TRY(op.make_output(0, first.dtype(), shape_of(total)));
  const Ints strides = row_major_strides(total);
  int64_t position = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const Tensor item = PX_TRY(op.resident(sequence->items[i].tensor()));
    copy_strided(op.queue(), element_bytes(first.dtype()), parts[i], {y.data, strides, position * strides[axis]},
                 {item.view().data, row_major_strides(parts[i]), 0});
    position += parts[i][axis];
  }
  return {};
}

// Sizes of the parts: a list, one size for all (the last may be smaller), or 1 each.
template <class Device>
Result<Ints> part_sizes(OpContext<Device>& op, int64_t dim) {
  Ints sizes;
  if (op.has_input(1) && op.input(1).shape().rank() > 0) {
    sizes = PX_TRY(op.integers_of_input(1));
  } else {
    const int64_t size = op.has_input(1) ? PX_TRY(op.integer_of_input(1)) : 1;
    if (size < 1) return wrong_value("the size of a part", size, "be 1 or more");
    for (int64_t at = 0; at < dim; at += size) sizes.push_back(std::min(size, dim - at));
  }
  int64_t total = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > dim)
      return wrong_value("the size of a part", size, "be in [0, {}], the size of the axis", dim);
    total += size;
  }
  if (total != dim) return wrong_value("the sum of the parts' sizes", total, "be {}, the size of the axis", dim);
  return sizes;
}

template <class Device>
Status split_to_sequence(OpContext<Device>& op) {
  if (!op.value(0).is_tensor()) return wrong_input(op, 0, "be a tensor");
  if (bits_of(op.input(0).dtype()) < 8) return no_kernel_for(op.input(0).dtype());
  const Tensor x = PX_TRY(op.resident(op.input(0)));
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("axis"), rank_of(x.shape())));
  const Ints sizes = PX_TRY(part_sizes(op, dim_of(x.shape(), axis)));
  const bool keep_axis = op.has_input(1) || op.integer("keepdims") != 0;
  const Ints strides = row_major_strides(x.shape());
  SequenceValue result{TypeInfo::tensor(x.dtype()), {}};
  int64_t position = 0;
  for (int64_t size : sizes) {
    Ints dims(x.shape());
    dims[axis] = size;
    const Shape shape = PX_TRY(shape_of(dims));
    Tensor part = PX_TRY(op.queue().allocate(x.dtype(), shape));
    copy_strided(op.queue(), element_bytes(x.dtype()), dims, {writable(part).data, row_major_strides(dims), 0},
                 {x.view().data, strides, position * strides[axis]});
    position += size;
    if (!keep_axis) {
      dims.erase(axis);
      const Shape dropped = PX_TRY(shape_of(dims));
      part = part.reshaped(dropped);
    }
    result.items.push_back(std::move(part));
  }
  op.set_output(0, std::move(result));
  return {};
}

// ---- Optionals ----

template <class Device>
Status optional(OpContext<Device>& op) {
  OptionalValue result;
  if (op.input_count() > 0 && op.has_input(0)) {
    result.element_type = type_of(op.value(0));
    result.item.push_back(op.value(0));
  } else if (const Attribute* type = find_attribute(op.node(), "type")) {
    if (const auto* declared = std::get_if<TypeInfo>(&type->value)) result.element_type = *declared;
  }
  op.set_output(0, std::move(result));
  return {};
}

template <class Device>
Status optional_has_element(OpContext<Device>& op) {
  const bool present = op.input_count() > 0 && op.has_input(0);
  const bool filled = present && (!op.value(0).is_optional() || !op.value(0).optional().item.empty());
  op.set_output(0, Tensor::scalar<bool>(filled));
  return {};
}

template <class Device>
Status optional_get_element(OpContext<Device>& op) {
  const Value& value = op.value(0);
  if (!value.is_optional()) return op.set_output(0, value), Status{};
  if (value.optional().item.empty())
    return broken_rule("the optional has no element", "have one; ask OptionalHasElement first");
  op.set_output(0, value.optional().item[0]);
  return {};
}

template <class Device>
constexpr KernelRow<Device> values_row(std::string_view name, Kernel<Device> run) {
  return {name, kAnything, run, 1, INT64_MAX, 0, Arguments::values};
}

template <class Device>
constexpr KernelRow<Device> kSequenceRows[] = {
    values_row<Device>("ConcatFromSequence", concat_from_sequence<Device>),
    values_row<Device>("Optional", optional<Device>),
    values_row<Device>("OptionalGetElement", optional_get_element<Device>),
    values_row<Device>("OptionalHasElement", optional_has_element<Device>),
    reads_on_host<Device>({1}, values_row<Device>("SequenceAt", sequence_at<Device>)),
    values_row<Device>("SequenceConstruct", sequence_construct<Device>),
    values_row<Device>("SequenceEmpty", sequence_empty<Device>),
    reads_on_host<Device>({1}, values_row<Device>("SequenceErase", sequence_erase<Device>)),
    reads_on_host<Device>({2}, values_row<Device>("SequenceInsert", sequence_insert<Device>)),
    values_row<Device>("SequenceLength", sequence_length<Device>),
    reads_on_host<Device>({1}, values_row<Device>("SplitToSequence", split_to_sequence<Device>)),
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> sequence_rows() {
  return kSequenceRows<CompiledDevice>;
}

}  // namespace parallax::runtime
