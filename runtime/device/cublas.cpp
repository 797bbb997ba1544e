// The libraries are looked for where the loader looks, then where they were when the program was built.
#ifdef PX_WITH_CUDA

#include "runtime/device/cublas.h"

#include <dlfcn.h>

#include "inspector/base/check.h"

namespace parallax::runtime {
namespace {

// Macros of cublas_v2.h give some functions another name, which is the one in the library.
#define PX_TEXT_OF(text) #text
#define PX_NAME_OF(name) PX_TEXT_OF(name)

Result<void*> open_shared(const std::string& name) {
  if (void* library = ::dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
  const char* told = ::dlerror();
  const std::string problem = told == nullptr ? "" : told;
  if (void* library = ::dlopen((PX_CUBLAS_FOLDER "/" + name).c_str(), RTLD_NOW | RTLD_GLOBAL)) return library;
  return execution_error("cuda: cannot load " + name + " (" + problem + "): install cuBLAS of CUDA " +
                         std::to_string(CUBLAS_VER_MAJOR));
}

template <class Function>
Status find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function != nullptr) return {};
  return execution_error(std::string("cuda: the cuBLAS that is installed has no ") + name);
}

// Never closed: handles may live as long as the process.
Result<Cublas> load() {
  const std::string version = "." + std::to_string(CUBLAS_VER_MAJOR);
  void* light = PX_TRY(open_shared("libcublasLt.so" + version));
  void* full = PX_TRY(open_shared("libcublas.so" + version));
  Cublas made;
#define PX_FIND(name) PX_TRY(find_function(full, PX_NAME_OF(name), made.name));
  PX_CUBLAS_FUNCTIONS(PX_FIND)
#undef PX_FIND
#define PX_FIND(name) PX_TRY(find_function(light, PX_NAME_OF(name), made.name));
  PX_CUBLASLT_FUNCTIONS(PX_FIND)
#undef PX_FIND
  return made;
}

const Result<Cublas>& loaded() {
  static const Result<Cublas> once = load();
  return once;
}

}  // namespace

Status load_cublas() { return loaded().ok() ? Status() : Status(loaded().error()); }

const Cublas& cublas() {
  PX_CHECK(loaded().ok());
  return *loaded();
}

std::string cublas_version() {
  if (!loaded().ok()) return "not found";
  std::string text;
  for (const libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int number = 0;
    cublas().cublasGetProperty(part, &number);
    text += (text.empty() ? "" : ".") + std::to_string(number);
  }
  return text;
}

}  // namespace parallax::runtime

#endif
