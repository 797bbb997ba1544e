// Strided copies in and out of stacks.
#include "runtime/plan/stack.h"

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

Result<Tensor> stack_or_empty(ControlCall& call, std::span<const Value> items, const Graph& body, size_t body_output,
                              int64_t axis) {
  if (items.empty()) return empty_stack(call, body, body_output, axis);
  if (!items[0].is_tensor()) return execution_error("what a body gives for a scan output must be a tensor");
  const Tensor& first = items[0].tensor();
  if (bits_of(first.dtype()) < 8)
    return unsupported("scan outputs of a packed or string type; --fallback=reference runs them");
  Ints dims(first.shape());
  const int64_t at = PX_TRY(OpCall::resolve_axis(axis, dims.size() + 1));
  dims.insert(at, static_cast<int64_t>(items.size()));
  const Shape shape = PX_TRY(shape_of(dims));
  Tensor result = PX_TRY(call.platform.allocate(first.dtype(), shape));
  const Ints strides = row_major_strides(dims);
  Ints walk = strides;
  walk.erase(at);
  for (size_t index = 0; index < items.size(); ++index) {
    if (!items[index].is_tensor() || items[index].tensor().dtype() != first.dtype() ||
        !(items[index].tensor().shape() == first.shape())) {
      return execution_error("the iterations of a body give values of different types or shapes for one scan output");
    }
    const Value item = PX_TRY(call.platform.to_device(items[index]));
    PX_TRY(call.platform.copy(element_bytes(first.dtype()), first.shape(),
                              {writable(result).data, walk, static_cast<int64_t>(index) * strides[at]},
                              {item.tensor().view().data, row_major_strides(first.shape()), 0}));
  }
  return result;
}

Result<Tensor> slice_at(ControlCall& call, const Tensor& tensor, int64_t axis, int64_t position) {
  if (bits_of(tensor.dtype()) < 8)
    return unsupported("scan inputs of a packed or string type; --fallback=reference runs them");
  Ints dims(tensor.shape());
  Ints strides = row_major_strides(dims);
  const int64_t offset = position * strides[axis];
  dims.erase(axis);
  strides.erase(axis);
  const Shape shape = PX_TRY(shape_of(dims));
  Tensor result = PX_TRY(call.platform.allocate(tensor.dtype(), shape));
  const Value source = PX_TRY(call.platform.to_device(tensor));
  PX_TRY(call.platform.copy(element_bytes(tensor.dtype()), dims, {writable(result).data, row_major_strides(dims), 0},
                            {source.tensor().view().data, strides, offset}));
  return result;
}

}  // namespace parallax::runtime
