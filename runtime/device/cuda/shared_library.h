// SPDX-License-Identifier: Apache-2.0
// Libraries of NVIDIA's that are loaded by the first who needs them: looked for where
// `inspector/base/loading/late_library.h` says. Never closed: handles may live as long as the process.
#pragma once

#include <string>

#include "inspector/base/result.h"

namespace parallax::runtime {

struct SharedLibrary {
  std::string name;         // "libcudnn.so.9"
  std::string folder;       // where it was
  std::string product;      // "cuDNN"
  std::string to_install;   // "cuDNN 9"
  bool is_for_all = false;  // others that are loaded later find what is in it
};

// Errors: execution, saying why it cannot be loaded and what to install.
Result<void*> open_shared(const SharedLibrary& library);
// Null where the library that is installed has none of that name; then an error of kind execution.
Result<void*> find_in_shared(const SharedLibrary& library, void* opened, const char* name);

// Finds a function by its type.
template <class Function>
Status find_function(const SharedLibrary& library, void* opened, const char* name, Function& function) {
  function = reinterpret_cast<Function>(PX_TRY(find_in_shared(library, opened, name)));
  return {};
}

}  // namespace parallax::runtime
