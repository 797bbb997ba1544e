// SPDX-License-Identifier: Apache-2.0
// Reading and checking of index tensors, shared by the gathers and the scatters. On the host they are read there; on a
// GPU they are checked and turned into offsets by kernels, and the host learns only whether all are right.
#pragma once

#include <optional>

#include <fmt/format.h>

#include "runtime/device/cpu/find.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/ops/op_context.h"

namespace parallax::runtime {

// Indices into a dimension of `dim`, counted from the front. Error: execution, naming the first one outside.
Result<Ints> checked_indices(const Tensor& indices, int64_t dim);

// True where these are int64 and all of them within [0, dim) as they stand.
bool are_ready_indices(const Tensor& indices, int64_t dim);

// The tuples of GatherND and ScatterND as block numbers of data. Errors: execution.
Result<Ints> nd_offsets(const Shape& data, const Tensor& indices, int64_t batch_dims);
// The part of it that looks at shapes alone.
Status check_nd_shapes(const Shape& data, const Shape& indices, int64_t batch_dims);

// Error: execution, unless the index tensor has data's rank and is no larger outside the axis.
Status check_axis_indices(const Shape& data, const Shape& indices, int64_t axis);

Error index_outside(int64_t index, int64_t dim);

// Dimensions, strides and the like by value: what index functors carry into kernels.
struct Axes {
  int64_t values[Shape::kMaxRank] = {};
  int count = 0;
  Axes() = default;
  explicit Axes(const Ints& from) : count(static_cast<int>(from.size())) {
    for (int64_t axis = 0; axis < from.size(); ++axis) values[axis] = from[axis];
  }
  PX_HD int64_t operator[](int64_t axis) const { return values[axis]; }
};

// GatherElements and ScatterElements: element i of the index tensor stands for element f(i) of data.
template <class Device>
struct AxisIndex {
  Elements<Device, const int64_t> indices;
  Axes dims;     // of the index tensor
  Axes strides;  // of data
  int64_t axis;

  struct Row {
    Elements<Device, const int64_t> indices;
    int64_t first, index_stride, base, step;
    PX_HD int64_t operator()(int64_t column) const {
      return base + indices[first + column] * index_stride + column * step;
    }
  };
  int64_t columns() const { return dims[dims.count - 1]; }
  PX_HD Row row(int64_t number) const {
    const int last = dims.count - 1;
    int64_t base = 0;
    int64_t rest = number;
    for (int i = last - 1; i >= 0; --i) {
      if (i != axis) base += rest % dims[i] * strides[i];
      rest /= dims[i];
    }
    return {indices, number * dims[last], strides[axis], base, axis == last ? 0 : strides[last]};
  }
  PX_HD int64_t operator()(int64_t element) const {
    const int64_t columns = dims[dims.count - 1];
    return row(element / columns)(element % columns);
  }
};

// A table for each axis of the output, one after the other, says where its positions come from; -1: nowhere.
template <class Device>
struct TablesIndex {
  Elements<Device, const int64_t> tables;
  Axes dims;     // of the output: the tables' lengths
  Axes strides;  // of what is read

  struct Row {
    Elements<Device, const int64_t> tables;
    int64_t first, stride, base;  // base -1: no element comes from anywhere
    PX_HD int64_t operator()(int64_t column) const {
      const int64_t location = tables[first + column];
      return base < 0 || location < 0 ? -1 : base + location * stride;
    }
  };
  int64_t columns() const { return dims[dims.count - 1]; }
  PX_HD Row row(int64_t number) const {
    const int last = dims.count - 1;
    int64_t table = 0;
    for (int axis = 0; axis < last; ++axis) table += dims[axis];
    Row row{tables, table, strides[last], 0};
    int64_t rest = number;
    for (int axis = last - 1; axis >= 0 && row.base >= 0; --axis) {
      table -= dims[axis];
      const int64_t location = tables[table + rest % dims[axis]];
      row.base = location < 0 ? -1 : row.base + location * strides[axis];
      rest /= dims[axis];
    }
    return row;
  }
};

// The index of an output of `dims` whose axes read along `strides`; a scalar is a row of one element.
template <class Device>
Result<TablesIndex<Device>> tables_index(OpContext<Device>& op, Ints tables, const Ints& dims, const Ints& strides) {
  if (dims.empty()) return tables_index(op, Ints{0}, Ints{1}, Ints{1});
  return TablesIndex<Device>{PX_TRY(op.table(std::move(tables))), Axes(dims), Axes(strides)};
}

template <class Device>
struct TableIndex {
  Elements<Device, const int64_t> offsets;
  PX_HD int64_t operator()(int64_t block) const { return offsets[block]; }
};

namespace indices_detail {

struct OutsideRange {
  int64_t most;
  PX_HD bool operator()(int64_t entry, int64_t) const { return entry < 0 || entry > most; }
};
struct Clamped {
  int64_t most;
  PX_HD int64_t operator()(int64_t entry) const { return entry < 0 ? 0 : entry > most ? most : entry; }
};
// Component i of a tuple indexes a dimension of dims[i]; a plain list of indices is tuples of one.
struct OutsideDims {
  Axes dims;
  PX_HD bool operator()(int64_t index, int64_t location) const {
    const int64_t dim = dims[location % dims.count];
    return index < -dim || index >= dim;
  }
};
// Inside the dimension in any case: a recorded run hears only afterwards that an index was outside. Dimension 0: the
// index as it is.
struct FromFront {
  int64_t dim;
  PX_HD int64_t operator()(int64_t index) const {
    if (dim == 0) return index;
    const int64_t from_front = index < 0 ? index + dim : index;
    return from_front < 0 ? 0 : from_front < dim ? from_front : dim - 1;
  }
};
template <class Device>
struct TupleOffset {
  Elements<Device, const int64_t> indices;
  Axes dims;
  int64_t per_batch;
  PX_HD int64_t operator()(int64_t tuple) const {
    int64_t offset = tuple / per_batch;
    for (int i = 0; i < dims.count; ++i)
      offset = offset * dims[i] + FromFront{dims[i]}(indices[tuple * dims.count + i]);
    return offset;
  }
};

// Error: execution, naming the first index outside. FromFront keeps the others inside of what has elements.
template <class Device>
Status check_on_device(OpContext<Device>& op, const Tensor& indices, const Axes& dims) {
  bool has_elements = true;
  for (int i = 0; i < dims.count; ++i) has_elements = has_elements && dims[i] > 0;
  const WhenFound when_found = has_elements ? WhenFound::is_harmless : WhenFound::harms;
  const int64_t bad = PX_TRY(find_first<int64_t>(op.queue(), OutsideDims{dims}, indices.view(), when_found));
  if (bad < 0) return {};
  const Tensor read = PX_TRY(op.queue().to_host(indices));
  return index_outside(load_element<int64_t>(read.dtype(), read.view().data, bad), dims[bad % dims.count]);
}

// f of each entry, as int64.
template <class Device, class F>
Result<MutableView> wide_entries(OpContext<Device>& op, const Tensor& entries, const F& f) {
  const MutableView wide = PX_TRY(op.scratch(DType::int64, entries.shape()));
  map_as<int64_t, int64_t>(op.queue(), f, wide, std::array<TensorView, 1>{entries.view()});
  return wide;
}
template <class Device>
Result<MutableView> wide_indices(OpContext<Device>& op, const Tensor& indices, int64_t dim) {
  return wide_entries(op, indices, FromFront{dim});
}

}  // namespace indices_detail

// Input `input`, which the caller has checked, as indices into a dimension of `dim`, where index functors can read
// them.
template <class Device>
Result<Elements<Device, const int64_t>> table_of_checked(OpContext<Device>& op, int64_t input, int64_t dim) {
  const Tensor& indices = op.input(input);
  if constexpr (GpuDevice<Device>) {
    const MutableView wide = PX_TRY(indices_detail::wide_indices(op, indices, dim));
    return Elements<Device, const int64_t>{reinterpret_cast<const int64_t*>(wide.data)};
  } else {
    if (are_ready_indices(indices, dim)) return Elements<Device, const int64_t>{indices.as<int64_t>().data()};
    return op.table(PX_TRY(checked_indices(indices, dim)));
  }
}

// Input `input` as indices into a dimension of `dim`, where index functors can read them. Error: execution.
template <class Device>
Result<Elements<Device, const int64_t>> index_table(OpContext<Device>& op, int64_t input, int64_t dim) {
  if constexpr (GpuDevice<Device>) PX_TRY(indices_detail::check_on_device(op, op.input(input), Axes(Ints{dim})));
  return table_of_checked(op, input, dim);
}

// The tuples of input `input` as block numbers of `data`.
template <class Device>
Result<Elements<Device, const int64_t>> tuple_table(OpContext<Device>& op, int64_t input, const Shape& data,
                                                    int64_t batch_dims) {
  const Tensor& indices = op.input(input);
  if constexpr (GpuDevice<Device>) {
    PX_TRY(check_nd_shapes(data, indices.shape(), batch_dims));
    const Ints index_dims(indices.shape());
    Ints dims;
    for (int64_t i = 0; i < index_dims.back(); ++i) dims.push_back(dim_of(data, batch_dims + i));
    PX_TRY(indices_detail::check_on_device(op, indices, Axes(dims)));
    const MutableView wide = PX_TRY(indices_detail::wide_indices(op, indices, 0));
    const int64_t per_batch = std::max<int64_t>(1, product(index_dims, batch_dims, index_dims.size() - 1));
    const MutableView offsets = PX_TRY(op.scratch(DType::int64, Shape{indices.element_count() / dims.size()}));
    const indices_detail::TupleOffset<Device> offset{
        {reinterpret_cast<const int64_t*>(wide.data)}, Axes(dims), per_batch};
    tabulate<int64_t>(op.queue(), offset, offsets);
    return Elements<Device, const int64_t>{reinterpret_cast<const int64_t*>(offsets.data)};
  } else {
    return op.table(PX_TRY(nd_offsets(data, indices, batch_dims)));
  }
}

// Lengths and begins: the entries of an input, brought into [0, most], where kernels can read them. A recorded run
// reads them anew each time.
template <class Device>
struct Entries {
  Elements<Device, const int64_t> elements;
  std::optional<int64_t> wrong;  // the first that is not in [0, most]
};
template <class Device>
Result<Entries<Device>> entries_within(OpContext<Device>& op, int64_t input, int64_t most) {
  const Tensor& given = op.input(input);
  const indices_detail::OutsideRange outside{most};
  const int64_t bad = PX_TRY(find_first<int64_t>(op.queue(), outside, given.view(), WhenFound::is_harmless));
  if (bad >= 0) {
    const Tensor read = PX_TRY(op.on_host(given));
    return Entries<Device>{{}, load_element<int64_t>(read.dtype(), read.view().data, bad)};
  }
  const MutableView wide = PX_TRY(indices_detail::wide_entries(op, given, indices_detail::Clamped{most}));
  return Entries<Device>{{reinterpret_cast<const int64_t*>(wide.data)}, std::nullopt};
}

}  // namespace parallax::runtime
