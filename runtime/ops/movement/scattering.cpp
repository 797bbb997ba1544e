// SPDX-License-Identifier: Apache-2.0
// ScatterElements (and Scatter, its old name), ScatterND, OneHot, Compress, NonZero: operators that write to computed
// indices.
#include <cstring>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/scatter.h"
#include "runtime/device/cpu/select.h"
#include "runtime/device/gpu/element_of.h"
#include "runtime/ops/families.h"
#include "runtime/ops/indices.h"

namespace parallax::runtime {
namespace {

Result<Combine> combine_of(const OpCall& op) {
  const std::string reduction = op.find_text("reduction").value_or("none");
  if (reduction == "none") return Combine::replace;
  if (reduction == "add") return Combine::add;
  if (reduction == "mul") return Combine::multiply;
  if (reduction == "max") return Combine::maximum;
  if (reduction == "min") return Combine::minimum;
  return wrong_attribute("reduction", reduction, "be none, add, mul, max or min");
}

// The output begins as a copy of data.
template <class Device, class F>
Status scatter_into_copy(OpContext<Device>& op, const F& f, int64_t block_elements) {
  const Tensor& data = op.input(0);
  const Tensor& updates = op.input(2);
  if (updates.dtype() != data.dtype())
    return wrong_input(op, 2, "have the element type of data, {}", name_of(data.dtype()));
  const Combine combine = PX_TRY(combine_of(op));
  const MutableView y = PX_TRY(op.make_output_over(0, data.dtype(), data.shape(), {0}));
  if (y.data != data.view().data) copy_bytes(op.queue(), y.data, data.view().data, data.size_bytes());
  if (combine == Combine::replace || data.dtype() == DType::bool_) {
    if (combine != Combine::replace) return unsupported_dtype(data.dtype());
    return scatter<float>(op.queue(), f, combine, y, updates.view(), block_elements), Status{};
  }
  return visit_arithmetic<Numbers>(data.dtype(), [&](auto zero) -> Status {
    return scatter<decltype(zero)>(op.queue(), f, combine, y, updates.view(), block_elements), Status{};
  });
}

template <class Device>
Status scatter_elements(OpContext<Device>& op) {
  const Shape& data = op.input(0).shape();
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("axis"), rank_of(data)));
  PX_TRY(check_axis_indices(data, op.input(1).shape(), axis));
  if (!(op.input(1).shape() == op.input(2).shape()))
    return wrong_input(op, 2, "have the shape of indices, {}", op.input(1).shape().to_string());
  const auto indices = PX_TRY(index_table(op, 1, dim_of(data, axis)));
  const AxisIndex<Device> index{indices, Axes(Ints(op.input(1).shape())), Axes(row_major_strides(data)), axis};
  return scatter_into_copy(op, index, 1);
}

template <class Device>
Status scatter_nd(OpContext<Device>& op) {
  const Ints data(op.input(0).shape());
  const Ints index_dims(op.input(1).shape());
  const auto offsets = PX_TRY(tuple_table(op, 1, op.input(0).shape(), 0));
  Ints expected;
  for (int64_t i = 0; i + 1 < index_dims.size(); ++i) expected.push_back(index_dims[i]);
  for (int64_t i = index_dims.back(); i < data.size(); ++i) expected.push_back(data[i]);
  if (!(Ints(op.input(2).shape()) == expected))
    return wrong_input(op, 2, "have shape {} for indices {}", dims_text(expected), op.input(1).shape().to_string());
  return scatter_into_copy(op, TableIndex<Device>{offsets}, product(data, index_dims.back(), data.size()));
}

// ---- TensorScatter: a cache updated from each sample's write index on, along an axis ----

// The destination of block number `block` of the update [batch, ..., length, ...] in the cache.
template <class Device>
struct CachePosition {
  Elements<Device, const int64_t> begins;  // of each sample
  int64_t length, cached, per_sample;      // along the axis; blocks before the axis of a sample
  PX_HD int64_t operator()(int64_t block) const {
    const int64_t lead = block / length;
    return lead * cached + (begins[lead / per_sample] % cached + block % length) % cached;
  }
};

template <class Device>
Status tensor_scatter(OpContext<Device>& op) {
  const Tensor& cache = op.input(0);
  const Tensor& update = op.input(1);
  const Ints dims(cache.shape()), given(update.shape());
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("axis"), dims.size()));
  const std::string mode = op.text("mode");
  if (axis == 0 || (mode != "linear" && mode != "circular"))
    return execution_error(fmt::format(
        "attribute 'axis' is {} and 'mode' is '{}'; they must be another axis than 0, and linear or circular", axis,
        mode));
  bool fits = given.size() == dims.size() && update.dtype() == cache.dtype();
  for (int64_t other = 0; fits && other < dims.size(); ++other)
    fits = other == axis ? given[other] <= dims[other] : given[other] == dims[other];
  if (!fits)
    return wrong_input(op, 1, "have the type and shape of past_cache, {}{}, and be no longer along axis {}",
                       name_of(cache.dtype()), cache.shape().to_string(), axis);
  Entries<Device> begins;
  if (op.has_input(2)) {
    if (op.input(2).element_count() != dims[0])
      return wrong_input(op, 2, "have {} elements, one for each batch entry", dims[0]);
    begins = PX_TRY(entries_within(op, 2, mode == "linear" ? dims[axis] - given[axis] : INT64_MAX));
    if (begins.wrong.has_value())
      return wrong_value("an entry of write_indices", *begins.wrong, "leave room for the update within [0, {})",
                         dims[axis]);
  } else {
    begins.elements = PX_TRY(op.table(Ints(dims[0])));
  }
  const MutableView y = PX_TRY(op.make_output_over(0, cache.dtype(), cache.shape(), {0}));
  if (y.data != cache.view().data) copy_bytes(op.queue(), y.data, cache.view().data, cache.size_bytes());
  if (update.element_count() == 0) return {};
  const CachePosition<Device> location{begins.elements, given[axis], dims[axis], product(dims, 1, axis)};
  const int64_t inner = product(dims, axis + 1, dims.size());
  return scatter<float>(op.queue(), location, Combine::replace, y, update.view(), inner), Status{};
}

// Which of [off, on] an element is; rows whose index is outside are all off, as the specification has it.
template <class Device>
struct OneHotIndex {
  Source indices;
  int64_t depth, inner;
  PX_HD int64_t operator()(int64_t element) const {
    const int64_t at = element / inner % depth;
    const int64_t index = element_of<Device, int64_t>(indices, element / inner / depth * inner + element % inner);
    return (index < 0 ? index + depth : index) == at ? 1 : 0;
  }
};

// On the host all are off first.
template <class Device>
void mark_one_hot(const OneHotIndex<Device>& index, int64_t count, const std::byte* on, const MutableView& y) {
  const int64_t bytes = element_bytes(y.dtype);
  parallel_for(count, 4, [&](int64_t begin, int64_t end) {
    int64_t locations[kBlockElements];
    for (int64_t first = begin; first < end; first += kBlockElements) {
      const int64_t size = std::min(kBlockElements, end - first);
      load_block<int64_t>(index.indices.dtype, index.indices.data, first, 1, size, locations);
      for (int64_t i = 0; i < size; ++i) {
        const int64_t at = locations[i] < 0 ? locations[i] + index.depth : locations[i];
        if (at < 0 || at >= index.depth) continue;
        const int64_t outer = (first + i) / index.inner, within = (first + i) % index.inner;
        std::memcpy(y.data + ((outer * index.depth + at) * index.inner + within) * bytes, on,
                    static_cast<size_t>(bytes));
      }
    }
  });
}

template <class Device>
Status one_hot(OpContext<Device>& op) {
  const Tensor& indices = op.input(0);
  const Tensor& values = op.input(2);
  const double given_depth = PX_TRY(op.real_of_input(1));
  if (values.element_count() != 2) return wrong_input(op, 2, "be [off,on]");
  if (!(given_depth >= 0 && given_depth < 1e15))
    return wrong_value("input 'depth'", given_depth, "be 0 or more and below 1e15");
  const auto depth = static_cast<int64_t>(given_depth);
  const int64_t rank = rank_of(indices.shape());
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("axis"), rank + 1));
  Ints dims(indices.shape());
  const int64_t inner = product(dims, axis, rank);
  dims.insert(axis, depth);
  const MutableView y = PX_TRY(op.make_output(0, values.dtype(), shape_of(dims)));
  const OneHotIndex<Device> index{source_of(indices.view()), depth, inner};
  if constexpr (std::is_same_v<Device, Cpu>) {
    const std::byte* const off_and_on = values.view().data;
    fill(op.queue(), y, off_and_on);
    mark_one_hot(index, indices.element_count(), off_and_on + element_bytes(y.dtype), y);
  } else {
    index_map(op.queue(), index, y, values.view().data, 1);
  }
  return {};
}

template <class Device>
struct CompressIndex {
  Elements<Device, const int64_t> kept;
  int64_t count, length;
  PX_HD int64_t operator()(int64_t block) const { return block / count * length + kept[block % count]; }
};

template <class Device>
Status compress(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Tensor& condition = op.input(1);
  Ints dims(x.shape());
  int64_t axis = 0;
  if (const auto given = op.find_integer("axis")) {
    axis = PX_TRY(OpCall::resolve_axis(*given, dims.size()));
  } else {
    dims = Ints{x.element_count()};
  }
  const int64_t length = dims[axis];
  const int64_t inner = product(dims, axis + 1, dims.size());
  TensorView considered = condition.view();
  considered.shape = Shape{std::min(condition.element_count(), length)};
  const Selection<Device> kept = PX_TRY(select<uint8_t>(op.queue(), considered));
  dims[axis] = kept.count;
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(dims)));
  const CompressIndex<Device> index{kept.locations, kept.count, length};
  if (kept.count > 0) index_map(op.queue(), index, y, x.view().data, inner);
  return {};
}

template <class Device>
struct Coordinate {
  Elements<Device, const int64_t> locations;
  int64_t count;
  Axes dims, strides;
  PX_HD int64_t operator()(int64_t element) const {
    const int64_t axis = element / count;
    return locations[element % count] / strides[axis] % dims[axis];
  }
};

template <class Device>
Result<Selection<Device>> indices_of_non_zero(Queue<Device>& queue, const TensorView& x) {
  if (is_floating(x.dtype)) return select<double>(queue, x);
  return select<int64_t>(queue, x);
}

// On the host, positions being in order, those along the last axis share the divisions. y is [axes, count].
template <class Device>
void write_coordinates(const Selection<Device>& found, const Ints& dims, int64_t* y) {
  const int64_t last = dims.size() - 1, count = found.count;
  parallel_for(count, 2 * dims.size(), [&](int64_t begin, int64_t end) {
    Ints at(last);  // of the line that `location` is in
    int64_t line_begin = 0, line_end = 0;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t location = found.locations[i];
      if (location >= line_end) {
        int64_t rest = location / dims[last];
        line_begin = rest * dims[last];
        line_end = line_begin + dims[last];
        for (int64_t axis = last - 1; axis >= 0; --axis) {
          at[axis] = rest % dims[axis];
          rest /= dims[axis];
        }
      }
      for (int64_t axis = 0; axis < last; ++axis) y[axis * count + i] = at[axis];
      y[last * count + i] = location - line_begin;
    }
  });
}

template <class Device>
Status non_zero(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Selection<Device> found = PX_TRY(indices_of_non_zero(op.queue(), x.view()));
  const Ints dims(x.shape());
  const MutableView y = PX_TRY(op.make_output(0, DType::int64, Shape{dims.size(), found.count}));
  if (y.element_count() == 0) return {};
  if constexpr (!GpuDevice<Device>) {
    write_coordinates(found, dims, reinterpret_cast<int64_t*>(y.data));
    return {};
  }
  tabulate<int64_t>(op.queue(),
                    Coordinate<Device>{found.locations, found.count, Axes(dims), Axes(row_major_strides(dims))}, y);
  return {};
}

template <class Device>
constexpr KernelRow<Device> kScatteringRows[] = {
    {"Compress", kMovable, compress<Device>},
    {"NonZero", kReals | kBool, non_zero<Device>},
    reads_on_host<Device>({1}, {"OneHot", kMovable, one_hot<Device>, 1, INT64_MAX, 2}),
    {"Scatter", kMovable, scatter_elements<Device>},
    {"ScatterElements", kMovable, scatter_elements<Device>},
    {"ScatterND", kMovable, scatter_nd<Device>},
    {"TensorScatter", kMovable, tensor_scatter<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> scattering_rows() {
  return kScatteringRows<CompiledDevice>;
}

}  // namespace parallax::runtime
