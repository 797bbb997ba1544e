// SPDX-License-Identifier: Apache-2.0
// Classes and functions of other packages, looked up once.
#include "inspector/python/binding/packages.h"

#include <fmt/format.h>

#include "inspector/python/binding/errors.h"

namespace parallax::python {

namespace nb = nanobind;

nb::object Packages::numpy(const char* name) {
  if (!numpy_.is_valid()) numpy_ = nb::module_::import_("numpy");
  return numpy_.attr(name);
}

nb::handle Packages::numpy_array() {
  if (!numpy_array_.is_valid()) numpy_array_ = numpy("ndarray");
  return numpy_array_;
}

nb::handle Packages::loaded_torch_tensor() {
  if (torch_tensor_.is_valid()) return torch_tensor_;
  // Half imported, torch has no Tensor yet: then no object of the class exists.
  const nb::object loaded = nb::module_::import_("sys").attr("modules").attr("get")("torch");
  if (loaded.is_none() || !nb::hasattr(loaded, "Tensor")) return {};
  torch_tensor_ = loaded.attr("Tensor");
  return torch_tensor_;
}

nb::handle Packages::torch_from_dlpack() {
  if (!torch_from_dlpack_.is_valid())
    torch_from_dlpack_ = nb::module_::import_("torch.utils.dlpack").attr("from_dlpack");
  return torch_from_dlpack_;
}

nb::object Packages::extension_type(const char* name) {
  try {
    return nb::module_::import_("ml_dtypes").attr(name);
  } catch (nb::python_error&) {
    raise(
        usage_error(fmt::format("numpy has no type {0}, and package ml_dtypes, which adds it, cannot be imported; "
                                "install ml_dtypes, or take Tensor.torch() or Tensor.unpack()",
                                name)));
  }
}

Packages& packages() {
  static auto* const kept = new Packages;
  return *kept;
}

}  // namespace parallax::python
