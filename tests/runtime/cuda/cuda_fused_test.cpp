// SPDX-License-Identifier: Apache-2.0
// Fused pointwise nodes as nvcc has compiled them: the bits of the nodes themselves.
#include "tests/runtime/plan/pointwise_graphs.h"

namespace parallax::cuda_fused_test {
namespace {

std::unique_ptr<Executor> make_cuda() { return make_cuda_executor().take(); }

TEST(CudaFused, PointwiseNodesHaveTheBitsOfTheirParts) {
  const auto cuda = make_cuda_executor();
  if (!cuda.ok()) GTEST_SKIP() << cuda.error().message;
  pointwise_graphs::expect_same_bits_in_all_types(pointwise_graphs::rotations(), make_cuda);
  pointwise_graphs::expect_same_bits_in_all_types(pointwise_graphs::chains(), make_cuda);
}

}  // namespace
}  // namespace parallax::cuda_fused_test
