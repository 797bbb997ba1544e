// SPDX-License-Identifier: Apache-2.0
// Functions of cuBLAS and cublasLt by their names in the libraries.
#ifdef PX_WITH_CUDA

#include "runtime/device/cuda/cublas.h"

#include "inspector/base/check.h"
#include "runtime/device/cuda/shared_library.h"

namespace parallax::runtime {
namespace {

// Macros of cublas_v2.h give some functions another name, which is the one in the library.
#define PX_TEXT_OF(text) #text
#define PX_NAME_OF(name) PX_TEXT_OF(name)

Result<Cublas> load() {
  const std::string version = std::to_string(CUBLAS_VER_MAJOR);
  const SharedLibrary light{"libcublasLt.so." + version, PX_CUBLAS_FOLDER, "cuBLAS", "cuBLAS of CUDA " + version, true};
  SharedLibrary full = light;
  full.name = "libcublas.so." + version;
  void* light_opened = PX_TRY(open_shared(light));
  void* full_opened = PX_TRY(open_shared(full));
  Cublas made;
#define PX_FIND(name) PX_TRY(find_function(full, full_opened, PX_NAME_OF(name), made.name));
  PX_CUBLAS_FUNCTIONS(PX_FIND)
#undef PX_FIND
#define PX_FIND(name) PX_TRY(find_function(light, light_opened, PX_NAME_OF(name), made.name));
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
