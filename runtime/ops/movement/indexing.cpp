// SPDX-License-Identifier: Apache-2.0
// Operators that pick elements by computed indices: Gather and its kin, Pad, Trilu, ReverseSequence. Each is an index
// functor: where the element (or block) number i of the output comes from.
#include <array>

#include <fmt/format.h>

#include "inspector/model/rule_errors.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/ops/families.h"
#include "runtime/ops/indices.h"

namespace parallax::runtime {
namespace {

template <class Device>
struct GatherIndex {  // blocks of `inner` elements
  Elements<Device, const int64_t> indices;
  int64_t count;
  int64_t dim;
  PX_HD int64_t operator()(int64_t block) const { return block / count * dim + indices[block % count]; }
};

template <class Device>
Status gather(OpContext<Device>& op) {
  const Tensor& data = op.input(0);
  const Ints from(data.shape());
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("axis"), from.size()));
  const auto indices = PX_TRY(index_table(op, 1, from[axis]));
  Ints dims;
  for (int64_t i = 0; i < axis; ++i) dims.push_back(from[i]);
  for (int64_t dim : op.input(1).shape()) dims.push_back(dim);
  for (int64_t i = axis + 1; i < from.size(); ++i) dims.push_back(from[i]);
  const MutableView y = PX_TRY(op.make_output(0, data.dtype(), shape_of(dims)));
  const GatherIndex<Device> index{indices, op.input(1).element_count(), from[axis]};
  index_map(op.queue(), index, y, data.view().data, product(from, axis + 1, from.size()));
  return {};
}

template <class Device>
Status gather_elements(OpContext<Device>& op) {
  const Tensor& data = op.input(0);
  const Ints dims(op.input(1).shape());
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("axis"), rank_of(data.shape())));
  PX_TRY(check_axis_indices(data.shape(), op.input(1).shape(), axis));
  const auto indices = PX_TRY(index_table(op, 1, dim_of(data.shape(), axis)));
  const MutableView y = PX_TRY(op.make_output(0, data.dtype(), op.input(1).shape()));
  const AxisIndex<Device> index{indices, Axes(dims), Axes(row_major_strides(data.shape())), axis};
  index_rows(op.queue(), index, y, data.view().data, index.columns());
  return {};
}

template <class Device>
Status gather_nd(OpContext<Device>& op) {
  const Tensor& data = op.input(0);
  const Tensor& indices = op.input(1);
  const int64_t batch_dims = op.find_integer("batch_dims").value_or(0);
  const auto offsets = PX_TRY(tuple_table(op, 1, data.shape(), batch_dims));
  const Ints from(data.shape());
  const Ints index_dims(indices.shape());
  const int64_t first = batch_dims + index_dims.back();
  Ints dims;
  for (int64_t i = 0; i + 1 < index_dims.size(); ++i) dims.push_back(index_dims[i]);
  for (int64_t i = first; i < from.size(); ++i) dims.push_back(from[i]);
  const MutableView y = PX_TRY(op.make_output(0, data.dtype(), shape_of(dims)));
  index_map(op.queue(), TableIndex<Device>{offsets}, y, data.view().data, product(from, first, from.size()));
  return {};
}

// ---- Pad: a table for each axis says where each position comes from; -1 is the constant ----

Status append_pad_table(int64_t dim, int64_t before, int64_t after, const std::string& mode, Ints& tables) {
  for (int64_t i = -before; i < dim + after; ++i) {
    int64_t source = i;
    if (i < 0 || i >= dim) {
      if (mode != "constant" && dim == 0)
        return broken_rule("an axis to be padded has no elements", fmt::format("have one or more for mode '{}'", mode));
      if (mode == "constant") {
        source = -1;
      } else if (mode == "edge") {
        source = i < 0 ? 0 : dim - 1;
      } else if (mode == "wrap") {
        source = (i % dim + dim) % dim;
      } else {  // reflect: there and back without repeating the ends
        const int64_t period = std::max<int64_t>(1, 2 * (dim - 1));
        const int64_t location = (i % period + period) % period;
        source = location < dim ? location : period - location;
      }
    }
    tables.push_back(source);
  }
  return {};
}

struct PadArguments {
  Ints before, after;  // of each axis
  Tensor constant;     // undefined: zero
};

template <class Device>
Result<PadArguments> pad_arguments(OpContext<Device>& op, int64_t rank) {
  PadArguments given{Ints(rank), Ints(rank), {}};
  Ints pads;
  Ints axes;
  if (op.since_version() < 11) {
    pads = op.find_integers(op.since_version() < 2 ? "paddings" : "pads").value_or(Ints{});
    const double value = op.find_real("value").value_or(0.0);
    given.constant = PX_TRY(Tensor::allocate(op.input(0).dtype(), Shape{}));
    store_block<double>(op.input(0).dtype(), given.constant.mutable_data(), 0, 1, &value);
    if constexpr (GpuDevice<Device>) given.constant = PX_TRY(op.queue().to_device(given.constant));
  } else {
    pads = PX_TRY(op.integers_of_input(1));
    if (op.has_input(2)) given.constant = op.input(2);
    if (op.has_input(3)) axes = PX_TRY(op.integers_of_input(3));
  }
  if (axes.empty()) {
    for (int64_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  if (pads.size() != 2 * axes.size())
    return wrong_length("input 'pads'", pads.size(), "have {}, two for each axis", 2 * axes.size());
  PX_TRY(OpCall::resolve_axes(axes, rank));
  for (int64_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = PX_TRY(OpCall::resolve_axis(axes[i], rank));
    given.before[axis] = pads[i];
    given.after[axis] = pads[i + axes.size()];
  }
  return given;
}

// A tensor whose axes before the last padded one make lines, each filled but for a run.
struct PaddedLines {
  Ints before, x_dims, y_dims;    // of the axes that number the lines
  int64_t length, lead, run;      // of a line, before what comes from x, and of that; in elements
  int64_t x_length = 0, cut = 0;  // of a line of x, and what is left out at its beginning
};

template <class T>
void pad_lines(const PaddedLines& lines, T constant, const T* x, T* y) {
  const int64_t axes = lines.y_dims.size();
  const Ints x_strides = row_major_strides(lines.x_dims);
  parallel_for(product(lines.y_dims), 4 + lines.length * static_cast<int64_t>(sizeof(T)) / 16,
               [&](int64_t begin, int64_t end) {
                 Ints at(axes);
                 for (int64_t axis = axes - 1, rest = begin; axis >= 0; rest /= lines.y_dims[axis--])
                   at[axis] = rest % lines.y_dims[axis];
                 for (int64_t line = begin; line < end; ++line) {
                   bool is_inside = true;
                   int64_t from = 0;
                   for (int64_t axis = 0; axis < axes; ++axis) {
                     const int64_t location = at[axis] - lines.before[axis];
                     is_inside = is_inside && location >= 0 && location < lines.x_dims[axis];
                     from += location * x_strides[axis];
                   }
                   T* const to = y + line * lines.length;
                   const int64_t lead = is_inside ? lines.lead : lines.length, run = is_inside ? lines.run : 0;
                   std::fill_n(to, lead, constant);
                   if (run > 0) std::copy_n(x + from * lines.x_length + lines.cut, run, to + lead);
                   std::fill_n(to + lead + run, lines.length - lead - run, constant);
                   for (int64_t axis = axes - 1; axis >= 0 && ++at[axis] == lines.y_dims[axis]; --axis) at[axis] = 0;
                 }
               });
}

// On the host, where a line at a time is faster than a look at every element.
template <class Device>
Status pad_around(OpContext<Device>& op, const PadArguments& given, const MutableView& y) {
  const Ints x_dims(op.input(0).shape()), y_dims(y.shape);
  int64_t last = std::max<int64_t>(0, x_dims.size() - 1);
  while (last > 0 && given.before[last] == 0 && given.after[last] == 0) --last;
  PaddedLines lines{Ints(last), Ints(last), Ints(last), 1, 0, 1};
  for (int64_t axis = 0; axis < last; ++axis) {
    lines.before[axis] = given.before[axis];
    lines.x_dims[axis] = x_dims[axis];
    lines.y_dims[axis] = y_dims[axis];
  }
  if (x_dims.size() > 0) {
    const int64_t inner = product(x_dims, last + 1, x_dims.size()), before = given.before[last];
    lines.length = y_dims[last] * inner;
    lines.lead = std::min(std::max<int64_t>(0, before), y_dims[last]) * inner;
    lines.cut = std::min(std::max<int64_t>(0, -before), x_dims[last]) * inner;
    lines.x_length = x_dims[last] * inner;
    lines.run = std::min(lines.length - lines.lead, lines.x_length - lines.cut);
  }
  const std::byte* const constant = given.constant.defined() ? given.constant.view().data : nullptr;
  const auto pad_as = [&](auto value) {
    if (constant != nullptr) std::memcpy(&value, constant, sizeof(value));
    using T = decltype(value);
    pad_lines<T>(lines, value, reinterpret_cast<const T*>(op.input(0).view().data), reinterpret_cast<T*>(y.data));
    return Status{};
  };
  switch (element_bytes(y.dtype)) {
    case 1:
      return pad_as(uint8_t{0});
    case 2:
      return pad_as(uint16_t{0});
    case 4:
      return pad_as(uint32_t{0});
    case 8:
      return pad_as(uint64_t{0});
    default:
      return pad_as(std::array<uint64_t, 2>{});
  }
}

template <class Device>
Status pad(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const int64_t rank = rank_of(x.shape());
  const PadArguments given = PX_TRY(pad_arguments(op, rank));
  if (given.constant.defined() && (given.constant.element_count() != 1 || given.constant.dtype() != x.dtype()))
    return wrong_input(op, 2, "be one element of the type of data, {}", name_of(x.dtype()));
  const std::string mode = op.text("mode");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    return wrong_attribute("mode", mode, "be constant, reflect, edge or wrap");
  Ints dims(x.shape());
  constexpr int64_t kMost = int64_t{1} << 40;  // of one side: keeps the sums below from overflowing
  for (int64_t axis = 0; axis < rank; ++axis) {
    const auto [least, most] = std::minmax({given.before[axis], given.after[axis]});
    if (least < -kMost || most > kMost)
      return execution_error(fmt::format("the pads of axis {} are {} and {}; they must be at most {}", axis,
                                         given.before[axis], given.after[axis], kMost));
    dims[axis] += given.before[axis] + given.after[axis];
    if (dims[axis] < 0)
      return wrong_value(fmt::format("the size of axis {} after its pads", axis), dims[axis],
                         "be 0 or more; a negative pad may remove at most the axis");
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(dims)));
  if constexpr (!GpuDevice<Device>) {
    if (mode == "constant") return pad_around(op, given, y);
  }
  Ints tables;
  for (int64_t axis = 0; axis < rank; ++axis) {
    PX_TRY(append_pad_table(dim_of(x.shape(), axis), given.before[axis], given.after[axis], mode, tables));
  }
  const auto index = PX_TRY(tables_index(op, std::move(tables), dims, row_major_strides(x.shape())));
  index_rows(op.queue(), index, y, x.view().data, index.columns(),
             given.constant.defined() ? given.constant.view().data : nullptr);
  return {};
}

struct TriluIndex {
  int64_t rows;
  int64_t columns;
  int64_t k;
  bool upper;
  struct Row {
    int64_t first;       // element
    int64_t begin, end;  // of the columns that are kept
    PX_HD int64_t operator()(int64_t column) const { return column >= begin && column < end ? first + column : -1; }
    Run run() const { return {begin, end, first + begin}; }
  };
  PX_HD Row row(int64_t number) const {
    const int64_t diagonal = number % rows + k;
    return {number * columns, upper ? diagonal : 0, upper ? columns : diagonal + 1};
  }
};

template <class Device>
Status trilu(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const int64_t rank = rank_of(x.shape());
  if (rank < 2) return wrong_input(op, 0, "have rank 2 or more");
  const int64_t k = op.has_input(1) ? PX_TRY(op.integer_of_input(1)) : 0;
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  const int64_t rows = dim_of(x.shape(), rank - 2), columns = dim_of(x.shape(), rank - 1);
  const TriluIndex index{rows, columns, std::clamp(k, -rows, columns), op.integer("upper") != 0};
  index_rows(op.queue(), index, y, x.view().data, index.columns);
  return {};
}

template <class Device>
struct ReverseIndex {
  Elements<Device, const int64_t> lengths;
  int64_t time, batch;  // dimensions
  bool time_first;
  PX_HD int64_t operator()(int64_t block) const {
    const int64_t t = time_first ? block / batch : block % time;
    const int64_t b = time_first ? block % batch : block / time;
    const int64_t from = t < lengths[b] ? lengths[b] - 1 - t : t;
    return time_first ? from * batch + b : b * time + from;
  }
};

template <class Device>
Status reverse_sequence(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  const Ints dims(x.shape());
  const Ints lengths = PX_TRY(op.integers_of_input(1));
  const int64_t time_axis = op.integer("time_axis");
  const int64_t batch_axis = op.integer("batch_axis");
  const bool are_the_first_two = (time_axis == 0 && batch_axis == 1) || (time_axis == 1 && batch_axis == 0);
  if (dims.size() < 2 || !are_the_first_two)
    return wrong_input(op, 0, "have rank 2 or more, and time_axis {} and batch_axis {} be 0 and 1 in either order",
                       time_axis, batch_axis);
  if (lengths.size() != dims[batch_axis])
    return wrong_input(op, 1, "have {} elements, one for each batch entry", dims[batch_axis]);
  for (int64_t length : lengths) {
    if (length < 0 || length > dims[time_axis])
      return wrong_value("a length in sequence_lens", length, "be in [0, {}], the size of the time axis",
                         dims[time_axis]);
  }
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), x.shape()));
  const ReverseIndex<Device> index{PX_TRY(op.table(lengths)), dims[time_axis], dims[batch_axis], time_axis == 0};
  index_map(op.queue(), index, y, x.view().data, product(dims, 2, dims.size()));
  return {};
}

template <class Device>
constexpr KernelRow<Device> kIndexingRows[] = {
    {"Gather", kMovable, gather<Device>},
    {"GatherElements", kMovable, gather_elements<Device>},
    {"GatherND", kMovable, gather_nd<Device>},
    reads_on_host<Device>({1, 3}, {"Pad", kMovable, pad<Device>}),
    reads_on_host<Device>({1}, {"ReverseSequence", kMovable, reverse_sequence<Device>}),
    reads_on_host<Device>({1}, {"Trilu", kMovable, trilu<Device>}),
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> indexing_rows() {
  return kIndexingRows<CompiledDevice>;
}

}  // namespace parallax::runtime
