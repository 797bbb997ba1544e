// SPDX-License-Identifier: Apache-2.0
// Tensors as DLPack capsules (DLPack 1.1, dlpack.h), with and without the versioned form; and arrays as Tensors.
#pragma once

#include <optional>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "inspector/python/binding/tensor.h"

namespace parallax::python {

// Nothing for strings.
std::optional<nb::dlpack::dtype> dlpack_dtype_of(DType dtype);
std::optional<DType> dtype_of_dlpack(nb::dlpack::dtype dtype);

// (device type, device index) as DLPack numbers them: 1 is the host, 2 CUDA.
nb::dlpack::device dlpack_device_of(Device device);

// A capsule "dltensor_versioned" (with the read-only flag where `tensor` must not be written) or, where the consumer
// knows no 1.x, "dltensor". The capsule's owner keeps the payload alive. Raises BufferError for strings, and for a
// read-only tensor in the older form, which cannot say so.
nb::object make_dlpack_capsule(const TensorHandle& tensor, bool versioned);

}  // namespace parallax::python
