// SPDX-License-Identifier: Apache-2.0
// TensorHandle: what Python's Tensor holds; and tensors from and to the arrays of other packages.
#pragma once

#include <nanobind/nanobind.h>

#include "inspector/python/binding/binding.h"
#include "inspector/tensor/tensor.h"

namespace parallax::python {

// A tensor and whether Python may write to its payload: not to weights, to mapped files and to other's read-only
// arrays.
struct TensorHandle {
  Tensor tensor;
  bool writable = false;
};

enum class ArrayKind : uint8_t { numpy, torch, tensor };

// "numpy", "torch" or "tensor". Raises UsageError.
ArrayKind array_kind_of(std::string_view name);

// From a Tensor, an array with __dlpack__, a buffer or __array__, a number or nested lists. Contiguous arrays share
// their memory with the tensor, which keeps them alive; others are copied once. Raises UsageError, naming the type.
TensorHandle tensor_from(nb::handle object);
// True where `object` is something that tensor_from takes without numpy making an array of it first.
bool is_array(nb::handle object);
bool is_numpy_array(nb::handle object);
bool is_torch_tensor(nb::handle object);

// As an array of that kind that shares the payload and keeps it alive.
nb::object array_from(TensorHandle handle, ArrayKind kind);

}  // namespace parallax::python
