// SPDX-License-Identifier: Apache-2.0
// Col2Im, CenterCropPad and DeformConv: feature maps assembled from blocks, cut around their center, or read at
// positions moved by given offsets before they are convolved.
#include <cmath>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/ops/families.h"
#include "runtime/ops/indices.h"
#include "runtime/ops/pointwise/binary_functors.h"
#include "runtime/ops/spatial/spatial.h"

namespace parallax::runtime {
namespace {

// Windows over the spatial axes of a plane, by value.
struct BlockWindow {
  Axes image_shape, blocks, kernel, strides, dilations, pads;
  int64_t plane = 1, locations = 1, taps = 1;
};

BlockWindow block_window(const WindowAttributes& window, const Ints& in_spatial) {
  return {Axes(in_spatial),     Axes(window.out_spatial),    Axes(window.kernel),
          Axes(window.strides), Axes(window.dilations),      Axes(window.pads_begin),
          product(in_spatial),  product(window.out_spatial), product(window.kernel)};
}

// ---- Col2Im: the sum over one element of all blocks that cover it ----

template <class Device, class C>
struct CoveringSum {
  static constexpr int64_t kWork = 50;
  BlockWindow window;
  Elements<Device, const C> columns;  // [planes, taps, positions]

  PX_HD C operator()(int64_t element) const {
    const int64_t first = element / window.plane * window.taps;
    C sum = 0;
    for (int64_t tap = 0; tap < window.taps; ++tap) {
      const int64_t location = block_with(element % window.plane, tap);
      if (location >= 0) sum += columns[(first + tap) * window.locations + location];
    }
    return sum;
  }

 private:
  // The block whose tap number `tap` is on a position of the feature map; -1 where there is none.
  PX_HD int64_t block_with(int64_t at, int64_t tap) const {
    int64_t block = 0, scale = 1;
    for (int axis = window.image_shape.count - 1; axis >= 0; --axis) {
      const int64_t shifted =
          at % window.image_shape[axis] + window.pads[axis] - tap % window.kernel[axis] * window.dilations[axis];
      if (shifted < 0 || shifted % window.strides[axis] != 0) return -1;
      if (shifted / window.strides[axis] >= window.blocks[axis]) return -1;
      block += shifted / window.strides[axis] * scale;
      scale *= window.blocks[axis];
      at /= window.image_shape[axis];
      tap /= window.kernel[axis];
    }
    return block;
  }
};

template <class Device>
Status col2im(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Ints image_shape = PX_TRY(op.integers_of_input(1));
  const Ints block = PX_TRY(op.integers_of_input(2));
  const int64_t taps = PX_TRY(shape_of(block)).element_count();
  if (x.shape().rank() != 3 || image_shape.empty() || image_shape.size() != block.size() || taps < 1 ||
      x.shape()[1] % taps != 0)
    return wrong_input(op, 0,
                       "be [N,channels * {},blocks], {} being the elements of a block; its shapes have {} and {} axes",
                       taps, taps, image_shape.size(), block.size());
  Ints dims{x.shape()[0], x.shape()[1] / taps};
  for (int64_t dim : image_shape) dims.push_back(dim);
  const Shape shape = PX_TRY(shape_of(dims));
  const WindowAttributes window = PX_TRY(window_attributes(op, image_shape, block));
  if (product(window.out_spatial) != x.shape()[2])
    return wrong_input(op, 0, "have a last axis of {}, the number of blocks of the output",
                       product(window.out_spatial));
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape));
  return visit_arithmetic<Numbers>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    const MutableView columns = PX_TRY(op.scratch(storage_of<C>(), x.shape()));
    map_as<C, C>(op.queue(), Same{}, columns, std::array<TensorView, 1>{x.view()});
    const CoveringSum<Device, C> sum{block_window(window, image_shape), {reinterpret_cast<const C*>(columns.data)}};
    tabulate<C>(op.queue(), sum, y);
    return {};
  });
}

// ---- CenterCropPad: a cut begins at half the excess, rounded down; padding is zeros, the odd one after ----

template <class Device>
Status center_crop_pad(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const int64_t rank = rank_of(x.shape());
  const Ints sizes = PX_TRY(op.integers_of_input(1));
  Ints axes = op.find_integers("axes").value_or(Ints{});
  if (!op.has_attribute("axes")) {
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  PX_TRY(OpCall::resolve_axes(axes, rank));
  if (sizes.size() != axes.size())
    return wrong_length("input 'shape'", sizes.size(), "have {}, one for each axis", axes.size());
  Ints dims(x.shape()), region(x.shape());
  const Ints from_strides = row_major_strides(dims);
  Ints from_begin(rank), to_begin(rank);
  for (int64_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    const int64_t dim = dims[axis];
    if (sizes[i] < 0) return wrong_value(fmt::format("the size asked for axis {}", axis), sizes[i], "be 0 or more");
    from_begin[axis] = dim > sizes[i] ? (dim - sizes[i]) / 2 : 0;
    to_begin[axis] = dim < sizes[i] ? (sizes[i] - dim) / 2 : 0;
    region[axis] = std::min(dim, sizes[i]);
    dims[axis] = sizes[i];
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(dims)));
  const Ints to_strides = row_major_strides(dims);
  int64_t from = 0, to = 0;
  for (int64_t axis = 0; axis < rank; ++axis) {
    from += from_begin[axis] * from_strides[axis];
    to += to_begin[axis] * to_strides[axis];
  }
  if (!(region == dims)) fill(op.queue(), y, nullptr);
  copy_strided(op.queue(), element_bytes(x.dtype()), region, {y.data, to_strides, to},
               {x.view().data, from_strides, from});
  return {};
}

// ---- DeformConv: the values under each window, moved, as columns of a matrix; then a product ----

// Column element (sample, channel, tap, position): the input between its elements, at the position moved by the offset.
template <class Device, class C>
struct MovedTap {
  static constexpr int64_t kWork = 60;
  BlockWindow window;
  int64_t channels, offset_groups;
  Elements<Device, const C> x, offsets, mask;

  PX_HD C operator()(int64_t element) const {
    const int64_t location = element % window.locations;
    const int64_t tap = element / window.locations % window.taps;
    const int64_t plane = element / window.locations / window.taps;
    const int64_t group = plane % channels / (channels / offset_groups);
    const int64_t row = (plane / channels * offset_groups + group) * window.taps + tap;
    const int axes = window.image_shape.count;
    int64_t corners[Shape::kMaxRank];
    C rest[Shape::kMaxRank];
    int64_t position = location, within = tap;
    for (int axis = axes - 1; axis >= 0; --axis) {
      const int64_t regular = position % window.blocks[axis] * window.strides[axis] - window.pads[axis] +
                              within % window.kernel[axis] * window.dilations[axis];
      const C moved = static_cast<C>(regular) + offsets[(row * axes + axis) * window.locations + location];
      if (!(moved > C(-1) && moved < static_cast<C>(window.image_shape[axis]))) return C(0);
      corners[axis] = static_cast<int64_t>(std::floor(moved));
      rest[axis] = moved - std::floor(moved);
      position /= window.blocks[axis];
      within /= window.kernel[axis];
    }
    const C sampled = interpolated(plane * window.plane, corners, rest);
    return mask ? mask[row * window.locations + location] * sampled : sampled;
  }

 private:
  // The weighted sum over the corners of the cell; corners outside count as zero.
  PX_HD C interpolated(int64_t start, const int64_t* corners, const C* rest) const {
    C sum = 0;
    for (int64_t corner = 0; corner < int64_t{1} << window.image_shape.count; ++corner) {
      int64_t offset = 0;
      C weight = 1;
      for (int axis = 0; axis < window.image_shape.count && offset >= 0; ++axis) {
        const int64_t step = corner >> axis & 1;
        const int64_t at = corners[axis] + step;
        offset = at < 0 || at >= window.image_shape[axis] ? -1 : offset * window.image_shape[axis] + at;
        weight *= step == 0 ? 1 - rest[axis] : rest[axis];
      }
      if (offset >= 0 && weight != C(0)) sum += weight * x[start + offset];
    }
    return sum;
  }
};

struct DeformShape {
  WindowAttributes window;
  Ints in_spatial;
  int64_t batch = 0, channels = 0, filters = 0, groups = 1, offset_groups = 1;
};

Status expect_dims(const OpCall& op, int64_t input, const DeformShape& shape, int64_t channels) {
  Ints wanted{shape.batch, channels};
  for (int64_t dim : shape.window.out_spatial) wanted.push_back(dim);
  if (Ints(op.input(input).shape()) == wanted) return {};
  return wrong_input(op, input, "have shape {}, to fit the windows", dims_text(wanted));
}

// The mask has one number for each tap and position, as the 2-D form of the specification says.
Result<DeformShape> deform_shape(const OpCall& op) {
  const Ints x(op.input(0).shape()), w(op.input(1).shape());
  DeformShape shape;
  shape.groups = op.integer("group");
  shape.offset_groups = op.integer("offset_group");
  if (x.size() < 3 || w.size() != x.size() || shape.groups < 1 || shape.offset_groups < 1 || x[1] % shape.groups != 0 ||
      w[1] != x[1] / shape.groups || w[0] % shape.groups != 0 || x[1] % shape.offset_groups != 0)
    return wrong_input(op, 0, "fit W {} in {} groups and {} offset groups", op.input(1).shape().to_string(),
                       shape.groups, shape.offset_groups);
  shape.batch = x[0];
  shape.channels = x[1];
  shape.filters = w[0];
  Ints kernel;
  for (int64_t axis = 2; axis < x.size(); ++axis) {
    shape.in_spatial.push_back(x[axis]);
    kernel.push_back(w[axis]);
  }
  const Ints given = op.find_integers("kernel_shape").value_or(Ints{});
  if (!given.empty() && !(given == kernel))
    return wrong_attribute("kernel_shape", given, "be the spatial shape of W, {}", dims_text(kernel));
  shape.window = PX_TRY(window_attributes(op, shape.in_spatial, kernel));
  const int64_t rows = shape.offset_groups * product(kernel);
  PX_TRY(expect_dims(op, 2, shape, rows * kernel.size()));
  if (op.has_input(4)) PX_TRY(expect_dims(op, 4, shape, rows));
  if (op.has_input(3) && op.input(3).element_count() != shape.filters)
    return wrong_input(op, 3, "have {} elements, one for each output channel", shape.filters);
  return shape;
}

template <class C, class Device>
Status deform_conv_as(OpContext<Device>& op, const DeformShape& shape, const MutableView& y) {
  const BlockWindow window = block_window(shape.window, shape.in_spatial);
  const auto x = PX_TRY(converted<C>(op.queue(), op.input(0).view(), op.is_constant(0)));
  const auto w = PX_TRY(converted<C>(op.queue(), op.input(1).view(), op.is_constant(1)));
  const auto offsets = PX_TRY(converted<C>(op.queue(), op.input(2).view(), op.is_constant(2)));
  std::shared_ptr<const C> mask;
  if (op.has_input(4)) mask = PX_TRY(converted<C>(op.queue(), op.input(4).view(), op.is_constant(4)));
  const Ints column_dims{shape.batch, shape.channels, window.taps, window.locations};
  const MutableView columns = PX_TRY(op.scratch(storage_of<C>(), shape_of(column_dims)));
  const MovedTap<Device, C> tap{window, shape.channels, shape.offset_groups, {x.get()}, {offsets.get()}, {mask.get()}};
  tabulate<C>(op.queue(), tap, columns);
  GemmProblem problem;
  problem.m = shape.filters / shape.groups;
  problem.n = window.locations;
  problem.k = shape.channels / shape.groups * window.taps;
  problem.a_offsets = problem.b_offsets = Ints(shape.batch * shape.groups);
  for (int64_t i = 0; i < problem.batch(); ++i) {
    problem.a_offsets[i] = i % shape.groups * problem.m * problem.k;
    problem.b_offsets[i] = i * problem.k * problem.n;
  }
  const MutableView sums = PX_TRY(op.scratch(storage_of<C>(), y.shape));
  PX_TRY(gemm(op.queue(), problem, w.get(), reinterpret_cast<const C*>(columns.data), reinterpret_cast<C*>(sums.data)));
  if (!op.has_input(3)) {
    map_as<C, C>(op.queue(), Same{}, y, std::array<TensorView, 1>{TensorView(sums)});
    return {};
  }
  TensorView bias = op.input(3).view();
  Ints bias_dims(rank_of(y.shape), 1);
  bias_dims[1] = shape.filters;
  bias.shape = PX_TRY(shape_of(bias_dims));
  map_as<C, C>(op.queue(), Add{}, y, std::array<TensorView, 2>{TensorView(sums), bias});
  return {};
}

template <class Device>
Status deform_conv(OpContext<Device>& op) {
  const DeformShape shape = PX_TRY(deform_shape(op));
  Ints dims{shape.batch, shape.filters};
  for (int64_t dim : shape.window.out_spatial) dims.push_back(dim);
  const DType dtype = op.input(0).dtype();
  const MutableView y = PX_TRY(op.make_output(0, dtype, shape_of(dims)));
  if (y.element_count() == 0) return {};
  return dtype == DType::float64 ? deform_conv_as<double>(op, shape, y) : deform_conv_as<float>(op, shape, y);
}

template <class Device>
constexpr KernelRow<Device> kIm2colBlockRows[] = {
    reads_on_host<Device>({1}, {"CenterCropPad", kMovable, center_crop_pad<Device>}),
    reads_on_host<Device>({1, 2}, {"Col2Im", kReals, col2im<Device>}),
    {"DeformConv", kFloats, deform_conv<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> im2col_block_rows() {
  return kIm2colBlockRows<CompiledDevice>;
}

}  // namespace parallax::runtime
