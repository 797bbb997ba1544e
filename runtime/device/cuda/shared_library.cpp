// SPDX-License-Identifier: Apache-2.0
// By the dynamic loader, whose errors are kept from the first attempt.
#ifdef PX_WITH_CUDA

#include "runtime/device/cuda/shared_library.h"

#include <dlfcn.h>

namespace parallax::runtime {

Result<void*> open_shared(const SharedLibrary& library) {
  const int flags = RTLD_NOW | (library.is_for_all ? RTLD_GLOBAL : RTLD_LOCAL);
  if (void* opened = ::dlopen(library.name.c_str(), flags)) return opened;
  const char* reported = ::dlerror();
  const std::string problem = reported == nullptr ? "" : reported;
  const bool has_folder = library.folder.starts_with('/');  // never one that depends on the current folder
  if (void* opened = has_folder ? ::dlopen((library.folder + "/" + library.name).c_str(), flags) : nullptr)
    return opened;
  return execution_error("cuda: cannot load " + library.name + " (" + problem + "): install " + library.to_install);
}

Result<void*> find_in_shared(const SharedLibrary& library, void* opened, const char* name) {
  if (void* found = ::dlsym(opened, name)) return found;
  return execution_error("cuda: the " + library.product + " that is installed has no " + name);
}

}  // namespace parallax::runtime

#endif
