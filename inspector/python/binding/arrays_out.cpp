// SPDX-License-Identifier: Apache-2.0
// Tensors as arrays of numpy and torch that share the payload and keep it alive.
#include <array>
#include <memory>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "inspector/python/binding/dlpack.h"
#include "inspector/python/binding/errors.h"
#include "inspector/python/binding/packages.h"
#include "inspector/python/binding/tensor.h"

namespace parallax::python {
namespace {

struct NumpyForm {
  DType dtype;
  DType shown_as;         // a type that numpy itself has
  const char* extension;  // of ml_dtypes; null where numpy needs none
};

constexpr std::array<NumpyForm, 6> kNumpyForms{{{DType::bfloat16, DType::uint16, "bfloat16"},
                                                {DType::float8e4m3fn, DType::uint8, "float8_e4m3fn"},
                                                {DType::float8e4m3fnuz, DType::uint8, "float8_e4m3fnuz"},
                                                {DType::float8e5m2, DType::uint8, "float8_e5m2"},
                                                {DType::float8e5m2fnuz, DType::uint8, "float8_e5m2fnuz"},
                                                {DType::float8e8m0, DType::uint8, "float8_e8m0fnu"}}};

template <class... Options>
nb::object make_numpy(const Tensor& tensor, nb::dlpack::dtype dtype, std::span<const size_t> dims) {
  auto kept = std::make_unique<Tensor>(tensor);
  nb::capsule owner(kept.get(), [](void* held) noexcept { delete static_cast<Tensor*>(held); });
  auto* data = const_cast<std::byte*>(kept.release()->view().data);
  nb::ndarray<nb::numpy, Options...> array(data, dims.size(), dims.data(), owner, nullptr, dtype,
                                           nb::device::cpu::value, 0);
  return nb::cast(std::move(array), nb::rv_policy::reference);
}

nb::object strings_to_numpy(const Tensor& tensor) {
  nb::list elements;
  for (const std::string& text : tensor.as<std::string>()) {
    PyObject* decoded = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr);
    if (decoded != nullptr) {
      elements.append(nb::steal(decoded));
    } else {  // bytes that are no UTF-8 stay bytes
      PyErr_Clear();
      elements.append(nb::bytes(text.data(), text.size()));
    }
  }
  nb::list dims;
  for (int64_t dim : tensor.shape().dims()) dims.append(dim);
  const nb::object array = packages().numpy("empty")(elements.size(), nb::arg("dtype") = packages().numpy("object_"));
  for (size_t index = 0; index < elements.size(); ++index) array[index] = elements[index];
  return array.attr("reshape")(nb::tuple(dims));
}

nb::object to_numpy(const TensorHandle& handle) {
  const Tensor& tensor = handle.tensor;
  if (tensor.dtype() == DType::string) return strings_to_numpy(tensor);
  std::array<size_t, Shape::kMaxRank> dims{};
  size_t rank = tensor.shape().rank();
  for (size_t axis = 0; axis < rank; ++axis) dims[axis] = static_cast<size_t>(tensor.shape()[axis]);
  DType shown_as = tensor.dtype();
  const char* extension = nullptr;
  for (const NumpyForm& form : kNumpyForms) {
    if (form.dtype != tensor.dtype()) continue;
    shown_as = form.shown_as;
    extension = form.extension;
  }
  if (is_sub_byte(tensor.dtype())) {  // the packed bytes
    shown_as = DType::uint8;
    dims[0] = tensor.size_bytes();
    rank = 1;
  }
  const auto dtype = dlpack_dtype_of(shown_as);
  const std::span<const size_t> shape(dims.data(), rank);
  const nb::object array =
      handle.writable ? make_numpy<>(tensor, *dtype, shape) : make_numpy<nb::ro>(tensor, *dtype, shape);
  if (extension == nullptr) return array;
  return array.attr("view")(packages().extension_type(extension));
}

// torch has no read-only memory: what must not be written is copied.
nb::object to_torch(TensorHandle handle) {
  if (handle.tensor.dtype() == DType::string)
    raise(usage_error("torch has no tensors of strings; numpy() makes an array of objects"));
  if (is_sub_byte(handle.tensor.dtype()))
    raise(usage_error(
        fmt::format("torch has no type {}; unpack() gives its elements as numbers", name_of(handle.tensor.dtype()))));
  if (!handle.writable && handle.tensor.device().is_host()) handle.tensor = unwrap(handle.tensor.clone());
  handle.writable = true;
  return packages().torch_from_dlpack()(make_dlpack_capsule(handle, false));
}

}  // namespace

ArrayKind array_kind_of(std::string_view name) {
  if (name == "numpy") return ArrayKind::numpy;
  if (name == "torch") return ArrayKind::torch;
  if (name == "tensor") return ArrayKind::tensor;
  raise(usage_error(fmt::format("kind is '{}'; it must be 'numpy', 'torch' or 'tensor'", name)));
}

nb::object array_from(TensorHandle handle, ArrayKind kind) {
  switch (kind) {
    case ArrayKind::torch:
      return to_torch(std::move(handle));
    case ArrayKind::numpy:
      if (!handle.tensor.device().is_host())
        raise(
            usage_error("the tensor is on CUDA, where numpy cannot reach it; torch() shows it, and Session.run with "
                        "device='cpu' brings results to the host"));
      return to_numpy(handle);
    case ArrayKind::tensor:
      break;
  }
  return nb::cast(std::move(handle));
}

}  // namespace parallax::python
