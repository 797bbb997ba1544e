// SPDX-License-Identifier: Apache-2.0
// The bindings of each file of the module: module.cpp calls them in this order.
#pragma once

#include <nanobind/nanobind.h>

namespace parallax::python {

namespace nb = nanobind;

void bind_errors(nb::module_& module);
void bind_tensor(nb::module_& module);
void bind_model(nb::module_& module);
void bind_session(nb::module_& module);
void bind_transforms(nb::module_& module);
void bind_inputs(nb::module_& module);
void bind_dump(nb::module_& module);  // with the two below it
void bind_dump_writer(nb::module_& module);
void bind_captured_objects(nb::module_& module);
void bind_jobs(nb::module_& module);
void bind_comparison(nb::module_& module);
void bind_comparer(nb::module_& module);

}  // namespace parallax::python
