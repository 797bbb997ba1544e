// SPDX-License-Identifier: Apache-2.0
// DLPack's structures and the capsules around them.
#include "inspector/python/binding/dlpack.h"

#include <array>
#include <memory>
#include <vector>

namespace parallax::python {
namespace {

using Code = nb::dlpack::dtype_code;

struct DLPackRow {
  DType dtype;
  Code code;
  uint8_t bits;
};

constexpr std::array<DLPackRow, 25> kDLPackRows{{{DType::float32, Code::Float, 32},
                                                 {DType::float64, Code::Float, 64},
                                                 {DType::float16, Code::Float, 16},
                                                 {DType::bfloat16, Code::Bfloat, 16},
                                                 {DType::int8, Code::Int, 8},
                                                 {DType::int16, Code::Int, 16},
                                                 {DType::int32, Code::Int, 32},
                                                 {DType::int64, Code::Int, 64},
                                                 {DType::uint8, Code::UInt, 8},
                                                 {DType::uint16, Code::UInt, 16},
                                                 {DType::uint32, Code::UInt, 32},
                                                 {DType::uint64, Code::UInt, 64},
                                                 {DType::bool_, Code::Bool, 8},
                                                 {DType::complex64, Code::Complex, 64},
                                                 {DType::complex128, Code::Complex, 128},
                                                 {DType::float8e4m3fn, Code::Float8_E4M3FN, 8},
                                                 {DType::float8e4m3fnuz, Code::Float8_E4M3FNUZ, 8},
                                                 {DType::float8e5m2, Code::Float8_E5M2, 8},
                                                 {DType::float8e5m2fnuz, Code::Float8_E5M2FNUZ, 8},
                                                 {DType::float8e8m0, Code::Float8_E8M0FNU, 8},
                                                 {DType::float4e2m1, Code::Float4_E2M1FN, 4},
                                                 {DType::int4, Code::Int, 4},
                                                 {DType::uint4, Code::UInt, 4},
                                                 {DType::int2, Code::Int, 2},
                                                 {DType::uint2, Code::UInt, 2}}};

// dlpack.h of DLPack 1.1, word for word in its layout.
struct ManagedTensor {
  nb::dlpack::dltensor tensor;
  void* manager;
  void (*deleter)(ManagedTensor*);
};
struct ManagedTensorVersioned {
  uint32_t major;
  uint32_t minor;
  void* manager;
  void (*deleter)(ManagedTensorVersioned*);
  uint64_t flags;
  nb::dlpack::dltensor tensor;
};
constexpr uint64_t kReadOnlyFlag = 1;
constexpr int32_t kHostDevice = 1, kCudaDevice = 2;

// The objects that a capsule owns: the structure it exposes and the tensor that the structure describes.
template <class Managed>
struct Exported {
  Managed managed{};
  Tensor tensor;
  std::array<int64_t, Shape::kMaxRank> shape{}, strides{};

  Exported(const Tensor& exported, nb::dlpack::dtype dtype) : tensor(exported) {
    const Shape& dims = tensor.shape();
    int64_t stride = 1;
    for (size_t axis = dims.rank(); axis-- > 0;) {
      shape[axis] = dims[axis];
      strides[axis] = stride;
      stride *= std::max<int64_t>(1, dims[axis]);
    }
    nb::dlpack::dltensor& view = managed.tensor;
    view.data = const_cast<std::byte*>(tensor.view().data);
    view.device = dlpack_device_of(tensor.device());
    view.ndim = static_cast<int32_t>(dims.rank());
    view.dtype = dtype;
    view.shape = shape.data();
    view.strides = strides.data();
    managed.manager = this;
    managed.deleter = [](Managed* self) { delete static_cast<Exported*>(self->manager); };
  }
};

// A capsule that nobody took still owns its structure.
template <class Managed>
nb::object capsule_of(Managed* managed, const char* name) {
  PyObject* capsule = PyCapsule_New(managed, name, [](PyObject* unused) {
    const char* now = PyCapsule_GetName(unused);
    if (now == nullptr || std::string_view(now).starts_with("used_")) return;
    auto* left = static_cast<Managed*>(PyCapsule_GetPointer(unused, now));
    left->deleter(left);
  });
  if (capsule == nullptr) {
    managed->deleter(managed);
    throw nb::python_error();
  }
  return nb::steal(capsule);
}

}  // namespace

std::optional<nb::dlpack::dtype> dlpack_dtype_of(DType dtype) {
  for (const DLPackRow& row : kDLPackRows)
    if (row.dtype == dtype) return nb::dlpack::dtype{static_cast<uint8_t>(row.code), row.bits, 1};
  return std::nullopt;
}

std::optional<DType> dtype_of_dlpack(nb::dlpack::dtype dtype) {
  if (dtype.lanes != 1) return std::nullopt;
  for (const DLPackRow& row : kDLPackRows)
    if (static_cast<uint8_t>(row.code) == dtype.code && row.bits == dtype.bits) return row.dtype;
  return std::nullopt;
}

nb::dlpack::device dlpack_device_of(Device device) {
  return {device.is_host() ? kHostDevice : kCudaDevice, device.index};
}

nb::object make_dlpack_capsule(const TensorHandle& handle, bool versioned) {
  const auto dtype = dlpack_dtype_of(handle.tensor.dtype());
  if (!dtype) throw nb::buffer_error("a tensor of strings has no DLPack form; numpy() makes an array of objects");
  if (versioned) {
    auto exported = std::make_unique<Exported<ManagedTensorVersioned>>(handle.tensor, *dtype);
    exported->managed.major = 1;
    exported->managed.minor = 1;
    exported->managed.flags = handle.writable ? 0 : kReadOnlyFlag;
    return capsule_of(&exported.release()->managed, "dltensor_versioned");
  }
  auto exported = std::make_unique<Exported<ManagedTensor>>(handle.tensor, *dtype);
  return capsule_of(&exported.release()->managed, "dltensor");
}

}  // namespace parallax::python
