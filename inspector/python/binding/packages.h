// SPDX-License-Identifier: Apache-2.0
// Functions of other packages, imported when they are needed: numpy, torch where it is loaded, ml_dtypes.
#pragma once

#include <nanobind/nanobind.h>

namespace parallax::python {

class Packages {
 public:
  nanobind::object numpy(const char* name);           // numpy.NAME
  nanobind::handle numpy_array();                     // the class numpy.ndarray
  nanobind::handle loaded_torch_tensor();             // the class torch.Tensor; invalid where torch is not loaded
  nanobind::handle torch_from_dlpack();               // torch.utils.dlpack.from_dlpack. Raises ImportError
  nanobind::object extension_type(const char* name);  // ml_dtypes.NAME. Raises ImportError, naming a way without it

 private:
  nanobind::object numpy_, numpy_array_, torch_tensor_, torch_from_dlpack_;
};

// The one of this process. Called with the GIL; never destroyed, since the interpreter may end before.
Packages& packages();

}  // namespace parallax::python
