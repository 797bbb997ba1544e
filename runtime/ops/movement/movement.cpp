// SPDX-License-Identifier: Apache-2.0
// Operators that move whole regions: Transpose, Slice, Concat, Split, Expand, Tile. All are strided copies.
#include <cmath>

#include <fmt/format.h>

#include "inspector/base/checked_math.h"
#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/ops/families.h"
#include "runtime/ops/movement/host_movement.h"

namespace parallax::runtime {
namespace {

template <class Device>
Status transpose(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const int64_t rank = rank_of(x.shape());
  Ints perm(rank);
  for (int64_t axis = 0; axis < rank; ++axis) perm[axis] = rank - 1 - axis;
  if (const auto given = op.find_integers("perm")) {
    Ints sorted = PX_TRY(OpCall::resolve_axes(*given, rank));
    if (sorted.size() != rank)
      return wrong_length("attribute 'perm'", sorted.size(), "have {}, one for each axis", rank);
    perm = *given;
    for (int64_t& axis : perm) axis = axis < 0 ? axis + rank : axis;
  }
  Ints dims(rank);
  Ints strides(rank);
  const Ints from = row_major_strides(x.shape());
  for (int64_t axis = 0; axis < rank; ++axis) {
    dims[axis] = dim_of(x.shape(), perm[axis]);
    strides[axis] = from[perm[axis]];
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(dims)));
  copy_strided(op.queue(), element_bytes(x.dtype()), dims, {y.data, row_major_strides(dims), 0},
               {x.view().data, strides, 0});
  return {};
}

// ---- Slice ----

struct SliceAxis {
  int64_t start;
  int64_t step;
  int64_t count;
};

// Bounds from the end when negative, then clamped as the specification says: backwards the start to an element.
Result<SliceAxis> slice_axis(int64_t dim, int64_t start, int64_t end, int64_t step) {
  if (step == 0) return wrong_value("a step", step, "not be 0");
  if (start < 0) start += dim;
  if (end < 0) end = end < -dim ? -1 : end + dim;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, dim);
    end = std::clamp<int64_t>(end, 0, dim);
    return SliceAxis{start, step, end > start ? (end - start - 1) / step + 1 : 0};
  }
  start = std::clamp<int64_t>(start, dim == 0 ? -1 : 0, dim - 1);
  end = std::clamp<int64_t>(end, -1, dim - 1);
  return SliceAxis{start, step,
                   start > end ? static_cast<int64_t>((static_cast<uint64_t>(start - end) - 1) /
                                                      (uint64_t{0} - static_cast<uint64_t>(step))) +
                                     1
                               : 0};
}

struct SliceArguments {
  Ints starts, ends, axes, steps;
};

template <class Device>
Result<SliceArguments> slice_arguments(OpContext<Device>& op) {
  SliceArguments given;
  if (op.since_version() < 10) {
    given.starts = op.find_integers("starts").value_or(Ints{});
    given.ends = op.find_integers("ends").value_or(Ints{});
    if (auto axes = op.find_integers("axes")) given.axes = std::move(*axes);
  } else {
    given.starts = PX_TRY(op.integers_of_input(1));
    given.ends = PX_TRY(op.integers_of_input(2));
    if (op.has_input(3)) given.axes = PX_TRY(op.integers_of_input(3));
    if (op.has_input(4)) given.steps = PX_TRY(op.integers_of_input(4));
  }
  const int64_t count = given.starts.size();
  if (given.axes.empty()) {
    for (int64_t axis = 0; axis < count; ++axis) given.axes.push_back(axis);
  }
  if (given.steps.empty()) given.steps = Ints(count, 1);
  if (given.ends.size() != count || given.axes.size() != count || given.steps.size() != count)
    return wrong_length("'starts'", count, "have as many as 'ends' ({}), 'axes' ({}) and 'steps' ({})",
                        given.ends.size(), given.axes.size(), given.steps.size());
  return given;
}

template <class Device>
Status slice(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const int64_t rank = rank_of(x.shape());
  SliceArguments given = PX_TRY(slice_arguments(op));
  PX_TRY(OpCall::resolve_axes(given.axes, rank));
  Ints dims(x.shape());
  Ints strides = row_major_strides(dims);
  int64_t offset = 0;
  for (int64_t i = 0; i < given.axes.size(); ++i) {
    const int64_t axis = PX_TRY(OpCall::resolve_axis(given.axes[i], rank));
    const SliceAxis part = PX_TRY(slice_axis(dims[axis], given.starts[i], given.ends[i], given.steps[i]));
    dims[axis] = part.count;
    if (part.count > 0) offset += part.start * strides[axis];
    strides[axis] = part.count > 1 ? strides[axis] * part.step : strides[axis];
  }
  const Shape shape = PX_TRY(shape_of(dims));
  if (shape == x.shape() && strides == row_major_strides(dims)) return op.alias_output(0, 0, shape), Status{};
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape));
  copy_strided(op.queue(), element_bytes(x.dtype()), dims, {y.data, row_major_strides(dims), 0},
               {x.view().data, strides, offset});
  return {};
}

// ---- Concat and Split ----

template <class Device>
Status concat(OpContext<Device>& op) {
  const Tensor& first = op.input(0);
  const int64_t rank = rank_of(first.shape());
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.find_integer("axis").value_or(1), rank));
  Ints dims(first.shape());
  dims[axis] = 0;
  for (int64_t i = 0; i < op.input_count(); ++i) {
    const Tensor& part = op.input(i);
    if (rank_of(part.shape()) != rank || part.dtype() != first.dtype())
      return wrong_input(op, i, "have the rank and element type of the first one, {}{}", name_of(first.dtype()),
                         first.shape().to_string());
    for (int64_t other = 0; other < rank; ++other) {
      if (other != axis && dim_of(part.shape(), other) != dims[other])
        return wrong_input(op, i, "have the shape of the first one, {}, outside axis {}", first.shape().to_string(),
                           axis);
    }
    dims[axis] += dim_of(part.shape(), axis);
  }
  const Shape shape = PX_TRY(shape_of(dims));
  if constexpr (std::is_same_v<Device, Cpu>) return join_inputs(op, axis, shape);
  const MutableView y = PX_TRY(op.make_output(0, first.dtype(), shape));
  const Ints strides = row_major_strides(dims);
  int64_t position = 0;
  for (int64_t i = 0; i < op.input_count(); ++i) {
    const Tensor& part = op.input(i);
    copy_strided(op.queue(), element_bytes(first.dtype()), part.shape(), {y.data, strides, position * strides[axis]},
                 {part.view().data, row_major_strides(part.shape()), 0});
    position += dim_of(part.shape(), axis);
  }
  return {};
}

// Version 1 gives the sizes in the type of X.
Result<Ints> whole_numbers_of_input(const OpCall& op, int64_t index) {
  const Tensor& tensor = op.input(index);
  if (!is_floating(tensor.dtype())) return op.integers_of_input(index);
  std::vector<double> values(static_cast<size_t>(tensor.element_count()));
  load_block<double>(tensor.dtype(), tensor.view().data, 0, 1, tensor.element_count(), values.data());
  constexpr double kMost = 0x1p53;
  Ints sizes;
  for (double value : values) {
    if (value != std::trunc(value) || std::fabs(value) > kMost)
      return wrong_value(fmt::format("a value of {}", input_name(op, index)), value,
                         "be a whole number of at most 2^53");
    sizes.push_back(static_cast<int64_t>(value));
  }
  return sizes;
}

template <class Device>
Result<Ints> split_sizes(OpContext<Device>& op, int64_t dim) {
  if (op.has_input(1)) return op.since_version() == 1 ? whole_numbers_of_input(op, 1) : op.integers_of_input(1);
  if (auto sizes = op.find_integers("split")) return std::move(*sizes);
  const int64_t parts = op.output_count();
  const int64_t size = (dim + parts - 1) / parts;
  if (op.since_version() < 18 && dim % parts != 0)
    return wrong_value("the size of the axis", dim, "be a multiple of the {} outputs, as no sizes are given", parts);
  Ints sizes(parts, size);  // since version 18 the last part may be smaller
  sizes[parts - 1] = dim - size * (parts - 1);
  return sizes;
}

template <class Device>
Status split(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.find_integer("axis").value_or(0), rank_of(x.shape())));
  const int64_t dim = dim_of(x.shape(), axis);
  const Ints sizes = PX_TRY(split_sizes(op, dim));
  int64_t total = 0;
  for (int64_t size : sizes) {
    if (size < 0 || size > dim)
      return wrong_value("the size of a part", size, "be in [0, {}], the size of the axis", dim);
    total += size;
  }
  if (total != dim || sizes.size() != op.output_count())
    return broken_rule(fmt::format("the split has {} parts of {} elements in all", sizes.size(), total),
                       fmt::format("have {} parts, one for each output, of {} elements", op.output_count(), dim));
  if constexpr (std::is_same_v<Device, Cpu>) return split_input(op, axis, sizes);
  const Ints strides = row_major_strides(x.shape());
  int64_t position = 0;
  for (int64_t i = 0; i < sizes.size(); ++i) {
    Ints dims(x.shape());
    dims[axis] = sizes[i];
    const MutableView y = PX_TRY(op.make_output(i, x.dtype(), shape_of(dims)));
    copy_strided(op.queue(), element_bytes(x.dtype()), dims, {y.data, row_major_strides(dims), 0},
                 {x.view().data, strides, position * strides[axis]});
    position += sizes[i];
  }
  return {};
}

// ---- Expand and Tile ----

template <class Device>
Status expand(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Ints wanted = PX_TRY(op.integers_of_input(1));
  const Shape wanted_shape = PX_TRY(shape_of(wanted));
  const Shape shapes[] = {x.shape(), wanted_shape};
  const Shape shape = PX_TRY(broadcast_shapes(shapes));
  if (shape == x.shape()) return op.alias_output(0, 0, shape), Status{};
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape));
  copy_strided(op.queue(), element_bytes(x.dtype()), shape, {y.data, row_major_strides(shape), 0},
               {x.view().data, broadcast_strides(x.shape(), shape), 0});
  return {};
}

// Version 1 gives tiles and axis in the type of X.
Result<int64_t> whole_of_input(const OpCall& op, int64_t index) {
  constexpr double kMost = 0x1p53;
  const double value = PX_TRY(op.real_of_input(index));
  if (value == std::trunc(value) && std::fabs(value) <= kMost) return static_cast<int64_t>(value);
  return wrong_value(input_name(op, index), value, "be a whole number of at most 2^53");
}

// Each axis becomes two: which copy, and where in it.
template <class Device>
Status tile(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const int64_t rank = rank_of(x.shape());
  Ints repeats;
  if (op.since_version() < 6) {
    const int64_t given = PX_TRY(whole_of_input(op, 2));
    const int64_t axis = PX_TRY(OpCall::resolve_axis(given, rank));
    repeats = Ints(rank, 1);
    repeats[axis] = PX_TRY(whole_of_input(op, 1));
  } else {
    repeats = PX_TRY(op.integers_of_input(1));
  }
  if (repeats.size() != rank)
    return wrong_length("input 'repeats'", repeats.size(), "have {}, one for each axis", rank);
  const Ints from = row_major_strides(x.shape());
  Ints dims, walk, strides;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (repeats[axis] < 0)
      return wrong_value(fmt::format("the number of repeats of axis {}", axis), repeats[axis], "be 0 or more");
    const auto dim = checked_mul(dim_of(x.shape(), axis), repeats[axis]);
    if (!dim.has_value())
      return wrong_value(fmt::format("the number of repeats of axis {}", axis), repeats[axis],
                         "keep the output's size within 2^63 elements");
    dims.push_back(*dim);
    walk.push_back(repeats[axis]);
    walk.push_back(dim_of(x.shape(), axis));
    strides.push_back(0);
    strides.push_back(from[axis]);
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(dims)));
  copy_strided(op.queue(), element_bytes(x.dtype()), walk, {y.data, row_major_strides(walk), 0},
               {x.view().data, strides, 0});
  return {};
}

// ---- Blocks of depth and space ----

// y[...] = x transposed by `perm` after a reshape to `split`.
template <class Device>
Status regroup(OpContext<Device>& op, const Ints& split, const Ints& perm, const Ints& result) {
  const Tensor& x = op.input(0);
  const Ints from = row_major_strides(split);
  Ints dims, strides;
  for (int64_t axis : perm) {
    dims.push_back(split[axis]);
    strides.push_back(from[axis]);
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(result)));
  copy_strided(op.queue(), element_bytes(x.dtype()), dims, {y.data, row_major_strides(dims), 0},
               {x.view().data, strides, 0});
  return {};
}

// False for sizes whose products would not be in range.
bool may_regroup(const Ints& dims, int64_t block) {
  constexpr int64_t kLargestBlock = int64_t{1} << 16, kLargest = int64_t{1} << 30;
  return dims.size() == 4 && block > 0 && block <= kLargestBlock &&
         std::all_of(dims.begin(), dims.end(), [](int64_t dim) { return dim <= kLargest; });
}

template <class Device>
Status depth_to_space(OpContext<Device>& op) {
  const Ints dims(op.input(0).shape());
  const int64_t block = op.integer("blocksize");
  if (!may_regroup(dims, block) || dims[1] % (block * block) != 0)
    return wrong_input(
        op, 0, "be [N,C,H,W] with C a multiple of the square of 'blocksize' ({}), which must be in [1, 65536]", block);
  const int64_t depth = dims[1] / (block * block);
  const Ints result{dims[0], depth, dims[2] * block, dims[3] * block};
  if (op.find_text("mode").value_or("DCR") == "DCR") {
    return regroup(op, {dims[0], block, block, depth, dims[2], dims[3]}, {0, 3, 4, 1, 5, 2}, result);
  }
  return regroup(op, {dims[0], depth, block, block, dims[2], dims[3]}, {0, 1, 4, 2, 5, 3}, result);
}

template <class Device>
Status space_to_depth(OpContext<Device>& op) {
  const Ints dims(op.input(0).shape());
  const int64_t block = op.integer("blocksize");
  if (!may_regroup(dims, block) || dims[2] % block != 0 || dims[3] % block != 0)
    return wrong_input(op, 0, "be [N,C,H,W] with H and W multiples of 'blocksize' ({}), which must be in [1, 65536]",
                       block);
  const std::string mode = op.find_text("mode").value_or("DCR");
  if (mode != "DCR" && mode != "CRD") return wrong_attribute("mode", mode, "be DCR or CRD");
  const Ints split{dims[0], dims[1], dims[2] / block, block, dims[3] / block, block};
  const Ints perm = mode == "DCR" ? Ints{0, 3, 5, 1, 2, 4} : Ints{0, 1, 3, 5, 2, 4};
  return regroup(op, split, perm, {dims[0], dims[1] * block * block, dims[2] / block, dims[3] / block});
}

template <class Device>
constexpr KernelRow<Device> takes_all_channels_last(KernelRow<Device> row) {
  row.order.channels_last_inputs = ~uint32_t{0};
  return row;
}

template <class Device>
constexpr KernelRow<Device> kMovementRows[] = {
    takes_all_channels_last<Device>({"Concat", kMovable, concat<Device>}),
    {"DepthToSpace", kMovable, depth_to_space<Device>},
    reads_on_host<Device>({1}, {"Expand", kMovable, expand<Device>}),
    reads_on_host<Device>({1, 2, 3, 4}, {"Slice", kMovable, slice<Device>}),
    {"SpaceToDepth", kMovable, space_to_depth<Device>},
    takes_channels_last<Device>({0}, reads_on_host<Device>({1}, {"Split", kMovable, split<Device>})),
    reads_on_host<Device>({1, 2}, {"Tile", kMovable, tile<Device>}),
    {"Transpose", kMovable, transpose<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> movement_rows() {
  return kMovementRows<CompiledDevice>;
}

}  // namespace parallax::runtime
