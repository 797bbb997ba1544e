// SPDX-License-Identifier: Apache-2.0
// Arrays of other packages as Tensors, by DLPack or the buffer protocol; types that neither knows by their bytes.
#include <array>
#include <cstring>
#include <memory>

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "inspector/python/binding/dlpack.h"
#include "inspector/python/binding/errors.h"
#include "inspector/python/binding/packages.h"
#include "inspector/python/binding/tensor.h"
#include "inspector/python/binding/text_caster.h"
#include "inspector/tensor/elements.h"

namespace parallax::python {
namespace {

using ContiguousArray = nb::ndarray<nb::ro, nb::c_contig>;

constexpr std::array<std::pair<std::string_view, DType>, 11> kExtensionTypes{
    {{"bfloat16", DType::bfloat16},
     {"float8_e4m3fn", DType::float8e4m3fn},
     {"float8_e4m3fnuz", DType::float8e4m3fnuz},
     {"float8_e5m2", DType::float8e5m2},
     {"float8_e5m2fnuz", DType::float8e5m2fnuz},
     {"float8_e8m0fnu", DType::float8e8m0},
     {"float4_e2m1fn", DType::float4e2m1},
     {"int4", DType::int4},
     {"uint4", DType::uint4},
     {"int2", DType::int2},
     {"uint2", DType::uint2}}};

// Keeps an array alive for as long as a tensor shows its memory. A tensor may go in any thread, and after the
// interpreter: then the array is left alone.
class KeptArray {
 public:
  explicit KeptArray(ContiguousArray array) : array_(std::move(array)) {}
  KeptArray(const KeptArray&) = delete;
  KeptArray& operator=(const KeptArray&) = delete;
  ~KeptArray() {
    if (Py_IsInitialized() == 0) {
      new ContiguousArray(std::move(array_));
      return;
    }
    const nb::gil_scoped_acquire gil;
    array_ = ContiguousArray();
  }

 private:
  ContiguousArray array_;
};

std::string type_name_of(nb::handle object) { return nb::type_name(object.type()).c_str(); }

Shape shape_of(const ContiguousArray& array) { return unwrap(Shape::create({array.shape_ptr(), array.ndim()})); }

// `dtype` is that of the elements, which the array may show as integers of the same size.
Tensor wrap_array(ContiguousArray array, DType dtype) {
  const Shape shape = shape_of(array);
  const auto* data = static_cast<const std::byte*>(array.data());
  const bool is_cuda = array.device_type() == nb::device::cuda::value;
  const Device device = is_cuda ? Device{Device::Kind::cuda, array.device_id()} : Device{};
  if (!is_cuda && array.device_type() != nb::device::cpu::value && array.device_type() != nb::device::cuda_host::value)
    raise(usage_error(fmt::format("the array is on a device of DLPack type {}; it must be on the host or on CUDA",
                                  array.device_type())));
  const size_t element_bytes = static_cast<size_t>(bits_of(dtype)) / 8;
  if (!is_cuda && shape.element_count() > 0 && element_bytes > 1 &&
      reinterpret_cast<uintptr_t>(data) % std::min<size_t>(element_bytes, 8) != 0) {
    Tensor copy = unwrap(Tensor::allocate(dtype, shape));
    std::memcpy(copy.mutable_data(), data, copy.size_bytes());
    return copy;
  }
  auto kept = std::make_shared<KeptArray>(std::move(array));
  return Tensor::wrap(dtype, shape, std::shared_ptr<const std::byte>(std::move(kept), data), device);
}

std::optional<Tensor> try_wrap(nb::handle object) {
  ContiguousArray array;
  if (!nb::try_cast(object, array, true)) {
    PyErr_Clear();
    return std::nullopt;
  }
  const auto dtype = dtype_of_dlpack(array.dtype());
  if (!dtype || bits_of(*dtype) < 8) return std::nullopt;
  return wrap_array(std::move(array), *dtype);
}

Tensor strings_from(nb::handle array) {
  const nb::object elements = array.attr("ravel")().attr("tolist")();
  std::vector<int64_t> dims;
  for (nb::handle dim : nb::tuple(array.attr("shape"))) dims.push_back(nb::cast<int64_t>(dim));
  Tensor tensor = unwrap(Tensor::allocate(DType::string, unwrap(Shape::create(dims))));
  auto strings = tensor.mutable_as<std::string>();
  size_t index = 0;
  for (nb::handle element : elements) {
    if (nb::isinstance<nb::bytes>(element)) {
      const auto bytes = nb::borrow<nb::bytes>(element);
      strings[index] = std::string(bytes.c_str(), bytes.size());
    } else if (nb::isinstance<nb::str>(element)) {
      strings[index] = nb::cast<std::string>(element);
    } else {
      raise(usage_error(fmt::format("element {} of the array of objects is a {}; it must be a str or bytes", index,
                                    type_name_of(element))));
    }
    ++index;
  }
  return tensor;
}

// Arrays of ml_dtypes have a byte for each element, also of narrower types.
Tensor packed_from(const nb::object& bytes, DType dtype) {
  const Tensor wide = wrap_array(nb::cast<ContiguousArray>(bytes), DType::uint8);
  Tensor tensor = unwrap(Tensor::zeros(dtype, wide.shape()));
  const auto elements = wide.as<uint8_t>();
  const auto mask = static_cast<uint8_t>((1 << bits_of(dtype)) - 1);
  for (size_t index = 0; index < elements.size(); ++index)
    store_packed(tensor.mutable_data(), bits_of(dtype), static_cast<int64_t>(index),
                 static_cast<uint8_t>(elements[index] & mask));
  return tensor;
}

// Arrays whose type neither DLPack nor the buffer protocol has.
Tensor tensor_from_unusual(nb::object array) {
  nb::object type = array.attr("dtype");
  const auto kind = nb::cast<std::string>(type.attr("kind"));
  const auto name = nb::cast<std::string>(type.attr("name"));
  if (kind == "O" || kind == "U" || kind == "S" || kind == "T") return strings_from(array);
  if (!is_true(type.attr("isnative"))) {
    array = array.attr("astype")(type.attr("newbyteorder")("="));
    if (auto tensor = try_wrap(array)) return *std::move(tensor);
  }
  for (const auto& [extension, dtype] : kExtensionTypes) {
    if (name != extension) continue;
    const nb::object contiguous = packages().numpy("ascontiguousarray")(array).attr("reshape")(array.attr("shape"));
    const nb::object raw = contiguous.attr("view")(packages().numpy(bits_of(dtype) == 16 ? "uint16" : "uint8"));
    if (bits_of(dtype) < 8) return packed_from(raw, dtype);
    return wrap_array(nb::cast<ContiguousArray>(raw), dtype);
  }
  raise(
      usage_error(fmt::format("an array of dtype {} has no ONNX type; astype() makes one of bool, integers, floats, "
                              "complex numbers or strings of it",
                              name)));
}

Tensor tensor_from_torch(nb::object tensor) {
  if (is_true(tensor.attr("requires_grad"))) tensor = tensor.attr("detach")();
  // Views that conjugate or negate as they are read hold the memory of what they are views of.
  if (is_true(tensor.attr("is_conj")()) || is_true(tensor.attr("is_neg")()))
    tensor = tensor.attr("resolve_conj")().attr("resolve_neg")();
  // Whoever reads the memory does so on a stream of its own, or on the host: what computes it has to be done.
  if (is_true(tensor.attr("is_cuda")))
    nb::module_::import_("torch").attr("cuda").attr("current_stream")(tensor.attr("device")).attr("synchronize")();
  if (auto wrapped = try_wrap(tensor)) return *std::move(wrapped);
  try {
    tensor = tensor.attr("contiguous")();
  } catch (nb::python_error& refused) {  // sparse, quantized, meta: the text says which
    raise(usage_error(fmt::format("the torch tensor has no dense memory: {}", error_of(refused).message)));
  }
  if (auto wrapped = try_wrap(tensor)) return *std::move(wrapped);
  raise(
      usage_error(fmt::format("a torch tensor of {} on {} cannot be taken; it must be dense, on the host or on CUDA, "
                              "and of a type that ONNX has",
                              text_of(tensor.attr("dtype")), text_of(tensor.attr("device")))));
}

}  // namespace

bool is_numpy_array(nb::handle object) { return object.type().is(packages().numpy_array()); }

bool is_torch_tensor(nb::handle object) {
  if (is_numpy_array(object)) return false;
  const nb::handle type = packages().loaded_torch_tensor();
  return type.is_valid() && PyObject_IsInstance(object.ptr(), type.ptr()) == 1;
}

bool is_array(nb::handle object) {
  return is_numpy_array(object) || nb::isinstance<TensorHandle>(object) || nb::hasattr(object, "__dlpack__") ||
         nb::hasattr(object, "__array__");
}

TensorHandle tensor_from(nb::handle object) {
  const bool is_numpy = is_numpy_array(object);
  if (!is_numpy && nb::isinstance<TensorHandle>(object)) return *nb::inst_ptr<TensorHandle>(object);
  if (!is_numpy && is_torch_tensor(object)) return {tensor_from_torch(nb::borrow(object)), true};
  if (is_numpy || nb::hasattr(object, "__dlpack__"))
    if (auto tensor = try_wrap(object)) return {*std::move(tensor), false};
  const nb::object array = packages().numpy("asarray")(object);
  if (!is_numpy)
    if (auto tensor = try_wrap(array)) return {*std::move(tensor), false};
  return {tensor_from_unusual(array), false};
}

}  // namespace parallax::python
