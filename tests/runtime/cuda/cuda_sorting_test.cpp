// SPDX-License-Identifier: Apache-2.0
// TopK, Unique, ScatterElements, NonZero and CumSum on a GPU against the host: a row of a million elements, and many
// short rows.
#include "tests/runtime/sorting_cases.h"

namespace parallax {
namespace {

TEST(CudaSorting, HasTheHostsBits) {
  const auto cuda = make_cuda_executor();
  if (!cuda.ok()) GTEST_SKIP() << cuda.error().message;
  for (const auto& each : sorting_cases::sorting_cases(1000000, 10000)) {
    sorting_cases::expect_same_as_host(**cuda, each);
  }
}

}  // namespace
}  // namespace parallax
