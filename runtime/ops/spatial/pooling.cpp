// SPDX-License-Identifier: Apache-2.0
// Pooling: a fold over each window. MaxPool, AveragePool, LpPool, their global forms, MaxUnpool.
#include <cmath>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/channels_last.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/find.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/math.h"
#include "runtime/device/cpu/products/gemm.h"
#include "runtime/device/cpu/scatter.h"
#include "runtime/device/cpu/window.h"
#include "runtime/device/cpu/window_channels_last.h"
#include "runtime/device/cpu/window_planes.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/ops/families.h"
#include "runtime/ops/indices.h"
#include "runtime/ops/orders.h"
#include "runtime/ops/spatial/spatial.h"

namespace parallax::runtime {
namespace {

struct Pooling {
  WindowAttributes window;
  Ints in_spatial;
  int64_t planes = 0;
  Ints out_dims;
  WindowGeometry geometry() const {
    return {in_spatial, window.out_spatial, window.kernel, window.strides, window.dilations, window.pads_begin};
  }
};

Result<Pooling> pooling_of(const OpCall& op, const Shape& x) {
  if (x.rank() < 3) return wrong_input(op, 0, "have rank 3 or more");
  Pooling pooling;
  for (int64_t axis = 2; axis < rank_of(x); ++axis) pooling.in_spatial.push_back(dim_of(x, axis));
  const auto kernel = op.find_integers("kernel_shape");
  if (!kernel.has_value()) return broken_rule("attribute 'kernel_shape' is missing", "be given");
  const bool ceil_mode = op.find_integer("ceil_mode").value_or(0) != 0;
  pooling.window = PX_TRY(window_attributes(op, pooling.in_spatial, *kernel, ceil_mode));
  pooling.planes = x[0] * x[1];
  pooling.out_dims = Ints{x[0], x[1]};
  for (int64_t dim : pooling.window.out_spatial) pooling.out_dims.push_back(dim);
  return pooling;
}

// True where the pool is of channels-last values on the host, for which there are folds over all channels at once.
template <class Device>
bool pools_channels_last(const OpContext<Device>& op) {
  return std::is_same_v<Device, Cpu> && is_channels_last(op.input(0)) && op.input(0).dtype() == DType::float32;
}

template <class Fold>
Status pool_channels_last(OpContext<Cpu>& op, const Pooling& pooling, const Fold& fold) {
  const Shape shape = PX_TRY(shape_of(pooling.out_dims));
  const bool is_free = is_order_free(pooling.out_dims);
  const MutableView y =
      PX_TRY(is_free ? op.make_output(0, DType::float32, shape) : make_channels_last_output(op, 0, shape));
  window_fold_channels_last(op.queue(), fold, pooling.geometry(), pooling.out_dims[0], pooling.out_dims[1],
                            reinterpret_cast<float*>(y.data), reinterpret_cast<const float*>(op.input(0).view().data));
  return {};
}

// Rows on the host of floats, or of numbers that are floats exactly: some rows are folded at a time.
template <class Device>
bool pools_rows(const Tensor& x, const Pooling& pooling) {
  constexpr uint32_t kExact = dtype_bits(
      {DType::float32, DType::float16, DType::bfloat16, DType::int8, DType::uint8, DType::int16, DType::uint16});
  return std::is_same_v<Device, Cpu> && (dtype_bit(x.dtype()) & kExact) != 0 && suits_planes(pooling.geometry());
}

template <class Fold>
Status pool_rows(OpContext<Cpu>& op, const Tensor& x, const Pooling& pooling, const Fold& fold) {
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(pooling.out_dims)));
  const auto x_floats = PX_TRY(converted<float>(op.queue(), x.view(), false));
  const bool is_direct = x.dtype() == DType::float32;
  const MutableView floats = is_direct ? y : PX_TRY(op.scratch(DType::float32, y.shape));
  window_fold_planes(op.queue(), fold, pooling.geometry(), pooling.planes, reinterpret_cast<float*>(floats.data),
                     x_floats.get());
  if (!is_direct) map_as<float, float>(op.queue(), Same{}, y, std::array<TensorView, 1>{TensorView(floats)});
  return {};
}

// The spatial sizes as storage_order 1 counts positions: the first axis fastest.
struct PlaneOrder {
  int64_t dims[Shape::kMaxRank] = {};
  int axes = 0;
  bool column_major = false;
  PX_HD int64_t operator()(int64_t offset) const {
    if (!column_major) return offset;
    int64_t position[Shape::kMaxRank] = {};
    for (int axis = axes - 1; axis >= 0; --axis) {
      position[axis] = offset % dims[axis];
      offset /= dims[axis];
    }
    int64_t index = 0;
    for (int axis = axes - 1; axis >= 0; --axis) index = index * dims[axis] + position[axis];
    return index;
  }
};

template <class C>
struct Found {
  C value;
  int64_t offset;  // -1: nothing so far
};
struct WindowMax {
  PlaneOrder order;
  template <class C>
  PX_HD Found<C> init() const {
    return {C(0), -1};
  }
  template <class C>
  PX_HD Found<C> step(Found<C> best, C value, int64_t offset) const {
    const bool better = best.offset < 0 || value > best.value || (value != value && best.value == best.value);
    return better ? Found<C>{value, offset} : best;
  }
  template <class C>
  PX_HD C finish(Found<C> best, const int64_t*) const {
    return best.offset < 0 ? std::numeric_limits<C>::lowest() : best.value;
  }
  template <class C>
  PX_HD int64_t location(Found<C> best, int64_t plane_start) const {
    return plane_start + (best.offset < 0 ? -1 : order(best.offset));
  }
};

struct LargestOfElements {
  float first() const { return -std::numeric_limits<float>::infinity(); }
  float step(float best, float value) const {  // NaN wins
    const float larger = value > best ? value : best;
    return value != value ? value : larger;
  }
  float empty() const { return std::numeric_limits<float>::lowest(); }
  float divisor(int64_t, const int64_t*) const { return 1.0F; }
};

template <class Device>
Status max_pool(OpContext<Device>& op) {
  const Pooling pooling = PX_TRY(pooling_of(op, op.input(0).shape()));
  Tensor x = op.input(0);
  if constexpr (std::is_same_v<Device, Cpu>) {
    if (pools_channels_last(op) && !op.wants_output(1)) return pool_channels_last(op, pooling, LargestOfElements{});
    x = PX_TRY(to_row_major(op.queue(), x));
    if (pools_rows<Device>(x, pooling) && !op.wants_output(1)) return pool_rows(op, x, pooling, LargestOfElements{});
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(pooling.out_dims)));
  MutableView indices;
  if (op.wants_output(1)) indices = PX_TRY(op.make_output(1, DType::int64, shape_of(pooling.out_dims)));
  WindowMax fold;
  fold.order.column_major = op.find_integer("storage_order").value_or(0) != 0;
  fold.order.axes = static_cast<int>(pooling.in_spatial.size());
  for (int axis = 0; axis < fold.order.axes; ++axis) fold.order.dims[axis] = pooling.in_spatial[axis];
  return visit_arithmetic<Numbers>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    return window_fold<C>(op.queue(), fold, pooling.geometry(), pooling.planes, y, indices, x.view()), Status{};
  });
}

// With padding counted, positions after the declared padding (ceil_mode's overhang) still do not count.
struct PaddedWindow {
  int axes = 0;
  int64_t size[Shape::kMaxRank] = {};  // of the padded plane
  int64_t kernel[Shape::kMaxRank] = {}, strides[Shape::kMaxRank] = {}, dilations[Shape::kMaxRank] = {};
  PX_HD int64_t taps(const int64_t* position) const {
    int64_t count = 1;
    for (int axis = 0; axis < axes; ++axis) {
      int64_t inside = 0;
      for (int64_t tap = 0; tap < kernel[axis]; ++tap) {
        inside += position[axis] * strides[axis] + tap * dilations[axis] < size[axis] ? 1 : 0;
      }
      count *= inside;
    }
    return count;
  }
};

template <class C>
struct Total {
  C sum;
  int64_t count;
};
struct WindowMean {
  bool include_pads;
  PaddedWindow padded;
  template <class C>
  PX_HD Total<C> init() const {
    return {C(0), 0};
  }
  template <class C>
  PX_HD Total<C> step(Total<C> total, C value, int64_t) const {
    return {total.sum + value, total.count + 1};
  }
  template <class C>
  PX_HD C finish(Total<C> total, const int64_t* position) const {
    const int64_t count = include_pads ? padded.taps(position) : total.count;
    return total.sum / static_cast<C>(count < 1 ? 1 : count);
  }
  template <class C>
  PX_HD int64_t location(Total<C>, int64_t) const {
    return 0;
  }
};

struct SumOfElements {
  const WindowMean& mean;
  float first() const { return 0.0F; }
  float step(float sum, float value) const { return sum + value; }
  float empty() const { return 0.0F; }
  float divisor(int64_t taps, const int64_t* position) const {
    const int64_t count = mean.include_pads ? mean.padded.taps(position) : taps;
    return static_cast<float>(count < 1 ? 1 : count);
  }
};

template <class Device>
Status average_pool(OpContext<Device>& op) {
  Tensor x = op.input(0);
  const Pooling pooling = PX_TRY(pooling_of(op, x.shape()));
  WindowMean fold{op.find_integer("count_include_pad").value_or(0) != 0, {}};
  const WindowAttributes& window = pooling.window;
  fold.padded.axes = static_cast<int>(pooling.in_spatial.size());
  for (int axis = 0; axis < fold.padded.axes; ++axis) {
    fold.padded.size[axis] = pooling.in_spatial[axis] + window.pads_begin[axis] + window.pads_end[axis];
    fold.padded.kernel[axis] = window.kernel[axis];
    fold.padded.strides[axis] = window.strides[axis];
    fold.padded.dilations[axis] = window.dilations[axis];
  }
  if constexpr (std::is_same_v<Device, Cpu>) {
    if (pools_channels_last(op)) return pool_channels_last(op, pooling, SumOfElements{fold});
    x = PX_TRY(to_row_major(op.queue(), x));
    if (pools_rows<Device>(x, pooling)) return pool_rows(op, x, pooling, SumOfElements{fold});
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(pooling.out_dims)));
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    return window_fold<C>(op.queue(), fold, pooling.geometry(), pooling.planes, y, {}, x.view()), Status{};
  });
}

struct WindowNorm {
  double p;
  template <class C>
  PX_HD C init() const {
    return C(0);
  }
  template <class C>
  PX_HD C step(C sum, C value, int64_t) const {
    return sum + std::pow(std::fabs(value), static_cast<C>(p));
  }
  template <class C>
  PX_HD C finish(C sum, const int64_t*) const {
    return std::pow(sum, C(1) / static_cast<C>(p));
  }
  template <class C>
  PX_HD int64_t location(C, int64_t) const {
    return 0;
  }
};

template <class Device>
Status lp_pool(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Pooling pooling = PX_TRY(pooling_of(op, x.shape()));
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(pooling.out_dims)));
  // Version 1 has a float for the power.
  const WindowNorm fold{op.since_version() < 2 ? op.real("p") : static_cast<double>(op.find_integer("p").value_or(2))};
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    return window_fold<C>(op.queue(), fold, pooling.geometry(), pooling.planes, y, {}, x.view()), Status{};
  });
}

// The destination of a value whose index names an element of the unpadded output. A given output shape only makes it
// larger.
template <class Device>
struct UnpooledIndex {
  Source indices;
  Axes natural, shape, strides;  // of the output without and with a given shape
  int64_t count;                 // elements of the former

  PX_HD bool is_outside(int64_t index) const {
    if (index < 0 || index >= count) return true;
    bool outside = false;
    for (int axis = natural.count - 1; axis >= 0; --axis) {
      outside = outside || index % natural[axis] >= shape[axis];
      index /= natural[axis];
    }
    return outside;
  }
  PX_HD int64_t operator()(int64_t element) const {
    int64_t index = element_of<Device, int64_t>(indices, element);
    int64_t location = 0;
    for (int axis = natural.count - 1; axis >= 0; --axis) {
      location += index % natural[axis] * strides[axis];
      index /= natural[axis];
    }
    return location;
  }
};
template <class Device>
struct OutsideUnpooled {
  UnpooledIndex<Device> location;
  PX_HD bool operator()(int64_t index, int64_t) const { return location.is_outside(index); }
};

template <class Device>
Status max_unpool(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Tensor& indices = op.input(1);
  if (!(x.shape() == indices.shape()) || x.shape().rank() < 3)
    return wrong_input(op, 1, "have the shape of X, {}, of rank 3 or more", x.shape().to_string());
  const int64_t rank = rank_of(x.shape()) - 2;
  const Ints kernel = PX_TRY(window_list(op, "kernel_shape", rank, 0, 1));
  const Ints strides = PX_TRY(window_list(op, "strides", rank, 1, 1));
  const Ints pads = PX_TRY(window_list(op, "pads", 2 * rank, 0, 0));
  Ints dims{x.shape()[0], x.shape()[1]};
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (dim_of(x.shape(), axis + 2) > kLargestOfWindow)
      return wrong_shape("X", x.shape(), "have dimensions of at most {}", kLargestOfWindow);
    dims.push_back((dim_of(x.shape(), axis + 2) - 1) * strides[axis] - pads[axis] - pads[axis + rank] + kernel[axis]);
  }
  const Shape natural = PX_TRY(shape_of(dims));
  Shape shape = natural;
  if (op.has_input(2)) {
    const Ints wanted = PX_TRY(op.integers_of_input(2));
    shape = PX_TRY(shape_of(wanted));
    if (shape.rank() != x.shape().rank())
      return wrong_input(op, 2, "have {} elements, the rank of X", x.shape().rank());
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape));
  fill(op.queue(), y, nullptr);
  const UnpooledIndex<Device> location{source_of(indices.view()), Axes(Ints(natural)), Axes(Ints(shape)),
                                       Axes(row_major_strides(shape)), natural.element_count()};
  const int64_t bad = PX_TRY(find_first<int64_t>(op.queue(), OutsideUnpooled<Device>{location}, indices.view()));
  if (bad >= 0)
    return wrong_entry(op, 1, bad, "be an index into the {} elements that were pooled, inside the output",
                       natural.element_count());
  return scatter<float>(op.queue(), location, Combine::replace, y, x.view(), 1), Status{};
}

template <class Device>
constexpr KernelRow<Device> kPoolingRows[] = {
    takes_channels_last<Device>({0}, {"AveragePool", kFloats, average_pool<Device>}),
    {"LpPool", kFloats, lp_pool<Device>},
    takes_channels_last<Device>({0}, {"MaxPool", kReals, max_pool<Device>}),
    reads_on_host<Device>({2}, {"MaxUnpool", kFloats, max_unpool<Device>}),
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> pooling_rows() {
  return kPoolingRows<CompiledDevice>;
}

}  // namespace parallax::runtime
