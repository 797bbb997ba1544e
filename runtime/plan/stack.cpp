// SPDX-License-Identifier: Apache-2.0
// Strided copies in and out of stacks.
#include "runtime/plan/stack.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "inspector/tensor/elements.h"
#include "runtime/device/cpu/copy.h"

namespace parallax::runtime {
namespace {

// Strings, and elements of less than a byte, of which none can be copied as bytes.
bool moves_singly(DType dtype) { return bits_of(dtype) < 8; }

struct SingleTarget {
  Tensor& tensor;
  Ints strides;
  int64_t offset;
};
struct SingleSource {
  const Tensor& tensor;
  Ints strides;
  int64_t offset;
};

// target[i...] = source[i...] for all i within dims, on the host.
void move_singly(const Ints& dims, const SingleTarget& target, const SingleSource& source) {
  const DType dtype = source.tensor.dtype();
  const Ints walk = row_major_strides(dims);
  const int64_t count = product(dims, 0, dims.size());
  for (int64_t i = 0; i < count; ++i) {
    int64_t to = target.offset, from = source.offset;
    for (int64_t axis = 0; axis < dims.size(); ++axis) {
      const int64_t index = i / walk[axis] % dims[axis];
      to += index * target.strides[axis];
      from += index * source.strides[axis];
    }
    if (dtype == DType::string) {
      target.tensor.mutable_as<std::string>()[static_cast<size_t>(to)] =
          source.tensor.as<std::string>()[static_cast<size_t>(from)];
    } else {
      const uint8_t code = load_packed(source.tensor.view().data, bits_of(dtype), from);
      store_packed(target.tensor.mutable_data(), bits_of(dtype), to, code);
    }
  }
}

// Length 0 before the dimensions that inference knows of what the body gives; an unknown one is 0.
Result<Tensor> empty_stack(ControlCall& call, const Graph& body, size_t body_output, int64_t axis) {
  const TypeInfo type = body.output_type(body_output);
  if (type.kind != TypeInfo::Kind::tensor || type.dtype == DType::undefined)
    return execution_error(fmt::format(
        "no iteration ran and output {} of the body has no known type; the body must declare it", body_output));
  Ints dims;
  for (const Dim& dim : type.dims.value_or(std::vector<Dim>{})) dims.push_back(dim.is_known() ? dim.value : 0);
  dims.insert(std::clamp<int64_t>(axis < 0 ? axis + dims.size() + 1 : axis, 0, dims.size()), 0);
  const Shape shape = PX_TRY(shape_of(dims));
  if (!moves_singly(type.dtype)) return call.platform.allocate(type.dtype, shape);
  const Tensor nothing = PX_TRY(Tensor::zeros(type.dtype, shape));
  const Value there = PX_TRY(call.platform.to_device(nothing));
  return there.tensor();
}

}  // namespace

const Graph* body_of(const OpCall& op, std::string_view attribute) {
  const Attribute* found = find_attribute(op.node(), attribute);
  const auto* body = found == nullptr ? nullptr : std::get_if<std::shared_ptr<Graph>>(&found->value);
  return body == nullptr ? nullptr : body->get();
}

Status expect_count(size_t count, size_t expected, std::string_view what) {
  if (count == expected) return {};
  return wrong_value(fmt::format("the number of values that '{}' gives", what), count, "be {}", expected);
}

// Room grows to twice of what it was, but never beyond what may come.
Status Stack::make_room(ControlCall& call, const Tensor& item) {
  constexpr int64_t kFirstRoom = 16;
  const int64_t room = std::min(std::max(kFirstRoom, 2 * room_), most_);
  Ints dims(item.shape());
  dims.insert(0, room);
  const Shape shape = PX_TRY(shape_of(dims));
  Tensor larger = PX_TRY(call.platform.allocate(item.dtype(), shape));
  const int64_t numbers = count_ * item.element_count();
  if (numbers > 0) {
    PX_TRY(call.platform.copy(element_bytes(item.dtype()), {numbers}, {writable(larger).data, {1}, 0},
                              {rows_.view().data, {1}, 0}));
  }
  rows_ = std::move(larger);
  room_ = room;
  return {};
}

Status Stack::add(ControlCall& call, const Value& item) {
  if (!item.is_tensor()) return wrong_value("a value for a scan output", to_string(type_of(item)), "be a tensor");
  const DType dtype = item.tensor().dtype();
  if (count_ == 0) {
    item_shape_ = item.tensor().shape();
    dtype_ = dtype;
  }
  if (dtype != dtype_ || !(item.tensor().shape() == item_shape_))
    return wrong_value("an iteration's value for a scan output",
                       fmt::format("{}{}", name_of(dtype), item.tensor().shape().to_string()),
                       "have the type and shape of the first, {}{}", name_of(dtype_), item_shape_.to_string());
  if (moves_singly(dtype)) {
    const Value there = PX_TRY(call.platform.to_host(item));
    singles_.push_back(there.tensor());
  } else {
    const Value there = PX_TRY(call.platform.to_device(item));
    PX_TRY(append(call, there.tensor()));
  }
  ++count_;
  return {};
}

Status Stack::append(ControlCall& call, const Tensor& item) {
  if (count_ == room_) PX_TRY(make_room(call, item));
  const int64_t numbers = item.element_count();
  if (numbers == 0) return {};
  return call.platform.copy(element_bytes(item.dtype()), {numbers}, {writable(rows_).data, {1}, count_ * numbers},
                            {item.view().data, {1}, 0});
}

Result<Tensor> Stack::take(ControlCall& call, const Graph& body, size_t body_output, int64_t axis, bool reversed) {
  if (count_ == 0) return empty_stack(call, body, body_output, axis);
  const int64_t at = PX_TRY(OpCall::resolve_axis(axis, rank_of(item_shape_) + 1));
  if (moves_singly(dtype_)) return take_singles(call, at, reversed);
  const int64_t count = std::exchange(count_, 0), room = std::exchange(room_, 0);
  Tensor rows = std::exchange(rows_, Tensor());
  if (at == 0 && !reversed && room == count) return rows;
  Ints dims(item_shape_);
  Ints walk = row_major_strides(dims);
  const int64_t numbers = item_shape_.element_count();
  walk.insert(at, reversed ? -numbers : numbers);
  dims.insert(at, count);
  const Shape shape = PX_TRY(shape_of(dims));
  Tensor result = PX_TRY(call.platform.allocate(rows.dtype(), shape));
  if (numbers > 0) {
    PX_TRY(call.platform.copy(element_bytes(rows.dtype()), dims, {writable(result).data, row_major_strides(dims), 0},
                              {rows.view().data, walk, reversed ? (count - 1) * numbers : 0}));
  }
  return result;
}

Result<Tensor> Stack::take_singles(ControlCall& call, int64_t axis, bool reversed) {
  const int64_t count = std::exchange(count_, 0);
  const std::vector<Tensor> items = std::exchange(singles_, {});
  Ints dims(item_shape_);
  dims.insert(axis, count);
  const Shape shape = PX_TRY(shape_of(dims));
  Tensor result = PX_TRY(Tensor::zeros(dtype_, shape));
  Ints strides = row_major_strides(dims);
  const int64_t step = strides[axis];
  strides.erase(axis);
  for (int64_t index = 0; index < count; ++index) {
    const int64_t position = reversed ? count - 1 - index : index;
    move_singly(Ints(item_shape_), {result, strides, position * step},
                {items[static_cast<size_t>(index)], row_major_strides(Ints(item_shape_)), 0});
  }
  const Value there = PX_TRY(call.platform.to_device(result));
  return there.tensor();
}

Result<Slices> Slices::of(ControlCall& call, const Tensor& tensor, int64_t axis) {
  Slices slices;
  Ints dims(tensor.shape());
  slices.strides_ = row_major_strides(dims);
  slices.stride_ = slices.strides_[axis];
  dims.erase(axis);
  slices.strides_.erase(axis);
  slices.shape_ = PX_TRY(shape_of(dims));
  slices.is_in_one_piece_ = product(dims, 0, axis) == 1;
  const Value there =
      PX_TRY(moves_singly(tensor.dtype()) ? call.platform.to_host(tensor) : call.platform.to_device(tensor));
  slices.tensor_ = there.tensor();
  return slices;
}

Result<Tensor> Slices::at(ControlCall& call, int64_t position) const {
  const int64_t offset = position * stride_;
  const Ints dims(shape_);
  if (moves_singly(tensor_.dtype())) {
    Tensor slice = PX_TRY(Tensor::zeros(tensor_.dtype(), shape_));
    move_singly(dims, {slice, row_major_strides(dims), 0}, {tensor_, strides_, offset});
    const Value there = PX_TRY(call.platform.to_device(slice));
    return there.tensor();
  }
  const TensorView whole = tensor_.view();
  const int64_t bytes = element_bytes(whole.dtype);
  if (is_in_one_piece_)
    return Tensor::wrap(whole.dtype, shape_, {tensor_.storage(), whole.data + offset * bytes}, whole.device);
  Tensor result = PX_TRY(call.platform.allocate(whole.dtype, shape_));
  PX_TRY(call.platform.copy(bytes, dims, {writable(result).data, row_major_strides(dims), 0},
                            {whole.data, strides_, offset}));
  return result;
}

}  // namespace parallax::runtime
