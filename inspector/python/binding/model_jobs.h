// SPDX-License-Identifier: Apache-2.0
// Jobs that write models, for the table of jobs in jobs.cpp.
#pragma once

#include "inspector/python/binding/fields.h"

namespace parallax::python {

nb::object merge_decoders(Fields& fields);
nb::object convert(Fields& fields);
nb::object audit_fp16(Fields& fields);

}  // namespace parallax::python
