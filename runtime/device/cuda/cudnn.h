// SPDX-License-Identifier: Apache-2.0
// cuDNN 9, loaded by the first who convolves: the program runs where it is not installed, on kernels of its
// own. Of cuDNN only the graph API is called.
#pragma once

#include <string>

#include "inspector/base/result.h"

namespace parallax::runtime {

// "9.19.0", "not found", or why this build has none. Looks for the library.
std::string cudnn_version();

}  // namespace parallax::runtime

#ifdef PX_WITH_CUDNN

#include <cudnn_graph.h>

// clang-format off
#define PX_CUDNN_FUNCTIONS(X) \
  X(cudnnBackendCreateDescriptor) X(cudnnBackendDestroyDescriptor) X(cudnnBackendExecute) X(cudnnBackendFinalize) \
  X(cudnnBackendGetAttribute) X(cudnnBackendSetAttribute) X(cudnnCreate) X(cudnnDestroy) X(cudnnGetErrorString) \
  X(cudnnGetLastErrorString) X(cudnnGetVersion) X(cudnnSetStream)
// clang-format on

namespace parallax::runtime {

// The library's functions under their own names. The tests replace them.
struct Cudnn {
#define PX_MEMBER(name) decltype(&::name) name = nullptr;
  PX_CUDNN_FUNCTIONS(PX_MEMBER)
#undef PX_MEMBER
};

// Once in a process; every later call answers as the first. Errors: execution, when the library or a function of it is
// not there.
Status load_cudnn();
// After load_cudnn() went well.
const Cudnn& cudnn();

}  // namespace parallax::runtime

#endif
