// SPDX-License-Identifier: Apache-2.0
// ModelHandle: what Python's _core.Model holds.
#pragma once

#include <memory>

#include "inspector/model/ir.h"
#include "inspector/python/binding/binding.h"

namespace parallax::python {

struct ModelHandle {
  std::shared_ptr<const Model> model;
};

}  // namespace parallax::python
