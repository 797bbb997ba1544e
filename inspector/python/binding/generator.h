// SPDX-License-Identifier: Apache-2.0
// The class Generator of Python, bound after the jobs.
#pragma once

#include <nanobind/nanobind.h>

namespace parallax::python {

void bind_generator(nanobind::module_& module);

}  // namespace parallax::python
