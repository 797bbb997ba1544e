// SPDX-License-Identifier: Apache-2.0
// Functions of cuDNN by their names in the library.
#include "runtime/device/cuda/cudnn.h"

#ifdef PX_WITH_CUDNN

#include "inspector/base/check.h"
#include "runtime/device/cuda/shared_library.h"

namespace parallax::runtime {
namespace {

// The libraries that it loads are next to it, or where its own RUNPATH says: NVRTC of another wheel.
Result<Cudnn> load_cudnn_functions() {
  const std::string version = std::to_string(CUDNN_MAJOR);
  const SharedLibrary library{"libcudnn.so." + version, PX_CUDNN_FOLDER, "cuDNN", "cuDNN " + version};
  void* opened = PX_TRY(open_shared(library));
  Cudnn made;
#define PX_FIND(name) PX_TRY(find_function(library, opened, #name, made.name));
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
