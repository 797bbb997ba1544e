// SPDX-License-Identifier: Apache-2.0
// The class Tensor of Python.
#include "inspector/python/binding/tensor.h"

#include <cmath>

#include <fmt/format.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "inspector/dump/statistics/statistics.h"
#include "inspector/python/binding/dlpack.h"
#include "inspector/python/binding/errors.h"
#include "inspector/python/binding/packages.h"
#include "inspector/python/binding/text_caster.h"
#include "inspector/tensor/elements.h"

namespace parallax::python {
namespace {

DType dtype_named(const std::string& name) {
  const auto dtype = dtype_from_name(name);
  if (dtype) return *dtype;
  std::string names;
  for (const DTypeInfo& info : all_dtypes()) names += fmt::format("{}{}", names.empty() ? "" : ", ", info.name);
  raise(usage_error(fmt::format("there is no element type '{}' (known: {})", name, names)));
}

// The bytes as elements of another type of that width: bfloat16 in an array of uint16.
Tensor reinterpreted(const Tensor& tensor, DType dtype) {
  if (tensor.dtype() == dtype) return tensor;
  if (bits_of(dtype) != bits_of(tensor.dtype()) || bits_of(dtype) == 0)
    raise(usage_error(fmt::format("an array of {} cannot be read as {}: its elements have {} bits and not {}",
                                  name_of(tensor.dtype()), name_of(dtype), bits_of(tensor.dtype()), bits_of(dtype))));
  return Tensor::wrap(dtype, tensor.shape(), tensor.storage(), tensor.device());
}

void make_tensor(TensorHandle* self, nb::handle array, const std::optional<std::string>& dtype) {
  TensorHandle handle = tensor_from(array);
  if (array.type().is(packages().numpy_array()) && handle.tensor.storage().get() != nullptr)
    handle.writable = is_true(array.attr("flags").attr("writeable"));
  if (dtype) handle.tensor = reinterpreted(handle.tensor, dtype_named(*dtype));
  new (self) TensorHandle(std::move(handle));
}

TensorHandle tensor_of_bytes(const nb::bytes& data, const std::string& dtype_name, const std::vector<int64_t>& dims) {
  const DType dtype = dtype_named(dtype_name);
  if (dtype == DType::string)
    raise(usage_error("strings have no bytes of fixed size; Tensor(array of objects) takes them"));
  const Shape shape = unwrap(Shape::create(dims));
  Tensor tensor = unwrap(Tensor::allocate(dtype, shape));
  if (data.size() != tensor.size_bytes())
    raise(usage_error(fmt::format("data has {} bytes; {}{} takes {}", data.size(), name_of(dtype), shape.to_string(),
                                  tensor.size_bytes())));
  if (data.size() > 0) std::memcpy(tensor.mutable_data(), data.c_str(), data.size());
  return {tensor, true};
}

void need_host(const TensorHandle& self, std::string_view what) {
  if (self.tensor.device().is_host()) return;
  raise(usage_error(
      fmt::format("{} reads a tensor on the host; this one is on CUDA, and torch().cpu() copies it", what)));
}

// One element each: int8 and uint8 for integers, float32 for float4e2m1; other types are as numpy() gives them.
nb::object unpack(const TensorHandle& self) {
  const Tensor& packed = self.tensor;
  if (!is_sub_byte(packed.dtype())) return array_from(self, ArrayKind::numpy);
  need_host(self, "unpack()");
  const bool is_float = is_floating(packed.dtype());
  const bool is_signed = info_of(packed.dtype()).kind == DTypeKind::signed_integer;
  const DType wide = is_float ? DType::float32 : is_signed ? DType::int8 : DType::uint8;
  Tensor tensor = unwrap(Tensor::allocate(wide, packed.shape()));
  std::vector<double> elements(static_cast<size_t>(packed.element_count()));
  load_doubles(packed, 0, elements);
  store_doubles(tensor, 0, elements);
  return array_from({tensor, true}, ArrayKind::numpy);
}

nb::dict statistics(const TensorHandle& self) {
  need_host(self, "statistics()");
  TensorStatistics found;
  {
    const nb::gil_scoped_release nogil;
    found = compute_statistics(self.tensor);
  }
  nb::dict result;
  result["count"] = found.count;
  for (const auto& [name, number] :
       {std::pair("min", found.min), std::pair("max", found.max), std::pair("mean", found.mean),
        std::pair("std", found.std), std::pair("l2", found.l2)})
    result[name] = number;
  result["zeros"] = found.zeros;
  result["nan"] = found.nan;
  result["positive_inf"] = found.positive_inf;
  result["negative_inf"] = found.negative_inf;
  return result;
}

TensorHandle clone(const TensorHandle& self) {
  need_host(self, "clone()");
  const nb::gil_scoped_release nogil;
  return {unwrap(self.tensor.clone()), true};
}

std::string device_name(const TensorHandle& self) {
  const Device device = self.tensor.device();
  return device.is_host() ? "cpu" : fmt::format("cuda:{}", device.index);
}

nb::object dlpack(const TensorHandle& self, const nb::object& /*stream*/, const nb::object& max_version,
                  const nb::object& dl_device, const nb::object& copy) {
  if (!dl_device.is_none()) {
    const auto [type, index] = nb::cast<std::tuple<int, int>>(dl_device);
    const nb::dlpack::device own = dlpack_device_of(self.tensor.device());
    if (type != own.device_type || index != own.device_id)
      throw nb::buffer_error("a tensor is exported on the device where it is; copy it there first");
  }
  const bool versioned = !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
  TensorHandle exported = self;
  if (!copy.is_none() && is_true(copy)) exported = clone(self);
  if (!versioned && !exported.writable) {
    if (!copy.is_none() && !is_true(copy))
      throw nb::buffer_error(
          "the tensor is read-only, which DLPack before 1.0 cannot say; copy=None or True copies it");
    exported = clone(exported);
  }
  return make_dlpack_capsule(exported, versioned);
}

nb::object to_array(const TensorHandle& self, const nb::object& dtype, const nb::object& copy) {
  nb::object array = array_from(self, ArrayKind::numpy);
  const bool must_copy = !copy.is_none() && is_true(copy);
  const bool is_other = !dtype.is_none() && !array.attr("dtype").equal(packages().numpy("dtype")(dtype));
  if (is_other && !copy.is_none() && !must_copy)
    throw nb::value_error("another dtype needs a copy, which copy=False refuses");
  if (is_other) return array.attr("astype")(dtype);
  return must_copy ? nb::object(array.attr("copy")()) : array;
}

std::string describe(const TensorHandle& self) {
  return fmt::format("Tensor({}{}{})", name_of(self.tensor.dtype()), self.tensor.shape().to_string(),
                     self.tensor.device().is_host() ? "" : ", device=" + device_name(self));
}

nb::tuple shape_tuple(const TensorHandle& self) {
  nb::list dims;
  for (int64_t dim : self.tensor.shape().dims()) dims.append(dim);
  return nb::tuple(dims);
}

void bind_exchange(nb::class_<TensorHandle>& type) {
  type.def(
          "numpy", [](const TensorHandle& self) { return array_from(self, ArrayKind::numpy); },
          "Returns a numpy array that shares the memory, read-only where the tensor is. 4- and 2-bit types: the "
          "packed\n"
          "bytes, see unpack(). Strings: an array of objects. bfloat16 and float8: ml_dtypes' types.")
      .def(
          "torch", [](const TensorHandle& self) { return array_from(self, ArrayKind::torch); },
          nb::sig("def torch(self) -> typing.Any"),
          "Returns a torch.Tensor that shares the memory; a copy where the tensor is read-only, which torch cannot "
          "say.")
      .def("unpack", unpack,
           "Returns a numpy array with an element each: int8 or uint8 for 4- and 2-bit integers, float32 for "
           "float4e2m1.")
      .def("__dlpack__", dlpack, nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
           nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none(),
           nb::sig("def __dlpack__(self, *, stream: typing.Any = None, max_version: tuple[int, int] | None = None, "
                   "dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> typing.Any"))
      .def("__dlpack_device__",
           [](const TensorHandle& self) {
             const nb::dlpack::device device = dlpack_device_of(self.tensor.device());
             return std::tuple(device.device_type, device.device_id);
           })
      .def("__array__", to_array, nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(),
           nb::sig("def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> typing.Any"));
}

}  // namespace

void bind_tensor(nb::module_& module) {
  nb::class_<TensorHandle> type(
      module, "Tensor", nb::is_weak_referenceable(),
      "A tensor of any ONNX type: element type, shape and memory that it shares with the array it was made of.\n\n"
      ">>> import numpy as np, parallax\n"
      ">>> t = parallax.Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))\n"
      ">>> t.dtype, t.shape, t.nbytes\n"
      "('float32', (2, 3), 24)");
  type.def("__init__", make_tensor, nb::arg("array"), nb::arg("dtype") = nb::none(),
           nb::sig("def __init__(self, array: typing.Any, dtype: str | None = None) -> None"),
           "Takes anything with a buffer, __dlpack__ or __array__ (numpy, torch, cupy, jax), without a copy where it "
           "is\n"
           "contiguous. `dtype` reads the same bytes as another type of that width. Raises UsageError.")
      .def_static("from_bytes", tensor_of_bytes, nb::arg("data"), nb::arg("dtype"), nb::arg("shape"),
                  nb::sig("def from_bytes(data: bytes, dtype: str, shape: collections.abc.Sequence[int]) -> Tensor"),
                  "Makes a tensor of a copy of raw little-endian bytes, sub-byte types packed low bits first.")
      .def_prop_ro(
          "dtype", [](const TensorHandle& self) { return std::string(name_of(self.tensor.dtype())); },
          "Element type: \"float32\", \"bfloat16\", \"int4\", \"string\", ...")
      .def_prop_ro("shape", shape_tuple, nb::sig("def shape(self) -> tuple[int, ...]"))
      .def_prop_ro("ndim", [](const TensorHandle& self) { return self.tensor.shape().rank(); })
      .def_prop_ro(
          "size", [](const TensorHandle& self) { return self.tensor.element_count(); }, "Number of elements.")
      .def_prop_ro(
          "nbytes", [](const TensorHandle& self) { return self.tensor.size_bytes(); }, "Bytes of the payload.")
      .def_prop_ro("device", device_name, "\"cpu\", or \"cuda:0\".")
      .def_prop_ro(
          "address", [](const TensorHandle& self) { return reinterpret_cast<uintptr_t>(self.tensor.view().data); },
          "Where the payload begins, as a number.")
      .def_ro("writable", &TensorHandle::writable, "Whether arrays that share the memory may write to it.")
      .def("clone", clone, "Returns a deep copy.")
      .def("statistics", statistics, nb::sig("def statistics(self) -> dict[str, int | float]"),
           "Returns count, min, max, mean, std, l2, zeros, nan, positive_inf and negative_inf.")
      .def("__repr__", describe)
      .def("__len__", [](const TensorHandle& self) {
        if (self.tensor.shape().rank() == 0) throw nb::type_error("a scalar has no length");
        return self.tensor.shape()[0];
      });
  bind_exchange(type);
}

}  // namespace parallax::python
