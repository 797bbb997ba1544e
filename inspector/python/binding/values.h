// SPDX-License-Identifier: Apache-2.0
// Values to and from Python: a tensor is an array, a sequence a list, a map a dict, an absent or empty one None.
#pragma once

#include <nanobind/nanobind.h>

#include "inspector/python/binding/tensor.h"
#include "inspector/tensor/value.h"

namespace parallax::python {

// `declared` says which Value a list, a dict or None is, and the type of numbers that have none of their own.
// `what` names it in messages: "input 'x'".
Value value_from(nb::handle object, const TypeInfo& declared, std::string_view what);

// `writable`: whether Python may write to the payloads, 4- and 2-bit tensors are Tensors for every kind: no other
// package has the types.
nb::object value_to_python(const Value& value, ArrayKind kind, bool writable);

}  // namespace parallax::python
