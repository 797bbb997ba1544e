// Pooling: a fold over each window. MaxPool, AveragePool, LpPool, their global forms, MaxUnpool.
#include <cmath>

#include <fmt/format.h>

#include "runtime/device/copy.h"
#include "runtime/device/gemm.h"
#include "runtime/device/map.h"
#include "runtime/device/window.h"
#include "runtime/ops/families.h"
#include "runtime/ops/spatial.h"

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
  if (x.rank() < 3) return execution_error("the input must have rank 3 or more, it is " + x.to_string());
  Pooling pooling;
  for (int64_t axis = 2; axis < rank_of(x); ++axis) pooling.in_spatial.push_back(dim_of(x, axis));
  const auto kernel = op.find_integers("kernel_shape");
  if (!kernel.has_value()) return execution_error("'kernel_shape' is missing");
  const bool ceil_mode = op.find_integer("ceil_mode").value_or(0) != 0;
  pooling.window = PX_TRY(window_attributes(op, pooling.in_spatial, *kernel, ceil_mode));
  pooling.planes = x[0] * x[1];
  pooling.out_dims = Ints{x[0], x[1]};
  for (int64_t dim : pooling.window.out_spatial) pooling.out_dims.push_back(dim);
  return pooling;
}

// Calls f(plane's first element, output element, position of the window) for every window.
template <class F>
void for_each_window(const Pooling& pooling, const F& f) {
  const int64_t in_plane = product(pooling.in_spatial);
  const int64_t out_plane = product(pooling.window.out_spatial);
  parallel_for(pooling.planes, out_plane * product(pooling.window.kernel) * 4, [&](int64_t begin, int64_t end) {
    for (int64_t plane = begin; plane < end; ++plane) {
      int64_t position[Shape::kMaxRank] = {};
      for (int64_t place = 0; place < out_plane; ++place, advance(position, pooling.window.out_spatial)) {
        f(plane * in_plane, plane * out_plane + place, position);
      }
    }
  });
}

// Index of a place in its tensor as storage_order 1 counts it: the first spatial axis fastest.
int64_t column_major_index(const Pooling& pooling, int64_t plane_start, int64_t offset) {
  int64_t index = 0;
  int64_t rest = offset;
  int64_t position[Shape::kMaxRank] = {};
  for (int64_t axis = pooling.in_spatial.size() - 1; axis >= 0; --axis) {
    position[axis] = rest % pooling.in_spatial[axis];
    rest /= pooling.in_spatial[axis];
  }
  for (int64_t axis = pooling.in_spatial.size() - 1; axis >= 0; --axis)
    index = index * pooling.in_spatial[axis] + position[axis];
  return plane_start + index;
}

template <class Device>
Status max_pool(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Pooling pooling = PX_TRY(pooling_of(op, x.shape()));
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(pooling.out_dims)));
  MutableView indices;
  if (op.wants_output(1)) indices = PX_TRY(op.make_output(1, DType::int64, shape_of(pooling.out_dims)));
  const bool column_major = op.find_integer("storage_order").value_or(0) != 0;
  const WindowGeometry geometry = pooling.geometry();
  return visit_arithmetic<Numbers>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    const auto owner = PX_TRY(converted<C>(op.queue(), x.view(), false));
    const C* values = owner.get();
    for_each_window(pooling, [&](int64_t plane, int64_t out, const int64_t* position) {
      C best{};
      int64_t where = -1;
      for_each_tap(geometry, position, [&](int64_t offset, int64_t) {
        const C value = values[plane + offset];
        if (where < 0 || value > best || (value != value && best == best)) {
          best = value;
          where = offset;
        }
      });
      if (where < 0) best = std::numeric_limits<C>::lowest();
      store_block<C>(y.dtype, y.data, out, 1, &best);
      if (indices.data != nullptr) {
        indices.as<int64_t>()[out] = column_major ? column_major_index(pooling, plane, where) : plane + where;
      }
    });
    return {};
  });
}

template <class Device>
Status average_pool(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Pooling pooling = PX_TRY(pooling_of(op, x.shape()));
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(pooling.out_dims)));
  const bool include_pads = op.find_integer("count_include_pad").value_or(0) != 0;
  const WindowGeometry geometry = pooling.geometry();
  // With padding counted, places behind the declared padding (ceil_mode's overhang) still do not count.
  WindowGeometry padded = geometry;
  for (int64_t axis = 0; axis < padded.in_spatial.size(); ++axis) {
    padded.in_spatial[axis] += pooling.window.pads_begin[axis] + pooling.window.pads_end[axis];
    padded.pads_begin[axis] = 0;
  }
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    const auto owner = PX_TRY(converted<C>(op.queue(), x.view(), false));
    const C* values = owner.get();
    for_each_window(pooling, [&](int64_t plane, int64_t out, const int64_t* position) {
      C sum = 0;
      int64_t count = 0;
      for_each_tap(geometry, position, [&](int64_t offset, int64_t) {
        sum += values[plane + offset];
        ++count;
      });
      if (include_pads) {
        count = 0;
        for_each_tap(padded, position, [&](int64_t, int64_t) { ++count; });
      }
      const C mean = sum / static_cast<C>(std::max<int64_t>(1, count));
      store_block<C>(y.dtype, y.data, out, 1, &mean);
    });
    return {};
  });
}

template <class Device>
Status lp_pool(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Pooling pooling = PX_TRY(pooling_of(op, x.shape()));
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(pooling.out_dims)));
  const int64_t p = op.find_integer("p").value_or(2);
  const WindowGeometry geometry = pooling.geometry();
  return visit_arithmetic<Floats>(x.dtype(), [&](auto zero) -> Status {
    using C = decltype(zero);
    const auto owner = PX_TRY(converted<C>(op.queue(), x.view(), false));
    const C* values = owner.get();
    for_each_window(pooling, [&](int64_t plane, int64_t out, const int64_t* position) {
      C sum = 0;
      for_each_tap(geometry, position, [&](int64_t offset, int64_t) {
        sum += std::pow(std::fabs(values[plane + offset]), static_cast<C>(p));
      });
      const C norm = std::pow(sum, C(1) / static_cast<C>(p));
      store_block<C>(y.dtype, y.data, out, 1, &norm);
    });
    return {};
  });
}

// Puts each value at the place its index names; an `output_shape` input only makes the output larger.
template <class Device>
Status max_unpool(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Tensor& indices = op.input(1);
  if (!(x.shape() == indices.shape()) || x.shape().rank() < 3) return execution_error("X and I must have one shape");
  const Ints kernel = op.find_integers("kernel_shape").value_or(Ints{});
  const int64_t rank = rank_of(x.shape()) - 2;
  const Ints strides = op.find_integers("strides").value_or(Ints(rank, 1));
  const Ints pads = op.find_integers("pads").value_or(Ints(2 * rank));
  if (kernel.size() != rank || strides.size() != rank || pads.size() != 2 * rank) {
    return execution_error("kernel_shape, strides or pads have the wrong length");
  }
  Ints dims{x.shape()[0], x.shape()[1]};
  for (int64_t axis = 0; axis < rank; ++axis) {
    dims.push_back((dim_of(x.shape(), axis + 2) - 1) * strides[axis] - pads[axis] - pads[axis + rank] + kernel[axis]);
  }
  const Shape natural = PX_TRY(shape_of(dims));
  Shape shape = natural;
  if (op.has_input(2)) {
    const Ints wanted = PX_TRY(op.integers_of_input(2));
    shape = PX_TRY(shape_of(wanted));
    if (shape.rank() != x.shape().rank()) return execution_error("output_shape has the wrong rank");
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape));
  fill(op.queue(), y, nullptr);
  const auto bytes = static_cast<size_t>(element_bytes(x.dtype()));
  const Ints from_dims(natural);
  const Ints to_strides = row_major_strides(shape);
  for (int64_t i = 0; i < x.element_count(); ++i) {
    int64_t index = load_element<int64_t>(indices.dtype(), indices.view().data, i);
    if (index < 0 || index >= natural.element_count())
      return execution_error(fmt::format("index {} is out of range", index));
    int64_t place = 0;
    for (int64_t axis = from_dims.size() - 1; axis >= 0; --axis) {
      if (index % from_dims[axis] >= dim_of(shape, axis)) return execution_error("an index lies outside output_shape");
      place += index % from_dims[axis] * to_strides[axis];
      index /= from_dims[axis];
    }
    std::memcpy(y.data + static_cast<size_t>(place) * bytes, x.view().data + static_cast<size_t>(i) * bytes, bytes);
  }
  return {};
}

template <class Device>
constexpr KernelRow<Device> kRows[] = {
    {"AveragePool", kFloats, average_pool<Device>},
    {"LpPool", kFloats, lp_pool<Device>, 2},
    {"MaxPool", kReals, max_pool<Device>},
    {"MaxUnpool", kFloats, max_unpool<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> pooling_rows() {
  return kRows<CompiledDevice>;
}

}  // namespace parallax::runtime
