// ScatterElements (and Scatter, its old name), ScatterND, OneHot, Compress, NonZero: operators that place by computed
// indices.
#include <fmt/format.h>

#include "runtime/device/map.h"
#include "runtime/device/scatter.h"
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
  return execution_error("attribute 'reduction' is '" + reduction + "'");
}

// The output begins as a copy of data.
template <class Device, class F>
Status scatter_into_copy(OpContext<Device>& op, const F& f, int64_t block_elements) {
  const Tensor& data = op.input(0);
  const Tensor& updates = op.input(2);
  if (updates.dtype() != data.dtype()) return execution_error("data and updates have different element types");
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
  if (!(op.input(1).shape() == op.input(2).shape())) return execution_error("indices and updates differ in shape");
  const Ints indices = PX_TRY(checked_indices(op.input(1), dim_of(data, axis)));
  return scatter_into_copy(op, AxisIndex{indices.data(), Ints(op.input(1).shape()), row_major_strides(data), axis}, 1);
}

template <class Device>
Status scatter_nd(OpContext<Device>& op) {
  const Ints data(op.input(0).shape());
  const Ints index_dims(op.input(1).shape());
  const Ints offsets = PX_TRY(nd_offsets(op.input(0).shape(), op.input(1), 0));
  Ints expected;
  for (int64_t i = 0; i + 1 < index_dims.size(); ++i) expected.push_back(index_dims[i]);
  for (int64_t i = index_dims.back(); i < data.size(); ++i) expected.push_back(data[i]);
  if (!(Ints(op.input(2).shape()) == expected)) {
    return execution_error("updates of shape " + op.input(2).shape().to_string() + " do not fit");
  }
  return scatter_into_copy(op, TableIndex{offsets.data()}, product(data, index_dims.back(), data.size()));
}

template <class Device>
Status one_hot(OpContext<Device>& op) {
  const Tensor& indices = op.input(0);
  const Tensor& values = op.input(2);
  const int64_t depth = static_cast<int64_t>(PX_TRY(op.real_of_input(1)));
  if (values.element_count() != 2 || depth < 0)
    return execution_error("values must be [off, on] and depth not negative");
  const int64_t rank = rank_of(indices.shape());
  const int64_t axis = PX_TRY(OpCall::resolve_axis(op.integer("axis"), rank + 1));
  Ints dims(indices.shape());
  const int64_t inner = product(dims, axis, rank);
  dims.insert(axis, depth);
  const MutableView y = PX_TRY(op.make_output(0, values.dtype(), shape_of(dims)));
  fill(op.queue(), y, values.view().data);
  const auto bytes = static_cast<size_t>(element_bytes(values.dtype()));
  for (int64_t i = 0; i < indices.element_count(); ++i) {
    int64_t index = load_element<int64_t>(indices.dtype(), indices.view().data, i);
    if (index < 0) index += depth;
    if (index < 0 || index >= depth) continue;  // the specification leaves such rows off
    const int64_t place = (i / inner * depth + index) * inner + i % inner;
    std::memcpy(y.data + static_cast<size_t>(place) * bytes, values.view().data + bytes, bytes);
  }
  return {};
}

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
  Ints kept;
  for (int64_t i = 0; i < std::min(condition.element_count(), dims[axis]); ++i) {
    if (condition.as<bool>()[static_cast<size_t>(i)]) kept.push_back(i);
  }
  const int64_t length = dims[axis];
  const int64_t inner = product(dims, axis + 1, dims.size());
  dims[axis] = kept.size();
  const MutableView y = PX_TRY(op.make_output(0, x.dtype(), shape_of(dims)));
  const auto index = [&](int64_t block) { return block / kept.size() * length + kept[block % kept.size()]; };
  if (!kept.empty()) index_map(op.queue(), index, y, x.view().data, inner);
  return {};
}

template <class Device>
Status non_zero(OpContext<Device>& op) {
  const Tensor& x = op.input(0);
  Ints found;
  for (int64_t i = 0; i < x.element_count(); ++i) {
    const bool is_zero = is_floating(x.dtype()) ? load_element<double>(x.dtype(), x.view().data, i) == 0.0
                                                : load_element<int64_t>(x.dtype(), x.view().data, i) == 0;
    if (!is_zero) found.push_back(i);
  }
  const Ints dims(x.shape());
  const MutableView y = PX_TRY(op.make_output(0, DType::int64, Shape{dims.size(), found.size()}));
  int64_t* out = y.template as<int64_t>();
  const Ints strides = row_major_strides(dims);
  for (int64_t axis = 0; axis < dims.size(); ++axis) {
    for (int64_t i = 0; i < found.size(); ++i) out[axis * found.size() + i] = found[i] / strides[axis] % dims[axis];
  }
  return {};
}

template <class Device>
constexpr KernelRow<Device> kRows[] = {
    {"Compress", kMovable, compress<Device>},
    {"NonZero", kReals | kBool, non_zero<Device>},
    {"OneHot", kMovable, one_hot<Device>, 1, INT64_MAX, 2},
    {"Scatter", kMovable, scatter_elements<Device>},
    {"ScatterElements", kMovable, scatter_elements<Device>},
    {"ScatterND", kMovable, scatter_nd<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> scattering_rows() {
  return kRows<CompiledDevice>;
}

}  // namespace parallax::runtime
