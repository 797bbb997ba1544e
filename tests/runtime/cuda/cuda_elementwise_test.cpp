// SPDX-License-Identifier: Apache-2.0
// Maps, broadcasts, conversions, transposes and copies on a GPU against the host.
#include "tests/runtime/elementwise_cases.h"

namespace parallax {
namespace {

TEST(CudaElementwise, HasTheHostsBits) {
  const auto cuda = make_cuda_executor();
  if (!cuda.ok()) GTEST_SKIP() << cuda.error().message;
  for (const auto& each : elementwise_cases::elementwise_cases()) sorting_cases::expect_same_as_host(**cuda, each);
}

}  // namespace
}  // namespace parallax
