// SPDX-License-Identifier: Apache-2.0
// By the dynamic loader, whose errors are kept from the first attempt.
#ifdef PX_WITH_CUDA

#include "runtime/device/cuda/shared_library.h"

#include <dlfcn.h>

#include "inspector/base/loading/late_library.h"

namespace parallax::runtime {

Result<void*> open_shared(const SharedLibrary& library) {
  const int flags = RTLD_NOW | (library.is_for_all ? RTLD_GLOBAL : RTLD_LOCAL);
  const OpenedLibrary opened = open_late_library(library.name, library.folder, flags);
  if (opened.handle != nullptr) return opened.handle;
  return execution_error("cuda: cannot load " + library.name + " (" + opened.problem + "): install " +
                         library.to_install);
}

Result<void*> find_in_shared(const SharedLibrary& library, void* opened, const char* name) {
  if (void* found = ::dlsym(opened, name)) return found;
  return execution_error("cuda: the " + library.product + " that is installed has no " + name);
}

}  // namespace parallax::runtime

#endif
