// SPDX-License-Identifier: Apache-2.0
// cuBLAS is where a program that was built with it finds it, and has every function that is called.
#ifdef PX_WITH_CUDA

#include "runtime/device/cuda/cublas.h"

#include <gtest/gtest.h>

namespace parallax::runtime {
namespace {

TEST(Cublas, IsFoundWithAllItsFunctions) {
  const Status status = load_cublas();
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(cublas_version().substr(0, cublas_version().find('.')), std::to_string(CUBLAS_VER_MAJOR));
  EXPECT_STRNE(cublas().cublasGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED),
               cublas().cublasGetStatusString(CUBLAS_STATUS_SUCCESS));
}

}  // namespace
}  // namespace parallax::runtime

#endif
