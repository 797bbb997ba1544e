// Strided copies in and out of stacks.
#include "runtime/plan/stack.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/device/copy.h"

namespace parallax::runtime {
namespace {

// Length 0 before the dimensions that inference knows of what the body gives; an unknown one is 0.
Result<Tensor> empty_stack(ControlCall& call, const Graph& body, size_t body_output, int64_t axis) {
  const TypeInfo type = body.output_type(body_output);
  if (type.kind != TypeInfo::Kind::tensor || type.dtype == DType::undefined) {
    return execution_error(
        fmt::format("no iteration ran and the type of output {} of the body is not known", body_output));
  }
  Ints dims;
  for (const Dim& dim : type.dims.value_or(std::vector<Dim>{})) dims.push_back(dim.is_known() ? dim.value : 0);
  dims.insert(std::clamp<int64_t>(axis < 0 ? axis + dims.size() + 1 : axis, 0, dims.size()), 0);
  const Shape shape = PX_TRY(shape_of(dims));
  return call.platform.allocate(type.dtype, shape);
}

}  // namespace

const Graph* body_of(const OpCall& op, std::string_view attribute) {
  const Attribute* found = find_attribute(op.node(), attribute);
  const auto* body = found == nullptr ? nullptr : std::get_if<std::shared_ptr<Graph>>(&found->value);
  return body == nullptr ? nullptr : body->get();
}

Status expect_count(size_t count, size_t expected, std::string_view what) {
  if (count == expected) return {};
  return execution_error(fmt::format("its {} gives {} values, {} are needed", what, count, expected));
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
  if (!item.is_tensor()) return execution_error("what a body gives for a scan output must be a tensor");
  const Value there = PX_TRY(call.platform.to_device(item));
  const Tensor& tensor = there.tensor();
  if (bits_of(tensor.dtype()) < 8)
    return unsupported("scan outputs of a packed or string type; --fallback=reference runs them");
  if (count_ == 0) item_shape_ = tensor.shape();
  if (count_ > 0 && (tensor.dtype() != rows_.dtype() || !(tensor.shape() == item_shape_)))
    return execution_error("the iterations of a body give values of different types or shapes for one scan output");
  if (count_ == room_) PX_TRY(make_room(call, tensor));
  const int64_t numbers = tensor.element_count();
  if (numbers > 0) {
    PX_TRY(call.platform.copy(element_bytes(tensor.dtype()), {numbers}, {writable(rows_).data, {1}, count_ * numbers},
                              {tensor.view().data, {1}, 0}));
  }
  ++count_;
  return {};
}

Result<Tensor> Stack::take(ControlCall& call, const Graph& body, size_t body_output, int64_t axis, bool reversed) {
  if (count_ == 0) return empty_stack(call, body, body_output, axis);
  const int64_t at = PX_TRY(OpCall::resolve_axis(axis, rank_of(item_shape_) + 1));
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

Result<Slices> Slices::of(ControlCall& call, const Tensor& tensor, int64_t axis) {
  if (bits_of(tensor.dtype()) < 8)
    return unsupported("scan inputs of a packed or string type; --fallback=reference runs them");
  Slices slices;
  Ints dims(tensor.shape());
  slices.strides_ = row_major_strides(dims);
  slices.stride_ = slices.strides_[axis];
  dims.erase(axis);
  slices.strides_.erase(axis);
  slices.shape_ = PX_TRY(shape_of(dims));
  slices.is_in_one_piece_ = product(dims, 0, axis) == 1;
  const Value there = PX_TRY(call.platform.to_device(tensor));
  slices.tensor_ = there.tensor();
  return slices;
}

Result<Tensor> Slices::at(ControlCall& call, int64_t position) const {
  const TensorView whole = tensor_.view();
  const int64_t bytes = element_bytes(whole.dtype), offset = position * stride_;
  if (is_in_one_piece_)
    return Tensor::wrap(whole.dtype, shape_, {tensor_.storage(), whole.data + offset * bytes}, whole.device);
  Tensor result = PX_TRY(call.platform.allocate(whole.dtype, shape_));
  const Ints dims(shape_);
  PX_TRY(call.platform.copy(bytes, dims, {writable(result).data, row_major_strides(dims), 0},
                            {whole.data, strides_, offset}));
  return result;
}

}  // namespace parallax::runtime
