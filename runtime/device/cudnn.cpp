// The library is looked for where the loader looks, then where it was when the program was built.
#include "runtime/device/cudnn.h"

#ifdef PX_WITH_CUDNN

#include <dlfcn.h>

#include "inspector/base/check.h"

namespace parallax::runtime {
namespace {

template <class Function>
Status find_cudnn_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function != nullptr) return {};
  return execution_error(std::string("cuda: the cuDNN that is installed has no ") + name);
}

// Never closed: handles may live as long as the process. What it loads in turn lies beside it.
Result<Cudnn> load_cudnn_functions() {
  const std::string name = "libcudnn.so." + std::to_string(CUDNN_MAJOR);
  void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  const char* told = library == nullptr ? ::dlerror() : nullptr;
  const std::string problem = told == nullptr ? "" : told;
  if (library == nullptr) library = ::dlopen((PX_CUDNN_FOLDER "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return execution_error("cuda: cannot load " + name + " (" + problem + "): install cuDNN " +
                           std::to_string(CUDNN_MAJOR));
  }
  Cudnn made;
#define PX_FIND(name) PX_TRY(find_cudnn_function(library, #name, made.name));
  PX_CUDNN_FUNCTIONS(PX_FIND)
#undef PX_FIND
  return made;
}

const Result<Cudnn>& cudnn_functions() {
  static const Result<Cudnn> once = load_cudnn_functions();
  return once;
}

}  // namespace

Status load_cudnn() { return cudnn_functions().ok() ? Status() : Status(cudnn_functions().error()); }

const Cudnn& cudnn() {
  PX_CHECK(cudnn_functions().ok());
  return *cudnn_functions();
}

std::string cudnn_version() {
  if (!cudnn_functions().ok()) return "not found";
  const size_t version = cudnn().cudnnGetVersion();  // of 9.19.0: 91900
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace parallax::runtime

#else

namespace parallax::runtime {

std::string cudnn_version() { return "not in this build"; }

}  // namespace parallax::runtime

#endif
