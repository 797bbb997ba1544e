// SPDX-License-Identifier: Apache-2.0
// Operators that make data from attributes, shapes and a few numbers.
#include <cmath>

#include "inspector/model/rule_errors.h"
#include "inspector/model/sparse.h"
#include "runtime/device/cpu/blocks.h"
#include "runtime/device/cpu/copy.h"
#include "runtime/device/cpu/map.h"
#include "runtime/device/cpu/tabulate.h"
#include "runtime/ops/families.h"

namespace parallax::runtime {
namespace {

template <class Device>
Status constant(OpContext<Device>& op) {
  if (const Tensor* value = op.find_tensor("value")) return op.set_output(0, *value), Status{};
  if (const auto value = op.find_real("value_float")) {
    return op.set_output(0, Tensor::scalar<float>(static_cast<float>(*value))), Status{};
  }
  if (const auto value = op.find_integer("value_int"))
    return op.set_output(0, Tensor::scalar<int64_t>(*value)), Status{};
  if (const auto values = op.find_reals("value_floats")) {
    return op.set_output(0, Tensor::vector<float>(*values)), Status{};
  }
  if (const auto values = op.find_integers("value_ints")) {
    return op.set_output(0, Tensor::vector<int64_t>(*values)), Status{};
  }
  if (const Attribute* found = find_attribute(op.node(), "sparse_value")) {
    if (const auto* sparse = std::get_if<SparseTensor>(&found->value))
      return op.set_output(0, PX_TRY(to_dense(*sparse))), Status{};
  }
  return unsupported("this kind of constant has no kernel here; --fallback=reference runs it");
}

bool supports_constant(const Node& node) {
  for (const char* name : {"value", "value_float", "value_int", "value_floats", "value_ints", "sparse_value"}) {
    if (find_attribute(node, name) != nullptr) return true;
  }
  return false;
}

template <class Device>
Status constant_of_shape(OpContext<Device>& op) {
  const Ints dims = PX_TRY(op.integers_of_input(0));
  const Shape shape = PX_TRY(shape_of(dims));
  const Tensor* value = op.find_tensor("value");
  if (value != nullptr && value->element_count() != 1)
    return wrong_length("attribute 'value'", value->element_count(), "have 1");
  const DType dtype = value == nullptr ? DType::float32 : value->dtype();
  if (bits_of(dtype) < 8) return unsupported_dtype(dtype);
  const MutableView y = PX_TRY(op.make_output(0, dtype, shape));
  fill(op.queue(), y, value == nullptr ? nullptr : value->view().data);
  return {};
}

template <class T>
struct Step {
  T start, delta;
  PX_HD T operator()(int64_t i) const {
    if constexpr (std::is_integral_v<T>)  // in unsigned, where wrapping is defined
      return static_cast<T>(static_cast<uint64_t>(start) + static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
    return static_cast<T>(start + static_cast<T>(i) * delta);
  }
};

template <class T, class Device>
Status range_as(OpContext<Device>& op, int64_t count) {
  const DType dtype = op.input(0).dtype();
  const T start = load_element<T>(dtype, op.input(0).view().data, 0);
  const T delta = load_element<T>(dtype, op.input(2).view().data, 0);
  const MutableView y = PX_TRY(op.make_output(0, dtype, Shape{count}));
  tabulate<T>(op.queue(), Step<T>{start, delta}, y);
  return {};
}

template <class Device>
Status range(OpContext<Device>& op) {
  const DType dtype = op.input(0).dtype();
  if (op.input(1).dtype() != dtype || op.input(2).dtype() != dtype)
    return wrong_input(op, 0, "have the element type of limit and delta, {} and {}", name_of(op.input(1).dtype()),
                       name_of(op.input(2).dtype()));
  const double start = PX_TRY(op.real_of_input(0));
  const double limit = PX_TRY(op.real_of_input(1));
  const double delta = PX_TRY(op.real_of_input(2));
  if (delta == 0.0) return wrong_input(op, 2, "not be 0");
  const double count = std::max(0.0, std::ceil((limit - start) / delta));
  if (!(count <= static_cast<double>(Shape::kMaxElements)))
    return wrong_value("the number of elements of the range", count, "be at most {}", Shape::kMaxElements);
  const int64_t elements = static_cast<int64_t>(count);
  if (is_integer(dtype)) return range_as<int64_t>(op, elements);
  return dtype == DType::float64 ? range_as<double>(op, elements) : range_as<float>(op, elements);
}

template <class Device>
Status shape(OpContext<Device>& op) {
  const Ints dims(op.input(0).shape());
  const auto bound = [&](int64_t at) { return std::clamp<int64_t>(at < 0 ? at + dims.size() : at, 0, dims.size()); };
  const int64_t start = bound(op.find_integer("start").value_or(0));
  const int64_t end = op.has_attribute("end") ? bound(op.integer("end")) : dims.size();
  Ints part;
  for (int64_t axis = start; axis < end; ++axis) part.push_back(dims[axis]);
  op.set_output(0, Tensor::vector<int64_t>(part));
  return {};
}

template <class Device>
Status size(OpContext<Device>& op) {
  op.set_output(0, Tensor::scalar<int64_t>(op.input(0).element_count()));
  return {};
}

struct Diagonal {
  int64_t columns, k;
  PX_HD int64_t operator()(int64_t i) const { return i % columns - i / columns == k ? 1 : 0; }
};

template <class Device>
Status eye_like(OpContext<Device>& op) {
  const Shape& from = op.input(0).shape();
  if (from.rank() != 2) return wrong_input(op, 0, "have rank 2");
  const auto wanted = op.find_integer("dtype");
  const auto dtype = wanted.has_value() ? dtype_from_number(*wanted) : op.input(0).dtype();
  if (!dtype.has_value() || arithmetic_of(*dtype) == Arithmetic::none) {
    return unsupported_dtype(dtype.value_or(DType::undefined));
  }
  const MutableView y = PX_TRY(op.make_output(0, *dtype, from));
  tabulate<int64_t>(op.queue(), Diagonal{dim_of(from, 1), op.integer("k")}, y);
  return {};
}

template <class Device>
constexpr KernelRow<Device> kGeneratorRows[] = {
    {"Constant", kAnything, constant<Device>, 1, INT64_MAX, 0, Arguments::values, "ai.onnx", supports_constant},
    reads_on_host<Device>({0}, {"ConstantOfShape", kInts, constant_of_shape<Device>}),
    {"EyeLike", kReals | kBool, eye_like<Device>},
    reads_on_host<Device>({0, 1, 2}, {"Range", kReals, range<Device>}),
    {"Shape", kAnything, shape<Device>},
    {"Size", kAnything, size<Device>},
};

}  // namespace

template <>
std::span<const KernelRow<CompiledDevice>> generator_rows() {
  return kGeneratorRows<CompiledDevice>;
}

}  // namespace parallax::runtime
