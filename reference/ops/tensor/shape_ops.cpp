// SPDX-License-Identifier: Apache-2.0
// Operators on shapes: those that read one, those that give the same elements another, those that make elements of a
// shape.
#include <algorithm>
#include <cmath>

#include "inspector/base/checked_math.h"
#include "inspector/model/rule_errors.h"
#include "reference/ops/axes.h"
#include "reference/ops/families.h"
#include "reference/ops/move.h"
#include "reference/ops/sparse.h"

namespace parallax::reference {
namespace {

// start and end of Shape-15: negative counts from the back, then both are clamped to [0, rank].
size_t clamp_position(int64_t position, size_t rank) {
  const auto signed_rank = static_cast<int64_t>(rank);
  if (position < 0) position += signed_rank;
  return static_cast<size_t>(std::clamp<int64_t>(position, 0, signed_rank));
}

Status reshape_to(OpContext& op, const Tensor& tensor, std::span<const int64_t> dims) {
  const Shape shape = PX_TRY(Shape::create(dims));
  if (shape.element_count() != tensor.element_count())
    return wrong_shape("the input", tensor.shape(), "have {} elements to be seen as {}", shape.element_count(),
                       shape.to_string());
  return op.set_output(0, tensor.reshaped(shape));
}

// Replaces 0 (unless allowzero) by the input's dimension and -1 by what is left.
Result<std::vector<int64_t>> resolve_dims(const Shape& input, std::vector<int64_t> dims, bool allow_zero) {
  ptrdiff_t open = -1;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] == 0 && !allow_zero) {
      if (axis >= input.rank())
        return wrong_value(fmt::format("dimension {} of the shape", axis), 0,
                           "not copy a dimension that the input, {}, lacks", input.to_string());
      dims[axis] = input[axis];
    } else if (dims[axis] == -1) {
      if (open >= 0)
        return execution_error(
            fmt::format("dimensions {} and {} of the shape are -1; at most one must be", open, axis));
      open = static_cast<ptrdiff_t>(axis);
    } else if (dims[axis] < 0)
      return wrong_value(fmt::format("dimension {} of the shape", axis), dims[axis], "be -1 or more");
  }
  if (open < 0) return dims;
  std::vector<int64_t> others = dims;
  others.erase(others.begin() + open);
  const auto known = checked_product(others);
  if (!known.has_value() || *known == 0 || input.element_count() % *known != 0)
    return wrong_shape("the input", input, "have a multiple of the {} elements that the known dimensions have",
                       known.has_value() ? std::to_string(*known) : "over 2^63");
  dims[static_cast<size_t>(open)] = input.element_count() / *known;
  return dims;
}

Status op_identity(OpContext& op) { return op.set_output(0, op.value(0)); }

Status op_shape(OpContext& op) {
  const Shape& shape = op.input(0).shape();
  const size_t start = clamp_position(op.find_int("start").value_or(0), shape.rank());
  const size_t end = clamp_position(op.find_int("end").value_or(static_cast<int64_t>(shape.rank())), shape.rank());
  const size_t count = end > start ? end - start : 0;
  return op.set_output(0, DType::int64, Shape{static_cast<int64_t>(count)},
                       shape.dims().subspan(count > 0 ? start : 0, count));
}

Status op_size(OpContext& op) {
  const int64_t size = op.input(0).element_count();
  return op.set_output(0, DType::int64, Shape{}, std::span<const int64_t>(&size, 1));
}

Status op_reshape(OpContext& op) {
  const Tensor& data = op.input(0);
  std::vector<int64_t> dims =
      op.since_version() < 5 ? op.find_ints("shape").value_or(std::vector<int64_t>{}) : PX_TRY(op.int64s_of_input(1));
  const bool allow_zero = op.find_int("allowzero").value_or(0) != 0;
  if (allow_zero && std::count(dims.begin(), dims.end(), 0) > 0 && std::count(dims.begin(), dims.end(), -1) > 0)
    return execution_error(fmt::format(
        "the shape {} holds both 0 and -1; where 'allowzero' is set it must hold one of them", dims_text(dims)));
  dims = PX_TRY(resolve_dims(data.shape(), std::move(dims), allow_zero));
  return reshape_to(op, data, dims);
}

Status op_flatten(OpContext& op) {
  const Tensor& input = op.input(0);
  const size_t rank = input.shape().rank();
  const int64_t axis = op.int_attribute("axis");
  // `axis` may be one of 0 .. rank: it may follow the last axis.
  const size_t split = axis == static_cast<int64_t>(rank) ? rank : PX_TRY(normalize_axis(axis, rank));
  const std::array<int64_t, 2> dims{count_of(input.shape(), 0, split), count_of(input.shape(), split, rank)};
  return reshape_to(op, input, dims);
}

Status op_squeeze(OpContext& op) {
  const Tensor& data = op.input(0);
  const Shape& shape = data.shape();
  std::vector<bool> dropped(shape.rank(), false);
  const auto axes = PX_TRY(axes_argument(op, 13, 1));
  if (axes.has_value()) {
    for (size_t axis : PX_TRY(normalize_axes(*axes, shape.rank()))) {
      if (shape[axis] != 1) return wrong_input(op, 0, "have size 1 along axis {} to lose it", axis);
      dropped[axis] = true;
    }
  } else {
    for (size_t axis = 0; axis < shape.rank(); ++axis) dropped[axis] = shape[axis] == 1;
  }
  std::vector<int64_t> dims;
  for (size_t axis = 0; axis < shape.rank(); ++axis) {
    if (!dropped[axis]) dims.push_back(shape[axis]);
  }
  return reshape_to(op, data, dims);
}

Status op_unsqueeze(OpContext& op) {
  const Tensor& data = op.input(0);
  const auto axes = PX_TRY(axes_argument(op, 13, 1));
  const std::vector<int64_t> given = axes.value_or(std::vector<int64_t>{});
  const size_t rank = data.shape().rank() + given.size();
  std::vector<int64_t> dims(rank, 0);
  for (size_t axis : PX_TRY(normalize_axes(given, rank))) dims[axis] = -1;
  const int64_t* next = data.shape().begin();
  for (int64_t& dim : dims) dim = dim == -1 ? 1 : *next++;
  return reshape_to(op, data, dims);
}

// Two-way broadcasting: a 1 in the asked shape leaves the input's dimension.
Status op_expand(OpContext& op) {
  const Tensor& input = op.input(0);
  const std::vector<int64_t> asked = PX_TRY(op.int64s_of_input(1));
  const Shape target = PX_TRY(Shape::create(asked));
  const Shape shape = PX_TRY(broadcast_shapes(input.shape(), target));
  if (shape == input.shape()) return op.set_output(0, input);
  Tensor output = PX_TRY(op.allocate(input.dtype(), shape));
  gather_strided(input, 0, broadcast_strides(input.shape(), shape), output);
  return op.set_output(0, std::move(output));
}

// The one attribute that is there is the value.
Status op_constant(OpContext& op) {
  if (const Tensor* tensor = op.find_tensor("value")) return op.set_output(0, PX_TRY(op.carry(*tensor)));
  if (const SparseTensor* sparse = op.find_sparse_tensor("sparse_value")) {
    const Tensor dense = PX_TRY(densify(*sparse));
    return op.set_output(0, PX_TRY(op.carry(dense)));
  }
  if (const auto value = op.find_int("value_int")) {
    return op.set_output(0, DType::int64, Shape{}, std::span<const int64_t>(&*value, 1));
  }
  if (const auto value = op.find_float("value_float")) {
    return op.set_output(0, DType::float32, Shape{}, std::span<const double>(&*value, 1));
  }
  if (const auto value = op.find_string("value_string")) return op.set_output(0, Tensor::scalar<std::string>(*value));
  if (const auto values = op.find_ints("value_ints")) {
    return op.set_output(0, DType::int64, Shape{static_cast<int64_t>(values->size())},
                         std::span<const int64_t>(*values));
  }
  if (const auto values = op.find_floats("value_floats")) {
    return op.set_output(0, DType::float32, Shape{static_cast<int64_t>(values->size())},
                         std::span<const double>(*values));
  }
  if (const auto values = op.find_strings("value_strings")) {
    return op.set_output(0, Tensor::vector<std::string>(*values));
  }
  return execution_error("no attribute holds a value; one of 'value', 'sparse_value', 'value_int' and the like must");
}

Status op_constant_of_shape(OpContext& op) {
  const std::vector<int64_t> dims = PX_TRY(op.int64s_of_input(0));
  const Shape shape = PX_TRY(Shape::create(dims));
  const Tensor* given = op.find_tensor("value");
  if (given != nullptr && given->element_count() != 1)
    return wrong_length("attribute 'value'", given->element_count(), "have 1");
  const Tensor value = given == nullptr ? Tensor::scalar(0.0F) : *given;
  const Tensor carried = PX_TRY(op.carry(value));
  Tensor output = PX_TRY(op.allocate(value.dtype(), shape));
  const TensorView fill = carried.view();
  gather_elements(
      carried, output, [](int64_t) { return 0; }, &fill);
  return op.set_output(0, std::move(output));
}

// max(ceil((limit - start) / delta), 0) elements start + i * delta.
// How many elements a range has follows from its arguments as the model's type holds them.
Status op_range(OpContext& op) {
  const DType dtype = op.input(0).dtype();
  std::array<Tensor, 3> declared;
  for (size_t index = 0; index < 3; ++index) {
    if (op.input(index).element_count() != 1) return wrong_input(op, index, "be one number");
    declared[index] = PX_TRY(op.as_declared(index));
  }
  return with_number_type(dtype, [&](auto number) -> Status {
    using T = decltype(number);
    std::array<T, 3> arguments{};
    for (size_t index = 0; index < 3; ++index) load<T>(declared[index], 0, std::span(arguments).subspan(index, 1));
    const auto [start, limit, delta] = arguments;
    if (delta == T{0}) return wrong_value("input 'delta'", 0, "not be 0");
    double steps = 0;
    if constexpr (std::is_same_v<T, double>) {
      steps = std::ceil((limit - start) / delta);
      if (!std::isfinite(steps))
        return wrong_value("the number of elements of the range", steps, "be finite; check start, limit and delta");
    } else {
      const auto distance = static_cast<Int128>(limit) - static_cast<Int128>(start);
      const Int128 quotient = distance / delta;
      steps = static_cast<double>(quotient + ((distance % delta != 0) && ((distance > 0) == (delta > T{0})) ? 1 : 0));
    }
    if (steps > static_cast<double>(Shape::kMaxElements))
      return out_of_memory(
          fmt::format("the range has {} elements; it must have at most {}", steps, Shape::kMaxElements));
    const auto count = static_cast<int64_t>(std::max(0.0, steps));
    const std::array<int64_t, 1> dims{count};
    const Shape shape = PX_TRY(Shape::create(dims));
    Tensor output = PX_TRY(op.allocate(dtype, shape));
    T first{}, step{};
    load<T>(op.input(0), 0, std::span(&first, 1));
    load<T>(op.input(2), 0, std::span(&step, 1));
    for (int64_t index = 0; index < count; ++index) {
      const T value = wrapping_add(first, wrapping_multiply(static_cast<T>(index), step));
      store<T>(output, index, std::span<const T>(&value, 1));
    }
    return op.set_output(0, std::move(output));
  });
}

Status op_eye_like(OpContext& op) {
  const Tensor& input = op.input(0);
  if (input.shape().rank() != 2) return wrong_input(op, 0, "have rank 2");
  const auto number = op.find_int("dtype");
  const auto dtype = number.has_value() ? dtype_from_number(*number) : std::optional(input.dtype());
  if (!dtype.has_value() || *dtype == DType::string)
    return unsupported(
        fmt::format("attribute 'dtype' is {}; only numbers and bool have a function here", number.value_or(0)));
  const int64_t diagonal = op.int_attribute("k");
  std::vector<int64_t> values(static_cast<size_t>(input.element_count()), 0);
  const int64_t columns = input.shape()[1];
  for (int64_t row = 0; row < input.shape()[0]; ++row) {
    const int64_t column = wrapping_add(row, diagonal);
    if (column >= 0 && column < columns) values[static_cast<size_t>(row * columns + column)] = 1;
  }
  if (!is_floating(*dtype)) return op.set_output(0, *dtype, input.shape(), std::span<const int64_t>(values));
  return op.set_output(0, *dtype, input.shape(),
                       std::span<const double>(std::vector<double>(values.begin(), values.end())));
}

constexpr OpRow kShapeOpsRows[] = {
    {"Constant", kOnnx, 1, 25, op_constant}, {"ConstantOfShape", kOnnx, 9, 25, op_constant_of_shape},
    {"Expand", kOnnx, 8, 13, op_expand},     {"EyeLike", kOnnx, 9, 22, op_eye_like},
    {"Flatten", kOnnx, 1, 25, op_flatten},   {"Identity", kOnnx, 1, 25, op_identity},
    {"Range", kOnnx, 11, 27, op_range},      {"Reshape", kOnnx, 1, 25, op_reshape},
    {"Shape", kOnnx, 1, 25, op_shape},       {"Size", kOnnx, 1, 25, op_size},
    {"Squeeze", kOnnx, 1, 25, op_squeeze},   {"Unsqueeze", kOnnx, 1, 25, op_unsqueeze},
};

}  // namespace

OpRows shape_ops_rows() { return kShapeOpsRows; }

}  // namespace parallax::reference
