// SPDX-License-Identifier: Apache-2.0
// Operators that only move elements: Transpose, Slice, Concat, Split, Tile, Pad, Where and kin.
#include <algorithm>
#include <limits>

#include "inspector/base/checked_math.h"
#include "inspector/model/rule_errors.h"
#include "reference/ops/axes.h"
#include "reference/ops/families.h"
#include "reference/ops/move.h"

namespace parallax::reference {
namespace {

struct SliceAxis {
  int64_t start;
  int64_t step;
  int64_t count;
};

// numpy's rules, as Slice-13 states them: negative positions count from the back, then both are clamped to what the
// direction of the step can reach.
SliceAxis resolve_slice(int64_t start, int64_t end, int64_t step, int64_t dim) {
  const auto from_back = [&](int64_t position) { return position < 0 ? wrapping_add(position, dim) : position; };
  const int64_t low = step > 0 ? 0 : -1;
  const int64_t high = step > 0 ? dim : dim - 1;
  start = std::clamp(from_back(start), step > 0 ? low : std::min<int64_t>(0, high), high);
  end = std::clamp(from_back(end), low, high);
  const Int128 distance = step > 0 ? static_cast<Int128>(end) - start : static_cast<Int128>(start) - end;
  const Int128 stride = step > 0 ? static_cast<Int128>(step) : -static_cast<Int128>(step);
  return {start, step, distance <= 0 ? 0 : static_cast<int64_t>((distance + stride - 1) / stride)};
}

struct SliceArguments {
  std::vector<int64_t> starts;
  std::vector<int64_t> ends;
  std::vector<int64_t> axes;
  std::vector<int64_t> steps;
};

Result<SliceArguments> slice_arguments(const OpContext& op) {
  SliceArguments arguments;
  const bool by_input = op.since_version() >= 10;
  arguments.starts = by_input ? PX_TRY(op.int64s_of_input(1)) : op.find_ints("starts").value_or(std::vector<int64_t>{});
  arguments.ends = by_input ? PX_TRY(op.int64s_of_input(2)) : op.find_ints("ends").value_or(std::vector<int64_t>{});
  const size_t count = arguments.starts.size();
  const auto axes = PX_TRY(axes_argument(op, 10, 3));
  for (size_t axis = 0; !axes.has_value() && axis < count; ++axis) arguments.axes.push_back(static_cast<int64_t>(axis));
  if (axes.has_value()) arguments.axes = *axes;
  arguments.steps.assign(count, 1);
  if (by_input && op.has_input(4)) arguments.steps = PX_TRY(op.int64s_of_input(4));
  if (arguments.ends.size() != count || arguments.axes.size() != count || arguments.steps.size() != count)
    return wrong_length("'starts'", count, "have as many as 'ends' ({}), 'axes' ({}) and 'steps' ({})",
                        arguments.ends.size(), arguments.axes.size(), arguments.steps.size());
  return arguments;
}

Status op_transpose(OpContext& op) {
  const Tensor& data = op.input(0);
  const size_t rank = data.shape().rank();
  std::vector<int64_t> perm(rank);
  for (size_t axis = 0; axis < rank; ++axis) perm[axis] = static_cast<int64_t>(rank - 1 - axis);
  if (const auto given = op.find_ints("perm")) perm = *given;
  const std::vector<size_t> order = PX_TRY(normalize_axes(perm, rank));
  if (order.size() != rank) return wrong_length("attribute 'perm'", order.size(), "have {}, one for each axis", rank);
  const std::vector<int64_t> own = strides_of(data.shape());
  std::vector<int64_t> dims;
  std::vector<int64_t> strides;
  for (size_t axis : order) {
    dims.push_back(data.shape()[axis]);
    strides.push_back(own[axis]);
  }
  Tensor output = PX_TRY(op.allocate(data.dtype(), Shape(dims)));
  gather_strided(data, 0, strides, output);
  return op.set_output(0, std::move(output));
}

Status op_slice(OpContext& op) {
  const Tensor& data = op.input(0);
  const SliceArguments arguments = PX_TRY(slice_arguments(op));
  const std::vector<size_t> axes = PX_TRY(normalize_axes(arguments.axes, data.shape().rank()));
  std::vector<int64_t> dims(data.shape().begin(), data.shape().end());
  std::vector<int64_t> strides = strides_of(data.shape());
  int64_t base = 0;
  for (size_t index = 0; index < axes.size(); ++index) {
    const size_t axis = axes[index];
    if (arguments.steps[index] == 0) return wrong_value(fmt::format("the step of axis {}", axis), 0, "not be 0");
    const SliceAxis slice =
        resolve_slice(arguments.starts[index], arguments.ends[index], arguments.steps[index], dims[axis]);
    if (slice.count > 0) base += slice.start * strides[axis];
    // With one element the step is never taken; it may be as large as an int64.
    strides[axis] = slice.count > 1 ? strides[axis] * slice.step : 0;
    dims[axis] = slice.count;
  }
  Tensor output = PX_TRY(op.allocate(data.dtype(), Shape(dims)));
  gather_strided(data, base, strides, output);
  return op.set_output(0, std::move(output));
}

Status op_concat(OpContext& op) {
  const Shape& first = op.input(0).shape();
  const size_t axis = PX_TRY(normalize_axis(
      op.since_version() < 4 ? op.find_int("axis").value_or(1) : op.int_attribute("axis"), first.rank()));
  int64_t length = 0;
  for (size_t index = 0; index < op.input_count(); ++index) {
    const Shape& shape = op.input(index).shape();
    const bool same_rank = shape.rank() == first.rank();
    const auto same_but_axis = [&](size_t other) { return other == axis || shape[other] == first[other]; };
    bool fits = same_rank;
    for (size_t other = 0; fits && other < first.rank(); ++other) fits = same_but_axis(other);
    if (!fits)
      return wrong_input(op, index, "have the shape of the first one, {}, outside axis {}", first.to_string(), axis);
    length += shape[axis];
  }
  const Shape shape = PX_TRY(with_dim(first, axis, length));
  Tensor output = PX_TRY(op.allocate(op.input(0).dtype(), shape));
  const int64_t outer = count_of(shape, 0, axis);
  const int64_t row = count_of(shape, axis, shape.rank());
  int64_t done = 0;
  for (size_t index = 0; index < op.input_count(); ++index) {
    const Tensor& part = op.input(index);
    const int64_t run = count_of(part.shape(), axis, shape.rank());
    for (int64_t lead = 0; lead < outer; ++lead) copy_run(part, lead * run, output, lead * row + done, run);
    done += run;
  }
  return op.set_output(0, std::move(output));
}

// The lengths of the parts: an attribute; since version 13 an input; in version 1 either, the input then of the data's
// type.
Result<std::vector<int64_t>> split_lengths(const OpContext& op) {
  if (op.since_version() >= 13) {
    if (!op.has_input(1)) return std::vector<int64_t>{};
    return op.int64s_of_input(1);
  }
  if (!op.has_input(1)) return op.find_ints("split").value_or(std::vector<int64_t>{});
  std::vector<int64_t> lengths;
  const Numbers<double> numbers(op.input(1));
  for (double number : numbers.span()) lengths.push_back(truncate_to_int64(number));
  return lengths;
}

Status op_split(OpContext& op) {
  const Tensor& input = op.input(0);
  const size_t axis = PX_TRY(normalize_axis(op.find_int("axis").value_or(0), input.shape().rank()));
  const int64_t length = input.shape()[axis];
  const auto count = static_cast<int64_t>(op.output_count());
  std::vector<int64_t> parts = PX_TRY(split_lengths(op));
  if (parts.empty()) {
    // Equal parts; where num_outputs (since 18) does not divide the length, the last is smaller.
    const int64_t equal = (length + count - 1) / count;
    if (length % count != 0 && op.since_version() < 18)
      return wrong_value("the size of the axis", length, "be a multiple of the {} outputs, as no sizes are given",
                         count);
    for (int64_t left = length; static_cast<int64_t>(parts.size()) < count; left -= parts.back()) {
      parts.push_back(std::min(left, equal));
    }
  }
  int64_t total = 0;
  for (int64_t part : parts) {
    if (part < 0 || part > length)
      return wrong_value("the size of a part", part, "be in [0, {}], the length of the axis", length);
    total = checked_add(total, part).value_or(std::numeric_limits<int64_t>::max());
  }
  if (total != length || static_cast<int64_t>(parts.size()) != count)
    return broken_rule(fmt::format("the split has {} parts of {} elements in all", parts.size(), total),
                       fmt::format("have {} parts, one for each output, of {} elements", count, length));
  const int64_t outer = count_of(input.shape(), 0, axis);
  const int64_t inner = count_of(input.shape(), axis + 1, input.shape().rank());
  int64_t begin = 0;
  for (size_t index = 0; index < parts.size(); ++index) {
    const Shape shape = PX_TRY(with_dim(input.shape(), axis, parts[index]));
    Tensor part = PX_TRY(op.allocate(input.dtype(), shape));
    const int64_t run = parts[index] * inner;
    for (int64_t lead = 0; lead < outer; ++lead) {
      copy_run(input, (lead * length + begin) * inner, part, lead * run, run);
    }
    begin += parts[index];
    PX_TRY(op.set_output(index, std::move(part)));
  }
  return {};
}

Status tile(OpContext& op, const std::vector<int64_t>& repeats) {
  const Tensor& input = op.input(0);
  const size_t rank = input.shape().rank();
  if (repeats.size() != rank)
    return wrong_length("input 'repeats'", repeats.size(), "have {}, one for each axis", rank);
  std::vector<int64_t> dims;
  for (size_t axis = 0; axis < rank; ++axis) {
    const auto dim = repeats[axis] < 0 ? std::nullopt : checked_mul(input.shape()[axis], repeats[axis]);
    if (!dim.has_value())
      return wrong_value(fmt::format("the number of repeats of axis {}", axis), repeats[axis],
                         "be 0 or more and keep the output's size within 2^63 elements");
    dims.push_back(*dim);
  }
  const Shape shape = PX_TRY(Shape::create(dims));
  Tensor output = PX_TRY(op.allocate(input.dtype(), shape));
  const std::vector<int64_t> own = strides_of(input.shape());
  const std::vector<int64_t> outs = strides_of(shape);
  gather_elements(input, output, [&](int64_t index) {
    int64_t from = 0;
    for (size_t axis = 0; axis < rank; ++axis)
      from += index / outs[axis] % dims[axis] % input.shape()[axis] * own[axis];
    return from;
  });
  return op.set_output(0, std::move(output));
}

Status op_tile(OpContext& op) { return tile(op, PX_TRY(op.int64s_of_input(1))); }

// Version 1 repeats one axis; both numbers are of the input's type.
Status op_tile_1(OpContext& op) {
  const int64_t repeats = truncate_to_int64(PX_TRY(op.double_of_input(1)));
  const int64_t axis = truncate_to_int64(PX_TRY(op.double_of_input(2)));
  std::vector<int64_t> all(op.input(0).shape().rank(), 1);
  all[PX_TRY(normalize_axis(axis, all.size()))] = repeats;
  return tile(op, all);
}

Status op_where(OpContext& op) {
  const Tensor& x = op.input(1);
  const Tensor& y = op.input(2);
  const Tensor& condition = op.input(0);
  Shape shape = PX_TRY(broadcast_shapes(x.shape(), y.shape()));
  shape = PX_TRY(broadcast_shapes(shape, condition.shape()));
  Tensor output = PX_TRY(op.allocate(x.dtype(), shape));
  const auto strides_c = broadcast_strides(condition.shape(), shape);
  const auto strides_x = broadcast_strides(x.shape(), shape);
  const auto strides_y = broadcast_strides(y.shape(), shape);
  const auto chosen = condition.as<uint8_t>();
  with_elements(x, output, [&](auto from_x) {
    auto from_y = from_x;
    from_y.source = reinterpret_cast<decltype(from_x.source)>(y.view().data);
    for_blocks(shape.element_count(), 5, [&](int64_t begin, int64_t end) {
      Walk<3> walk(shape.dims(), {strides_c, strides_x, strides_y}, begin);
      for (int64_t index = begin; index < end; ++index, walk.next()) {
        if (chosen[static_cast<size_t>(walk.offset(0))] != 0)
          from_x.copy(walk.offset(1), index);
        else
          from_y.copy(walk.offset(2), index);
      }
    });
  });
  return op.set_output(0, std::move(output));
}

Status op_trilu(OpContext& op) {
  const Tensor& input = op.input(0);
  const size_t rank = input.shape().rank();
  if (rank < 2) return wrong_input(op, 0, "have rank 2 or more");
  const int64_t diagonal = op.has_input(1) ? PX_TRY(op.int64_of_input(1)) : 0;
  const bool upper = op.int_attribute("upper") != 0;
  const int64_t rows = input.shape()[rank - 2];
  const int64_t columns = input.shape()[rank - 1];
  const Tensor zero = PX_TRY(Tensor::zeros(input.dtype(), Shape{}));
  const TensorView fill = zero.view();
  Tensor output = PX_TRY(op.allocate(input.dtype(), input.shape()));
  gather_elements(
      input, output,
      [&](int64_t index) {
        const int64_t row = index / columns % rows;
        const int64_t column = index % columns;
        const Int128 distance = static_cast<Int128>(column) - row;
        return (upper ? distance >= diagonal : distance <= diagonal) ? index : kFill;
      },
      &fill);
  return op.set_output(0, std::move(output));
}

constexpr OpRow kMovementRows[] = {
    {"Concat", kOnnx, 1, 13, op_concat}, {"Slice", kOnnx, 1, 13, op_slice}, {"Split", kOnnx, 1, 18, op_split},
    {"Tile", kOnnx, 1, 1, op_tile_1},    {"Tile", kOnnx, 6, 13, op_tile},   {"Transpose", kOnnx, 1, 25, op_transpose},
    {"Trilu", kOnnx, 14, 14, op_trilu},  {"Where", kOnnx, 9, 16, op_where}, {"Trilu", kMicrosoft, 1, 1, op_trilu},
};

}  // namespace

OpRows movement_rows() { return kMovementRows; }

}  // namespace parallax::reference
